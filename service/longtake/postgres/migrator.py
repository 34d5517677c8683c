"""The migrator: pogo applies the files, each in its own transaction; we add the lock and the checksums.

Two migrators wait for each other on an advisory lock. A file that was applied may never change: its SHA-256 is kept,
and a difference, or an applied file that this program does not have, is refused with what to do.
"""

import hashlib
import logging
from pathlib import Path
from typing import NamedTuple

import asyncpg
from pogo_core.util import migrate as pogo

from longtake.crash_points import reach
from longtake.errors import MigrationError
from longtake.postgres.failures import repeated
from longtake.postgres.statements import statement

_LOCK_KEY = 0x6C6F6E67  # "long", in the advisory key space of this database
_SCHEMA = "longtake"

_quiet = logging.getLogger("longtake.postgres.pogo")
# pogo warns of each file it applies; the report of `migrate` says the same once.
_quiet.setLevel(logging.ERROR)


class MigrationReport(NamedTuple):
    """Names of files that were applied now, and of all that stand."""

    applied: tuple[str, ...]
    standing: tuple[str, ...]


async def migrate(connection: asyncpg.Connection, directory: Path) -> MigrationReport:
    """Bring the schema up to the files of the directory.

    Raises MigrationError when an applied file has changed, or when the schema is newer than this program.
    """
    files = {
        path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(directory.glob("*.sql"))
    }
    if not files:
        raise MigrationError(f"there are no migrations in {directory}")
    await connection.execute(statement("migration_lock"), _LOCK_KEY)
    try:
        await connection.execute(statement("schema_file_create"))
        known = {row["name"]: row["sha256"] for row in await connection.fetch(statement("schema_file_list"))}
        _check(files, known)
        await pogo.apply(connection, directory, schema_name=_SCHEMA, logger=_quiet)
        fresh = [name for name in files if name not in known]
        for name in fresh:
            reach("migration.mid")
            await connection.execute(statement("schema_file_insert"), name, files[name])
        return MigrationReport(tuple(fresh), tuple(files))
    finally:
        await connection.execute(statement("migration_unlock"), _LOCK_KEY)


async def check_schema(connection: asyncpg.Connection | asyncpg.Pool, directory: Path) -> None:
    """Refuse a schema that lacks what this program needs; one that has more is the next release's, and does (F59).

    Raises MigrationError, AuthorityUnavailable.
    """
    try:
        rows = await repeated(lambda: connection.fetch(statement("schema_file_list")))
    except asyncpg.UndefinedTableError as error:
        raise MigrationError("the database has no longtake in it yet: run `longtake migrate`") from error
    standing = {row["name"] for row in rows}
    if missing := [path.stem for path in sorted(directory.glob("*.sql")) if path.stem not in standing]:
        raise MigrationError(
            f"the database is older than this program, it lacks {', '.join(missing)}: run `longtake migrate` first"
        )


def _check(files: dict[str, str], known: dict[str, str]) -> None:
    for name, sha256 in known.items():
        if name not in files:
            raise MigrationError(
                f"the database has migration {name}, which this program does not know: it is newer. "
                "Run the newer program, or restore an older database."
            )
        if files[name] != sha256:
            raise MigrationError(
                f"migration {name} was changed after it was applied (then {sha256[:12]}, now {files[name][:12]}). "
                "Restore the file, and put the change into a new migration."
            )
