"""Admission's side of the authority in memory: one transaction, steps in the order of P6."""

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self, TypeVar

from longtake.contracts.codec import to_json
from longtake.contracts.commands import Command, Receipt
from longtake.contracts.principal import Principal
from longtake.contracts.signals import OutcomeReported
from longtake.memory import store_line as line
from longtake.memory.store_commit import commit_decisions
from longtake.memory.store_decisions import effect_facts, loaded_run
from longtake.memory.store_session import DECISIONS_COMMIT, MemoryDatabase, RowRefused, Session
from longtake.memory.tables import CommandRow, HoldRow, PlanRow, StoredRun
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
from longtake.workflow.queueing import Waiting

T = TypeVar("T")


class MemoryAdmissionStore:
    """Implements `AdmissionStore`."""

    def __init__(self, database: MemoryDatabase, *, store_epoch: int, incarnation: uuid.UUID) -> None:
        self._database = database
        self._store_epoch = store_epoch
        self._incarnation = incarnation

    def transaction(
        self, principal: Principal, *, channel: Channel, traceparent: str | None
    ) -> "MemoryAdmission":
        """Open a transaction; it commits when the block ends well. Raises AuthorityUnavailable: whether it stands is
        then told by the command's stored answer."""
        return MemoryAdmission(
            self._database,
            principal,
            channel=channel,
            traceparent=traceparent,
            store_epoch=self._store_epoch,
            incarnation=self._incarnation,
        )


class MemoryAdmission:
    """Implements `AdmissionTransaction`, and the block around it."""

    def __init__(
        self,
        database: MemoryDatabase,
        principal: Principal,
        *,
        channel: Channel,
        traceparent: str | None,
        store_epoch: int,
        incarnation: uuid.UUID,
    ) -> None:
        self._database = database
        self._principal = principal
        self._channel = channel
        self._traceparent = traceparent
        self._store_epoch = store_epoch
        self._incarnation = incarnation
        self._open: Session | None = None
        self._asked = ""

    async def __aenter__(self) -> Self:
        self._open = self._database.begin()
        return self

    async def __aexit__(
        self,
        type_: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        session = self._session
        self._open = None
        if type_ is None:
            await self._database.commit(session)
        else:
            # Nothing is awaited here: a coroutine that is closed in the middle ends like a process that dies.
            self._database.roll_back(session)

    @property
    def _session(self) -> Session:
        assert self._open is not None, "an admission is used inside its block"
        return self._open

    async def insert_command(self, command: Command, *, intent_hash: str) -> datetime | None:
        """Keep the command; None when its id is taken."""
        principal = self._principal
        id_ = str(command.client_command_id)
        key = (principal.tenant, principal.actor, id_)
        self._asked = intent_hash

        def insert(session: Session) -> datetime | None:
            if session.defences.command_unique:
                if session.view.commands.get(key) is not None:
                    return None
                session.lock("command", *key)
            now = session.now
            session.view.commands.put(
                key,
                CommandRow(
                    tenant=principal.tenant,
                    actor=principal.actor,
                    client_command_id=id_,
                    kind=command.kind,
                    project=command.project,
                    intent_hash=intent_hash,
                    body=to_json(command),
                    channel=self._channel,
                    status="accepted",
                    accepted_at=now,
                    traceparent=self._traceparent,
                    copied_at=None if self._channel == "http" else now,
                    tx_id=session.tx_id,
                ),
            )
            return now

        return await self._run("command_insert", insert)

    async def stored_answer(self, client_command_id: str) -> StoredAnswer | None:
        """The answer that the id has already."""
        key = (self._principal.tenant, self._principal.actor, client_command_id)

        def read(session: Session) -> StoredAnswer | None:
            command = session.view.commands.get(key)
            if command is None:
                return None
            intent = command.intent_hash if session.defences.body_hash_kept else self._asked
            return StoredAnswer(intent_hash=intent, receipt=command.receipt)

        return await self._run("command_receipt", read)

    async def lock_project(self, project: str) -> None:
        """Wait until no other start of the project is being admitted."""

        def lock(session: Session) -> None:
            if session.defences.project_lock:
                session.lock("project", self._principal.tenant, project)

        await self._run("project_lock", lock)

    async def held_scopes(self, project: str, scopes: Sequence[str]) -> list[HeldScope]:
        """Who holds any of these scopes."""

        def read(session: Session) -> list[HeldScope]:
            held: list[HeldScope] = []
            for scope in sorted(set(scopes)):
                run_id = session.view.scopes.get((self._principal.tenant, project, scope))
                run = None if run_id is None else session.view.runs.get(run_id)
                if run is not None:
                    held.append(HeldScope(scope=scope, run_id=run.run_id, phase=run.phase))
            return held

        return await self._run("scopes_held", read)

    async def line(self, project: str) -> tuple[list[Waiting], datetime]:
        """Who is in line in the project, and the time."""
        return await self._run("queue_read", lambda s: line.read_line(s, self._principal.tenant, project))

    async def join_line(self, project: str, waiting: Waiting) -> None:
        """A run gets in line."""
        tenant = self._principal.tenant
        await self._run("queue_join", lambda s: line.join_line(s, tenant, project, waiting))

    async def leave_line(self, run_id: uuid.UUID) -> None:
        """A run gives up its place."""
        await self._run("queue_leave", lambda s: line.leave_line(s, run_id))

    async def active_runs(self, run_ids: Sequence[uuid.UUID]) -> frozenset[uuid.UUID]:
        """Which of them have not ended."""
        tenant = self._principal.tenant
        return await self._run("runs_active", lambda s: line.active_runs(s, tenant, run_ids))

    async def grant_scopes(self, project: str, waiting: Waiting) -> None:
        """A run leaves the line and owns its scopes."""
        tenant = self._principal.tenant
        await self._run("scopes_grant", lambda s: line.grant_scopes(s, tenant, project, waiting))

    async def wait_for(self, run_id: uuid.UUID, runs: Sequence[uuid.UUID]) -> None:
        """A run in line begins after these have ended."""
        await self._run("queue_wait", lambda s: line.wait_for(s, run_id, runs))

    async def lay_down(self, run: NewRun, *, command_id: str, now: datetime) -> bool:
        """Write hold, plan, run row and scopes; False (and nothing written) when the account cannot pay."""
        return await self._run(
            "run_admit", lambda session: self._lay_down(session, run, command_id=command_id, now=now)
        )

    def _lay_down(self, session: Session, run: NewRun, *, command_id: str, now: datetime) -> bool:
        view, tenant = session.view, self._principal.tenant
        if run.hold > 0:
            session.lock("account", tenant, run.account)
            funds = view.accounts.get((tenant, run.account))
            if funds is None or (session.defences.account_covered and funds.balance - funds.held < run.hold):
                return False
        plan_key = (tenant, run.fingerprint)
        if view.plans.get(plan_key) is None:
            session.lock("plan", *plan_key)
        line.take_scopes(session, tenant, run.project, run.scopes)
        session.lock("run", run.run_id)
        if view.runs.get(run.run_id) is not None:
            raise RowRefused(f"runs: {run.run_id} is taken")
        if run.hold > 0 and (account := view.accounts.own((tenant, run.account))) is not None:
            account.held += run.hold
            view.holds.put(run.run_id, HoldRow(tenant=tenant, account=run.account, amount=run.hold))
        if view.plans.get(plan_key) is None:
            view.plans.put(
                plan_key,
                PlanRow(
                    workflow=run.workflow,
                    workflow_version=run.workflow_version,
                    plan=run.plan,
                    input=run.input,
                    policy=run.policy,
                ),
            )
        view.runs.put(
            run.run_id,
            StoredRun(
                run_id=run.run_id,
                tenant=tenant,
                project=run.project,
                workflow=run.workflow,
                workflow_version=run.workflow_version,
                actor=self._principal.actor,
                account=run.account,
                command_id=command_id,
                fingerprint=run.fingerprint,
                plan_checked=run.application,
                store_epoch=self._store_epoch,
                head_hash=bytes(32),
                quoted=run.quoted,
                cap=run.cap,
                accepted_at=now,
                updated_at=now,
            ),
        )
        for scope in run.scopes:
            view.scopes.put((tenant, run.project, scope), run.run_id)
        return True

    async def raise_hold(self, run_id: uuid.UUID, by: int) -> bool:
        """Add to the hold of a locked run; False (and nothing written) when the account cannot pay."""
        return await self._run("hold_raise", lambda session: self._raise_hold(session, run_id, by))

    def _raise_hold(self, session: Session, run_id: uuid.UUID, by: int) -> bool:
        view, tenant = session.view, self._principal.tenant
        run = view.runs.get(run_id)
        if run is None or run.tenant != tenant or run.ended_at is not None:
            return False
        session.lock("account", tenant, run.account)
        funds = view.accounts.get((tenant, run.account))
        if funds is None or (session.defences.account_covered and funds.balance - funds.held < by):
            return False
        account, hold = view.accounts.own((tenant, run.account)), view.holds.own(run_id)
        assert account is not None, "it was found"
        account.held += by
        if hold is None:
            view.holds.put(run_id, HoldRow(tenant=tenant, account=run.account, amount=by))
        else:
            hold.amount += by
        return True

    async def funds(self, account: str) -> Funds | None:
        """What the account has."""

        def read(session: Session) -> Funds | None:
            row = session.view.accounts.get((self._principal.tenant, account))
            return None if row is None else Funds(balance=row.balance, held=row.held)

        return await self._run("account_read", read)

    async def origin(self, run_id: uuid.UUID) -> RunOrigin | None:
        """What a run of the caller's tenant was made from."""

        def read(session: Session) -> RunOrigin | None:
            run = session.view.runs.get(run_id)
            if run is None or run.tenant != self._principal.tenant:
                return None
            plan = session.view.plans.get((run.tenant, run.fingerprint))
            assert plan is not None, "a run is laid down with its plan"
            return RunOrigin(
                run_id=run_id, project=run.project, workflow=run.workflow, workflow_version=run.workflow_version,
                account=run.account, fingerprint=run.fingerprint, plan=plan.plan, input=plan.input,
                policy=plan.policy,
            )  # fmt: skip

        return await self._run("run_origin", read)

    async def lock_run(self, run_id: uuid.UUID) -> tuple[LoadedRun, datetime, str, str | None] | None:
        """Lock a run of the caller's tenant and load it."""

        def lock(session: Session) -> tuple[LoadedRun, datetime, str, str | None] | None:
            run = session.view.runs.get(run_id)
            if run is None or (session.defences.tenant_checked and run.tenant != self._principal.tenant):
                return None
            if session.defences.run_lock:
                session.lock("run", run_id)
            application = session.tables.store[0].application
            return loaded_run(session, run, 0), session.now, run.plan_checked, application

        return await self._run("run_lock", lock)

    async def answers(self, effects: Sequence[uuid.UUID]) -> list[Fact]:
        """What was answered and is not decided."""

        def read(session: Session) -> list[Fact]:
            facts = effect_facts(session, effects)
            return [fact for fact in facts if isinstance(fact.signal, OutcomeReported)]

        return await self._run("receipts_fetch", read)

    async def commit_run(
        self, commit: RunCommit, receipt: Receipt | None, *, also: Sequence[RunCommit] = ()
    ) -> CommitResult:
        """Write the decision and the answer with the statement that the dispatcher uses."""
        return await self._run(
            DECISIONS_COMMIT,
            lambda session: commit_decisions(
                session,
                [commit, *also],
                store_epoch=self._store_epoch,
                incarnation=self._incarnation,
                answer=None if receipt is None else (self._principal, receipt),
            ),
        )

    async def settle_command(self, receipt: Receipt) -> None:
        """Store the answer."""
        key = (self._principal.tenant, self._principal.actor, receipt.command_id)

        def write(session: Session) -> None:
            session.lock("command", *key)
            if (command := session.view.commands.own(key)) is not None:
                command.status = receipt.status
                command.run_id = uuid.UUID(receipt.run_id) if receipt.run_id is not None else None
                command.receipt = receipt

        await self._run("command_settle", write)

    async def _run(self, statement: str, body: Callable[[Session], T]) -> T:
        return await self._database.run(statement, body, self._session)
