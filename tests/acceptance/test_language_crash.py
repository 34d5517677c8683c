"""kill -9 of the whole service at the moments at which a run depends on more than its workers.

Each case brings a run to its moment, kills the process there, starts another one, and looks how the run ends. Moments
that last no time are held open from outside: by a door that work waits at, or by a row that the test has locked.
"""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest

from kit.instance import instance
from kit.language_app import begun, door
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import FUNDS, PRINCIPAL
from kit.witnessing import WITNESS, times, witnessed
from longtake.cli.main import run_command
from longtake.client import Client

pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("whole-service")]

END_SECONDS = 40.0


class Scene(msgspec.Struct, frozen=True):
    """What a case has in its hands before the kill."""

    client: Client
    connection: asyncpg.Connection
    lock: asyncpg.Connection
    """Holds what must stand still; let go after the kill."""

    async def start(self, workflow: str, id: str = "one", **given: Any) -> str:
        accepted = await self.client.start(
            workflow, given.pop("input", {}), project="p1", command_id=id, **given
        )
        return str(accepted.run_id)

    async def status(self, run_id: str, status: str) -> None:
        async def there() -> bool:
            return (await self.client.summary(run_id)).status == status

        await eventually(there, f"run {run_id} to be {status}")

    async def holds(self, statement: str, *arguments: object) -> None:
        """Lock rows until the process is dead."""
        await self.lock.execute("begin")
        await self.lock.execute(statement, *arguments)

    async def somebody_waits(self) -> None:
        """Until the service stands still before what is locked."""
        query = "select count(*) from pg_stat_activity where cardinality(pg_blocking_pids(pid)) > 0"
        await eventually(lambda: self.connection.fetchval(query), "the service to wait for a lock")

    async def at_the_door(self) -> None:
        await eventually(begun().exists, "work to stand before the door")


Before = Callable[[Scene], Awaitable[list[str]]]
After = Callable[[Client, list[str]], Awaitable[None]]


async def nothing(client: Client, runs: list[str]) -> None:
    """Nobody helps after the restart."""


async def a_gate_is_open(scene: Scene) -> list[str]:
    run_id = await scene.start("asked@1")
    await scene.status(run_id, "needs_input")
    return [run_id]


async def it_is_answered(client: Client, runs: list[str]) -> None:
    await client.provide_input(runs[0], "choose", answer={"take": 1})


async def a_sleep_is_due_in_the_outage(scene: Scene) -> list[str]:
    # The moment of the kill is before the sleep's end; `outage` sees to it that it is over when we are back.
    return [await scene.start("nap@1")]


async def it_is_paused(scene: Scene) -> list[str]:
    run_id = await scene.start("asked@1")
    await scene.status(run_id, "needs_input")
    await scene.client.pause(run_id)
    return [run_id]


async def it_is_resumed(client: Client, runs: list[str]) -> None:
    assert "paused" == (await client.summary(runs[0])).status
    await client.resume(runs[0])
    await client.provide_input(runs[0], "choose", answer={"take": 1})


async def a_child_is_being_started(scene: Scene) -> list[str]:
    """The child's admission stands before the account, its rows not yet committed."""
    await scene.holds("select 1 from longtake.accounts for update")
    run_id = await scene.start("family@1")
    await scene.somebody_waits()
    return [run_id]


async def the_holder_ends(scene: Scene) -> list[str]:
    """The holder has ended, and whoever lets the next one begin stands before its row."""
    first = await scene.start("voice@1")
    second = await scene.start("voice@1", "two", on_conflict="queue")
    await scene.holds("select 1 from longtake.runs where run_id = $1 for update", uuid.UUID(second))
    await scene.client.send_event(first, "said")
    await scene.client.wait(first, seconds=20)
    await scene.somebody_waits()
    return [first, second]


async def the_second_is_released(client: Client, runs: list[str]) -> None:
    async def offered() -> bool:
        return (await client.summary(runs[1])).status == "running"

    await eventually(offered, "the one in line to begin", END_SECONDS)
    await client.send_event(runs[1], "said")


async def it_is_being_undone(scene: Scene) -> list[str]:
    run_id = await scene.start("shoot@1", input={"holds": True})
    await scene.at_the_door()
    return [run_id]


async def an_expansion_is_reported(scene: Scene) -> list[str]:
    """The worker's answer is kept; the run's row is locked, so nobody decides it."""
    run_id = await scene.start("grown@1")
    await scene.at_the_door()
    await scene.holds("select 1 from longtake.runs where run_id = $1 for update", uuid.UUID(run_id))
    door().touch()
    query = "select count(*) from longtake.effects where run_id = $1 and receipt is not null and closed_at is null"
    await eventually(lambda: scene.connection.fetchval(query, uuid.UUID(run_id)), "the worker's answer")
    return [run_id]


class Case(msgspec.Struct, frozen=True):
    """A moment, what somebody does after the restart, and what must have been done by then, and how often."""

    before: Before
    after: After
    ends: tuple[str, ...]
    done: dict[str, int]
    """Executions by step, over the whole family."""


CASES = [
    Case(a_gate_is_open, it_is_answered, ("completed",), {"after": 1}),
    Case(a_sleep_is_due_in_the_outage, nothing, ("completed",), {"after": 1}),
    Case(it_is_paused, it_is_resumed, ("completed",), {"after": 1}),
    Case(a_child_is_being_started, nothing, ("completed",), {"print": 1, "after": 1}),
    Case(the_holder_ends, the_second_is_released, ("completed", "completed"), {"cut": 2}),
    Case(it_is_being_undone, nothing, ("failed",), {"book": 2, "rent": 2, "break": 1}),
    Case(
        an_expansion_is_reported,
        nothing,
        ("completed",),
        {"scenes": 1, "scenes:1": 1, "scenes:2": 1, "cut": 1},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.before.__name__)
@promise("T34", "T44", "W01")
async def test_killed_at_its_moment_a_run_ends_right_and_nothing_is_done_twice(
    database, broker, tmp_path, monkeypatch, capsys, case
):
    witness = tmp_path / "witness"
    monkeypatch.setenv(WITNESS, str(witness))
    connection, lock = await database.connect(), await database.connect()
    monkeypatch.setenv("LONGTAKE_POSTGRES_URL", database.dsn)
    key = await _key(capsys)

    async with _service(database, broker, tmp_path / "one", key) as (first, client):
        runs = await case.before(Scene(client, connection, lock))
        await first.kill()
    if lock.is_in_transaction():
        await lock.execute("rollback")
    await _until_nobody_is_there(connection)
    await _outage(connection)
    door().touch()

    async with _service(database, broker, tmp_path / "two", key) as (_, client):
        await case.after(client, runs)
        ended = [await client.wait(run_id, seconds=END_SECONDS) for run_id in runs]
        assert tuple(summary.status for summary in ended) == case.ends
        steps = times(witnessed(witness))
        by_step: dict[str, int] = {}
        for (_run, step), count in steps.items():
            by_step[step] = by_step.get(step, 0) + count
        assert by_step == case.done
        await _everything_is_proved(connection, capsys)


async def test_the_witness_would_show_a_second_execution(database, broker, tmp_path, monkeypatch, capsys):
    """The count can fail: two runs where there should be one are two executions."""
    monkeypatch.setenv(WITNESS, str(tmp_path / "witness"))
    connection, lock = await database.connect(), await database.connect()
    monkeypatch.setenv("LONGTAKE_POSTGRES_URL", database.dsn)
    key = await _key(capsys)
    async with _service(database, broker, tmp_path / "one", key) as (_, client):
        scene = Scene(client, connection, lock)
        for run_id in [await scene.start("nap@1"), await scene.start("nap@1", "two")]:
            await client.wait(run_id, seconds=END_SECONDS)

        assert 2 == sum(times(witnessed(tmp_path / "witness")).values()) != CASES[1].done["after"]


@asynccontextmanager
async def _service(database, broker, data_dir: Path, key: str) -> AsyncIterator[tuple[Any, Client]]:
    """A whole service in a process of its own, and a client of it."""
    settings = {"app": "kit.language_app:app", "idle_seconds": 1.0}
    async with (
        instance(database, broker, data_dir, witness=data_dir.parent / "witness", **settings) as process,
        Client(str(process.url), key) as client,
    ):
        yield process, client


async def _key(capsys: pytest.CaptureFixture[str]) -> str:
    """A key, and an account with credits, made as an operator makes them."""
    named = ("--tenant", PRINCIPAL.tenant, "--actor", PRINCIPAL.actor)
    code = await asyncio.to_thread(run_command, ["keys", "create", *named, "--fund", str(FUNDS), "--json"])
    told = capsys.readouterr()
    assert code == 0, told.err
    return str(json.loads(told.out)["key"])


async def _everything_is_proved(connection: asyncpg.Connection, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["projection", "prove"], ["history", "verify"], ["ledger", "check"]):
        assert 0 == await asyncio.to_thread(run_command, command), (command, capsys.readouterr())
    twice = await connection.fetch(
        "select run_id, type, data->>'step' as step from longtake.events where type in "
        "('step_succeeded', 'step_compensated', 'plan_expanded', 'run_started', 'run_completed', 'run_failed') "
        "group by 1, 2, 3 having count(*) > 1"
    )
    assert [] == twice


async def _until_nobody_is_there(connection: asyncpg.Connection) -> None:
    """The server has noticed that the killed process is gone, and ended what it had begun."""
    query = (
        "select count(*) = 0 from pg_stat_activity where datname = current_database() "
        "and state in ('active', 'idle in transaction') and pid <> pg_backend_pid()"
    )
    await eventually(lambda: connection.fetchval(query), "the dead process to be noticed")


async def _outage(connection: asyncpg.Connection) -> None:
    """Until every time that was set has come, while nobody is there."""
    query = "select coalesce(bool_and(due_at < clock_timestamp()), true) from longtake.timers where due_at < clock_timestamp() + interval '20 s'"
    await eventually(lambda: connection.fetchval(query), "the times to come")
