"""The worker's side of the authority: claim, open a call, report, put back. Effects only, never a run (P6)."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import asyncpg

from longtake.contracts.effects import ClaimedEffect, Report
from longtake.contracts.ids import fence_floor
from longtake.crash_points import reach_unanswered
from longtake.postgres.failures import repeated, translated
from longtake.postgres.pool import connect
from longtake.postgres.statements import statement


class PostgresEffectStore:
    """Implements `EffectStore`."""

    def __init__(self, pool: asyncpg.Pool, *, store_epoch: int) -> None:
        self._pool = pool
        self._fence_floor = fence_floor(store_epoch)

    async def claim(
        self,
        *,
        claim_id: uuid.UUID,
        effects: Sequence[tuple[uuid.UUID, int]],
        limit: int,
        owner: str,
        lease_seconds: int,
    ) -> list[ClaimedEffect]:
        """Lease up to `limit` of the effects; the same claim id gives the same leases again (P11)."""
        rows = await repeated(
            lambda: self._pool.fetch(
                statement("effects_claim"),
                claim_id,
                [id_ for id_, _ in effects],
                [a for _, a in effects],
                limit,
                owner,
                lease_seconds,
                self._fence_floor,
            )
        )
        return [
            ClaimedEffect(
                id=row["id"],
                tenant=row["tenant_id"],
                run_id=row["run_id"],
                step=row["step"],
                attempt=row["attempt"],
                kind=row["kind"],
                activity=row["activity"],
                pool=row["pool"],
                input=row["input"],
                fence=row["fence"],
                lease_seconds=lease_seconds,
                traceparent=row["traceparent"],
                external_ref=row["external_ref"],
                call_opened_before=row["call_opened_before"],
                asks=row["asks"],
            )
            for row in rows
        ]

    async def open_call(self, *, effect_id: uuid.UUID, fence: int) -> bool:
        """Mark that bytes are about to leave; False when the lease is not ours any more."""
        return (
            await repeated(lambda: self._pool.fetchval(statement("call_open"), effect_id, fence)) is not None
        )

    async def report(self, reports: Sequence[Report]) -> list[tuple[uuid.UUID, uuid.UUID]]:
        """Store receipts; returns (effect id, run id) of those the dispatcher must look at."""
        ordered = sorted(reports, key=lambda report: report.effect_id)
        rows = await repeated(
            lambda: self._pool.fetch(
                statement("receipts_store"),
                [r.effect_id for r in ordered],
                [r.fence for r in ordered],
                [r.owner for r in ordered],
                [r.outcome for r in ordered],
                [r.traceparent for r in ordered],
            )
        )
        return [(row["id"], row["run_id"]) for row in rows]

    async def put_back(
        self, *, effect_id: uuid.UUID, fence: int, delay_seconds: float, progress: int | None
    ) -> datetime | None:
        """Let the same row wait again; None when the lease is not ours any more."""
        row = await repeated(
            lambda: self._pool.fetchrow(
                statement("effects_put_back"), [effect_id], [fence], [delay_seconds], [progress]
            )
        )
        return None if row is None else row["not_before"]

    async def release(self, *, leases: Sequence[tuple[uuid.UUID, int]], owner: str) -> None:
        """Give back work that has not begun."""
        await repeated(
            lambda: self._pool.fetch(
                statement("leases_release"), [id_ for id_, _ in leases], [fence for _, fence in leases], owner
            )
        )


class PostgresLeaseKeeper:
    """Implements `LeaseKeeper` over a connection of its own, opened when it is first needed and after a loss."""

    def __init__(self, address: Mapping[str, Any], *, owner: str) -> None:
        self._address = address
        self._owner = owner
        self._connection: asyncpg.Connection | None = None

    async def renew(
        self, leases: Sequence[tuple[uuid.UUID, int, int]], progress: Mapping[uuid.UUID, int]
    ) -> set[uuid.UUID]:
        """Renew each of (effect, fence, seconds); returns the ids that are still ours. Raises AuthorityUnavailable."""
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._address, heartbeat=True)
        with translated():
            renewal = self._connection.fetch(
                statement("leases_renew"),
                [id_ for id_, _, _ in leases],
                [fence for _, fence, _ in leases],
                self._owner,
                [seconds for _, _, seconds in leases],
                [progress.get(id_) for id_, _, _ in leases],
            )
            rows = await reach_unanswered("heartbeat.mid_tx", renewal)
        return {row["id"] for row in rows}

    async def close(self) -> None:
        """Let the connection go."""
        if self._connection is not None and not self._connection.is_closed():
            self._connection.terminate()
        self._connection = None
