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
from longtake.contracts.signals import OutcomeReported
from longtake.crash_points import reach, reach_unanswered
from longtake.postgres.commits import commit_decisions
from longtake.postgres.decisions import effect_facts, loaded_run
from longtake.postgres.failures import definite
from longtake.postgres.statements import statement
from longtake.store import (
    Channel,
    CommitResult,
    Fact,
    Funds,
    HeldScope,
    LoadedRun,
    NewRun,
    RunCommit,
    RunOrigin,
    StoredAnswer,
)
from longtake.workflow.queueing import LINE_MAX, Waiting

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
        is then told by the command's stored answer; DecisionRefused when a row breaks a rule: then nothing stands."""
        with definite():
            async with self._pool.acquire() as connection:
                opened = connection.transaction()
                await opened.start()
                try:
                    yield PostgresAdmission(
                        connection,
                        principal,
                        channel=channel,
                        traceparent=traceparent,
                        store_epoch=self._store_epoch,
                        incarnation=self._incarnation,
                    )
                except BaseException:
                    await opened.rollback()
                    raise
                reach("tx.after_append.before_commit")
                await reach_unanswered("commit.reply_lost", opened.commit())


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

    async def line(self, project: str) -> tuple[list[Waiting], datetime]:
        """Who is in line in the project, and the time."""
        rows = await self._connection.fetch(
            statement("queue_read"), self._principal.tenant, project, LINE_MAX + 1
        )
        now = rows[0]["now"] if rows else await self._connection.fetchval(statement("now_read"))
        waiting = [
            Waiting(
                run_id=row["run_id"],
                scopes=tuple(row["scopes"]),
                waits_for=tuple(row["waits_for"]),
                start_at=row["start_at"],
                supersedes=row["supersedes"],
                overtakes=row["overtakes"],
            )
            for row in rows
        ]
        return waiting, now

    async def join_line(self, project: str, waiting: Waiting) -> None:
        """A run gets in line."""
        await self._connection.execute(
            statement("queue_join"),
            self._principal.tenant,
            project,
            waiting.run_id,
            list(waiting.scopes),
            list(waiting.waits_for),
            waiting.start_at,
            waiting.supersedes,
            waiting.overtakes,
        )

    async def leave_line(self, run_id: uuid.UUID) -> None:
        """A run gives up its place."""
        await self._connection.execute(statement("queue_leave"), run_id)

    async def active_runs(self, run_ids: Sequence[uuid.UUID]) -> frozenset[uuid.UUID]:
        """Which of them have not ended."""
        if not run_ids:
            return frozenset()
        rows = await self._connection.fetch(statement("runs_active"), self._principal.tenant, list(run_ids))
        return frozenset(row["run_id"] for row in rows)

    async def grant_scopes(self, project: str, waiting: Waiting) -> None:
        """A run leaves the line and owns its scopes."""
        await self._connection.execute(
            statement("scopes_grant"), self._principal.tenant, project, waiting.run_id, list(waiting.scopes)
        )

    async def wait_for(self, run_id: uuid.UUID, runs: Sequence[uuid.UUID]) -> None:
        """A run in line begins after these have ended."""
        await self._connection.execute(statement("queue_wait"), run_id, list(runs))

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

    async def origin(self, run_id: uuid.UUID) -> RunOrigin | None:
        """What a run of the caller's tenant was made from."""
        row = await self._connection.fetchrow(statement("run_origin"), self._principal.tenant, run_id)
        return None if row is None else RunOrigin(**row)

    async def lock_run(self, run_id: uuid.UUID) -> tuple[LoadedRun, datetime, str, str | None] | None:
        """Lock a run of the caller's tenant and load it."""
        row = await self._connection.fetchrow(statement("run_lock"), self._principal.tenant, run_id)
        if row is None:
            return None
        events = await self._connection.fetch(statement("events_load"), [run_id], [0])
        return loaded_run(row, events), row["now"], row["plan_checked"], row["application"]

    async def answers(self, effects: Sequence[uuid.UUID]) -> list[Fact]:
        """What was answered and is not decided."""
        rows = await self._connection.fetch(statement("receipts_fetch"), list(effects))
        return [fact for fact in effect_facts(rows) if isinstance(fact.signal, OutcomeReported)]

    async def commit_run(
        self, commit: RunCommit, receipt: Receipt | None, *, also: Sequence[RunCommit] = ()
    ) -> CommitResult:
        """Write the decision and the answer with the statement that the dispatcher uses."""
        return await commit_decisions(
            self._connection,
            [commit, *also],
            store_epoch=self._store_epoch,
            incarnation=self._incarnation,
            answer=None if receipt is None else (self._principal, receipt),
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
