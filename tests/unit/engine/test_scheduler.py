"""The scheduler over a store in memory: one run an occurrence, whoever dies where, and what overlap and pause do."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kit.promises import promise
from longtake.contracts.commands import Command, Receipt
from longtake.contracts.ids import run_id_for
from longtake.contracts.principal import Principal
from longtake.contracts.problems import Problem, problem
from longtake.engine.admission import Answer
from longtake.engine.pace import Pace
from longtake.engine.scheduler import Scheduler
from longtake.engine.schedules import Schedules
from longtake.errors import AuthorityUnavailable, Refused
from longtake.memory.clock import ManualClock
from longtake.memory.schedules import MemorySchedules
from longtake.store.scheduling import StartingOccurrence
from longtake.workflow.cron import Timetable
from longtake.workflow.schedule import Schedule, Template, due

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class Bell:
    """Counts rings; nobody waits for it."""

    def __init__(self) -> None:
        self.rings: list[str] = []

    def ring(self, name: str, *, due_at: datetime | None = None) -> None:
        self.rings.append(name)

    async def wait(self, name: str, *, timeout_seconds: float) -> bool:
        raise AssertionError("these tests drive single passes")


class Desk:
    """Admission as the scheduler sees it: an id that is known gets its old answer. `refuses` is raised or answered."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.active: dict[uuid.UUID, str] = {}
        self.refuses: Problem | Exception | None = None
        self.rejects: Problem | None = None

    async def admit(self, principal: Principal, command: Command, **_: Any) -> Answer:
        if self.refuses is not None:
            raise self.refuses if isinstance(self.refuses, Exception) else Refused(self.refuses)
        id_ = str(command.client_command_id)
        receipt = Receipt(command_id=id_, kind=command.kind, status="running")
        if self.rejects is not None:
            return Answer(
                receipt=Receipt(command_id=id_, kind=command.kind, status="rejected", problem=self.rejects)
            )
        if id_ in [known.client_command_id for known in self.commands]:
            return Answer(receipt=receipt, replayed=True)
        self.commands.append(command)
        if command.kind == "cancel":
            self.active.pop(uuid.UUID(command.targets[0]), None)
        else:
            run_id = run_id_for(tenant=principal.tenant, actor=principal.actor, client_command_id=id_)
            self.active[run_id] = id_
        return Answer(receipt=receipt)

    def revision(self, run_id: uuid.UUID) -> int | None:
        return 3 if run_id in self.active else None

    @property
    def started(self) -> list[str]:
        """Times of day of the occurrences that became runs, in order."""
        ids = [str(command.client_command_id) for command in self.commands if command.kind == "generation"]
        return [f"{id_[-7:-5]}:{id_[-5:-3]}" for id_ in ids]


class Room:
    """A clock, a store, a desk, and schedulers at will."""

    def __init__(self) -> None:
        self.clock = ManualClock(START - timedelta(seconds=30))
        self.desk = Desk()
        self.store = MemorySchedules(self.clock, self.desk.revision)
        self.bell = Bell()
        self.schedules = Schedules(self.store, self.bell)

    def scheduler(self, store: MemorySchedules | None = None) -> Scheduler:
        return Scheduler(store or self.store, self.desk, self.bell, pace=Pace())

    async def make(self, **changes: Any) -> None:
        values: dict[str, Any] = {
            "tenant": "acme",
            "id": "hourly",
            "actor": "planner",
            "timetable": Timetable("0 * * * *"),
            "template": Template(workflow="clip@1", project="p1"),
        }
        await self.schedules.create(Schedule(**{**values, **changes}))

    async def at(self, text: str) -> None:
        """Let one scheduler look at this time of day."""
        self.clock.set(datetime.fromisoformat(f"2026-11-30T{text}Z"))
        await self.scheduler().pass_once()

    async def states(self) -> list[str]:
        """Every occurrence with its state, oldest first."""
        rows = await self.store.occurrences("acme", "hourly", limit=100)
        return [f"{row.instant:%H:%M} {row.state}" for row in reversed(rows)]


@pytest.fixture
def room() -> Room:
    return Room()


@promise("T61")
async def test_an_occurrence_is_one_command_in_the_name_of_its_schedules_actor(room: Room):
    await room.make(template=Template(workflow="clip@1", project="p1", input={"n": 1}, account="ads"))
    await room.at("11:59:59")
    assert room.desk.commands == []

    await room.at("12:00:01")
    await room.at("12:00:02")

    (command,) = room.desk.commands
    assert command.client_command_id == "schedule-hourly-20261130T120000Z"
    assert command.payload == {"workflow": "clip@1", "input": {"n": 1}, "account": "ads"}
    assert (await room.schedules.show("acme", "hourly")).next_at == START + timedelta(hours=1)


@promise("T61")
@pytest.mark.parametrize("dies_at", ["lay_down", "starting", "settle", "after_settle"])
async def test_a_scheduler_that_dies_anywhere_leaves_one_run(room: Room, dies_at: str):
    class Dying(MemorySchedules):
        """The same rows, and a death before or after one of the writes."""

        def __init__(self) -> None:
            self.__dict__ = room.store.__dict__

        async def lay_down(self, *args: Any) -> bool:
            done = await super().lay_down(*args)
            if dies_at == "lay_down":
                raise AuthorityUnavailable("died after laying down")
            return done

        async def starting(self, *, limit: int) -> list[StartingOccurrence]:
            if dies_at == "starting":
                raise AuthorityUnavailable("died before admitting")
            return await super().starting(limit=limit)

        async def settle(self, *args: Any, **kwargs: Any) -> None:
            if dies_at == "settle":
                raise AuthorityUnavailable("died between admission and its note")
            await super().settle(*args, **kwargs)
            raise AuthorityUnavailable("died after the note")

    await room.make()
    room.clock.set(START)
    with pytest.raises(AuthorityUnavailable):
        await room.scheduler(Dying()).pass_once()
    await room.at("12:00:05")

    assert room.desk.started == ["12:00"]
    assert await room.states() == ["12:00 running"]


async def test_without_the_derived_id_such_a_death_would_start_it_twice(room: Room, monkeypatch):
    """The broken variant: ids by chance, as a careless scheduler would make them."""
    ids = iter("abcdef")
    monkeypatch.setattr(
        "longtake.workflow.schedule.occurrence_id", lambda *_: f"{next(ids)}-20261130T120000Z"
    )

    async def forgets(*_: Any, **__: Any) -> None:
        raise AuthorityUnavailable("died between admission and its note")

    await room.make()
    room.clock.set(START)
    monkeypatch.setattr(room.store, "settle", forgets)
    for _ in range(2):
        with pytest.raises(AuthorityUnavailable):
            await room.scheduler().pass_once()

    assert room.desk.started == ["12:00", "12:00"]


async def test_a_verdict_on_a_state_that_is_gone_is_not_written(room: Room):
    """Two schedulers read the same row; the second one's verdict finds the schedule moved on."""
    await room.make(overlap="skip")
    room.clock.set(START)
    _, (row,) = await room.store.due(limit=10)
    await room.at("12:00:00")

    stale = due(row.schedule, next_at=START, now=START, unsettled=("running",))

    assert not await room.store.lay_down(row, stale, None)
    assert await room.states() == ["12:00 running"]


@promise("T61")
@pytest.mark.parametrize(
    ("catch_up", "started"),
    [("none", ["12:00"]), ("last", ["12:00", "15:00"]), ("all", ["12:00", "13:00", "14:00", "15:00"])],
)
async def test_after_an_outage_the_catch_up_decides(room: Room, catch_up: str, started: Sequence[str]):
    await room.make(catch_up=catch_up, overlap="allow")
    await room.at("12:00:01")
    await room.at("15:30:00")

    assert room.desk.started == started
    told = (await room.schedules.show("acme", "hourly")).last_problem
    assert (told is None) == (catch_up == "all")
    if told is not None:
        assert "2026-11-30T13:00:00+00:00" in told.detail and "backfill" in told.errors[0].remedy


async def test_skip_passes_over_what_finds_another_at_work(room: Room):
    await room.make(overlap="skip")
    await room.at("12:00:01")
    await room.at("13:00:01")
    assert await room.states() == ["12:00 running", "13:00 skipped"]

    room.desk.active.clear()
    await room.at("14:00:01")
    assert await room.states() == ["12:00 ended", "13:00 skipped", "14:00 running"]


async def test_queue_starts_one_after_the_other_however_late(room: Room):
    await room.make(overlap="queue")
    for time in ("12:00:01", "13:00:01", "14:00:01"):
        await room.at(time)
    assert await room.states() == ["12:00 running", "13:00 waiting", "14:00 waiting"]
    assert (await room.store.next_due())[1]

    room.desk.active.clear()
    await room.at("14:40:00")
    await room.at("14:40:01")
    assert await room.states() == ["12:00 ended", "13:00 running", "14:00 waiting"]
    room.desk.active.clear()
    await room.at("14:50:00")
    assert await room.states() == ["12:00 ended", "13:00 ended", "14:00 running"]


async def test_cancel_running_cancels_the_earlier_one_and_starts(room: Room):
    await room.make(overlap="cancel_running")
    await room.at("12:00:01")
    await room.at("13:00:01")

    assert [command.kind for command in room.desk.commands] == ["generation", "cancel", "generation"]
    stop = room.desk.commands[1]
    assert stop.client_command_id == "schedule-hourly-20261130T120000Z-stop"
    assert stop.expected_revision == 3
    await room.at("13:00:02")
    assert await room.states() == ["12:00 ended", "13:00 running"]


async def test_allow_lets_them_run_beside_each_other(room: Room):
    await room.make(overlap="allow")
    await room.at("12:00:01")
    await room.at("13:00:01")

    assert await room.states() == ["12:00 running", "13:00 running"]


async def test_a_refused_occurrence_is_told_and_stops_no_later_one(room: Room):
    await room.make()
    room.desk.rejects = problem("insufficient-funds", "The account 'main' has 0 credits free.")
    await room.at("12:00:01")
    row = await room.schedules.show("acme", "hourly")
    assert row.last_problem == room.desk.rejects and row.last_problem_at is not None

    room.desk.rejects, room.desk.refuses = None, problem("unknown-workflow", "No such workflow.")
    await room.at("13:00:01")
    room.desk.refuses = KeyError("a builder with a fault")
    await room.at("14:00:01")
    room.desk.refuses = None
    await room.at("15:00:01")

    assert await room.states() == ["12:00 refused", "13:00 refused", "14:00 refused", "15:00 running"]
    told = (await room.schedules.show("acme", "hourly")).last_problem
    assert told is not None and "a builder with a fault" in told.detail


async def test_what_is_refused_for_the_moment_is_given_again(room: Room):
    await room.make()
    room.desk.refuses = problem("command-in-progress", "Try again.", retry_after_seconds=1)
    await room.at("12:00:01")
    assert await room.states() == ["12:00 starting"]

    room.desk.refuses = None
    await room.at("12:05:00")
    assert await room.states() == ["12:00 running"]


@promise("T61")
async def test_a_backfill_starts_what_never_was_and_nothing_twice(room: Room):
    await room.make()
    await room.at("12:00:01")
    room.desk.active.clear()
    room.clock.set(START + timedelta(minutes=30))
    since, until = START - timedelta(hours=2), START

    assert await room.schedules.backfill("acme", "hourly", since=since, until=until) == 2
    assert await room.schedules.backfill("acme", "hourly", since=since, until=until) == 0
    for second in range(4):
        await room.at(f"12:30:0{second}")
        room.desk.active.clear()

    assert room.desk.started == ["12:00", "10:00", "11:00"]


async def test_a_backfill_gives_the_skipped_and_the_refused_another_chance(room: Room):
    await room.make(overlap="skip")
    await room.at("12:00:01")
    await room.at("13:00:01")
    room.desk.active.clear()
    room.clock.set(START + timedelta(minutes=90))

    assert await room.schedules.backfill("acme", "hourly", since=START, until=room.clock.now()) == 1
    await room.at("13:30:01")
    assert room.desk.started == ["12:00", "13:00"]


@promise("T61")
async def test_a_paused_schedule_starts_nothing_and_resumes_by_its_catch_up(room: Room):
    await room.make(catch_up="last")
    await room.schedules.pause("acme", "hourly")
    for time in ("12:00:01", "13:00:01", "14:00:01"):
        await room.at(time)
    assert room.desk.started == []

    await room.schedules.resume("acme", "hourly")
    await room.at("14:30:00")
    assert room.desk.started == ["14:00"]


async def test_a_pause_holds_the_queue_but_not_a_backfill(room: Room):
    await room.make(overlap="queue")
    await room.at("12:00:01")
    await room.at("13:00:01")
    await room.schedules.pause("acme", "hourly")
    room.desk.active.clear()
    await room.at("13:10:00")
    assert await room.states() == ["12:00 ended", "13:00 waiting"]

    early = START - timedelta(hours=1)
    await room.schedules.backfill("acme", "hourly", since=early, until=early)
    await room.at("13:20:00")
    assert await room.states() == ["11:00 running", "12:00 ended", "13:00 waiting"]


async def test_every_change_rings_the_schedulers(room: Room):
    await room.make()
    await room.schedules.pause("acme", "hourly")
    await room.schedules.resume("acme", "hourly")
    early = START - timedelta(hours=1)
    await room.schedules.backfill("acme", "hourly", since=early, until=early)
    await room.schedules.delete("acme", "hourly")

    assert room.bell.rings == ["schedules"] * 5


@pytest.mark.parametrize("verb", ["show", "pause", "resume", "delete"])
async def test_an_unknown_schedule_is_named(room: Room, verb: str):
    await room.make(tenant="rival")
    with pytest.raises(Refused) as caught:
        await getattr(room.schedules, verb)("acme", "hourly")

    assert caught.value.problem.slug == "not-found"
    assert "hourly" in caught.value.problem.detail


async def test_an_id_is_taken_once_a_tenant(room: Room):
    await room.make()
    await room.make(tenant="rival")
    with pytest.raises(Refused) as caught:
        await room.make()

    assert caught.value.problem.errors[0].pointer == "/id"


async def test_a_schedule_that_would_never_run_is_refused(room: Room):
    with pytest.raises(Refused, match="never run"):
        await room.make(end_at=START)
