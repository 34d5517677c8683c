"""A cancelled wait for a standby is a success with a warning (`reliability.md` 6, point 15; F34)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import msgspec
import pytest
import pytest_asyncio

from kit.probe import eventually
from longtake.embedded import THROWAWAY, EmbeddedServers

WARNING = "01000"


@pytest_asyncio.fixture
async def replicated(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedServers]:
    """A Postgres that is to wait for a standby which is not there."""
    home: Path = tmp_path_factory.mktemp("replicated")
    settings = {**THROWAWAY.postgres, "wal_level": "replica", "max_wal_senders": "4"}
    servers = EmbeddedServers(home, profile=msgspec.structs.replace(THROWAWAY, postgres=settings))
    await servers.start()
    yield servers
    await servers.stop()


@pytest.mark.parametrize("level", ["on", "local"], ids=["waits", "does_not_wait"])
async def test_a_cancelled_wait_for_a_standby_succeeds_with_a_warning_that_a_listener_hears(
    replicated: EmbeddedServers, level: str
) -> None:
    """The caller is told "INSERT 0 1" for a row that no standby has. With `local` there is no wait and no warning."""
    address = replicated.postgres_connect_kwargs("postgres")
    operator, writer = await asyncpg.connect(**address), await asyncpg.connect(**address)
    await operator.execute("create table facts (x int)")
    await operator.execute("alter system set synchronous_standby_names = 'nobody'")
    await operator.execute("select pg_reload_conf()")
    heard: list[str] = []
    writer.add_log_listener(lambda _connection, message: heard.append(message.sqlstate))

    async def is_set() -> bool:
        return bool(await writer.fetchval("show synchronous_standby_names"))

    await eventually(is_set, "the standby is asked for")
    await writer.execute(f"set synchronous_commit = {level}")
    writing = asyncio.create_task(writer.execute("insert into facts values (1)"))

    async def waits() -> bool:
        event = await operator.fetchval(
            "select wait_event from pg_stat_activity where pid = $1", writer.get_server_pid()
        )
        return event == "SyncRep" or writing.done()

    await eventually(waits, "the writer waits for the standby, or is done")
    assert writing.done() is (level == "local")
    await operator.execute("select pg_cancel_backend($1)", writer.get_server_pid())

    assert await writing == "INSERT 0 1"
    assert (WARNING in heard) is (level == "on")
    await writer.close()
    await operator.close()
