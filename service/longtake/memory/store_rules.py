"""What a decision must keep to before anything of it is written: locks, torn effects, the rules of the tables.

Leaves to others: the writing itself (store_commit.py).
"""

import uuid
from collections.abc import Sequence

from longtake.memory.store_session import RowRefused, Session
from longtake.memory.tables import StoredRun
from longtake.store import RunCommit

ESCROW = "system:escrow"
"""Where credits wait until a run is settled."""

_BIGINT_MAX = 2**63 - 1


def locks_run(session: Session, commit: RunCommit) -> bool:
    """Lock the run if it is where the decision believes it to be and nobody else holds it."""
    assert commit.row is not None, "a finished commit has its projection"
    run = session.view.runs.get(commit.run_id)
    if run is None:
        return False
    if not session.defences.run_lock:
        return True
    return run.revision == commit.expected_revision and session.take("run", commit.run_id)


def torn_runs(session: Session, commits: Sequence[RunCommit]) -> set[uuid.UUID]:
    """Runs with a receipt where none was expected, or the reverse, or with a call where none was opened (P1, P18)."""
    torn: set[uuid.UUID] = set()
    effects = session.view.effects
    for commit in commits:
        for closing in commit.closings:
            effect = effects.get(closing.id)
            if effect is None or effect.closed_at is not None:
                continue
            session.lock("effect", closing.id)
            answered = (effect.receipt is not None) != closing.expect_receipt
            begun = (
                closing.disposition == "expired"
                and effect.kind == "execute"
                and effect.call_opened_at is not None
            )
            if (answered or begun) and session.defences.torn_check:
                torn.add(commit.run_id)
    return torn


def lock_rest(session: Session, commit: RunCommit) -> None:
    """Lock whatever else the decision writes."""
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


def check_rows(session: Session, commit: RunCommit) -> None:
    """The rules of the tables. Raises RowRefused; then nothing of the statement is written."""
    row, view, defences = commit.row, session.view, session.defences
    assert row is not None, "a finished commit has its projection"
    run = view.runs.get(commit.run_id)
    assert run is not None, "it was locked"
    if defences.refund_guard:
        if not row.charged >= row.refunded >= 0:
            raise RowRefused(f"runs.charged_covers_refunded: {row.charged} < {row.refunded}")
        if row.charged - row.refunded > row.cap:
            raise RowRefused(f"runs.net_within_cap: {row.charged - row.refunded} > {row.cap}")
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
    _check_ledger(session, commit, run)
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


def _check_ledger(session: Session, commit: RunCommit, run: StoredRun) -> None:
    """A key is derived and booked once, the sides are known, and a refund has its charge (H45, H49)."""
    ledger, defences = session.view.ledger, session.defences
    keys = {entry.key for entry, _ in commit.ledger}
    booked: set[str] = set()
    for entry, _ in commit.ledger:
        if entry.amount <= 0 or entry.debit == entry.credit:
            raise RowRefused(f"ledger_entries: {entry.key} moves nothing")
        if (entry.step is None) != (entry.cycle is None) or (entry.cycle is not None and entry.cycle < 1):
            raise RowRefused(f"ledger_entries.cycle_is_of_a_step: {entry.key}")
        rest = "" if entry.step is None else f":{entry.step}:{entry.cycle}"
        if entry.key != f"{entry.kind}:{run.run_id}{rest}":
            raise RowRefused(f"ledger_entries.key_is_derived: {entry.key}")
        sides = (run.account, ESCROW) if entry.kind == "charge" else (ESCROW, run.account)
        if (entry.debit, entry.credit) != sides:
            raise RowRefused(f"ledger_entries.sides_are_known: {entry.key}")
        if defences.ledger_unique and (entry.key in booked or ledger.get(entry.key) is not None):
            raise RowRefused(f"ledger_entries: {entry.key} is taken")
        if entry.kind == "refund" and defences.refund_guard:
            charge = f"charge{entry.key.removeprefix('refund')}"
            if charge not in keys and ledger.get(charge) is None:
                raise RowRefused(f"ledger_entries.refund_has_its_charge: {entry.key}")
        booked.add(entry.key)


def _check_texts(table: str, *texts: str | None) -> None:
    for text in texts:
        if text is not None and "\x00" in text:
            raise RowRefused(f"{table}: a text cannot hold U+0000")
