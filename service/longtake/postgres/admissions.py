"""Admission's side of the authority: one transaction, steps in the order of P6."""

import hashlib
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

import asyncpg
import asyncpg.pool
import msgspec

from longtake.contracts.codec import to_json
from longtake.contracts.commands import Command, Receipt
from longtake.contracts.principal import Principal
from longtake.postgres.commits import commit_decisions
from longtake.postgres.decisions import loaded_run
from longtake.postgres.failures import translated
from longtake.postgres.statements import statement
from longtake.store import (
    Channel,
    CommitResult,
    Funds,
    HeldScope,
    LoadedRun,
    NewRun,
    RunCommit,
    StoredAnswer,
)

_receipts = msgspec.json.Decoder(Receipt)


class PostgresAdmissionStore:
    """Implements `AdmissionStore`."""

    def __init__(self, pool: asyncpg.Pool, *, store_epoch: int, incarnation: uuid.UUID) -> None:
        self._pool = pool
        self._store_epoch = store_epoch
        self._incarnation = incarnation

    @asynccontextmanager
    async def transaction(
        self, principal: Principal, *, channel: Channel, traceparent: str | None
    ) -> AsyncIterator["PostgresAdmission"]:
        """Open a transaction; it commits when the block ends well. Raises AuthorityUnavailable: whether it stands
        is then told by the command's stored answer."""
        with translated():
            async with self._pool.acquire() as connection, connection.transaction():
                yield PostgresAdmission(
                    connection,
                    principal,
                    channel=channel,
                    traceparent=traceparent,
                    store_epoch=self._store_epoch,
                    incarnation=self._incarnation,
                )


class PostgresAdmission:
    """Implements `AdmissionTransaction`."""

    def __init__(
        self,
        connection: asyncpg.pool.PoolConnectionProxy,
        principal: Principal,
        *,
        channel: Channel,
        traceparent: str | None,
        store_epoch: int,
        incarnation: uuid.UUID,
    ) -> None:
        self._connection = connection
        self._principal = principal
        self._channel = channel
        self._traceparent = traceparent
        self._store_epoch = store_epoch
        self._incarnation = incarnation

    async def insert_command(self, command: Command, *, intent_hash: str) -> datetime | None:
        """Keep the command; None when its id is taken."""
        now: datetime | None = await self._connection.fetchval(
            statement("command_insert"),
            self._principal.tenant,
            self._principal.actor,
            command.client_command_id,
            command.kind,
            command.project,
            intent_hash,
            to_json(command),
            self._channel,
            self._traceparent,
        )
        return now

    async def stored_answer(self, client_command_id: str) -> StoredAnswer | None:
        """The answer that the id has already."""
        row = await self._connection.fetchrow(
            statement("command_receipt"), self._principal.tenant, self._principal.actor, client_command_id
        )
        if row is None:
            return None
        receipt = _receipts.decode(row["receipt"]) if row["receipt"] is not None else None
        return StoredAnswer(intent_hash=row["intent_hash"], receipt=receipt)

    async def lock_project(self, project: str) -> None:
        """Wait until no other start of the project is being admitted."""
        name = f"{self._principal.tenant}\x00{project}".encode()
        key = int.from_bytes(hashlib.sha256(name).digest()[:8], "big", signed=True)
        await self._connection.execute(statement("project_lock"), key)

    async def held_scopes(self, project: str, scopes: Sequence[str]) -> list[HeldScope]:
        """Who holds any of these scopes."""
        rows = await self._connection.fetch(
            statement("scopes_held"), self._principal.tenant, project, list(scopes)
        )
        return [HeldScope(scope=row["scope"], run_id=row["run_id"], phase=row["phase"]) for row in rows]

    async def lay_down(self, run: NewRun, *, command_id: str, now: datetime) -> bool:
        """Write plan, run row, scopes and hold, or nothing when the account cannot pay."""
        paid = await self._connection.fetchrow(
            statement("run_admit"),
            run.run_id,
            self._principal.tenant,
            run.project,
            run.workflow,
            run.workflow_version,
            self._principal.actor,
            run.account,
            command_id,
            run.fingerprint,
            run.plan,
            run.input,
            run.policy,
            run.quoted,
            run.cap,
            list(run.scopes),
            run.application,
            self._store_epoch,
            now,
            run.hold,
        )
        return paid is not None

    async def raise_hold(self, run_id: uuid.UUID, by: int) -> bool:
        """Add to the hold of a locked run, or nothing when the account cannot pay."""
        tenant = self._principal.tenant
        return await self._connection.fetchrow(statement("hold_raise"), tenant, run_id, by) is not None

    async def funds(self, account: str) -> Funds | None:
        """What the account has."""
        row = await self._connection.fetchrow(statement("account_read"), self._principal.tenant, account)
        return None if row is None else Funds(balance=row["balance"], held=row["held"])

    async def lock_run(self, run_id: uuid.UUID) -> tuple[LoadedRun, datetime, str, str | None] | None:
        """Lock a run of the caller's tenant and load it."""
        row = await self._connection.fetchrow(statement("run_lock"), self._principal.tenant, run_id)
        if row is None:
            return None
        events = await self._connection.fetch(statement("events_load"), [run_id], [0])
        return loaded_run(row, events), row["now"], row["plan_checked"], row["application"]

    async def commit_run(self, commit: RunCommit, receipt: Receipt) -> CommitResult:
        """Write the decision and the answer with the statement that the dispatcher uses."""
        return await commit_decisions(
            self._connection,
            [commit],
            store_epoch=self._store_epoch,
            incarnation=self._incarnation,
            answer=(self._principal, receipt),
        )

    async def settle_command(self, receipt: Receipt) -> None:
        """Store the answer."""
        run_id = uuid.UUID(receipt.run_id) if receipt.run_id is not None else None
        await self._connection.execute(
            statement("command_settle"),
            self._principal.tenant,
            self._principal.actor,
            receipt.command_id,
            receipt.status,
            run_id,
            to_json(receipt),
        )
