"""What asyncpg does on a wire that went dead (`reliability.md` 6, point 14): bounded with a timeout, unbounded without."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from contract.postgres_habits.wire import Wire
from kit.servers import Database
from longtake.postgres.pool import Connection

BOUND = 0.3
PATIENCE = 1.0
"""Seconds after which a thing without a bound is given up."""


@pytest_asyncio.fixture
async def wire(bare_database: Database) -> AsyncIterator[Wire]:
    address = bare_database.connect_kwargs
    async with Wire(f"{address['host']}/.s.PGSQL.{address['port']}") as wire:
        yield wire


def address(database: Database, wire: Wire) -> dict[str, Any]:
    """The database, over the wire."""
    return {**database.connect_kwargs, "host": "127.0.0.1", "port": wire.port}


async def seconds_until_given_up(work: Awaitable[Any]) -> float:
    """How long it took to raise TimeoutError, at most our patience."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            await work
    return loop.time() - began


@pytest.mark.parametrize("timeout", [BOUND, None], ids=["bounded", "unbounded"])
async def test_closing_is_bounded_only_by_its_own_timeout(
    bare_database: Database, wire: Wire, timeout: float | None
) -> None:
    connection = await asyncpg.connect(**address(bare_database, wire))
    wire.silence()
    took = await seconds_until_given_up(connection.close(timeout=timeout))

    assert (took < PATIENCE * 0.8) is (timeout is not None)
    assert connection.is_closed()
    connection.terminate()


@pytest.mark.parametrize("timeout", [BOUND, None], ids=["bounded", "unbounded"])
async def test_releasing_is_bounded_only_by_its_own_timeout(
    bare_database: Database, wire: Wire, timeout: float | None
) -> None:
    """The reset of the session is what hangs. asyncpg shields it, so a timeout around `release` bounds nothing either."""
    pool = await asyncpg.create_pool(**address(bare_database, wire), min_size=1, max_size=1)
    connection = await pool.acquire()
    wire.silence()
    took = await seconds_until_given_up(pool.release(connection, timeout=timeout))
    assert (took < PATIENCE * 0.8) is (timeout is not None)

    wire.heal()
    async with asyncio.timeout(10):
        async with pool.acquire() as again:
            assert await again.fetchval("select 1") == 1
    pool.terminate()


async def test_a_pool_of_ours_gives_a_dead_connection_up_within_its_bounds(
    bare_database: Database, wire: Wire
) -> None:
    """No reset is sent at release, and the cancelling is bounded by the time to connect; the tests above are the control."""
    pool = await asyncpg.create_pool(
        **address(bare_database, wire),
        min_size=1,
        max_size=1,
        command_timeout=BOUND,
        timeout=BOUND,
        connection_class=Connection,
    )
    wire.silence()
    assert await seconds_until_given_up(pool.fetchval("select 1")) < PATIENCE * 0.9
    wire.heal()
    async with asyncio.timeout(10):
        assert await pool.fetchval("select 1") == 1
        await pool.close()


async def test_a_query_that_timed_out_leaves_its_connection_open_and_useless(
    bare_database: Database, wire: Wire
) -> None:
    """So whoever meets a timeout terminates; the control is the same query while the wire lives."""
    connection = await asyncpg.connect(**address(bare_database, wire))
    assert await connection.fetchval("select 1", timeout=BOUND * 10) == 1
    wire.silence()
    assert await seconds_until_given_up(connection.fetchval("select 1", timeout=BOUND)) < PATIENCE * 0.8
    assert not connection.is_closed()
    connection.terminate()

    assert connection.is_closed()
