"""To which environment a store belongs, and who may touch it: a laptop pointed at production's URL is refused (G51).

The name is in the store. Whoever comes says which one is meant (LONGTAKE_ENVIRONMENT), and is compared before anything is
written: before migrations, before roles, before commands of the line.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import asyncpg

from longtake.errors import ConfigurationError
from longtake.postgres.migrator import MigrationReport, migrate
from longtake.postgres.statements import statement

UNNAMED: Final = "default"


def check_environment(environment: str, named: str) -> None:
    """Raise ConfigurationError when a process was started for another environment than the store's."""
    if environment != named:
        raise ConfigurationError(
            f"this database belongs to the environment {named!r}, and this process was started for "
            f"{environment!r}. Set LONGTAKE_ENVIRONMENT={named} if that is what you mean."
        )


async def check_store(connection: asyncpg.Connection | asyncpg.Pool, environment: str) -> None:
    """Refuse a store of another environment. Raises ConfigurationError; asyncpg.UndefinedTableError where there is none."""
    check_environment(environment, await connection.fetchval(statement("environment_read")))


async def migrate_store(
    postgres: Mapping[str, Any], directory: Path, environment: str, *, naming: bool = False
) -> MigrationReport:
    """Bring a store of this environment up to date. A new one gets the name; one in use, without a name, if `naming`.

    Raises ConfigurationError before anything is written, MigrationError.
    """
    connection = await asyncpg.connect(**postgres)
    try:
        if await connection.fetchval(statement("store_there")):
            named = await connection.fetchval(statement("environment_read"))
            in_use = await connection.fetchval(statement("store_in_use"))
            if named != UNNAMED or (in_use and not naming):
                check_environment(environment, named)
        report = await migrate(connection, directory)
        if environment != UNNAMED:
            await connection.execute(statement("environment_name"), environment)
        return report
    finally:
        await connection.close()
