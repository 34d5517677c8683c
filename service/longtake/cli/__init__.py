"""The command line (floor 6): one module a group of commands, each thin. `main` is the entry point."""

from longtake.cli.main import main

__all__ = ["main"]
