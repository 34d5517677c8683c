"""The one statement that writes decisions, in memory: `decisions_commit`, clause by clause.

Everything that can be refused or must be waited for comes before the first write. What a clause reads of rows that the
same statement writes is what stood before it, as one statement of Postgres sees it.
Leaves to others: facts and loading (store_decisions.py), admission (store_admission.py).
"""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import cast

import msgspec

from longtake.contracts.codec import to_json
from longtake.contracts.commands import Receipt
from longtake.contracts.ids import artifact_id_for
from longtake.contracts.principal import Principal
from longtake.memory.store_rules import check_rows, lock_rest, locks_run, torn_runs
from longtake.memory.store_session import RowRefused, Session
from longtake.memory.tables import (
    ArtifactRow,
    EffectRow,
    ErrandRow,
    EventRow,
    LedgerRow,
    SignalRow,
    StepRow,
    StoredRun,
    TimerRow,
)
from longtake.store import CommitResult, EffectPointer, RunCommit
from longtake.store.errands import ErrandKind

WITHDRAWN_RECEIPT = b'{"outcome":"cancelled"}'
"""The receipt of work that was taken back before anybody claimed it."""
DISPATCHER = "dispatcher"
ERRANDS = frozenset({"start_child", "scopes_freed", "start_due"})
"""Kinds of outgoing facts that admission takes."""


class _Written(msgspec.Struct, kw_only=True):
    """What a commit has to tell of the runs that it wrote."""

    committed: list[uuid.UUID] = []
    pointers: list[EffectPointer] = []
    expedited: list[EffectPointer] = []
    withdrawn: list[uuid.UUID] = []


def commit_decisions(
    session: Session,
    commits: Sequence[RunCommit],
    *,
    store_epoch: int,
    incarnation: uuid.UUID,
    answer: tuple[Principal, Receipt] | None = None,
) -> CommitResult:
    """Write all runs of a batch; runs that moved, are held by others or have torn effects are left out."""
    ordered = sorted(commits, key=lambda commit: commit.run_id) if len(commits) > 1 else commits
    if session.tables.store[0].store_epoch != store_epoch:
        ordered = []  # the store was restored under this process (P2)
    locked = [commit for commit in ordered if locks_run(session, commit)]
    torn = torn_runs(session, ordered)
    good = [commit for commit in locked if commit.run_id not in torn]
    for commit in good:
        lock_rest(session, commit)
        check_rows(session, commit)
    written = _Written()
    now = session.now
    for commit in good:
        _write(session, commit, written, now, store_epoch=store_epoch, incarnation=incarnation)
    if answer is not None and len(good) == len(commits):
        _answer(session, *answer)
    return CommitResult(
        committed=frozenset(written.committed),
        pointers=(*written.pointers, *written.expedited),
        withdrawn=tuple(written.withdrawn),
    )


# --- writing -----------------------------------------------------------------------------------------------------------


def _write(
    session: Session,
    commit: RunCommit,
    written: _Written,
    now: datetime,
    *,
    store_epoch: int,
    incarnation: uuid.UUID,
) -> None:
    run = session.view.runs.own(commit.run_id)
    assert run is not None, "it was locked"
    _write_events(session, commit, run.tenant, store_epoch)
    _write_run(run, commit, now)
    _write_steps(session, commit)
    _write_open_effects(session, commit, written, now, incarnation)
    _write_new_effects(session, commit, run, written, now, incarnation)
    for entry, seq in commit.ledger:
        session.view.ledger.put(
            entry.key if session.defences.ledger_unique else f"{entry.key}#{session.position()}",
            LedgerRow(
                key=entry.key, tenant=run.tenant, run_id=run.run_id, account=run.account, kind=entry.kind,
                debit=entry.debit, credit=entry.credit, amount=entry.amount, step=entry.step, cycle=entry.cycle,
                seq=seq, recorded_at=now, tx_id=session.tx_id,
            ),
        )  # fmt: skip
    for key in commit.timers_cancelled:
        session.view.timers.drop((commit.run_id, key))
    for timer in commit.timers:
        session.view.timers.put((commit.run_id, timer.key), TimerRow(tenant=run.tenant, due_at=timer.due_at))
    _write_artifacts(session, commit, run.tenant, now)
    _settle(session, commit, now)
    _tell_others(session, commit, run.tenant, now)
    if commit.scopes_released:
        for scope in session.view.scopes.of(commit.run_id):
            session.view.scopes.drop(scope)
        session.view.scope_queue.drop(commit.run_id)
    if commit.hold_released:
        _release_hold(session, commit, now)
    written.committed.append(commit.run_id)


def _write_events(session: Session, commit: RunCommit, tenant: str, store_epoch: int) -> None:
    session.view.events += [
        EventRow(
            run_id=commit.run_id,
            tenant=tenant,
            seq=event.seq,
            id=event.id,
            type=event.type,
            version=event.version,
            data=event.data,
            meta=event.meta,
            store_epoch=store_epoch,
            recorded_at=event.recorded_at,
            hash=event.hash,
            tx_id=session.tx_id,
            position=session.position(),
        )
        for event in commit.events
    ]


def _write_run(run: StoredRun, commit: RunCommit, now: datetime) -> None:
    row = commit.row
    assert row is not None, "a finished commit has its projection"
    run.revision = row.revision
    run.head_hash = commit.head_hash
    run.status = row.status
    run.phase = row.phase
    run.label = row.label
    run.quoted = row.quoted
    run.cap = row.cap
    run.charged = row.charged
    run.refunded = row.refunded
    run.blockers = tuple([blocker.type for blocker in row.blockers])
    run.poisoned = commit.poisoned
    run.poll_at = row.poll_at
    run.summary = row.summary
    run.ended_at = row.ended_at
    if commit.checked_application is not None:
        run.plan_checked = commit.checked_application
    run.updated_at = now


def _write_steps(session: Session, commit: RunCommit) -> None:
    steps = session.view.steps
    for step in commit.steps:
        before = steps.get((commit.run_id, step.key))
        steps.put((commit.run_id, step.key), step if before is None else _updated(before, step))


def _updated(before: StepRow, step: StepRow) -> StepRow:
    """Place, phase and label stay as they were first written."""
    if (before.ordinal, before.phase, before.label) == (step.ordinal, step.phase, step.label):
        return step
    return msgspec.structs.replace(step, ordinal=before.ordinal, phase=before.phase, label=before.label)


def _write_open_effects(
    session: Session, commit: RunCommit, written: _Written, now: datetime, incarnation: uuid.UUID
) -> None:
    effects = session.view.effects
    for closing in commit.closings:
        found = effects.get(closing.id)
        if found is not None and found.closed_at is None and (effect := effects.own(closing.id)) is not None:
            effect.state = "closed"
            effect.closed_at = now
            effect.disposition = closing.disposition
    for id_ in commit.withdrawn:
        found = effects.get(id_)
        if found is None or found.state != "queued" or found.receipt is not None:
            continue
        if (effect := effects.own(id_)) is not None:
            effect.state = "reported"
            effect.reported_at = now
            effect.reporter = DISPATCHER
            effect.report_fence = effect.fence
            effect.receipt = WITHDRAWN_RECEIPT
            written.withdrawn.append(id_)
    for id_ in commit.expedited:
        found = effects.get(id_)
        if found is None or found.state != "queued" or found.not_before <= now:
            continue
        if (effect := effects.own(id_)) is not None:
            effect.not_before = now
            if session.defences.generation_raised:
                effect.generation += 1
            effect.published_at = now
            effect.incarnation = incarnation
            written.expedited.append(pointer_to(effect))


def _write_new_effects(
    session: Session,
    commit: RunCommit,
    run: StoredRun,
    written: _Written,
    now: datetime,
    incarnation: uuid.UUID,
) -> None:
    for effect, external_ref in commit.effects:
        told = effect.not_before is None and effect.id not in commit.held_back
        row = EffectRow(
            id=effect.id,
            tenant=run.tenant,
            run_id=run.run_id,
            step=effect.step,
            attempt=effect.attempt,
            kind=effect.kind,
            ordinal=effect.ordinal,
            activity=effect.activity,
            pool=effect.pool,
            priority=effect.priority,
            input=effect.input,
            traceparent=commit.traceparent,
            created_at=now,
            not_before=now if effect.not_before is None else effect.not_before,
            deadline=effect.deadline,
            external_ref=external_ref,
            incarnation=incarnation,
            published_at=now if told else None,
            tx_id=session.tx_id,
        )
        if session.defences.outbox_in_transaction:
            session.view.effects.put(effect.id, row)
        else:
            session.later.append(row)
        if told:
            written.pointers.append(pointer_to(row))


def _write_artifacts(session: Session, commit: RunCommit, tenant: str, now: datetime) -> None:
    for published in commit.artifacts:
        artifact = published.artifact
        session.view.artifacts.put(
            (commit.run_id, published.step, artifact.name),
            ArtifactRow(
                id=artifact_id_for(commit.run_id, step=published.step, name=artifact.name),
                tenant=tenant, run_id=commit.run_id, step=published.step, attempt=published.attempt,
                name=artifact.name, kind=artifact.kind, object_key=artifact.object_key, sha256=artifact.sha256,
                bytes=artifact.bytes, content_type=artifact.content_type, published_at=now,
            ),
        )  # fmt: skip


def _settle(session: Session, commit: RunCommit, now: datetime) -> None:
    for id_, status, reason in commit.inbox:
        callback = session.view.inbox.own(id_)
        if callback is not None and callback.settled_at is None:
            callback.status, callback.reason, callback.settled_at = status, reason, now
    for id_ in commit.signals:
        if (signal := session.view.signals.own(id_)) is not None:
            signal.settled_at = now


def _tell_others(session: Session, commit: RunCommit, tenant: str, now: datetime) -> None:
    """Facts for other runs become signals, errands of admission errands; a row that is there stays (P5)."""
    for fact in commit.outgoing:
        payload = to_json(fact.payload)
        if fact.kind in ERRANDS:
            if session.view.errands.get(fact.id) is None:
                errand = ErrandRow(
                    id=fact.id, tenant=tenant, run_id=fact.run_id, kind=cast(ErrandKind, fact.kind), payload=payload,
                    traceparent=commit.traceparent, created_at=now,
                )  # fmt: skip
                session.view.errands.put(fact.id, errand)
        elif session.view.signals.get(fact.id) is None:
            signal = SignalRow(
                id=fact.id, tenant=tenant, run_id=fact.run_id, kind=fact.kind, payload=payload, created_at=now
            )
            session.view.signals.put(fact.id, signal)


def _release_hold(session: Session, commit: RunCommit, now: datetime) -> None:
    """The hold ends, and what the run has cost leaves the account (P8)."""
    row, before = commit.row, session.view.holds.get(commit.run_id)
    if row is None or before is None or before.released_at is not None:
        return
    hold = session.view.holds.own(commit.run_id)
    assert hold is not None, "it was found"
    hold.released_at = now
    account = session.view.accounts.own((hold.tenant, hold.account))
    if account is not None:
        account.held -= hold.amount
        account.balance -= row.charged - row.refunded
        if session.defences.account_covered and not 0 <= account.held <= account.balance:
            raise RowRefused(f"accounts.held_is_covered: {account.held} of {account.balance}")


def _answer(session: Session, principal: Principal, receipt: Receipt) -> None:
    """Store the answer to a command beside the run that it names."""
    run_id = None if receipt.run_id is None else uuid.UUID(receipt.run_id)
    command = session.view.commands.own((principal.tenant, principal.actor, receipt.command_id))
    if command is not None:
        command.status, command.run_id, command.receipt = receipt.status, run_id, receipt


def pointer_to(effect: EffectRow) -> EffectPointer:
    """What is published of an effect."""
    return EffectPointer(
        id=effect.id,
        attempt=effect.attempt,
        generation=effect.generation,
        pool=effect.pool,
        traceparent=effect.traceparent,
    )
