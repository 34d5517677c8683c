"""Admission: a command is decided in the transaction that keeps it (P23), whatever way it came.

keep the command -> lock -> decide -> write -> store the answer: one commit. A repeat gets the stored answer; the
same id with another intent is refused. What cannot be read or planned is refused before anything is kept.
"""

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime

import structlog

from longtake.contracts.command_table import TABLE
from longtake.contracts.commands import Command, Receipt
from longtake.contracts.events import Parent
from longtake.contracts.principal import Principal
from longtake.contracts.problems import Problem, ProblemError, problem
from longtake.crash_points import reach
from longtake.engine.admitted import Admitted, Answer, Heard, Moved, reject
from longtake.engine.commands import (
    check,
    revision_of,
    signal_of,
    supersede_of,
    target_of,
)
from longtake.engine.deciding import LiveRun, add_decision, commit_of, empty_commit, finish, revive
from longtake.engine.hints import Hints
from longtake.engine.ordering import Orders
from longtake.engine.receipts import (
    applied,
    cannot_raise,
    intent_taken,
    moved_on,
    no_such_run,
    rejected,
    still_checked,
    still_held,
)
from longtake.engine.relatives import tell_relatives
from longtake.engine.starting import Order, refuse_order, start_run
from longtake.engine.waking import DOORBELL_RELAY, ring_when_due
from longtake.engine.windows import Windows
from longtake.errors import AuthorityUnavailable, LockTimeout, Refused, UncanonicalValue
from longtake.ports import Doorbell
from longtake.store import (
    AdmissionStore,
    AdmissionTransaction,
    Channel,
    CommitResult,
    Planner,
    RunCommit,
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
from longtake.workflow.decision import Decision
from longtake.workflow.reducer import decide

__all__ = ["TRIES_MAX", "Admission", "Answer"]

TRIES_MAX = 4
"""How often a command is admitted again after the connection died around its commit, or its run was contended."""

log = structlog.get_logger("longtake.engine.admission")


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
        doorbell: Doorbell | None = None,
        windows: Windows | None = None,
    ) -> None:
        """`on_started` gets each new run after its commit: a dispatcher in the same process need not load it.
        `doorbell` rings the starter when a command frees scopes or asks for a child; `windows` say how much work may
        be published directly."""
        self._store = store
        self._orders = Orders(store, planner, store_epoch=store_epoch)
        self._hints = hints
        self._store_epoch = store_epoch
        self._on_started = on_started
        self._doorbell = doorbell
        self._windows = windows

    async def admit(
        self,
        principal: Principal,
        command: Command,
        *,
        channel: Channel,
        traceparent: str | None,
        strict: bool = False,
        parent: Parent | None = None,
    ) -> Answer:
        """Decide a command and store the answer, or return the answer it has.

        `strict`: the run must be at exactly the expected revision (If-Match); otherwise the action must have been
        offered without interruption since then (P3). `parent`: the step that the started run is the work of (P5).

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
                principal, command, channel, hop.traceparent or traceparent, strict=strict, parent=parent
            )
            answer = admitted.answer
            hop.set(OUTCOME, "duplicate" if answer.replayed else answer.receipt.status)
            if answer.receipt.run_id is not None:
                hop.set(RUN_ID, answer.receipt.run_id)
            self._announce(admitted)
            return answer

    def _announce(self, admitted: Admitted) -> None:
        """Hint at what was committed; whatever is lost of it, relay and sweeper find."""
        if admitted.result is None or admitted.run is None:
            return
        if admitted.is_new_run and self._on_started is not None:
            self._on_started(admitted.run)
        self._hints.effects_soon(admitted.result.pointers)
        # A run that only now begins has nothing to take back.
        run = admitted.run if admitted.superseded is None else admitted.superseded
        run_id = run.head.run_id
        self._hints.look_at_soon((id_, run_id) for id_ in admitted.result.withdrawn)
        tell_relatives(admitted.told, self._hints, self._doorbell)

    async def _admit_patiently(
        self,
        principal: Principal,
        command: Command,
        channel: Channel,
        traceparent: str | None,
        *,
        strict: bool,
        parent: Parent | None,
    ) -> Admitted:
        try:
            intent = command.intent_hash()
        except UncanonicalValue as error:
            place = ProblemError(error.pointer, error.message, error.remedy)
            raise Refused(
                problem("invalid-command", f"The command has no canonical form: {error}.", place)
            ) from error
        order = await self._ordered(principal, command, intent, channel, parent)
        ended: tuple[uuid.UUID, ...] = ()
        for attempt in range(1, TRIES_MAX + 1):
            try:
                return await self._once(
                    principal, command, intent, order, channel, traceparent, strict=strict, ended=ended
                )
            except Moved as moved:
                # What the command ends was answered meanwhile: the answers are decided first, or it is never admitted.
                ended = moved.ended
            except LockTimeout as error:
                # Another transaction has the command or its run; the authority itself is well (P23).
                if attempt == TRIES_MAX:
                    raise Refused(still_held()) from error
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

    async def _ordered(
        self,
        principal: Principal,
        command: Command,
        intent: str,
        channel: Channel,
        parent: Parent | None,
    ) -> Order | Answer | None:
        """What a command starts, planned before any lock; a known command's answer instead."""
        if not TABLE[command.kind].starts_run or command.kind == "fork":
            return None
        try:
            check(command)
            order = await self._orders.planned(principal, command, channel, parent)
            refused = refuse_order(order)
            if refused is not None:
                raise Refused(refused)
        except Refused:
            # A repeat of a command that was admitted by older code still gets its answer.
            async with self._store.transaction(principal, channel=channel, traceparent=None) as transaction:
                known = await self._known(transaction, command, intent)
            if known is None:
                raise
            return known
        return order

    async def _once(
        self,
        principal: Principal,
        command: Command,
        intent: str,
        order: Order | Answer | None,
        channel: Channel,
        traceparent: str | None,
        *,
        strict: bool,
        ended: Sequence[uuid.UUID],
    ) -> Admitted:
        if isinstance(order, Answer):
            return Admitted(answer=order)
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
                return Admitted(answer=known)
            reach("tx.after_command_insert")
            check(command)
            heard = await self._hear(transaction, command, ended, traceparent) if ended else None
            if command.kind == "fork":
                forked = await self._orders.forked(transaction, principal, command)
                if isinstance(forked, Problem):
                    return await reject(transaction, rejected(command, forked))
                order = forked
            if order is not None:
                admitted = await self._start(
                    transaction, principal, command, order, now, traceparent, strict=strict
                )
            else:
                admitted = await self._control(transaction, principal, command, traceparent, strict=strict)
            return admitted if heard is None else admitted.with_heard(heard)

    async def _hear(
        self,
        transaction: AdmissionTransaction,
        command: Command,
        ended: Sequence[uuid.UUID],
        traceparent: str | None,
    ) -> Heard | None:
        """Decide what was answered to the effects that the command ends, in the command's own transaction (P1)."""
        answers = await transaction.answers(ended)
        if not answers:
            return None
        run, _ = await self._locked(transaction, command)
        commit = commit_of(run, answers, traceparent=traceparent)
        result = await self._commit(transaction, [commit], None)
        return Heard(run=run, result=result, told=tuple(commit.outgoing))

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
        order: Order,
        now: datetime,
        traceparent: str | None,
        *,
        strict: bool,
    ) -> Admitted:
        superseded: LiveRun | None = None
        giving_way: Decision | None = None
        gave_way_at = now
        if command.kind == "steer":
            # Project, then run (P6); whoever gives way decides first, so a refusal lays nothing down.
            await transaction.lock_project(order.project)
            superseded, now = await self._locked(transaction, command)
            if strict and superseded.revision != revision_of(command):
                moved = moved_on(superseded.revision, revision_of(command))
                return await reject(transaction, rejected(command, moved, superseded))
            gave_way_at = now
            giving_way = decide(superseded.state, supersede_of(command, principal, order.run_id), now)
            if giving_way.refusal is not None:
                return await reject(transaction, rejected(command, giving_way.refusal, superseded))
        started = await start_run(transaction, order, store_epoch=self._store_epoch, now=now)
        if isinstance(started, Problem):
            return await reject(transaction, rejected(command, started))
        run, now = started.run, started.now
        receipt = applied(command, run, started.decision.command_status, now)
        also = () if superseded is None or giving_way is None else ((superseded, giving_way, gave_way_at),)
        decided = [(run, started.decision, now), *also]
        result = await self._write(transaction, decided, receipt, traceparent)
        told = (*started.decision.outgoing, *(() if giving_way is None else giving_way.outgoing))
        return Admitted(
            answer=Answer(receipt=receipt),
            result=result,
            run=run,
            superseded=superseded,
            is_new_run=True,
            told=told,
        )

    async def _locked(self, transaction: AdmissionTransaction, command: Command) -> tuple[LiveRun, datetime]:
        """The run that a command names, locked and folded, and the time it is decided at."""
        run_id = target_of(command)
        locked = await transaction.lock_run(run_id)
        if locked is None:
            raise Refused(no_such_run(run_id))
        loaded, now, checked, application = locked
        if application is not None and checked != application:
            raise Refused(still_checked())
        run = revive(loaded, store_epoch=self._store_epoch)
        return run, now if run.clock is None else max(now, run.clock)

    async def _control(
        self,
        transaction: AdmissionTransaction,
        principal: Principal,
        command: Command,
        traceparent: str | None,
        *,
        strict: bool,
    ) -> Admitted:
        run, now = await self._locked(transaction, command)
        revision = revision_of(command)
        if strict and run.revision != revision:
            return await reject(transaction, rejected(command, moved_on(run.revision, revision), run))
        decision = decide(run.state, signal_of(command, principal), now)
        if decision.refusal is not None:
            return await reject(transaction, rejected(command, decision.refusal, run))
        more = decision.raise_hold_by
        if more > 0 and not await transaction.raise_hold(run.head.run_id, more):
            # The account says no; what was decided in memory is forgotten with the run.
            account = run.state.account
            poor = cannot_raise(account, await transaction.funds(account), more)
            return await reject(transaction, rejected(command, poor))
        receipt = applied(command, run, decision.command_status, now)
        result = await self._write(transaction, [(run, decision, now)], receipt, traceparent)
        return Admitted(answer=Answer(receipt=receipt), result=result, run=run, told=decision.outgoing)

    async def _write(
        self,
        transaction: AdmissionTransaction,
        decided: Sequence[tuple[LiveRun, Decision, datetime]],
        receipt: Receipt,
        traceparent: str | None,
    ) -> CommitResult:
        """Write decisions, each recorded at the time it was made at: a fold must find the same times in it."""
        commits = []
        for run, decision, at in decided:
            commit = empty_commit(run, traceparent=traceparent)
            add_decision(
                commit,
                run,
                decision,
                causation=f"command:{receipt.command_id}",
                traceparent=traceparent,
                now=at,
            )
            commits.append(finish(commit, run, dict.fromkeys(decision.touched)))
        return await self._commit(transaction, commits, receipt)

    async def _commit(
        self, transaction: AdmissionTransaction, commits: Sequence[RunCommit], receipt: Receipt | None
    ) -> CommitResult:
        held = 0 if self._windows is None else await self._windows.hold_back(commits)
        if held and self._doorbell is not None:
            self._doorbell.ring(DOORBELL_RELAY)
        result = await transaction.commit_run(commits[0], receipt, also=commits[1:])
        if not {commit.run_id for commit in commits} <= result.committed:
            raise Moved(tuple(closing.id for commit in commits for closing in commit.closings))
        if self._doorbell is not None:
            ring_when_due(commits, self._doorbell)
        return result
