"""What schedules ask of the authority: rows with the time of their next occurrence, and a row for each occurrence.

An occurrence is laid down in the statement that moves its schedule on, so one verdict stands however many schedulers look
at once; what is laid down and not settled is admitted again by whoever comes next.
"""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from longtake.contracts.problems import Problem
from longtake.workflow.schedule import Due, Occurrence, OccurrenceState, Schedule

OccurrenceOrigin = Literal["due", "backfill"]


class ScheduleRow(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule with what has become of it."""

    schedule: Schedule
    created_at: datetime
    next_at: datetime | None
    paused_at: datetime | None
    revision: int
    """Raised by whatever may let another occurrence run: a verdict is written against the one it was made with."""
    unsettled: tuple[OccurrenceState, ...]
    """States of the occurrences that are not over."""
    last_problem: Problem | None = None
    last_problem_at: datetime | None = None


class OccurrenceRow(msgspec.Struct, frozen=True, kw_only=True):
    """An occurrence as its row tells it."""

    instant: datetime
    state: OccurrenceState
    origin: OccurrenceOrigin
    run_id: uuid.UUID | None
    problem: Problem | None


class StartingOccurrence(msgspec.Struct, frozen=True, kw_only=True):
    """An occurrence that is to be admitted now."""

    schedule: Schedule
    instant: datetime
    stops_others: bool


class RunningOccurrence(msgspec.Struct, frozen=True, kw_only=True):
    """An occurrence whose run has not ended, with the run's revision."""

    instant: datetime
    run_id: uuid.UUID
    revision: int


class ScheduleStore(Protocol):
    """Keeps schedules and occurrences. Every method raises AuthorityUnavailable."""

    async def now(self) -> datetime:
        """The authority's time: all schedulers go by one clock."""
        ...

    async def create(self, schedule: Schedule, *, next_at: datetime | None) -> bool:
        """Keep a schedule; False when its id is taken."""
        ...

    async def find(self, tenant: str, id: str) -> ScheduleRow | None: ...
    async def list_schedules(self, tenant: str, *, limit: int) -> list[ScheduleRow]: ...
    async def occurrences(self, tenant: str, id: str, *, limit: int) -> list[OccurrenceRow]:
        """The latest occurrences, newest first."""
        ...

    async def pause(self, tenant: str, id: str, *, paused: bool) -> bool:
        """Pause or resume; False when there is no such schedule. Doing it twice changes nothing."""
        ...

    async def delete(self, tenant: str, id: str) -> bool:
        """Forget a schedule and its occurrences; runs go on. False when there is no such schedule."""
        ...

    async def add_backfill(self, tenant: str, id: str, occurrences: Sequence[Occurrence]) -> int:
        """Lay down those that were never started; returns how many."""
        ...

    async def end_occurrences(self, *, limit: int) -> int:
        """Settle running occurrences whose runs have ended; returns how many."""
        ...

    async def due(self, *, limit: int) -> tuple[datetime, list[ScheduleRow]]:
        """Schedules whose next occurrence is due and that are not paused, with the time."""
        ...

    async def lay_down(self, row: ScheduleRow, found: Due, problem: Problem | None) -> bool:
        """Move a schedule on and write its occurrences, unless it has changed since it was read."""
        ...

    async def release_waiting(self) -> int:
        """Let the first waiting occurrence of each idle schedule start; returns how many."""
        ...

    async def starting(self, *, limit: int) -> list[StartingOccurrence]:
        """Occurrences to admit, oldest first."""
        ...

    async def running(self, tenant: str, id: str) -> list[RunningOccurrence]: ...
    async def settle(
        self, occurrence: StartingOccurrence, *, run_id: uuid.UUID | None, refusal: Problem | None
    ) -> None:
        """Say what admission made of it: a run, or a refusal, which is told on the schedule too."""
        ...

    async def next_due(self) -> tuple[float | None, bool]:
        """Seconds until the next occurrence, and whether some wait for others to end."""
        ...
