"""The dispatcher's side of the authority in memory: facts in, runs loaded, decisions out."""

import uuid
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from longtake.contracts.outcomes import decode_outcome
from longtake.contracts.signals import (
    CallbackArrived,
    DeadlinePassed,
    LeaseExpired,
    OutcomeReported,
    ReducerFailed,
    Signal,
    TimerFired,
)
from longtake.memory.store_commit import commit_decisions
from longtake.memory.store_session import DECISIONS_COMMIT, MemoryDatabase, Session
from longtake.memory.store_waiting import trace_of
from longtake.memory.tables import EffectRow, StoredRun
from longtake.store import CommitResult, Fact, FactBatch, LoadedEvent, LoadedRun, RunCommit, read_signal


class MemoryDecisionStore:
    """Implements `DecisionStore`."""

    def __init__(self, database: MemoryDatabase, *, store_epoch: int, incarnation: uuid.UUID) -> None:
        self._database = database
        self._store_epoch = store_epoch
        self._incarnation = incarnation

    async def facts(
        self, *, effects: Sequence[uuid.UUID], inbox: Sequence[uuid.UUID], runs: Sequence[uuid.UUID]
    ) -> FactBatch:
        """Read what lies behind pointers. Raises AuthorityUnavailable."""

        def read(session: Session) -> FactBatch:
            tables = session.tables
            facts = [
                *effect_facts(session, effects),
                *(_inbox_facts(session, inbox, runs) if inbox or runs else ()),
                *(_run_facts(session, runs) if runs else ()),
            ]
            known = {id_ for id_ in effects if id_ in tables.effects}
            known.update(id_ for id_ in inbox if id_ in tables.inbox)
            known.update(id_ for id_ in runs if id_ in tables.runs)
            return FactBatch(facts=tuple(facts), known=frozenset(known))

        return await self._database.run("receipts_fetch", read)

    async def load(self, after: Mapping[uuid.UUID, int]) -> list[LoadedRun]:
        """Load runs and their events after the given seqs. Raises AuthorityUnavailable."""

        def read(session: Session) -> list[LoadedRun]:
            found = [(session.tables.runs.get(run_id), seq) for run_id, seq in after.items()]
            return [loaded_run(session, run, seq) for run, seq in found if run is not None]

        return await self._database.run("runs_load", read)

    async def commit(self, commits: Sequence[RunCommit]) -> CommitResult:
        """Write a batch in one statement. Raises AuthorityUnavailable, DecisionRefused."""
        return await self._database.run(
            DECISIONS_COMMIT,
            lambda session: commit_decisions(
                session, commits, store_epoch=self._store_epoch, incarnation=self._incarnation
            ),
        )

    async def set_aside(self, run_id: uuid.UUID) -> None:
        """Block a run that cannot be folded."""

        def write(session: Session) -> None:
            session.lock("run", run_id)
            if (run := session.view.runs.own(run_id)) is not None:
                run.poisoned, run.status, run.blockers = True, "blocked", ("history_unreadable",)

        await self._database.run("run_set_aside", write)


def loaded_run(session: Session, run: StoredRun, after: int) -> LoadedRun:
    """A run with its events after a seq, as this session sees it."""
    stored = session.tables.events.get(run.run_id, [])
    mine = [event for event in session.view.events if event.run_id == run.run_id]
    if session.defences.unique_run_seq and len(stored) + len(mine) == run.revision:
        # Seqs are 1..n without a gap, so the rows after n are those behind the first n.
        events = [*stored, *mine][after:] if mine else stored[after:]
    else:
        events = sorted((e for e in [*stored, *mine] if e.seq > after), key=lambda event: event.seq)
    plan = session.view.plans.get((run.tenant, run.fingerprint))
    assert plan is not None, "a run is laid down with its plan"
    return LoadedRun(
        run_id=run.run_id,
        tenant=run.tenant,
        revision=run.revision,
        head_hash=run.head_hash,
        actor=run.actor,
        correlation=run.command_id,
        plan=plan.plan,
        fingerprint=run.fingerprint,
        events=tuple([LoadedEvent(e.seq, e.type, e.version, e.data, e.recorded_at) for e in events]),
    )


def _fact(
    session: Session, run: StoredRun, signal: Signal, causation: str, *, traceparent: str | None
) -> Fact:
    return Fact(
        run_id=run.run_id,
        tenant=run.tenant,
        signal=signal,
        causation=causation,
        traceparent=traceparent,
        revision=run.revision,
        plan_checked=run.plan_checked,
        ended=run.ended_at is not None,
        application=session.tables.store[0].application,
        now=session.now,
    )


def effect_facts(session: Session, effects: Sequence[uuid.UUID]) -> Iterator[Fact]:
    """What lies on effect rows."""
    tables = session.tables
    for id_ in effects:
        effect = tables.effects.get(id_)
        if effect is None:
            continue
        run = tables.runs[effect.run_id]
        signal = None if run.poisoned else _of_effect(session, effect)
        if signal is not None:
            traceparent = effect.report_traceparent or effect.traceparent
            yield _fact(session, run, signal, f"effect:{id_}", traceparent=traceparent)


def _of_effect(session: Session, effect: EffectRow) -> Signal | None:
    if effect.closed_at is not None:
        return None
    if effect.receipt is not None:
        try:
            outcome = decode_outcome(effect.receipt)
        except msgspec.DecodeError as error:
            return ReducerFailed(
                causation=f"effect:{effect.id}", error=f"the receipt cannot be read: {error}"
            )
        return OutcomeReported(
            effect_id=effect.id,
            step=effect.step,
            attempt=effect.attempt,
            kind=effect.kind,
            outcome=outcome,
            owner=effect.reporter,
            fence=effect.report_fence,
            claimed_at=effect.claimed_at,
            started_at=effect.call_opened_at,
        )
    opened = effect.call_opened_at is not None
    if effect.deadline is not None and effect.deadline <= session.now:
        return DeadlinePassed(
            effect_id=effect.id,
            step=effect.step,
            attempt=effect.attempt,
            kind=effect.kind,
            call_opened=opened,
        )
    if effect.state == "expired":
        return LeaseExpired(
            effect_id=effect.id,
            step=effect.step,
            attempt=effect.attempt,
            kind=effect.kind,
            call_opened=opened,
            leases=effect.leases,
        )
    return None


def _inbox_facts(session: Session, inbox: Sequence[uuid.UUID], runs: Sequence[uuid.UUID]) -> Iterator[Fact]:
    tables = session.tables
    wanted = dict.fromkeys(inbox)
    for run_id in runs:
        wanted.update(tables.open_inbox.get(run_id, {}))
    for id_ in wanted:
        callback = tables.inbox.get(id_)
        if callback is None or callback.settled_at is not None:
            continue
        signal = CallbackArrived(
            inbox_id=id_,
            step=callback.step,
            attempt=callback.attempt,
            external_ref=callback.external_ref,
        )
        run = tables.runs[callback.run_id]
        yield _fact(session, run, signal, f"inbox:{id_}", traceparent=callback.traceparent)


def _run_facts(session: Session, runs: Sequence[uuid.UUID]) -> Iterator[Fact]:
    tables, now = session.tables, session.now
    for run_id in runs:
        run = tables.runs.get(run_id)
        for key in tables.timers_by_run.get(run_id, ()):
            if run is not None and tables.timers[(run_id, key)].due_at <= now:
                yield _fact(
                    session, run, TimerFired(key=key), f"timer:{key}", traceparent=trace_of(session, run)
                )
    for run_id in runs:
        run = tables.runs.get(run_id)
        for id_ in tables.open_signals.get(run_id, ()):
            if run is not None:
                row = tables.signals[id_]
                signal = read_signal(row.kind, id_, row.payload)
                yield _fact(session, run, signal, f"signal:{id_}", traceparent=trace_of(session, run))
