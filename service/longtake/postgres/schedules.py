"""Schedules in the authority: every change of a schedule and its occurrences is one statement."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import asyncpg
import msgspec

from longtake.contracts.codec import to_json
from longtake.contracts.problems import Problem
from longtake.postgres.failures import repeated
from longtake.postgres.statements import statement
from longtake.store.scheduling import (
    OccurrenceRow,
    RunningOccurrence,
    ScheduleRow,
    StartingOccurrence,
)
from longtake.workflow.cron import Timetable
from longtake.workflow.schedule import Due, Occurrence, Schedule, Template

_templates = msgspec.json.Decoder(Template)
_problems = msgspec.json.Decoder(Problem)


class PostgresScheduleStore:
    """Implements `ScheduleStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def now(self) -> datetime:
        """The authority's time."""
        now: datetime = await self._value("clock_read")
        return now

    async def create(self, schedule: Schedule, *, next_at: datetime | None) -> bool:
        """Keep a schedule; False when its id is taken."""
        made = await self._value(
            "schedule_insert",
            schedule.tenant,
            schedule.id,
            schedule.actor,
            schedule.timetable.expression,
            schedule.timetable.zone,
            to_json(schedule.template),
            schedule.overlap,
            schedule.catch_up,
            schedule.catch_up_seconds,
            schedule.start_at,
            schedule.end_at,
            next_at,
        )
        return made is not None

    async def find(self, tenant: str, id: str) -> ScheduleRow | None:
        """One schedule."""
        rows = await self._rows("schedule_find", tenant, id)
        return _schedule_row(rows[0]) if rows else None

    async def list_schedules(self, tenant: str, *, limit: int) -> list[ScheduleRow]:
        """A tenant's schedules by id."""
        return [_schedule_row(row) for row in await self._rows("schedules_list", tenant, limit)]

    async def occurrences(self, tenant: str, id: str, *, limit: int) -> list[OccurrenceRow]:
        """The latest occurrences, newest first."""
        rows = await self._rows("occurrences_list", tenant, id, limit)
        return [OccurrenceRow(**{**row, "problem": _problem(row["problem"])}) for row in rows]

    async def pause(self, tenant: str, id: str, *, paused: bool) -> bool:
        """Pause or resume."""
        return await self._value("schedule_pause", tenant, id, paused) is not None

    async def delete(self, tenant: str, id: str) -> bool:
        """Forget a schedule."""
        return await self._value("schedule_delete", tenant, id) is not None

    async def add_backfill(self, tenant: str, id: str, occurrences: Sequence[Occurrence]) -> int:
        """Lay down what was never started."""
        added: int = await self._value(
            "backfill_lay_down",
            tenant,
            id,
            [item.instant for item in occurrences],
            [item.state for item in occurrences],
        )
        return added

    async def end_occurrences(self, *, limit: int) -> int:
        """Settle running occurrences whose runs have ended."""
        return await self._count("occurrences_end", limit)

    async def due(self, *, limit: int) -> tuple[datetime, list[ScheduleRow]]:
        """What is due, and the time."""
        rows = await self._rows("schedules_due", limit)
        now = rows[0]["now"] if rows else await self.now()
        return now, [_schedule_row(row) for row in rows]

    async def lay_down(self, row: ScheduleRow, found: Due, problem: Problem | None) -> bool:
        """Move a schedule on, unless it has changed."""
        moved: bool = await self._value(
            "schedule_lay_down",
            row.schedule.tenant,
            row.schedule.id,
            row.revision,
            row.next_at,
            found.next_at,
            None if problem is None else to_json(problem),
            [item.instant for item in found.occurrences],
            [item.state for item in found.occurrences],
            [item.stops_others for item in found.occurrences],
        )
        return moved

    async def release_waiting(self) -> int:
        """Let those go whose schedule is idle."""
        return await self._count("occurrences_release")

    async def starting(self, *, limit: int) -> list[StartingOccurrence]:
        """Occurrences to admit."""
        return [
            StartingOccurrence(
                schedule=_schedule(row), instant=row["instant"], stops_others=row["stops_others"]
            )
            for row in await self._rows("occurrences_starting", limit)
        ]

    async def running(self, tenant: str, id: str) -> list[RunningOccurrence]:
        """Occurrences whose runs have not ended."""
        return [RunningOccurrence(**row) for row in await self._rows("occurrences_running", tenant, id)]

    async def settle(
        self, occurrence: StartingOccurrence, *, run_id: uuid.UUID | None, refusal: Problem | None
    ) -> None:
        """Write down what admission made of it."""
        await self._count(
            "occurrence_settle",
            occurrence.schedule.tenant,
            occurrence.schedule.id,
            occurrence.instant,
            run_id,
            None if refusal is None else to_json(refusal),
        )

    async def next_due(self) -> tuple[float | None, bool]:
        """How long there is nothing to do."""
        (row,) = await self._rows("schedules_next_due")
        return row["seconds"], row["some_wait"]

    async def _rows(self, name: str, *values: Any) -> list[asyncpg.Record]:
        rows: list[asyncpg.Record] = await repeated(lambda: self._pool.fetch(statement(name), *values))
        return rows

    async def _value(self, name: str, *values: Any) -> Any:
        return await repeated(lambda: self._pool.fetchval(statement(name), *values))

    async def _count(self, name: str, *values: Any) -> int:
        """Run a statement; how many rows it changed is the last word of its tag."""
        tag = await repeated(lambda: self._pool.execute(statement(name), *values))
        return int(tag.rpartition(" ")[2])


def _schedule(row: asyncpg.Record) -> Schedule:
    return Schedule(
        tenant=row["tenant_id"],
        id=row["id"],
        actor=row["actor"],
        timetable=Timetable(row["expression"], row["zone"]),
        template=_templates.decode(row["template"]),
        overlap=row["overlap"],
        catch_up=row["catch_up"],
        catch_up_seconds=row["catch_up_seconds"],
        start_at=row["start_at"],
        end_at=row["end_at"],
    )


def _schedule_row(row: asyncpg.Record) -> ScheduleRow:
    return ScheduleRow(
        schedule=_schedule(row),
        created_at=row["created_at"],
        next_at=row["next_at"],
        paused_at=row["paused_at"],
        revision=row["revision"],
        unsettled=tuple(row["unsettled"]),
        last_problem=_problem(row["problem"]),
        last_problem_at=row["problem_at"],
    )


def _problem(stored: bytes | None) -> Problem | None:
    return None if stored is None else _problems.decode(stored)
