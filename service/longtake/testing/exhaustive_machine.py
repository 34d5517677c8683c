"""The machine of a small world: the real reducer and the real rules of the rows, applied to one state at a time.

Before each act the database in memory is set back to the state; what stands afterwards belongs to the next state.
Decisions are remembered by the head of the history and the facts, for they depend on nothing else.
Leaves to others: which acts there are (exhaustive_moves.py), what must hold (exhaustive_laws.py).
"""

import uuid
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec

from longtake.contracts.commands import Command
from longtake.contracts.effects import ClaimedEffect, Report
from longtake.contracts.ids import effect_id_for, inbox_id_for
from longtake.contracts.outcomes import Outcome, Pending
from longtake.contracts.principal import Principal
from longtake.contracts.signals import OutcomeReported
from longtake.engine.admission import Admission, Answer
from longtake.engine.deciding import LiveRun, commit_of, revive
from longtake.errors import DecisionRefused, Refused
from longtake.memory import (
    Defences,
    ManualClock,
    MemoryAdmissionStore,
    MemoryAuditStore,
    MemoryDatabase,
    MemoryDecisionStore,
    MemoryEffectStore,
    MemoryInboxStore,
    MemorySweepStore,
)
from longtake.store import EffectPointer, Fact, RunCommit
from longtake.testing.activities import Stage
from longtake.testing.catalogue import WORKFLOW, simulated_app
from longtake.testing.exhaustive_state import Job, Look, Node, Work, share
from longtake.testing.exhaustive_worlds import Setting, Wish
from longtake.testing.resting import finish

T = TypeVar("T")

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
EPOCH = 1
LEASE_SECONDS = 30
LEASES_MAX = 2
"""Leases an effect may lose before its call was opened; small, so that the world is."""
FUNDED = 100
TENANT, ACTOR, PROJECT, ACCOUNT = "t", "ann", "p", "acme"
PROCESS = uuid.UUID(int=1)
AT_ONCE = -1.0
"""A grace that is over whenever somebody looks."""

Decide = Callable[..., RunCommit]


class Broken(Exception):
    """A promise does not hold."""

    def __init__(self, invariant: str, message: str) -> None:
        super().__init__(f"{invariant}: {message}")
        self.invariant = invariant
        self.message = message


class _Hints:
    """Collects what would be published."""

    def __init__(self) -> None:
        self.work: set[Work] = set()
        self.looks: set[Look] = set()

    def effects_soon(self, pointers: Iterable[EffectPointer]) -> None:
        """Pointers for workers."""
        self.work |= {(pointer.id, pointer.attempt) for pointer in pointers}

    def look_at_soon(self, effects: Iterable[tuple[uuid.UUID, uuid.UUID]]) -> None:
        """Pointers for the dispatcher."""
        self.looks |= {("effect", id_) for id_, _ in effects}

    def runs_soon(self, signals: Iterable[tuple[uuid.UUID, uuid.UUID]]) -> None:
        """Runs that have a new signal."""
        self.looks |= {("run", run_id) for run_id, _ in signals}


class Machine:
    """One small world's authority and the code around it."""

    def __init__(
        self, setting: Setting, *, defences: Defences | None = None, decide: Decide = commit_of
    ) -> None:
        self.setting = setting
        self.clock = ManualClock(START)
        self.database = MemoryDatabase(self.clock, defences=defences)
        self.principal = Principal(tenant=TENANT, actor=ACTOR)
        self._decide = decide
        self._hints = _Hints()
        self.app = simulated_app(Stage())
        self.effects = MemoryEffectStore(self.database, store_epoch=EPOCH)
        self.decisions = MemoryDecisionStore(self.database, store_epoch=EPOCH, incarnation=PROCESS)
        self.sweep = MemorySweepStore(self.database, incarnation=PROCESS, owner="relay")
        self.inbox = MemoryInboxStore(self.database)
        self.audits = MemoryAuditStore(self.database)
        hints: Any = self._hints  # stands for the publisher of hints; it is asked for nothing else
        self.admission = Admission(
            MemoryAdmissionStore(self.database, store_epoch=EPOCH, incarnation=PROCESS),
            self.app,
            hints,
            store_epoch=EPOCH,
        )
        self._remembered: dict[tuple[bytes, datetime, bytes], RunCommit] = {}
        self.run_id = uuid.UUID(int=0)

    # --- states ---------------------------------------------------------------------------------------------------------

    def genesis(self) -> Node:
        """The state after the command that starts the run."""
        self.database.fund(tenant=TENANT, account=ACCOUNT, credits=FUNDED)
        document = msgspec.to_builtins(self.setting.plan)
        command = Command(
            kind="generation",
            project=PROJECT,
            client_command_id="start",
            payload={"workflow": WORKFLOW, "input": {"plan": document}, "account": ACCOUNT},
        )
        answer = self._admit(command)
        assert answer.receipt.run_id is not None, f"the small world is refused: {answer.receipt.problem}"
        self.run_id = uuid.UUID(answer.receipt.run_id)
        database = self.database
        return Node(
            tables=database.tables,
            tx_id=database.last_tx_id,
            position=database.last_position,
            clock=START,
            work=frozenset(self._hints.work),
            looks=frozenset(self._hints.looks),
            budget=self.setting.budget,
        )

    def at(self, node: Node) -> None:
        """Set everything to a state."""
        # The clock first: a restored database remembers since when it has been up.
        self.clock.set(node.clock)
        self.database.restore(node.snapshot)
        self._hints.work.clear()
        self._hints.looks.clear()

    def after(self, node: Node, **changes: Any) -> Node:
        """The state that follows from what was just done in `node`."""
        database = self.database
        return msgspec.structs.replace(
            node,
            tables=share(database.tables, node.tables),
            tx_id=database.last_tx_id,
            position=database.last_position,
            **changes,
        )

    def live(self, node: Node) -> LiveRun:
        """The run, folded from its history."""
        self.at(node)
        return self.fold()

    def fold(self) -> LiveRun:
        """The run as the database has it now, folded from its history."""
        return revive(finish(self.decisions.load({self.run_id: 0}))[0], store_epoch=EPOCH)

    # --- workers --------------------------------------------------------------------------------------------------------

    def claim(self, node: Node, work: Work, owner: str) -> ClaimedEffect | None:
        """A worker claims what a pointer names."""
        self.at(node)
        claimed = finish(
            self.effects.claim(
                claim_id=uuid.UUID(int=node.tx_id + 1),
                effects=[work],
                limit=1,
                owner=owner,
                lease_seconds=LEASE_SECONDS,
            )
        )
        if claimed and claimed[0].fence <= node.tables.effects[work[0]].fence:
            raise Broken("I16", f"the fence of {claimed[0].step} does not rise: {claimed[0].fence}")
        return claimed[0] if claimed else None

    def open_call(self, node: Node, effect: ClaimedEffect) -> bool:
        """A worker says that bytes are about to leave."""
        self.at(node)
        return finish(self.effects.open_call(effect_id=effect.id, fence=effect.fence))

    def report(self, node: Node, effect: ClaimedEffect, owner: str, outcome: Outcome) -> frozenset[Look]:
        """A worker hands over what became of it; returns what the dispatcher is told."""
        self.at(node)
        if isinstance(outcome, Pending):
            finish(
                self.effects.put_back(
                    effect_id=effect.id,
                    fence=effect.fence,
                    delay_seconds=outcome.poll_after_seconds,
                    progress=None,
                )
            )
            return frozenset()
        stored = finish(
            self.effects.report(
                [
                    Report(
                        effect_id=effect.id,
                        fence=effect.fence,
                        owner=owner,
                        outcome=msgspec.json.encode(outcome),
                    )
                ]
            )
        )
        return frozenset(("effect", id_) for id_, _ in stored)

    # --- dispatcher -----------------------------------------------------------------------------------------------------

    def decide(self, node: Node, looks: Sequence[Look]) -> RunCommit | None:
        """What the dispatcher makes of these pointers; None when nothing lies behind them."""
        self.at(node)
        by_kind: dict[str, list[uuid.UUID]] = {"effect": [], "inbox": [], "run": []}
        for what, id_ in looks:
            by_kind[what].append(id_)
        batch = finish(
            self.decisions.facts(effects=by_kind["effect"], inbox=by_kind["inbox"], runs=by_kind["run"])
        )
        if not batch.facts:
            return None
        head = node.tables.runs[self.run_id].head_hash
        key = (head, node.clock, msgspec.json.encode([fact.signal for fact in batch.facts]))
        known = self._remembered.get(key)
        if known is None:
            known = self._remembered[key] = self._decided(batch.facts)
        return known

    def _decided(self, facts: Sequence[Fact]) -> RunCommit:
        run = self.fold()
        stale = len(facts) == 1 and _is_stale(run, facts[0])
        try:
            commit = self._decide(run, list(facts), traceparent=None)
        except Exception as error:
            raise Broken("F56", f"the reducer raised {type(error).__name__}: {error}") from error
        if stale and commit.events:
            raise Broken("I17", f"a stale outcome made {[event.type for event in commit.events]}")
        return commit

    def write(self, node: Node, commit: RunCommit) -> tuple[bool, frozenset[Work], frozenset[Look]]:
        """Write a decision; whether it stands, and what is published."""
        self.at(node)
        try:
            result = finish(self.decisions.commit([commit]))
        except DecisionRefused as error:
            raise Broken("F56", f"the rows of a decision are refused: {error}") from error
        self._hints.effects_soon(result.pointers)
        self._hints.look_at_soon((id_, self.run_id) for id_ in result.withdrawn)
        stands = self.run_id in result.committed
        for closing in commit.closings if stands else ():
            row = node.tables.effects.get(closing.id)
            answered = row is not None and row.closed_at is None and row.receipt is not None
            if answered and not closing.expect_receipt:
                raise Broken("P1", f"a decision ends {closing.id} unheard, although it was answered")
        return stands, frozenset(self._hints.work), frozenset(self._hints.looks)

    # --- relay, sweeper, time -------------------------------------------------------------------------------------------

    def publish(self, node: Node) -> frozenset[Work]:
        """The relay publishes what is due."""
        self.at(node)
        marked = finish(
            self.sweep.due_pointers(
                limit=100, grace_seconds=AT_ONCE, oldest=dict.fromkeys(self.app.pools), all_lost=False
            )
        )
        return frozenset((pointer.id, pointer.attempt) for pointer in marked)

    def look_around(self, node: Node) -> frozenset[Look]:
        """The sweeper ends leases and tells of everything that nobody has looked at."""
        self.at(node)
        ended = finish(
            self.sweep.expire_leases(leases_max=LEASES_MAX, authority_up_seconds=0.0, connected=True)
        )
        looks: set[Look] = {("effect", lease.id) for lease in ended if lease.state == "expired"}
        for bell in finish(self.sweep.lost_doorbells(grace_seconds=AT_ONCE, limit=100, oldest=[None])):
            looks.add((bell.what, bell.id))
        return frozenset(looks)

    def renew(self, node: Node, clock: datetime) -> None:
        """Time goes on to `clock`, and whoever lives has renewed the leases that are his."""
        self.at(node)
        self.clock.set(clock)
        tables = self.database.tables
        until = clock + timedelta(seconds=LEASE_SECONDS)
        for held in node.workers:
            if held is None or not node.holds(held):
                continue
            row = tables.effects[held.effect.id]
            if row.lease_until is not None and row.lease_until > node.clock:
                tables.effects[row.id] = msgspec.structs.replace(row, lease_until=until)

    def lapse(self, node: Node, id_: uuid.UUID) -> None:
        """The holder of a lease stands still until the lease is over."""
        self.at(node)
        row = self.database.tables.effects[id_]
        self.database.tables.effects[id_] = msgspec.structs.replace(row, lease_until=node.clock)

    # --- from outside ---------------------------------------------------------------------------------------------------

    def call_back(self, node: Node, job: Job) -> frozenset[Look]:
        """The provider says that a job has ended; returns what the dispatcher is told."""
        self.at(node)
        key = f"{self.run_id}/{job.step}/{job.attempt}/{job.state}"
        inbox_id = inbox_id_for(tenant=TENANT, provider="fake", dedupe_key=key)
        copies = finish(
            self.inbox.insert_callback(
                id=inbox_id,
                tenant=TENANT,
                provider="fake",
                dedupe_key=key,
                run_id=self.run_id,
                step=job.step,
                attempt=job.attempt,
                external_ref=ref_of(job.step, job.attempt),
                type=job.state,
                payload=b"{}",
                traceparent=None,
            )
        )
        return frozenset({("inbox", inbox_id)}) if copies == 1 else frozenset()

    def command(
        self, node: Node, wish: Wish, revision: int
    ) -> tuple[Answer, frozenset[Work], frozenset[Look]]:
        """Somebody gives a command."""
        self.at(node)
        command = Command(
            kind=wish.kind,
            project=PROJECT,
            targets=(str(self.run_id),),
            client_command_id=wish.name,
            expected_revision=revision,
            payload=wish.payload,
        )
        answer = self._admit(command)
        return answer, frozenset(self._hints.work), frozenset(self._hints.looks)

    def _admit(self, command: Command) -> Answer:
        admitting: Coroutine[Any, Any, Answer] = self.admission.admit(
            self.principal, command, channel="local", traceparent=None
        )
        try:
            return finish(admitting)
        except Refused as refused:
            raise Broken(
                "P3", f"{command.kind} is offered and refused: {refused.problem.detail}"
            ) from refused
        except DecisionRefused as error:
            raise Broken("F56", f"the rows of a {command.kind} command are refused: {error}") from error

    def was_written(self, node: Node, job: Job) -> bool:
        """Whether the attempt that a provider is asked for stands in a committed row (I13)."""
        id_ = effect_id_for(self.run_id, step=job.step, attempt=job.attempt, kind="execute", ordinal=1)
        return id_ in node.tables.effects


def ref_of(step: str, attempt: int) -> str:
    """The provider's name of a job."""
    return f"job-{step}-{attempt}"


def _is_stale(run: LiveRun, fact: Fact) -> bool:
    """Whether it is an outcome of a closed attempt; one of the current attempt counts whatever its fence (P1)."""
    signal = fact.signal
    if not isinstance(signal, OutcomeReported) or signal.kind == "compensate":
        return False  # undoing begins when the step has ended
    step = run.state.step_of(signal.step)
    return step is None or signal.attempt != step.attempt or step.ended or run.state.terminal
