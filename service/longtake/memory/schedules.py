"""Schedules in one process, with the rules of the real tables: one verdict an instant, written on an unchanged schedule.

Leaves to others: the time, and whether a run has ended (both are given).
"""

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from longtake.contracts.problems import Problem
from longtake.memory.clock import Clock
from longtake.store.scheduling import (
    OccurrenceOrigin,
    OccurrenceRow,
    RunningOccurrence,
    ScheduleRow,
    StartingOccurrence,
)
from longtake.workflow.schedule import Due, Occurrence, OccurrenceState, Schedule

ActiveRevision = Callable[[uuid.UUID], int | None]
"""The revision of a run that has not ended, None of any other."""

UNSETTLED: frozenset[OccurrenceState] = frozenset({"waiting", "starting", "running"})
_AGAIN: frozenset[OccurrenceState] = frozenset({"skipped", "refused"})

_Key = tuple[str, str]


class _Kept(msgspec.Struct, kw_only=True):
    instant: datetime
    state: OccurrenceState
    origin: OccurrenceOrigin
    stops_others: bool = False
    run_id: uuid.UUID | None = None
    problem: Problem | None = None


class MemorySchedules:
    """Implements `ScheduleStore`."""

    def __init__(self, clock: Clock, active_revision: ActiveRevision) -> None:
        self._clock = clock
        self._active_revision = active_revision
        self._schedules: dict[_Key, ScheduleRow] = {}
        self._occurrences: dict[_Key, dict[datetime, _Kept]] = {}

    async def now(self) -> datetime:
        """The clock's time."""
        return self._clock.now()

    async def create(self, schedule: Schedule, *, next_at: datetime | None) -> bool:
        """Keep a schedule; False when its id is taken."""
        key = (schedule.tenant, schedule.id)
        if key in self._schedules:
            return False
        self._occurrences[key] = {}
        self._schedules[key] = ScheduleRow(
            schedule=schedule,
            created_at=self._clock.now(),
            next_at=next_at,
            paused_at=None,
            revision=1,
            unsettled=(),
        )
        return True

    async def find(self, tenant: str, id: str) -> ScheduleRow | None:
        """One schedule."""
        return self._read((tenant, id)) if (tenant, id) in self._schedules else None

    async def list_schedules(self, tenant: str, *, limit: int) -> list[ScheduleRow]:
        """A tenant's schedules by id."""
        return [self._read(key) for key in sorted(self._schedules) if key[0] == tenant][:limit]

    async def occurrences(self, tenant: str, id: str, *, limit: int) -> list[OccurrenceRow]:
        """The latest occurrences, newest first."""
        kept = sorted(self._occurrences.get((tenant, id), {}).values(), key=lambda o: o.instant, reverse=True)
        return [
            OccurrenceRow(
                instant=item.instant,
                state=item.state,
                origin=item.origin,
                run_id=item.run_id,
                problem=item.problem,
            )
            for item in kept[:limit]
        ]

    async def pause(self, tenant: str, id: str, *, paused: bool) -> bool:
        """Pause or resume."""
        row = self._schedules.get((tenant, id))
        if row is None:
            return False
        since = (row.paused_at or self._clock.now()) if paused else None
        self._schedules[tenant, id] = msgspec.structs.replace(row, paused_at=since)
        return True

    async def delete(self, tenant: str, id: str) -> bool:
        """Forget a schedule and its occurrences."""
        self._occurrences.pop((tenant, id), None)
        return self._schedules.pop((tenant, id), None) is not None

    async def add_backfill(self, tenant: str, id: str, occurrences: Sequence[Occurrence]) -> int:
        """Lay down what was never started."""
        key = (tenant, id)
        if key not in self._schedules:
            return 0
        self._change(key)
        kept, added = self._occurrences[key], 0
        for item in occurrences:
            if item.instant not in kept or kept[item.instant].state in _AGAIN:
                kept[item.instant] = _Kept(instant=item.instant, state=item.state, origin="backfill")
                added += 1
        return added

    async def end_occurrences(self, *, limit: int) -> int:
        """Settle running occurrences whose runs have ended."""
        over = [
            item
            for key in sorted(self._occurrences)
            for item in self._in_order(key)
            if item.state == "running" and item.run_id and self._active_revision(item.run_id) is None
        ][:limit]
        for item in over:
            item.state = "ended"
        return len(over)

    async def due(self, *, limit: int) -> tuple[datetime, list[ScheduleRow]]:
        """What is due, and the time."""
        now = self._clock.now()
        rows = [
            self._read(key)
            for key, row in self._schedules.items()
            if row.paused_at is None and row.next_at is not None and row.next_at <= now
        ]
        return now, sorted(rows, key=lambda row: row.next_at or now)[:limit]

    async def lay_down(self, row: ScheduleRow, found: Due, problem: Problem | None) -> bool:
        """Move a schedule on, unless it has changed."""
        key = (row.schedule.tenant, row.schedule.id)
        now = self._schedules.get(key)
        if now is None or now.paused_at or (now.revision, now.next_at) != (row.revision, row.next_at):
            return False
        self._change(key, next_at=found.next_at)
        if problem is not None:
            self._tell(key, problem)
        for item in found.occurrences:
            self._occurrences[key].setdefault(
                item.instant,
                _Kept(instant=item.instant, state=item.state, origin="due", stops_others=item.stops_others),
            )
        return True

    async def release_waiting(self) -> int:
        """Let those go whose schedule is idle."""
        released = 0
        for key, row in self._schedules.items():
            unsettled = [item for item in self._in_order(key) if item.state in UNSETTLED]
            may_go = [
                item
                for item in unsettled
                if item.state == "waiting" and (row.paused_at is None or item.origin == "backfill")
            ]
            if may_go and all(item.state == "waiting" for item in unsettled):
                may_go[0].state = "starting"
                self._change(key)
                released += 1
        return released

    async def starting(self, *, limit: int) -> list[StartingOccurrence]:
        """Occurrences to admit, oldest first."""
        found = [
            StartingOccurrence(schedule=row.schedule, instant=item.instant, stops_others=item.stops_others)
            for key, row in self._schedules.items()
            for item in self._in_order(key)
            if item.state == "starting"
        ]
        return sorted(found, key=lambda item: item.instant)[:limit]

    async def running(self, tenant: str, id: str) -> list[RunningOccurrence]:
        """Occurrences whose runs have not ended."""
        return [
            RunningOccurrence(instant=item.instant, run_id=item.run_id, revision=revision)
            for item in self._in_order((tenant, id))
            if item.state == "running"
            and item.run_id is not None
            and (revision := self._active_revision(item.run_id)) is not None
        ]

    async def settle(
        self, occurrence: StartingOccurrence, *, run_id: uuid.UUID | None, refusal: Problem | None
    ) -> None:
        """Write down what admission made of it."""
        key = (occurrence.schedule.tenant, occurrence.schedule.id)
        item = self._occurrences.get(key, {}).get(occurrence.instant)
        if item is None or item.state != "starting":
            return
        item.state = "running" if refusal is None else "refused"
        item.run_id, item.problem = run_id, refusal
        if refusal is not None:
            self._tell(key, refusal)

    async def next_due(self) -> tuple[float | None, bool]:
        """How long there is nothing to do."""
        now = self._clock.now()
        times = [row.next_at for row in self._schedules.values() if row.next_at and row.paused_at is None]
        waits = any(item.state == "waiting" for kept in self._occurrences.values() for item in kept.values())
        return (min(times) - now).total_seconds() if times else None, waits

    def _read(self, key: _Key) -> ScheduleRow:
        unsettled = tuple(item.state for item in self._in_order(key) if item.state in UNSETTLED)
        return msgspec.structs.replace(self._schedules[key], unsettled=unsettled)

    def _in_order(self, key: _Key) -> list[_Kept]:
        return sorted(self._occurrences.get(key, {}).values(), key=lambda item: item.instant)

    def _change(self, key: _Key, **changes: datetime | None) -> None:
        row = self._schedules[key]
        self._schedules[key] = msgspec.structs.replace(row, revision=row.revision + 1, **changes)

    def _tell(self, key: _Key, problem: Problem) -> None:
        self._schedules[key] = msgspec.structs.replace(
            self._schedules[key], last_problem=problem, last_problem_at=self._clock.now()
        )
