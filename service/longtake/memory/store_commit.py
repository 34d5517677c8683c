"""The one statement that writes decisions, in memory: `decisions_commit`, clause by clause.

Everything that can be refused or must be waited for comes before the first write. What a clause reads of rows that the
same statement writes is what stood before it, as one statement of Postgres sees it.
Leaves to others: facts and loading (store_decisions.py), admission (store_admission.py).
"""

import uuid
from collections.abc import Sequence
from datetime import datetime

import msgspec

from longtake.contracts.commands import Receipt
from longtake.contracts.ids import artifact_id_for
from longtake.contracts.principal import Principal
from longtake.memory.store_session import RowRefused, Session
from longtake.memory.tables import (
    ArtifactRow,
    EffectRow,
    EventRow,
    LedgerRow,
    StepRow,
    StoredRun,
    TimerRow,
)
from longtake.store import CommitResult, EffectPointer, RunCommit

WITHDRAWN_RECEIPT = b'{"outcome":"cancelled"}'
"""The receipt of work that was taken back before anybody claimed it."""
DISPATCHER = "dispatcher"

_BIGINT_MAX = 2**63 - 1


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
    locked = [commit for commit in ordered if _locks(session, commit)]
    torn = _torn(session, ordered)
    good = [commit for commit in locked if commit.run_id not in torn]
    for commit in good:
        _lock_rest(session, commit)
        _check(session, commit)
    written = _Written()
    now = session.now
    for commit in good:
        _write(session, commit, written, now, store_epoch=store_epoch, incarnation=incarnation)
    if answer is not None and ordered and ordered[0] in good:
        _answer(session, ordered[0].run_id, *answer)
    return CommitResult(
        committed=frozenset(written.committed),
        pointers=(*written.pointers, *written.expedited),
        withdrawn=tuple(written.withdrawn),
    )


# --- locks and checks --------------------------------------------------------------------------------------------------


def _locks(session: Session, commit: RunCommit) -> bool:
    assert commit.row is not None, "a finished commit has its projection"
    run = session.view.runs.get(commit.run_id)
    if run is None:
        return False
    if not session.defences.run_lock:
        return True
    return run.revision == commit.expected_revision and session.take("run", commit.run_id)


def _torn(session: Session, commits: Sequence[RunCommit]) -> set[uuid.UUID]:
    """Runs with a receipt where none was expected, or the reverse (P1)."""
    torn: set[uuid.UUID] = set()
    effects = session.view.effects
    for commit in commits:
        for closing in commit.closings:
            effect = effects.get(closing.id)
            if effect is None or effect.closed_at is not None:
                continue
            session.lock("effect", closing.id)
            if (effect.receipt is not None) != closing.expect_receipt and session.defences.torn_check:
                torn.add(commit.run_id)
    return torn


def _lock_rest(session: Session, commit: RunCommit) -> None:
    for id_ in commit.withdrawn:
        session.lock("effect", id_)
    for id_ in commit.expedited:
        session.lock("effect", id_)
    for inbox_id, _, _ in commit.inbox:
        session.lock("inbox", inbox_id)
    if commit.hold_released:
        hold = session.view.holds.get(commit.run_id)
        if hold is not None and hold.released_at is None:
            session.lock("account", hold.tenant, hold.account)


def _check(session: Session, commit: RunCommit) -> None:
    """The rules of the tables. Raises RowRefused; then nothing of the statement is written."""
    row, view, defences = commit.row, session.view, session.defences
    assert row is not None, "a finished commit has its projection"
    run = view.runs.get(commit.run_id)
    assert run is not None, "it was locked"
    if defences.refund_guard:
        if not row.charged >= row.refunded >= 0:
            raise RowRefused(f"runs.charged_covers_refunded: {row.charged} < {row.refunded}")
        if row.charged - row.refunded > run.cap:
            raise RowRefused(f"runs.net_within_cap: {row.charged - row.refunded} > {run.cap}")
    if defences.unique_run_seq and commit.events:
        last = run.revision
        stored = session.tables.events.get(commit.run_id)
        taken = {event.seq for event in stored} if stored and commit.events[0].seq <= last else set()
        for event in commit.events:
            if event.seq < 1 or event.seq in taken:
                raise RowRefused(f"events: ({commit.run_id}, {event.seq}) is taken")
            taken.add(event.seq)
    for effect, external_ref in commit.effects:
        if view.effects.get(effect.id) is not None:
            raise RowRefused(f"effects: {effect.id} is taken")
        _check_texts("effects", effect.step, effect.activity, effect.pool, external_ref)
    seen: set[str] = set()
    for entry, _ in commit.ledger:
        if entry.amount <= 0 or entry.debit == entry.credit:
            raise RowRefused(f"ledger_entries: {entry.key} moves nothing")
        if defences.ledger_unique and (entry.key in seen or view.ledger.get(entry.key) is not None):
            raise RowRefused(f"ledger_entries: {entry.key} is taken")
        seen.add(entry.key)
    for step in commit.steps:
        _check_texts("steps", step.key, step.label, step.phase, step.external_ref, step.error_message)
        if step.provider_cost is not None and abs(step.provider_cost) > _BIGINT_MAX:
            raise RowRefused(f"steps: provider cost {step.provider_cost} is out of range")
    for published in commit.artifacts:
        artifact = published.artifact
        if not 0 < artifact.bytes <= _BIGINT_MAX:
            raise RowRefused(f"artifacts: {artifact.bytes} bytes")
        if view.artifacts.get((commit.run_id, published.step, artifact.name)) is not None:
            raise RowRefused(f"artifacts: {published.step} has published {artifact.name}")
        _check_texts("artifacts", artifact.name, artifact.kind, artifact.object_key, artifact.content_type)


def _check_texts(table: str, *texts: str | None) -> None:
    for text in texts:
        if text is not None and "\x00" in text:
            raise RowRefused(f"{table}: a text cannot hold U+0000")


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
    if commit.scopes_released:
        for scope in session.view.scopes.of(commit.run_id):
            session.view.scopes.drop(scope)
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
        due = effect.not_before is None
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
            published_at=now if due else None,
            tx_id=session.tx_id,
        )
        if session.defences.outbox_in_transaction:
            session.view.effects.put(effect.id, row)
        else:
            session.later.append(row)
        if due:
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
        if (callback := session.view.inbox.own(id_)) is not None:
            callback.status, callback.reason, callback.settled_at = status, reason, now
    for id_ in commit.signals:
        if (signal := session.view.signals.own(id_)) is not None:
            signal.settled_at = now


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


def _answer(session: Session, run_id: uuid.UUID, principal: Principal, receipt: Receipt) -> None:
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
