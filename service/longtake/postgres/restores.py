"""The authority's side of a restore: one connection of the owner, for nobody else may be there (F70)."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime

import asyncpg

from longtake.contracts.codec import to_json
from longtake.errors import MigrationError
from longtake.postgres.failures import translated
from longtake.postgres.statements import statement
from longtake.store import OtherConnection, RestoreFacts


class PostgresRestoreStore:
    """Implements `RestoreStore`. `mine`: server processes of our own connections."""

    def __init__(self, connection: asyncpg.Connection, *, mine: Sequence[int] = ()) -> None:
        self._connection = connection
        self._mine = frozenset(mine)

    async def others(self) -> list[OtherConnection]:
        """Who else is connected."""
        with translated():
            rows = await self._connection.fetch(statement("others_connected"))
        return [OtherConnection(**row) for row in rows if row["pid"] not in self._mine]

    async def facts(self) -> RestoreFacts:
        """What the store knows of itself."""
        with translated():
            row = await self._connection.fetchrow(statement("restore_facts"))
        if row is None:
            raise MigrationError("the table longtake.store is empty: run `longtake migrate`")
        return RestoreFacts(**row)

    async def begin(self, epoch: int, *, restored_to: datetime | None, ask_hours: int) -> int | None:
        """Raise the epochs and bury every process."""
        with translated():
            row = await self._connection.fetchrow(statement("restore_begin"), epoch, restored_to, ask_hours)
        return None if row is None else row["buried"]

    async def unknown(
        self, *, effects: Sequence[uuid.UUID], runs: Sequence[uuid.UUID], inbox: Sequence[uuid.UUID]
    ) -> dict[uuid.UUID, str]:
        """The pointers that name nothing here."""
        with translated():
            rows = await self._connection.fetch(
                statement("pointers_unknown"), list(effects), list(runs), list(inbox)
            )
        return {row["id"]: row["what"] for row in rows}

    async def revision(self, tenant: str, run_id: uuid.UUID) -> int | None:
        """Where a run stands."""
        with translated():
            revision: int | None = await self._connection.fetchval(statement("run_revision"), tenant, run_id)
        return revision

    async def calls_in_doubt(self) -> int:
        """Open work whose call the outside may know."""
        with translated():
            count: int = await self._connection.fetchval(statement("calls_in_doubt"))
        return count

    async def finish(self, epoch: int, report: Mapping[str, object]) -> None:
        """Let processes work again."""
        with translated():
            await self._connection.execute(statement("restore_finish"), epoch, to_json(dict(report)).decode())
