"""The contract of the authority: every clause holds on Postgres and in memory, and finds out the fake that breaks it.

A clause that no fake can break would prove nothing, so each names its own; the third test runs it there.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from contract.store.all_clauses import CLAUSES, MODULES
from contract.store.bench import MemoryBench, PostgresBench, empty
from contract.store.clauses import Clause
from kit.servers import ADMIN_DATABASE, Servers
from longtake.errors import LongtakeError

CLAUSES_MIN = 40

every_clause = pytest.mark.parametrize("clause", CLAUSES, ids=[c.name.replace(" ", "_") for c in CLAUSES])


@pytest.fixture(scope="module")
def address(servers: Servers, migrated_template: str) -> Iterator[dict[str, Any]]:
    """A database for all clauses; one for each would take longer than the clauses."""
    name = "contract_of_the_store"
    servers.thread.run(_administer(servers, f'create database "{name}" template "{migrated_template}"'))
    yield servers.embedded.postgres_connect_kwargs(name)
    servers.thread.run(_administer(servers, f'drop database "{name}" with (force)'))


async def _administer(servers: Servers, statement: str) -> None:
    connection = await asyncpg.connect(**servers.embedded.postgres_connect_kwargs(ADMIN_DATABASE))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@pytest_asyncio.fixture
async def postgres(address: dict[str, Any]) -> AsyncIterator[PostgresBench]:
    """The real authority without a row."""
    connection = await asyncpg.connect(**address)
    try:
        await empty(connection)
    finally:
        await connection.close()
    bench = await PostgresBench.open(address)
    try:
        yield bench
    finally:
        await bench.close()


@every_clause
async def test_postgres_keeps_it(clause: Clause, postgres: PostgresBench) -> None:
    await clause.body(postgres)


@every_clause
async def test_memory_keeps_it(clause: Clause) -> None:
    await clause.body(MemoryBench())


@every_clause
async def test_a_wrong_fake_is_found_out(clause: Clause) -> None:
    with clause.wrong() as wrong, pytest.raises((AssertionError, LongtakeError, pytest.fail.Exception)):
        await clause.body(wrong)


def test_there_are_clauses_enough_and_each_has_its_own_name() -> None:
    assert all(module.__doc__ for module in MODULES)
    assert len({clause.name for clause in CLAUSES}) == len(CLAUSES) >= CLAUSES_MIN
