"""Schedules over the real authority: one run an occurrence with several schedulers, and the same rules as in memory."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import msgspec
import pytest
import pytest_asyncio

from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import noop_app, runtime
from longtake import App, Plan
from longtake.bootstrap import Runtime
from longtake.contracts.problems import problem
from longtake.engine.pace import Pace
from longtake.engine.scheduler import Scheduler
from longtake.errors import AuthorityUnavailable
from longtake.memory.clock import ManualClock
from longtake.memory.schedules import MemorySchedules
from longtake.postgres.pool import open_pool
from longtake.postgres.schedules import PostgresScheduleStore
from longtake.store.scheduling import ScheduleStore
from longtake.workflow.cron import Timetable
from longtake.workflow.schedule import Due, Occurrence, Schedule, Template, occurrence_id

MINUTE = timedelta(minutes=1)


def minutely(**changes: Any) -> Schedule:
    """Every minute, everything caught up, all beside each other."""
    values: dict[str, Any] = {
        "tenant": "acme",
        "id": "minutely",
        "actor": "planner",
        "timetable": Timetable("* * * * *"),
        "template": Template(workflow="noop@1", project="p1"),
        "overlap": "allow",
        "catch_up": "all",
    }
    return Schedule(**{**values, **changes})


async def scheduler_of(process: Runtime) -> tuple[Scheduler, PostgresScheduleStore, asyncpg.Pool]:
    """A scheduler by hand over a process's admission, with connections of its own."""
    pool = await open_pool(process.addresses.postgres, size=3, name="test")
    store = PostgresScheduleStore(pool)
    return Scheduler(store, process.admission, process.doorbell, pace=Pace()), store, pool


@pytest_asyncio.fixture
async def idle(database, broker, tmp_path, monkeypatch) -> AsyncIterator[Runtime]:
    """A process that admits; its own scheduler sleeps, so that a test drives every pass."""

    async def nothing(self: Scheduler, stopping: asyncio.Event) -> None:
        await stopping.wait()

    monkeypatch.setattr(Scheduler, "_work", nothing)
    async with runtime(database, broker, tmp_path, priced_app(), roles=("api",)) as process:
        yield process


def priced_app() -> App:
    """The idle chain, and a workflow that costs."""
    app = noop_app()

    @app.workflow("dear", version=1)
    def build(input, policy):  # type: ignore[no-untyped-def]
        return Plan().step("pay", activity="noop@1", pool="short", price=5)

    return app


async def states(store: ScheduleStore, id: str = "minutely") -> list[str]:
    """States of all occurrences, oldest first."""
    return [row.state for row in reversed(await store.occurrences("acme", id, limit=1000))]


@promise("T61")
async def test_several_schedulers_at_once_give_each_occurrence_one_run(idle, database):
    """Three of them race for ninety missed minutes."""
    made = [await scheduler_of(idle) for _ in range(3)]
    store = made[0][1]
    now = await store.now()
    await store.create(minutely(), next_at=now.replace(second=0, microsecond=0) - 89 * MINUTE)
    try:

        async def work(scheduler: Scheduler) -> None:
            for _ in range(4):
                await scheduler.pass_once()

        await asyncio.gather(*(work(scheduler) for scheduler, _, _ in made))
        found = await states(store)
    finally:
        await asyncio.gather(*(pool.close() for _, _, pool in made))
    connection = await database.connect()
    commands = await connection.fetchval("select count(*) from longtake.commands")
    runs = await connection.fetchval("select count(distinct command_id) from longtake.runs")
    rows = await connection.fetchval("select count(*) from longtake.runs")

    assert len(found) in (90, 91)  # a minute may have begun meanwhile
    assert set(found) == {"running"}
    assert commands == runs == rows == len(found)


@promise("T61")
async def test_a_death_between_admission_and_its_note_gives_no_second_run(idle, database, monkeypatch):
    scheduler, store, pool = await scheduler_of(idle)
    now = await store.now()
    await store.create(minutely(catch_up="last"), next_at=now.replace(second=0, microsecond=0) - 2 * MINUTE)
    settle = store.settle

    async def dies(*_: Any, **__: Any) -> None:
        raise AuthorityUnavailable("killed here")

    monkeypatch.setattr(store, "settle", dies)
    with pytest.raises(AuthorityUnavailable):
        await scheduler.pass_once()
    connection = await database.connect()
    before = await connection.fetchval("select count(*) from longtake.runs")
    monkeypatch.setattr(store, "settle", settle)
    while await scheduler.pass_once() != (0, 0):
        pass
    rows = await connection.fetch("select command_id from longtake.runs")
    told = await store.occurrences("acme", "minutely", limit=10)
    await pool.close()

    assert before == 1
    assert len(rows) == len({row["command_id"] for row in rows}) == len(told)
    assert {row.state for row in told} == {"running"}


async def test_cancel_running_cancels_a_real_run(idle, database):
    scheduler, store, pool = await scheduler_of(idle)
    now = (await store.now()).replace(second=0, microsecond=0)
    schedule = minutely(overlap="cancel_running", timetable=Timetable("0 0 1 1 *"))
    await store.create(schedule, next_at=None)
    await store.add_backfill("acme", schedule.id, [Occurrence(instant=now - MINUTE, state="starting")])
    await scheduler.pass_once()
    connection = await database.connect()
    await connection.execute("update longtake.schedules set next_at = $1", now)
    row = await store.find("acme", schedule.id)
    assert row is not None and row.unsettled == ("running",)
    latest = Occurrence(instant=now, state="starting", stops_others=True)
    assert await store.lay_down(row, Due(occurrences=(latest,), next_at=None), None)

    await scheduler.pass_once()
    await scheduler.pass_once()

    earlier = await connection.fetchval(
        "select status from longtake.runs where command_id = $1", occurrence_id(schedule.id, now - MINUTE)
    )
    assert earlier == "cancelling"  # nobody is there to see its step off
    assert await states(store) == ["running", "running"]
    await pool.close()


async def test_a_run_that_cannot_be_paid_is_told_on_the_schedule(idle):
    scheduler, store, pool = await scheduler_of(idle)
    now = (await store.now()).replace(second=0, microsecond=0)
    await store.create(
        minutely(template=Template(workflow="dear@1", project="p1"), catch_up="last"),
        next_at=now - 5 * MINUTE,
    )
    await scheduler.pass_once()
    row = await store.find("acme", "minutely")
    await pool.close()

    assert row is not None and row.last_problem is not None
    assert row.last_problem.slug == "insufficient-funds"
    assert row.next_at is not None and row.next_at > now


@promise("T61")
async def test_a_process_starts_what_is_due_by_itself_when_the_bell_rings(database, broker, tmp_path):
    """Its first look finds nothing and would sleep; a schedule that is made rings, and the run ends."""
    async with runtime(database, broker, tmp_path, noop_app(), idle_seconds=30.0) as process:
        await process.schedules.create(minutely(timetable=Timetable("0 0 1 1 *")))
        now = datetime.now(UTC)
        year = now.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0)
        assert await process.schedules.backfill("acme", "minutely", since=year, until=now) == 1

        async def over() -> bool:
            (row,) = await process.schedules.occurrences("acme", "minutely")
            connection = process.reads
            if row.run_id is None:
                return False
            summary = await connection.summary("acme", row.run_id)
            return summary is not None and msgspec.json.decode(summary["summary"])["status"] == "completed"

        await eventually(over, "the occurrence's run to end", 20.0)


# --- the same rules in memory and in Postgres ------------------------------------------------------------------------


class Sides:
    """A store, and how a test lets runs exist and end beside it."""

    def __init__(self, store: Any, now: datetime) -> None:
        self.store: ScheduleStore = store
        self.now = now

    async def begin_run(self, run_id: uuid.UUID) -> None: ...
    async def end_run(self, run_id: uuid.UUID) -> None: ...


class MemorySides(Sides):
    """Both in memory."""

    def __init__(self) -> None:
        self.active: set[uuid.UUID] = set()
        clock = ManualClock()
        super().__init__(MemorySchedules(clock, lambda id_: 7 if id_ in self.active else None), clock.now())

    async def begin_run(self, run_id: uuid.UUID) -> None:
        self.active.add(run_id)

    async def end_run(self, run_id: uuid.UUID) -> None:
        self.active.discard(run_id)


class PostgresSides(Sides):
    """Rows of the real tables."""

    def __init__(self, pool: asyncpg.Pool, now: datetime) -> None:
        super().__init__(PostgresScheduleStore(pool), now)
        self.pool = pool

    async def begin_run(self, run_id: uuid.UUID) -> None:
        await self.pool.execute(
            "insert into longtake.runs (run_id, tenant_id, project, workflow, workflow_version, actor, account, "
            "command_id, plan_fingerprint, plan_checked, store_epoch, revision, head_hash, accepted_at, updated_at) "
            "values ($1, 'acme', 'p', 'w', 1, 'planner', 'main', 'c', 'f', 'c', 1, 7, '', now(), now())",
            run_id,
        )

    async def end_run(self, run_id: uuid.UUID) -> None:
        await self.pool.execute("update longtake.runs set ended_at = now() where run_id = $1", run_id)


@pytest_asyncio.fixture(params=["memory", "postgres"])
async def sides(request, database) -> AsyncIterator[Sides]:
    """Each clause is held by both."""
    if request.param == "memory":
        yield MemorySides()
        return
    pool = await open_pool(database.connect_kwargs, size=2, name="test")
    now = await PostgresScheduleStore(pool).now()
    yield PostgresSides(pool, now.replace(microsecond=0))
    await pool.close()


async def row_of(sides: Sides) -> Any:
    row = await sides.store.find("acme", "minutely")
    assert row is not None
    return row


def starting(*instants: datetime) -> Due:
    return Due(
        occurrences=tuple(Occurrence(instant=instant, state="starting") for instant in instants), next_at=None
    )


async def test_a_schedule_is_kept_as_it_was_said_and_an_id_once(sides):
    schedule = minutely(
        start_at=sides.now,
        end_at=sides.now + MINUTE,
        template=Template(workflow="w@1", project="p", input={"a": [1]}, policy={"b": 2}, account="ads"),
    )

    assert await sides.store.create(schedule, next_at=sides.now)
    assert not await sides.store.create(minutely(), next_at=sides.now)
    assert await sides.store.create(minutely(tenant="rival"), next_at=sides.now)
    assert (await row_of(sides)).schedule == schedule
    assert [row.schedule.tenant for row in await sides.store.list_schedules("acme", limit=10)] == ["acme"]
    assert await sides.store.find("acme", "other") is None


async def test_only_what_is_due_and_not_paused_is_found(sides):
    await sides.store.create(minutely(), next_at=sides.now - MINUTE)
    await sides.store.create(minutely(id="later"), next_at=sides.now + 60 * MINUTE)
    await sides.store.create(minutely(id="over"), next_at=None)
    _, found = await sides.store.due(limit=10)
    assert [row.schedule.id for row in found] == ["minutely"]

    assert await sides.store.pause("acme", "minutely", paused=True)
    assert (await sides.store.due(limit=10))[1] == []
    seconds, waits = await sides.store.next_due()
    assert 3500 < seconds <= 3600 and not waits
    assert not await sides.store.pause("acme", "nobody", paused=True)


async def test_a_verdict_is_written_once_and_on_an_unchanged_schedule_only(sides):
    await sides.store.create(minutely(), next_at=sides.now)
    row = await row_of(sides)

    assert await sides.store.lay_down(row, starting(sides.now), None)
    assert not await sides.store.lay_down(row, starting(sides.now - MINUTE), None)
    assert await states(sides.store) == ["starting"]
    assert (await row_of(sides)).next_at is None


async def test_a_verdict_is_not_written_beside_a_backfill_that_it_did_not_know_of(sides):
    await sides.store.create(minutely(), next_at=sides.now)
    row = await row_of(sides)
    early = Occurrence(instant=sides.now - MINUTE, state="waiting")
    assert await sides.store.add_backfill("acme", "minutely", [early]) == 1

    assert not await sides.store.lay_down(row, starting(sides.now), None)


async def test_a_verdict_is_not_written_on_a_paused_schedule(sides):
    await sides.store.create(minutely(), next_at=sides.now)
    row = await row_of(sides)
    await sides.store.pause("acme", "minutely", paused=True)

    assert not await sides.store.lay_down(row, starting(sides.now), None)


async def test_waiting_ones_are_released_one_by_one(sides):
    await sides.store.create(minutely(), next_at=sides.now)
    two = [Occurrence(instant=sides.now - n * MINUTE, state="waiting") for n in (1, 2)]
    await sides.store.add_backfill("acme", "minutely", two)

    assert [await sides.store.release_waiting() for _ in range(2)] == [1, 0]
    assert await states(sides.store) == ["starting", "waiting"]
    assert (await sides.store.next_due())[1]


async def test_a_settled_occurrence_is_settled_once_and_ends_with_its_run(sides):
    await sides.store.create(minutely(), next_at=sides.now)
    await sides.store.lay_down(await row_of(sides), starting(sides.now), None)
    (occurrence,) = await sides.store.starting(limit=10)
    run_id = uuid.uuid4()
    await sides.begin_run(run_id)

    await sides.store.settle(occurrence, run_id=run_id, refusal=None)
    await sides.store.settle(occurrence, run_id=None, refusal=problem("internal", "too late"))

    (running,) = await sides.store.running("acme", "minutely")
    assert (running.run_id, running.revision) == (run_id, 7)
    assert (await row_of(sides)).last_problem is None
    assert await sides.store.end_occurrences(limit=10) == 0
    await sides.end_run(run_id)
    assert await sides.store.running("acme", "minutely") == []
    assert [await sides.store.end_occurrences(limit=10) for _ in range(2)] == [1, 0]
    assert await states(sides.store) == ["ended"]
    assert (await row_of(sides)).unsettled == ()


async def test_a_refusal_is_told_on_the_schedule_and_may_be_backfilled(sides):
    await sides.store.create(minutely(), next_at=sides.now)
    await sides.store.lay_down(await row_of(sides), starting(sides.now), None)
    (occurrence,) = await sides.store.starting(limit=10)
    refusal = problem("insufficient-funds", "The account has nothing.")
    await sides.store.settle(occurrence, run_id=None, refusal=refusal)

    row = await row_of(sides)
    assert row.last_problem == refusal and row.last_problem_at is not None and row.unsettled == ()
    again = [Occurrence(instant=sides.now, state="starting")]
    assert [await sides.store.add_backfill("acme", "minutely", again) for _ in range(2)] == [1, 0]
    assert await states(sides.store) == ["starting"]


async def test_a_deleted_schedule_takes_its_occurrences_along(sides):
    await sides.store.create(minutely(), next_at=sides.now)
    await sides.store.lay_down(await row_of(sides), starting(sides.now), None)

    assert [await sides.store.delete("acme", "minutely") for _ in range(2)] == [True, False]
    assert await sides.store.starting(limit=10) == []
    assert await sides.store.add_backfill("acme", "minutely", []) == 0
