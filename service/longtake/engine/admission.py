"""Admission: a command is decided in the transaction that keeps it (P23), whatever way it came.

keep the command -> lock -> decide -> write -> store the answer: one commit. A repeat gets the stored answer; the
same id with another intent is refused. What cannot be read or planned is refused before anything is kept.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec
import structlog

from longtake.contracts.commands import Command, Receipt
from longtake.contracts.ids import run_id_for
from longtake.contracts.principal import Principal
from longtake.contracts.problems import ProblemError, problem
from longtake.engine.commands import GenerationBody, payload_of, signal_of, target_of
from longtake.engine.deciding import LiveRun, add_decision, empty_commit, finish, revive
from longtake.engine.hints import Hints
from longtake.engine.history import Head
from longtake.engine.receipts import (
    applied,
    cannot_pay,
    intent_taken,
    moved_on,
    no_such_run,
    rejected,
    scope_conflict,
)
from longtake.errors import AuthorityUnavailable, Refused, UncanonicalValue
from longtake.store import (
    AdmissionStore,
    AdmissionTransaction,
    Channel,
    CommitResult,
    NewRun,
    PlannedRun,
    Planner,
)
from longtake.telemetry.attributes import (
    COMMAND_ID,
    COMMAND_KIND,
    OUTCOME,
    RUN_ID,
    SPAN_COMMAND_ADMIT,
    TENANT,
)
from longtake.telemetry.tracing import span
from longtake.workflow.admission import AcceptedFacts
from longtake.workflow.decision import Decision
from longtake.workflow.plan import compile_document
from longtake.workflow.reducer import accept, decide
from longtake.workflow.state import initial

TRIES_MAX = 4
"""How often a command is admitted again after the connection died around its commit, or its run was contended."""

log = structlog.get_logger("longtake.engine.admission")


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The receipt, and whether it was there before."""

    receipt: Receipt
    replayed: bool = False


class Admission:
    """Admits commands of all channels."""

    def __init__(
        self,
        store: AdmissionStore,
        planner: Planner | None,
        hints: Hints,
        *,
        store_epoch: int,
        on_started: Callable[[LiveRun], None] | None = None,
    ) -> None:
        """`on_started` gets each new run after its commit: a dispatcher in the same process need not load it."""
        self._store = store
        self._planner = planner
        self._hints = hints
        self._store_epoch = store_epoch
        self._on_started = on_started

    async def admit(
        self,
        principal: Principal,
        command: Command,
        *,
        channel: Channel,
        traceparent: str | None,
        strict: bool = False,
    ) -> Answer:
        """Decide a command and store the answer, or return the answer it has.

        `strict`: the run must be at exactly the expected revision (If-Match); otherwise the action must have been
        offered without interruption since then (P3).

        Raises Refused for what is not kept (nothing is written), AuthorityUnavailable when nothing is known.
        """
        with span(
            SPAN_COMMAND_ADMIT,
            kind="server",
            parent=traceparent,
            attributes={
                TENANT: principal.tenant,
                COMMAND_ID: str(command.client_command_id),
                COMMAND_KIND: command.kind,
            },
        ) as hop:
            admitted = await self._admit_patiently(
                principal, command, channel, hop.traceparent or traceparent, strict=strict
            )
            answer = admitted.answer
            hop.set(OUTCOME, "duplicate" if answer.replayed else answer.receipt.status)
            if answer.receipt.run_id is not None:
                hop.set(RUN_ID, answer.receipt.run_id)
            self._announce(admitted)
            return answer

    def _announce(self, admitted: "_Admitted") -> None:
        """Hint at what was committed; whatever is lost of it, relay and sweeper find."""
        if admitted.result is None or admitted.run is None:
            return
        if admitted.is_new_run and self._on_started is not None:
            self._on_started(admitted.run)
        self._hints.effects_soon(admitted.result.pointers)
        run_id = admitted.run.head.run_id
        self._hints.look_at_soon((id_, run_id) for id_ in admitted.result.withdrawn)

    async def _admit_patiently(
        self,
        principal: Principal,
        command: Command,
        channel: Channel,
        traceparent: str | None,
        *,
        strict: bool,
    ) -> "_Admitted":
        try:
            intent = command.intent_hash()
        except UncanonicalValue as error:
            place = ProblemError(error.pointer, error.message, error.remedy)
            raise Refused(
                problem("invalid-command", f"The command has no canonical form: {error}.", place)
            ) from error
        planned = await self._planned(principal, command, intent, channel)
        for attempt in range(1, TRIES_MAX + 1):
            try:
                return await self._once(
                    principal, command, intent, planned, channel, traceparent, strict=strict
                )
            except _Moved:
                continue
            except AuthorityUnavailable:
                # A commit may stand: the next try finds the answer under the command's id.
                if attempt == TRIES_MAX:
                    raise
        raise Refused(
            problem(
                "command-in-progress",
                "The run is being changed all the time; try again.",
                retry_after_seconds=1,
            )
        )

    async def _planned(
        self, principal: Principal, command: Command, intent: str, channel: Channel
    ) -> PlannedRun | Answer | None:
        """The plan of a generation command, made before any lock; a known command's answer instead."""
        if command.kind != "generation":
            return None
        body = payload_of(command, GenerationBody)
        if self._planner is None:
            raise Refused(
                problem("unavailable", "This process has no application loaded.", retry_after_seconds=5)
            )
        try:
            return self._planner.plan(body.workflow, body.input, body.policy)
        except Refused:
            # A repeat of a command that was admitted by older code still gets its answer.
            async with self._store.transaction(principal, channel=channel, traceparent=None) as transaction:
                known = await self._known(transaction, command, intent)
            if known is None:
                raise
            return known

    async def _once(
        self,
        principal: Principal,
        command: Command,
        intent: str,
        planned: PlannedRun | Answer | None,
        channel: Channel,
        traceparent: str | None,
        *,
        strict: bool,
    ) -> "_Admitted":
        if isinstance(planned, Answer):
            return _Admitted(answer=planned)
        async with self._store.transaction(
            principal, channel=channel, traceparent=traceparent
        ) as transaction:
            now = await transaction.insert_command(command, intent_hash=intent)
            if now is None:
                known = await self._known(transaction, command, intent)
                if known is None:
                    raise Refused(
                        problem(
                            "command-in-progress", "The command is being accepted.", retry_after_seconds=1
                        )
                    )
                return _Admitted(answer=known)
            if planned is not None:
                return await self._start(transaction, principal, command, planned, now, traceparent)
            return await self._control(transaction, principal, command, traceparent, strict=strict)

    async def _known(self, transaction: AdmissionTransaction, command: Command, intent: str) -> Answer | None:
        stored = await transaction.stored_answer(str(command.client_command_id))
        if stored is None:
            return None
        if stored.intent_hash != intent:
            raise Refused(intent_taken(str(command.client_command_id)))
        return None if stored.receipt is None else Answer(receipt=stored.receipt, replayed=True)

    async def _start(
        self,
        transaction: AdmissionTransaction,
        principal: Principal,
        command: Command,
        planned: PlannedRun,
        now: datetime,
        traceparent: str | None,
    ) -> "_Admitted":
        command_id = str(command.client_command_id)
        body = payload_of(command, GenerationBody)
        run_id = run_id_for(tenant=principal.tenant, actor=principal.actor, client_command_id=command_id)
        if planned.scopes:
            await transaction.lock_project(command.project)
            held = await transaction.held_scopes(command.project, planned.scopes)
            if held:
                return await _reject(transaction, rejected(command, scope_conflict(held)))
        new = NewRun(
            run_id=run_id,
            project=command.project,
            workflow=planned.workflow,
            workflow_version=planned.workflow_version,
            account=body.account,
            fingerprint=planned.fingerprint,
            plan=planned.plan_document,
            input=planned.input,
            policy=planned.policy,
            quoted=planned.quoted,
            cap=planned.cap,
            scopes=planned.scopes,
            application=planned.application,
        )
        if not await transaction.lay_down(new, command_id=command_id, now=now):
            poor = cannot_pay(body.account, await transaction.funds(body.account), planned.cap)
            return await _reject(transaction, rejected(command, poor))
        run = LiveRun(
            state=initial(run_id, principal.tenant, compile_document(planned.plan_document)),
            head=Head(
                run_id=run_id,
                tenant=principal.tenant,
                store_epoch=self._store_epoch,
                seq=0,
                hash=bytes(32),
                actor=principal.actor,
                correlation=command_id,
            ),
        )
        decision = accept(
            run.state,
            AcceptedFacts(
                workflow=planned.workflow,
                workflow_version=planned.workflow_version,
                project=command.project,
                actor=principal.actor,
                account=body.account,
                command_id=command_id,
                conversation=command.conversation,
                fingerprint=planned.fingerprint,
                application=planned.application,
                price_list=planned.price_list,
            ),
            now,
        )
        receipt = applied(command, run, "running", now)
        result = await self._write(transaction, run, decision, receipt, traceparent, now)
        return _Admitted(answer=Answer(receipt=receipt), result=result, run=run, is_new_run=True)

    async def _control(
        self,
        transaction: AdmissionTransaction,
        principal: Principal,
        command: Command,
        traceparent: str | None,
        *,
        strict: bool,
    ) -> "_Admitted":
        command_id = str(command.client_command_id)
        run_id, revision = target_of(command)
        locked = await transaction.lock_run(run_id)
        if locked is None:
            raise Refused(no_such_run(run_id))
        loaded, now, checked, application = locked
        if application is not None and checked != application:
            raise Refused(
                problem(
                    "command-in-progress",
                    "The run's plan is being compared with the deployed code; try again.",
                    retry_after_seconds=1,
                )
            )
        run = revive(loaded, store_epoch=self._store_epoch)
        now = now if run.clock is None else max(now, run.clock)
        if strict and run.revision != revision:
            return await _reject(transaction, rejected(command, moved_on(run.revision, revision), run))
        decision = decide(run.state, signal_of(command, principal, command_id, revision), now)
        if decision.refusal is not None:
            return await _reject(transaction, rejected(command, decision.refusal, run))
        receipt = applied(command, run, decision.command_status, now)
        result = await self._write(transaction, run, decision, receipt, traceparent, now)
        return _Admitted(answer=Answer(receipt=receipt), result=result, run=run)

    async def _write(
        self,
        transaction: AdmissionTransaction,
        run: LiveRun,
        decision: Decision,
        receipt: Receipt,
        traceparent: str | None,
        now: datetime,
    ) -> CommitResult:
        commit = empty_commit(run, traceparent=traceparent)
        add_decision(
            commit, run, decision, causation=f"command:{receipt.command_id}", traceparent=traceparent, now=now
        )
        finish(commit, run, dict.fromkeys(decision.touched))
        result = await transaction.commit_run(commit, receipt)
        if run.head.run_id not in result.committed:
            raise _Moved
        return result


class _Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, and what was committed for it."""

    answer: Answer
    result: CommitResult | None = None
    run: LiveRun | None = None
    is_new_run: bool = False


async def _reject(transaction: AdmissionTransaction, receipt: Receipt) -> _Admitted:
    """Keep the refusal as the command's answer: a repeat gets it again (P23)."""
    await transaction.settle_command(receipt)
    return _Admitted(answer=Answer(receipt=receipt))


class _Moved(Exception):
    """The run changed between its reading and its writing; the transaction is rolled back and tried again."""
