"""The starter's side of the authority: what decisions asked of admission, and where somebody in line may begin."""

import uuid

import asyncpg

from longtake.contracts.codec import to_json
from longtake.contracts.signals import Outgoing
from longtake.postgres.failures import repeated
from longtake.postgres.statements import statement
from longtake.store import Errand


class PostgresErrandStore:
    """Implements `ErrandStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def open_errands(self, limit: int) -> list[Errand]:
        """What is asked for, oldest first. Raises AuthorityUnavailable."""
        rows = await repeated(lambda: self._pool.fetch(statement("errands_open"), limit))
        return [Errand(**row) for row in rows]

    async def settle_errands(self, ids: list[uuid.UUID], reason: str) -> None:
        """These are done."""
        await repeated(lambda: self._pool.execute(statement("errands_settle"), ids, reason))

    async def answer_errand(self, errand: Errand, reason: str, answer: Outgoing) -> None:
        """This one is done, and its answer is a fact for a run."""
        await repeated(
            lambda: self._pool.execute(
                statement("errand_answer"),
                errand.id,
                reason,
                answer.id,
                answer.run_id,
                answer.kind,
                to_json(answer.payload),
            )
        )

    async def waiting_projects(self, limit: int) -> list[tuple[str, str]]:
        """(tenant, project) in which somebody in line may begin."""
        rows = await repeated(lambda: self._pool.fetch(statement("queue_projects"), limit))
        return [(row["tenant_id"], row["project"]) for row in rows]
