"""What waits for workers and dispatchers, read from the tables themselves (G54)."""

import asyncpg

from longtake.postgres.failures import repeated
from longtake.postgres.statements import statement
from longtake.store import EffectPointer, LostDoorbell


class PostgresWaitingStore:
    """Implements `WaitingStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def waiting_effects(self, pool: str, *, limit: int) -> list[EffectPointer]:
        """Due effects of a pool that nobody has leased. Raises AuthorityUnavailable."""
        rows = await repeated(lambda: self._pool.fetch(statement("effects_waiting"), pool, limit))
        return [EffectPointer(**row) for row in rows]

    async def waiting_facts(self, part: int, *, parts: int, limit: int) -> list[LostDoorbell]:
        """What the dispatcher of a part has not decided. Raises AuthorityUnavailable."""
        rows = await repeated(lambda: self._pool.fetch(statement("facts_waiting"), part, parts, limit))
        return [LostDoorbell(**row) for row in rows]
