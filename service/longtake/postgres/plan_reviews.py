"""Plans of active runs for whoever reviews a deployment, and the acceptance of one that changed (P15).

Reviewing writes nothing: it reads in one read-only transaction, so all runs are of one moment.
"""

import uuid
from collections.abc import AsyncIterator

import asyncpg
import msgspec

from longtake.contracts.events import RunAccepted
from longtake.contracts.upcasters import decode_event
from longtake.postgres.failures import repeated, translated
from longtake.postgres.statements import statement
from longtake.store import UncheckedRun

RUNS_PER_PAGE = 200


class DriftedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as an acceptance finds it."""

    tenant: str
    status: str
    revision: int
    ended: bool
    drift_blocked: bool
    application: str | None
    """Digest of the deployed application."""


class PostgresPlanReviews:
    """Reads active runs; keeps acceptances."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def active_runs(self) -> AsyncIterator[UncheckedRun]:
        """Every active run. Raises AuthorityUnavailable, and UnreadableHistory when a first event is unknown."""
        after = uuid.UUID(int=0)
        with translated():
            async with (
                self._pool.acquire() as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                while rows := await connection.fetch(statement("runs_active_page"), after, RUNS_PER_PAGE):
                    for row in rows:
                        yield _run(row)
                    after = rows[-1]["run_id"]

    async def drifted_run(self, run_id: uuid.UUID) -> DriftedRun | None:
        """One run; None when there is none of that id."""
        row = await repeated(lambda: self._pool.fetchrow(statement("drift_read"), run_id))
        if row is None:
            return None
        return DriftedRun(
            tenant=row["tenant_id"],
            status=row["status"],
            revision=row["revision"],
            ended=row["ended"],
            drift_blocked=row["drift_blocked"],
            application=row["application"],
        )

    async def signal(
        self, *, id: uuid.UUID, tenant: str, run_id: uuid.UUID, kind: str, payload: bytes
    ) -> None:
        """Keep a durable fact for a run."""
        await repeated(
            lambda: self._pool.execute(statement("signal_insert"), id, tenant, run_id, kind, payload)
        )


def price_list_of(type_: str, version: int, data: bytes) -> str | None:
    """The price list that a run's first event froze."""
    match decode_event(type_, version, data):
        case RunAccepted() as accepted:
            return accepted.money.price_list
        case _:
            return None


def _run(row: asyncpg.Record) -> UncheckedRun:
    return UncheckedRun(
        run_id=row["run_id"],
        tenant=row["tenant_id"],
        workflow=row["workflow"],
        workflow_version=row["workflow_version"],
        revision=row["revision"],
        fingerprint=row["plan_fingerprint"],
        plan=row["plan"],
        input=row["input"],
        policy=row["policy"],
        drift_blocked=row["drift_blocked"],
        price_list=price_list_of(row["type"], row["version"], row["data"]),
    )
