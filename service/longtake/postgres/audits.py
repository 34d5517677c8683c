"""What the auditor reads, and the one place where a projection is put in another's stead."""

import uuid
from collections.abc import Sequence

import asyncpg

from longtake.contracts.envelope import StoredEvent
from longtake.postgres.failures import repeated, translated
from longtake.postgres.statements import statement
from longtake.store import MoneyViolation, ProjectionRows
from longtake.workflow.projection import RunRow, StepRow


class PostgresAuditStore:
    """Implements `AuditStore` and `MoneyAuditStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def run_ids(self, after: uuid.UUID, limit: int) -> list[tuple[uuid.UUID, str]]:
        """A page of all runs."""
        rows = await repeated(lambda: self._pool.fetch(statement("run_ids_all"), after, limit))
        return [(row["run_id"], row["tenant_id"]) for row in rows]

    async def money_violations(self, run_id: uuid.UUID | None) -> list[MoneyViolation]:
        """Every broken law of money, of one run or of all runs and accounts."""
        return await self._violations(run_id, None)

    async def recent_money_violations(self, seconds: float) -> list[MoneyViolation]:
        """Every broken law of money of runs whose money has moved in the last seconds, and of all accounts."""
        return await self._violations(None, seconds)

    async def _violations(self, run_id: uuid.UUID | None, seconds: float | None) -> list[MoneyViolation]:
        rows = await repeated(lambda: self._pool.fetch(statement("money_violations"), run_id, seconds))
        return [
            MoneyViolation(
                law=row["law"], tenant=row["tenant_id"] or "", message=row["message"], run_id=row["run_id"]
            )
            for row in rows
        ]

    async def history(self, run_id: uuid.UUID) -> list[StoredEvent]:
        """All events of a run, exact bytes."""
        rows = await repeated(lambda: self._pool.fetch(statement("events_verify"), run_id))
        return [
            StoredEvent(
                tenant=row["tenant_id"],
                run_id=run_id,
                seq=row["seq"],
                id=row["id"],
                type=row["type"],
                version=row["version"],
                data=row["data"],
                meta=row["meta"],
                store_epoch=row["store_epoch"],
                recorded_at=row["recorded_at"],
                hash=row["hash"],
            )
            for row in rows
        ]

    async def plan_document(self, tenant: str, run_id: uuid.UUID) -> bytes | None:
        """The frozen plan of a run."""
        row = await repeated(lambda: self._pool.fetchrow(statement("plan_read"), tenant, run_id))
        return None if row is None else row["plan"]

    async def projection(self, run_id: uuid.UUID) -> ProjectionRows | None:
        """A run's rows as they stand."""

        async def read() -> ProjectionRows | None:
            run = await self._pool.fetchrow(statement("projection_read"), run_id)
            if run is None:
                return None
            steps = await self._pool.fetch(statement("projection_steps"), run_id)
            money = await self._pool.fetchrow(statement("projection_ledger"), run_id)
            assert money is not None, "an aggregate has one row"
            return ProjectionRows(
                run=dict(run),
                steps=tuple(dict(row) for row in steps),
                charged=money["charged"],
                refunded=money["refunded"],
            )

        return await repeated(read)

    async def replace_projection(
        self, run_id: uuid.UUID, tenant: str, row: RunRow, steps: Sequence[StepRow], *, poisoned: bool
    ) -> bool:
        """Put a fold in the place of a projection, in one transaction; False when the run moved meanwhile."""
        with translated():
            async with self._pool.acquire() as connection, connection.transaction():
                kept = await connection.fetchval(
                    statement("projection_replace_run"),
                    run_id,
                    row.status,
                    row.phase,
                    row.label,
                    row.charged,
                    row.refunded,
                    [b.type for b in row.blockers],
                    poisoned,
                    row.poll_at,
                    row.summary,
                    row.ended_at,
                    row.revision,
                )
                if kept is None:
                    return False
                await connection.execute(statement("projection_delete_steps"), run_id)
                await connection.execute(
                    statement("projection_insert_steps"),
                    run_id,
                    tenant,
                    [s.key for s in steps],
                    [s.ordinal for s in steps],
                    [s.attempt for s in steps],
                    [s.max_attempts for s in steps],
                    [s.status for s in steps],
                    [s.phase for s in steps],
                    [s.label for s in steps],
                    [s.external_ref for s in steps],
                    [s.error_class for s in steps],
                    [s.error_message for s in steps],
                    [s.provider_cost for s in steps],
                    [",".join(s.artifacts) for s in steps],
                    [s.started_at for s in steps],
                    [s.updated_seq for s in steps],
                )
                return True
