"""The program `longtake`: its commands, and the one place where errors become a message and an exit code.

A command is imported when it is used, so that `longtake version` does not wait for a web framework. Nobody ever sees a
traceback: what was not foreseen is one line, and the log file has the rest.
"""

import importlib.metadata
import importlib.util
import sys
from collections.abc import Sequence

import msgspec
from cyclopts import App

from longtake.errors import LongtakeError, Refused
from longtake.telemetry.logs import LogSettings, configure_logging

EXIT_FAILED = 1
EXIT_NO_ANSWER = 2
EXIT_BROKEN = 70
EXIT_INTERRUPTED = 130

COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("longtake.cli.up:up", "Run everything here until Ctrl-C, with Postgres and NATS of its own"),
    "demo": ("longtake.cli.demo:demo", "Turn a brief into a finished video ad, and show how"),
    "serve": ("longtake.cli.serve:serve", "Run some roles over a Postgres and a NATS of one's own"),
    "migrate": ("longtake.cli.serve:migrate", "Bring the database up to date"),
    "doctor": (
        "longtake.cli.doctor:app",
        "Explain what on this machine may stand in the way, and go through a restore",
    ),
    "run": ("longtake.cli.run:app", "Start, watch and control runs"),
    "history": ("longtake.cli.history:app", "Show, verify, export and judge the events of runs"),
    "projection": ("longtake.cli.projection:app", "Compare the read model with the events, or make it anew"),
    "ledger": ("longtake.cli.ledger:app", "Ask whether the money of all runs keeps its laws"),
    "plan": ("longtake.cli.plan:app", "Show, compare and check what workflows would do and cost"),
    "testbed": ("longtake.cli.testbed:app", "Try the application's tools without any server"),
    "schedule": ("longtake.cli.schedule:app", "Start workflows at the times of a cron expression"),
    "keys": ("longtake.cli.keys:app", "Make, list and revoke API keys"),
    "schemas": ("longtake.cli.schemas:app", "Write or check the JSON Schemas"),
    "version": ("longtake.cli.main:version", "Print the version"),
}
"""Name to (where it is, what it does); a group whose module is not there is left out."""

ANSWERING = (("plan", "diff"), ("plan", "check"))
"""Commands that answer by their code, 0 or 1, as `diff` does; without an answer they end with EXIT_NO_ANSWER."""


def build_app() -> App:
    """The program's commands, none of them imported yet."""
    app = App(
        name="longtake",
        help="Durable workflows for work that takes minutes, costs money and depends on unreliable outsiders.",
        version=_version,
        help_format="plaintext",
        result_action="return_value",
    )
    for name, (place, help_) in COMMANDS.items():
        if importlib.util.find_spec(place.partition(":")[0]) is not None:
            app.command(place, name=name, help=help_)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(run_command(given))


def run_command(arguments: Sequence[str]) -> int:
    """Run one command; every error is one message and a code that is not zero."""
    undo = configure_logging(LogSettings())
    try:
        result = build_app()(arguments)
        return result if isinstance(result, int) else 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else EXIT_FAILED if end.code else 0
        return _failure_code(arguments) if code == EXIT_FAILED else code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough, as `head` does.
        # The interpreter must not flush into the closed pipe at its end.
        sys.stdout = None
        return 0
    except Refused as refused:
        places = "".join(f"\n  {e.pointer}: {e.message}. {e.remedy}" for e in refused.problem.errors)
        return _failed(f"{refused.problem.title}: {refused.problem.detail}{places}", arguments)
    except LongtakeError as error:
        return _failed(str(error), arguments)
    except TimeoutError as error:
        return _failed(str(error) or "it took longer than was allowed", arguments)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return _failed(f"{name}{error.strerror or error}", arguments)
    except BaseExceptionGroup as group:
        first: BaseException = group
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        return _unforeseen(first, arguments)
    except Exception as error:  # noqa: BLE001 - the last resort: one line instead of a traceback
        return _unforeseen(error, arguments)
    finally:
        undo()


def version(*, json: bool = False) -> None:
    """Print the version."""
    if json:
        print(msgspec.json.encode({"version": _version()}).decode())
    else:
        print(_version())


def _version() -> str:
    try:
        return importlib.metadata.version("longtake")
    except importlib.metadata.PackageNotFoundError:
        return "unknown (not installed)"


def _failure_code(arguments: Sequence[str]) -> int:
    return EXIT_NO_ANSWER if tuple(arguments[:2]) in ANSWERING else EXIT_FAILED


def _failed(message: str, arguments: Sequence[str], code: int | None = None) -> int:
    if "--json" in arguments:
        print(msgspec.json.encode({"error": message}).decode(), file=sys.stderr)
    else:
        print(f"longtake: {message}", file=sys.stderr)
    return _failure_code(arguments) if code is None else code


def _unforeseen(error: BaseException, arguments: Sequence[str]) -> int:
    if isinstance(error, LongtakeError):
        return _failed(str(error), arguments)
    return _failed(
        f"something broke that nobody foresaw: {type(error).__name__}: {error}", arguments, EXIT_BROKEN
    )
