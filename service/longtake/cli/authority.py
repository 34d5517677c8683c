"""The authority for commands that look into the database itself: one's own, a running `up`'s, or one started for it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from longtake.embedded import DataDirBusy, EmbeddedServers, running_postgres
from longtake.errors import AuthorityUnavailable, ConfigurationError
from longtake.postgres.environments import check_store
from longtake.postgres.pool import open_pool
from longtake.settings import Settings

_POOL_SIZE = 2


@asynccontextmanager
async def postgres_address(settings: Settings, *, make: bool = False) -> AsyncIterator[Mapping[str, Any]]:
    """Connect arguments of the store. `make`: a data directory without a store gets one."""
    if settings.postgres_url:
        yield {"dsn": settings.postgres_url}
        return
    if not make and not (settings.data_dir / "postgres").exists():
        raise ConfigurationError(
            f"there is no store in {settings.data_dir}: run `longtake up` there once, or name another "
            "by --data-dir or LONGTAKE_POSTGRES_URL"
        )
    servers = EmbeddedServers(settings.data_dir)
    try:
        await servers.start()
    except DataDirBusy:
        address = running_postgres(settings.data_dir)
        if address is None:
            raise
        yield address
        return
    try:
        yield servers.postgres_connect_kwargs()
    finally:
        await servers.stop()


@asynccontextmanager
async def authority(settings: Settings) -> AsyncIterator[asyncpg.Pool]:
    """A small pool of connections to the store."""
    async with postgres_address(settings) as address:
        try:
            pool = await open_pool(address, size=_POOL_SIZE, name="cli")
        except (AuthorityUnavailable, asyncpg.PostgresError, ValueError) as error:
            raise ConfigurationError(f"the database cannot be reached: {error}") from error
        try:
            await check_store(pool, settings.environment)
            yield pool
        except asyncpg.UndefinedTableError as error:
            raise ConfigurationError(
                "the database has no longtake in it yet: run `longtake migrate`"
            ) from error
        finally:
            await pool.close()
