"""Schedules as their owners handle them: made, looked at, paused, resumed, backfilled, deleted.

Every change rings the schedulers. Leaves to others: admitting occurrences (scheduler.py).
"""

from datetime import datetime

from longtake.contracts.problems import ProblemError, problem
from longtake.engine.scheduler import DOORBELL_SCHEDULES
from longtake.errors import Refused
from longtake.ports import Doorbell
from longtake.store.scheduling import OccurrenceRow, ScheduleRow, ScheduleStore
from longtake.workflow.schedule import Schedule, backfill, check_schedule, first_at

SCHEDULES_LISTED_MAX = 1_000
OCCURRENCES_SHOWN = 20


class Schedules:
    """The schedules of all tenants; each call names its own."""

    def __init__(self, store: ScheduleStore, doorbell: Doorbell | None = None) -> None:
        """Without a doorbell a change is found when the schedulers look next."""
        self._store = store
        self._doorbell = doorbell

    async def create(self, schedule: Schedule) -> datetime:
        """Keep a new schedule; returns the time of its first occurrence. Raises Refused."""
        check_schedule(schedule)
        next_at = first_at(schedule, await self._store.now())
        if next_at is None:
            place = ProblemError("/end_at", "is before the first occurrence", "give a later time, or none")
            raise Refused(problem("invalid-parameter", "The schedule would never run.", place))
        if not await self._store.create(schedule, next_at=next_at):
            place = ProblemError("/id", "is taken", "use another id, or delete the old schedule first")
            raise Refused(
                problem("invalid-parameter", f"There is a schedule {schedule.id!r} already.", place)
            )
        self._ring()
        return next_at

    async def show(self, tenant: str, id: str) -> ScheduleRow:
        """One schedule. Raises Refused when there is none."""
        row = await self._store.find(tenant, id)
        if row is None:
            raise _unknown(id)
        return row

    async def list_schedules(self, tenant: str) -> list[ScheduleRow]:
        """A tenant's schedules by id."""
        return await self._store.list_schedules(tenant, limit=SCHEDULES_LISTED_MAX)

    async def occurrences(
        self, tenant: str, id: str, *, limit: int = OCCURRENCES_SHOWN
    ) -> list[OccurrenceRow]:
        """What became of the latest occurrences, newest first."""
        return await self._store.occurrences(tenant, id, limit=limit)

    async def pause(self, tenant: str, id: str) -> None:
        """No occurrence of the time table starts until it is resumed; backfills and running ones go on."""
        await self._pause(tenant, id, paused=True)

    async def resume(self, tenant: str, id: str) -> None:
        """Go on; what was missed while it was paused follows the catch-up policy."""
        await self._pause(tenant, id, paused=False)

    async def backfill(self, tenant: str, id: str, *, since: datetime, until: datetime) -> int:
        """Start the occurrences of a past range that never were; returns how many. Raises Refused."""
        row = await self.show(tenant, id)
        occurrences = backfill(row.schedule, since=since, until=until, now=await self._store.now())
        added = await self._store.add_backfill(tenant, id, occurrences)
        self._ring()
        return added

    async def delete(self, tenant: str, id: str) -> None:
        """Forget a schedule. Runs that it started go on."""
        if not await self._store.delete(tenant, id):
            raise _unknown(id)
        self._ring()

    async def _pause(self, tenant: str, id: str, *, paused: bool) -> None:
        if not await self._store.pause(tenant, id, paused=paused):
            raise _unknown(id)
        self._ring()

    def _ring(self) -> None:
        if self._doorbell is not None:
            self._doorbell.ring(DOORBELL_SCHEDULES)


def _unknown(id: str) -> Refused:
    place = ProblemError("/id", "names no schedule of yours", "use an id of the list of schedules")
    return Refused(problem("not-found", f"There is no schedule {id!r}.", place))
