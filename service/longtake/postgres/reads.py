"""What API and CLI read. Every query has the caller's tenant in it; another's run is as absent as none."""

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import asyncpg
import msgspec

from longtake.contracts.events import PlanExpanded
from longtake.postgres.failures import repeated
from longtake.postgres.statements import statement
from longtake.store import WINDOW_FACTOR, WINDOW_MIN
from longtake.workflow.growth import grown_document

Row = Mapping[str, Any]


class PostgresReads:
    """Implements the API's `Reads`. Rows are mappings of the columns named in queries/reads.sql; json is bytes."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def _rows(self, name: str, *arguments: Any) -> list[Row]:
        rows = await repeated(lambda: self._pool.fetch(statement(name), *arguments))
        return [dict(row) for row in rows]

    async def _row(self, name: str, *arguments: Any) -> Row | None:
        row = await repeated(lambda: self._pool.fetchrow(statement(name), *arguments))
        return None if row is None else dict(row)

    async def ready(self) -> None:
        """Raises AuthorityUnavailable when the authority does not answer."""
        await self._row("ready_check")

    async def runs(
        self,
        tenant: str,
        *,
        project: str | None,
        status: str | None,
        workflow: str | None,
        before: tuple[datetime, uuid.UUID] | None,
        limit: int,
    ) -> list[Row]:
        """A page of runs, newest first, after a cursor."""
        at, id_ = before if before is not None else (None, None)
        return await self._rows("runs_list", tenant, project, status, workflow, at, id_, limit)

    async def run(self, tenant: str, run_id: uuid.UUID) -> Row | None:
        """One run."""
        return await self._row("run_read", tenant, run_id)

    async def summary(self, tenant: str, run_id: uuid.UUID) -> Row | None:
        """The stored summary, with poll_at, revision, store_epoch, status, now and whether a window holds it back."""
        return await self._row("summary_read", tenant, run_id, WINDOW_MIN, WINDOW_FACTOR)

    async def steps(self, tenant: str, run_id: uuid.UUID) -> list[Row]:
        """Step rows in plan order; steps never scheduled have none."""
        return await self._rows("steps_read", tenant, run_id)

    async def effects(self, tenant: str, run_id: uuid.UUID) -> list[Row]:
        """Effects with their evidence."""
        return await self._rows("effects_read", tenant, run_id)

    async def claims(self, tenant: str, run_id: uuid.UUID) -> list[Row]:
        """Every claim."""
        return await self._rows("claims_read", tenant, run_id)

    async def events(self, tenant: str, run_id: uuid.UUID, *, after: int, limit: int) -> list[Row]:
        """Events after a seq."""
        return await self._rows("events_read", tenant, run_id, after, limit)

    async def ledger(self, tenant: str, run_id: uuid.UUID) -> list[Row]:
        """Money of a run."""
        return await self._rows("ledger_read", tenant, run_id)

    async def plan(self, tenant: str, run_id: uuid.UUID) -> Row | None:
        """The frozen plan, with all that was added to it, and its input and policy."""
        row = await self._row("plan_read", tenant, run_id)
        if row is None or not row["fragments"]:
            return row
        fragments = [msgspec.json.decode(data, type=PlanExpanded).steps for data in row["fragments"]]
        return {**row, "plan": grown_document(bytes(row["plan"]), fragments)}

    async def artifact(self, tenant: str, artifact_id: uuid.UUID) -> Row | None:
        """One published artifact."""
        return await self._row("artifact_read", tenant, artifact_id)

    async def artifacts(self, tenant: str, run_id: uuid.UUID) -> list[Row]:
        """Published artifacts of a run."""
        return await self._rows("artifacts_read", tenant, run_id)

    async def command(self, tenant: str, actor: str, command_id: str) -> Row | None:
        """One command, with `run_status` of the run it started."""
        return await self._row("command_read", tenant, actor, command_id)
