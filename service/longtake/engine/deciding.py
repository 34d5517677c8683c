"""Deciding: runs in memory, the pure reducer applied to facts, and the commit that follows.

A cached run is what the last commit left. Deciding mutates it (P17), so whoever does not get the commit through must
forget the run; it is then folded again from its events. Leaves to others: reading facts and writing commits (store).
"""

import uuid
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from longtake.contracts.effects import EffectClosing
from longtake.contracts.events import Charged, Refunded
from longtake.contracts.ids import RunId
from longtake.contracts.outcomes import Cancelled
from longtake.contracts.signals import (
    BeginRun,
    CallbackArrived,
    ChildEnded,
    ChildRefused,
    OutcomeReported,
    ParentClosed,
    PlanChecked,
    ReducerFailed,
    Signal,
    SupersedeRun,
    TimerFired,
    WorkStalled,
)
from longtake.contracts.upcasters import decode_event
from longtake.engine.history import Head, seal
from longtake.store import Fact, LoadedEvent, LoadedRun, RunCommit
from longtake.workflow.decision import Decision
from longtake.workflow.plan import compile_document
from longtake.workflow.projection import run_row, step_row
from longtake.workflow.reducer import decide
from longtake.workflow.state import RunState, evolve, initial

RUNS_CACHED_MAX = 4096
IDLE = timedelta(seconds=60)
"""A run that nothing was decided of for so long, by the authority's clock, is folded again when it is needed."""
POISON = "reducer_error"


class LiveRun(msgspec.Struct, kw_only=True):
    """A run in memory: its state, the end of its history, and the latest time it was told."""

    state: RunState
    head: Head
    clock: datetime | None = None

    @property
    def revision(self) -> int:
        """Seq of the last event."""
        return self.state.revision


class RunCache:
    """The runs decided last, at most RUNS_CACHED_MAX; an entry is valid at exactly its revision."""

    def __init__(self, *, store_epoch: int, runs_max: int = RUNS_CACHED_MAX) -> None:
        self._store_epoch = store_epoch
        self._runs_max = runs_max
        self._runs: OrderedDict[uuid.UUID, LiveRun] = OrderedDict()

    def revision(self, run_id: uuid.UUID) -> int:
        """Revision of the cached run; 0 when it is not here."""
        run = self._runs.get(run_id)
        return 0 if run is None else run.revision

    def get(self, run_id: uuid.UUID) -> LiveRun:
        """The cached run; KeyError when it is not here."""
        self._runs.move_to_end(run_id)
        return self._runs[run_id]

    def catch_up(self, loaded: LoadedRun) -> LiveRun:
        """Fold what was loaded onto what is here. Raises UnreadableHistory, and whatever `evolve` raises."""
        run = self._runs.get(loaded.run_id)
        if run is None:
            run = revive(loaded, store_epoch=self._store_epoch)
            self.put(run)
            return run
        for event in loaded.events:
            if event.seq == run.state.revision + 1:
                _fold_in(run, event)
        run.head.seq = loaded.revision
        run.head.hash = loaded.head_hash
        return run

    def put(self, run: LiveRun) -> None:
        """Keep a run, or forget it when it has ended."""
        if run.state.terminal:
            self._runs.pop(run.head.run_id, None)
            return
        self._runs[run.head.run_id] = run
        self._runs.move_to_end(run.head.run_id)
        while len(self._runs) > self._runs_max or self._is_stale(next(iter(self._runs.values())), run):
            self._runs.popitem(last=False)

    @staticmethod
    def _is_stale(oldest: LiveRun, newest: LiveRun) -> bool:
        # Where several dispatchers share the work, the end of a run is mostly decided by another one.
        return newest.clock is not None and oldest.clock is not None and oldest.clock < newest.clock - IDLE

    def put_new(self, run: LiveRun) -> None:
        """Take over a run that was just admitted, unless it is here already."""
        if run.head.run_id not in self._runs:
            self.put(run)

    def forget(self, run_id: uuid.UUID) -> None:
        """Drop what may no longer be true."""
        self._runs.pop(run_id, None)


def revive(loaded: LoadedRun, *, store_epoch: int) -> LiveRun:
    """Fold a stored run from its first event."""
    state = initial(RunId(loaded.run_id), loaded.tenant, compile_document(bytes(loaded.plan)))
    head = Head(
        run_id=loaded.run_id,
        tenant=loaded.tenant,
        store_epoch=store_epoch,
        seq=loaded.revision,
        hash=loaded.head_hash,
        actor=loaded.actor,
        correlation=loaded.correlation,
    )
    run = LiveRun(state=state, head=head)
    for event in loaded.events:
        _fold_in(run, event)
    return run


def _fold_in(run: LiveRun, event: LoadedEvent) -> None:
    evolve(run.state, decode_event(event.type, event.version, event.data), at=event.recorded_at)
    run.clock = event.recorded_at


def commit_of(run: LiveRun, facts: Sequence[Fact], *, traceparent: str | None = None) -> RunCommit:
    """Decide the facts of one run in order; returns everything to write of it.

    Raises whatever the reducer raises; the run must then be forgotten.
    """
    commit = empty_commit(
        run, traceparent=traceparent or next((f.traceparent for f in facts if f.traceparent), None)
    )
    touched: dict[str, None] = {}
    for fact in facts:
        now = fact.now if run.clock is None else max(run.clock, fact.now)
        decision = decide(run.state, fact.signal, now)
        _add_fact(commit, run, decision, fact, now, touched)
        _settle_fact(commit, fact.signal, decision)
        if isinstance(fact.signal, OutcomeReported) and run.state.step_of(fact.signal.step) is not None:
            plan = run.state.plan_of(fact.signal.step)
            commit.answered.append(plan.compensate_pool if fact.signal.kind == "compensate" else plan.pool)
        for signal in _never_begun(commit, decision):
            _add_fact(commit, run, decide(run.state, signal, now), fact, now, touched)
    commit.closings = _believed(commit.closings, facts)
    return finish(commit, run, touched)


def _believed(closings: Sequence[EffectClosing], facts: Sequence[Fact]) -> list[EffectClosing]:
    """One closing an effect, believing in every receipt that this batch has read.

    The first fact of a batch may end an effect whose receipt is the second: no receipt was expected then, though it is
    known by now. A commit that said otherwise would be torn for ever.
    """
    read = {fact.signal.effect_id for fact in facts if isinstance(fact.signal, OutcomeReported)}
    by_id = {closing.id: closing for closing in closings}
    return [
        msgspec.structs.replace(closing, expect_receipt=closing.expect_receipt or id_ in read)
        for id_, closing in by_id.items()
    ]


def _add_fact(
    commit: RunCommit, run: LiveRun, decision: Decision, fact: Fact, now: datetime, touched: dict[str, None]
) -> None:
    add_decision(commit, run, decision, causation=fact.causation, traceparent=fact.traceparent, now=now)
    touched.update(dict.fromkeys(decision.touched))


def _never_begun(commit: RunCommit, decision: Decision) -> list[OutcomeReported]:
    """Effects that this very commit opened and now withdraws: they reach no row, so their answer is told at once."""
    if not decision.withdrawn:
        return []
    opened = {effect.id: effect for effect, _ in commit.effects}
    return [
        OutcomeReported(
            effect_id=id_,
            step=opened[id_].step,
            attempt=opened[id_].attempt,
            kind=opened[id_].kind,
            outcome=Cancelled(),
        )
        for id_ in decision.withdrawn
        if id_ in opened
    ]


def blocked_commit(run: LiveRun, fact: Fact, error: str) -> RunCommit:
    """What is written of a run whose reducer raised: it is blocked, its facts stay where they are (F56)."""
    now = fact.now if run.clock is None else max(run.clock, fact.now)
    decision = decide(run.state, ReducerFailed(causation=fact.causation, error=error), now)
    commit = empty_commit(run, traceparent=fact.traceparent)
    add_decision(commit, run, decision, causation=fact.causation, traceparent=fact.traceparent, now=now)
    return finish(commit, run, dict.fromkeys(decision.touched))


def empty_commit(run: LiveRun, *, traceparent: str | None) -> RunCommit:
    """A commit of nothing, onto the run's revision."""
    return RunCommit(
        run_id=run.head.run_id,
        expected_revision=run.head.seq,
        head_hash=run.head.hash,
        events=[],
        steps=[],
        effects=[],
        traceparent=traceparent,
    )


def add_decision(
    commit: RunCommit,
    run: LiveRun,
    decision: Decision,
    *,
    causation: str,
    traceparent: str | None,
    now: datetime,
) -> None:
    """Put one decision into the commit of its run."""
    first = run.head.seq + 1
    commit.events += seal(
        run.head, decision.events, causation=causation, traceparent=traceparent, recorded_at=now
    )
    if decision.events:
        run.clock = now
    seqs = {
        event.key: first + index
        for index, event in enumerate(decision.events)
        if isinstance(event, Charged | Refunded)
    }
    for effect in decision.effects:
        step = run.state.step_of(effect.step)
        commit.effects.append(
            (effect, None if effect.kind == "execute" or step is None else step.external_ref)
        )
    commit.closings += decision.closings
    commit.withdrawn += decision.withdrawn
    commit.expedited += decision.expedited
    commit.ledger += [(entry, seqs[entry.key]) for entry in decision.ledger]
    _arm(commit, decision)
    commit.artifacts += decision.artifacts
    commit.outgoing += decision.outgoing
    commit.scopes_released |= decision.scopes_released
    commit.hold_released |= decision.hold_released


def _arm(commit: RunCommit, decision: Decision) -> None:
    """The last decision about a timer is the one that counts."""
    if not (decision.timers or decision.timers_cancelled):
        return
    armed = {timer.key: timer for timer in commit.timers}
    cancelled = dict.fromkeys(commit.timers_cancelled)
    for key in decision.timers_cancelled:
        armed.pop(key, None)
        cancelled[key] = None
    for timer in decision.timers:
        armed[timer.key] = timer
        cancelled.pop(timer.key, None)
    commit.timers, commit.timers_cancelled = list(armed.values()), list(cancelled)


def finish(commit: RunCommit, run: LiveRun, touched: dict[str, None]) -> RunCommit:
    """Take the projection of the state that the decisions left, and drop what the same batch opened and ended."""
    opened = {effect.id for effect, _ in commit.effects}
    ended = {closing.id for closing in commit.closings} | set(commit.withdrawn)
    hastened = set(commit.expedited)
    commit.effects = [
        # What the same batch opened and hastened has no row yet that could be hastened: it is due when it is written.
        (msgspec.structs.replace(effect, not_before=None) if effect.id in hastened else effect, ref)
        for effect, ref in commit.effects
        if effect.id not in ended
    ]
    commit.expedited = [id_ for id_ in commit.expedited if id_ not in opened]
    commit.closings = [closing for closing in commit.closings if closing.id not in opened]
    commit.withdrawn = [id_ for id_ in commit.withdrawn if id_ not in opened]
    commit.row = run_row(run.state)
    commit.head_hash = run.head.hash
    # Steps that no event has reached have no row: the plan tells of them.
    rows = (step_row(run.state, key) for key in touched)
    commit.steps = [row for row in rows if row.updated_seq > 0]
    commit.poisoned = any(blocker.type == POISON for blocker in run.state.run_blockers)
    return commit


def _settle_fact(commit: RunCommit, signal: Signal, decision: Decision) -> None:
    ignored = decision.ignored
    match signal:
        case CallbackArrived():
            commit.inbox.append(
                (signal.inbox_id, "dispatched", None)
                if ignored is None
                else (signal.inbox_id, "ignored", ignored.reason)
            )
        case PlanChecked():
            commit.signals.append(signal.signal_id)
            commit.checked_application = signal.application
        case ChildEnded() | ChildRefused() | ParentClosed() | WorkStalled():
            commit.signals.append(signal.signal_id)
        case SupersedeRun() | BeginRun() if signal.signal_id is not None:
            commit.signals.append(signal.signal_id)
        case TimerFired() if ignored is None or ignored.reason != "timer_not_due":
            # Fired, or meaningless by now; one that this commit arms anew stays.
            if signal.key not in {timer.key for timer in commit.timers}:
                commit.timers_cancelled.append(signal.key)
        case _:
            return
