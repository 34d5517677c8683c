"""The contract of the broker: every clause holds on nats-server and in memory, and finds out the fake that breaks it.

A clause that no fake can break would prove nothing, so each names its own; the third test runs it there. The contract is mostly about
what a broker does not promise: what is kind to us in memory would hide a defect that the real one shows.
"""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import nats
import pytest
import pytest_asyncio

from contract.broker import delivering_clauses, life_clauses, publishing_clauses
from contract.broker.bench import Denied, Gone, MemoryBench
from contract.broker.clauses import CLAUSES, Clause
from contract.broker.real_bench import RealBench
from kit.lone_nats import LoneNats
from kit.promises import promise
from kit.servers import Broker
from longtake.memory.broker_habits import Habits

MODULES = (publishing_clauses, delivering_clauses, life_clauses)
CLAUSES_MIN = 60
SHARED = [clause for clause in CLAUSES if not clause.alone]
ALONE = [clause for clause in CLAUSES if clause.alone]


def _names(clauses: list[Clause]) -> list[str]:
    return [clause.name for clause in clauses]


@pytest_asyncio.fixture
async def real(broker: Broker) -> AsyncIterator[RealBench]:
    """The server of the session, without streams."""
    bench = RealBench(broker.connect)
    await bench.open()
    yield bench


@pytest_asyncio.fixture
async def real_alone(tmp_path: Path) -> AsyncIterator[RealBench]:
    """A server of its own, which may be restarted."""
    server = LoneNats(tmp_path)
    await server.start()
    bench = RealBench(lambda: nats.connect(server.url), server, tmp_path)
    try:
        await bench.open()
        yield bench
        await bench.client.close()
    finally:
        await server.kill()


@pytest.mark.parametrize("clause", SHARED, ids=_names(SHARED))
async def test_nats_server_keeps_it(clause: Clause, real: RealBench) -> None:
    await clause.body(real)


@pytest.mark.parametrize("clause", ALONE, ids=_names(ALONE))
async def test_nats_server_keeps_it_through_its_own_end(clause: Clause, real_alone: RealBench) -> None:
    await clause.body(real_alone)


@pytest.mark.parametrize("clause", CLAUSES, ids=_names(CLAUSES))
async def test_memory_keeps_it(clause: Clause) -> None:
    await clause.body(MemoryBench())


@pytest.mark.parametrize("clause", CLAUSES, ids=_names(CLAUSES))
async def test_a_wrong_fake_is_found_out(clause: Clause) -> None:
    with pytest.raises((AssertionError, Denied, Gone, IndexError, pytest.fail.Exception)):
        await clause.body(MemoryBench(clause.wrong_habits()))


def test_every_habit_has_a_clause_that_would_miss_it() -> None:
    assert all(module.__doc__ for module in MODULES)
    assert len(set(_names(CLAUSES))) == len(CLAUSES) >= CLAUSES_MIN
    assert {clause.wrong for clause in CLAUSES} == set(Habits.__struct_fields__)


@promise("T36")
def test_the_page_of_habits_names_every_clause_and_no_other() -> None:
    page = Path(__file__).parents[3] / "docs" / "habits.md"
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line.count("|") == 5]
    named = re.findall(r"`([a-z0-9_]+)`", " ".join(row.split("|")[4] for row in rows))

    assert sorted(named) == sorted(_names(CLAUSES))
