"""Where callbacks are kept (P4)."""

import uuid

import asyncpg

from longtake.postgres.failures import repeated
from longtake.postgres.statements import statement


class PostgresInboxStore:
    """Implements `InboxStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def insert_callback(
        self,
        *,
        id: uuid.UUID,
        tenant: str,
        provider: str,
        dedupe_key: str,
        run_id: uuid.UUID,
        step: str,
        attempt: int,
        external_ref: str | None,
        type: str,
        payload: bytes,
        traceparent: str | None,
    ) -> int | None:
        """Keep one; returns how many copies came so far, None when there is no such run."""
        row = await repeated(
            lambda: self._pool.fetchrow(
                statement("inbox_insert"),
                id,
                tenant,
                provider,
                dedupe_key,
                run_id,
                step,
                attempt,
                external_ref,
                type,
                payload,
                traceparent,
            )
        )
        return None if row is None else row["copies"]

    async def callback_run(self, run_id: uuid.UUID, effect_id: uuid.UUID) -> tuple[str, str | None] | None:
        """Whose run it is, and the trace of the effect that the callback answers."""
        row = await repeated(lambda: self._pool.fetchrow(statement("callback_run"), run_id, effect_id))
        return None if row is None else (row["tenant_id"], row["traceparent"])
