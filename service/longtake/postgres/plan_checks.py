"""Which application is deployed, and which runs were compared with it (P15)."""

import uuid
from collections.abc import Sequence

import asyncpg

from longtake.postgres.failures import repeated
from longtake.postgres.statements import statement
from longtake.store import UncheckedRun


class PostgresPlanCheckStore:
    """Implements `PlanCheckStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def deploy(self, application: str) -> None:
        """From now on nothing is decided for a run that was not compared with this application."""
        await repeated(lambda: self._pool.execute(statement("application_deploy"), application))

    async def unchecked_runs(self, application: str, limit: int) -> list[UncheckedRun]:
        """Active runs that were not compared with it."""
        rows = await repeated(lambda: self._pool.fetch(statement("runs_unchecked"), application, limit))
        return [
            UncheckedRun(
                run_id=row["run_id"],
                tenant=row["tenant_id"],
                workflow=row["workflow"],
                workflow_version=row["workflow_version"],
                fingerprint=row["plan_fingerprint"],
                plan=row["plan"],
                input=row["input"],
                policy=row["policy"],
                drift_blocked=row["drift_blocked"],
                revision=row["revision"],
            )
            for row in rows
        ]

    async def mark_checked(self, run_ids: Sequence[uuid.UUID], application: str) -> None:
        """Their plans are as this application builds them."""
        await repeated(lambda: self._pool.execute(statement("runs_checked"), list(run_ids), application))

    async def signal(
        self, *, id: uuid.UUID, tenant: str, run_id: uuid.UUID, kind: str, payload: bytes
    ) -> None:
        """Keep a durable fact for a run."""
        await repeated(
            lambda: self._pool.execute(statement("signal_insert"), id, tenant, run_id, kind, payload)
        )
