"""The scheduler: due occurrences become commands, each admitted like any other and each exactly one run (P25, T61).

look at what is due -> lay its occurrences down -> let those go that waited -> admit -> write down what came of it. Any
number of schedulers may do this at once and die anywhere in it: the verdict is one row, and the command's id is derived.
"""

import asyncio
from typing import Protocol

import structlog

from longtake.contracts.commands import Command
from longtake.contracts.ids import run_id_for
from longtake.contracts.principal import Principal
from longtake.contracts.problems import Problem, ProblemError, problem
from longtake.crash_points import reach
from longtake.engine.admission import Answer
from longtake.engine.pace import Pace
from longtake.errors import AuthorityUnavailable, Refused
from longtake.lifecycle import LoopService
from longtake.ports import Doorbell
from longtake.store import Channel
from longtake.store.scheduling import ScheduleStore, StartingOccurrence
from longtake.workflow.schedule import Missed, Schedule, due, occurrence_command, stop_command

DOORBELL_SCHEDULES = "schedules"
SCHEDULES_PER_PASS_MAX = 100
OCCURRENCES_PER_PASS_MAX = 100
SLEEP_SECONDS_MAX = 30.0
"""Less than the time within which an occurrence counts as on time."""
SLEEP_SECONDS_MIN = 0.05
WAITING_SECONDS = 2.0
"""Between looks while an occurrence waits for another's end, which rings no bell."""
AGAIN_SECONDS = 1.0
"""Until a command that was refused for the moment is given again."""

log = structlog.get_logger("longtake.engine.scheduler")


class Admits(Protocol):
    """Admission, as far as the scheduler knows it."""

    async def admit(
        self,
        principal: Principal,
        command: Command,
        *,
        channel: Channel,
        traceparent: str | None,
        strict: bool = False,
    ) -> Answer: ...


class Scheduler(LoopService):
    """Admits the occurrences of all schedules."""

    def __init__(self, store: ScheduleStore, admission: Admits, doorbell: Doorbell, *, pace: Pace) -> None:
        super().__init__("scheduler", self._work)
        self._store = store
        self._admission = admission
        self._doorbell = doorbell
        self._pace = pace

    async def _work(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            try:
                seconds = await self._look()
            except AuthorityUnavailable as error:
                log.warning("longtake.scheduler_delayed", reason=str(error))
                seconds = self._pace.away_seconds
            if seconds > 0:
                await self._pace.sleep(self._doorbell, DOORBELL_SCHEDULES, seconds, stopping)

    async def _look(self) -> float:
        settled, postponed = await self.pass_once()
        if settled:
            return 0.0
        if postponed:
            return AGAIN_SECONDS
        seconds, some_wait = await self._store.next_due()
        longest = WAITING_SECONDS if some_wait else min(self._pace.cap_seconds, SLEEP_SECONDS_MAX)
        return longest if seconds is None else max(SLEEP_SECONDS_MIN, min(seconds, longest))

    async def pass_once(self) -> tuple[int, int]:
        """One pass over everything that is due; returns how many occurrences were settled and how many postponed."""
        await self._store.end_occurrences(limit=OCCURRENCES_PER_PASS_MAX)
        now, rows = await self._store.due(limit=SCHEDULES_PER_PASS_MAX)
        for row in rows:
            assert row.next_at is not None, "it is due"
            found = due(row.schedule, next_at=row.next_at, now=now, unsettled=row.unsettled)
            await self._store.lay_down(row, found, _told(row.schedule, found.missed))
        await self._store.release_waiting()
        starting = await self._store.starting(limit=OCCURRENCES_PER_PASS_MAX)
        settled = sum([await self._start(occurrence) for occurrence in starting])
        return settled, len(starting) - settled

    async def _start(self, occurrence: StartingOccurrence) -> bool:
        """Admit an occurrence and write down the answer; False when it has to be given again."""
        schedule = occurrence.schedule
        command = occurrence_command(schedule, occurrence.instant)
        run_id, refusal = None, None
        try:
            if occurrence.stops_others:
                await self._stop_others(occurrence)
            refusal = (await self._admit(schedule, command)).receipt.problem
        except AuthorityUnavailable:
            raise
        except Refused as refused:
            if refused.problem.retry_after_seconds is not None:
                return False
            refusal = refused.problem
        except Exception as error:
            # One builder with a fault must not end the schedules of everybody.
            log.exception("longtake.occurrence_broken", schedule=schedule.id, tenant=schedule.tenant)
            refusal = problem("internal", f"Admission broke: {type(error).__name__}: {error}.")
        if refusal is None:
            run_id = run_id_for(
                tenant=schedule.tenant,
                actor=schedule.actor,
                client_command_id=str(command.client_command_id),
            )
        else:
            log.error(
                "longtake.occurrence_refused",
                schedule=schedule.id,
                tenant=schedule.tenant,
                instant=occurrence.instant.isoformat(),
                reason=refusal.detail,
            )
        reach("occurrence.before_settle")
        await self._store.settle(occurrence, run_id=run_id, refusal=refusal)
        return True

    async def _stop_others(self, occurrence: StartingOccurrence) -> None:
        """Cancel what still runs of the schedule. A run that ended meanwhile refuses, and that is as good."""
        schedule = occurrence.schedule
        for other in await self._store.running(schedule.tenant, schedule.id):
            if other.instant < occurrence.instant:
                command = stop_command(
                    schedule,
                    other.instant,
                    run_id=str(other.run_id),
                    revision=other.revision,
                    successor=occurrence.instant,
                )
                await self._admit(schedule, command)

    async def _admit(self, schedule: Schedule, command: Command) -> Answer:
        principal = Principal(tenant=schedule.tenant, actor=schedule.actor)
        return await self._admission.admit(principal, command, channel="local", traceparent=None)


def _told(schedule: Schedule, missed: Missed | None) -> Problem | None:
    """What to write on a schedule of occurrences that nobody makes up for."""
    if missed is None:
        return None
    first, last = missed.first.isoformat(), missed.last.isoformat()
    log.warning(
        "longtake.occurrences_missed", schedule=schedule.id, tenant=schedule.tenant, first=first, last=last
    )
    return problem(
        "unavailable",
        f"Nobody was there from {first} to {last}, and the catch-up policy is {schedule.catch_up!r} within "
        f"{schedule.catch_up_seconds} seconds.",
        ProblemError("/catch_up", "leaves occurrences out", "start them by a backfill of that range"),
    )
