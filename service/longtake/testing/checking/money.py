"""Money: charges, refunds, holds and accounts add up, each written with its event (I20 to I24).

The database is asked for its own laws too (queries/money.sql); what it finds is repeated here.
Leaves to others: what the provider charged (effects.py).
"""

from collections.abc import Iterator, Sequence

import msgspec

from longtake.testing.checking.found import Evidence, Violation
from longtake.testing.checking.store import EventRow, LedgerRow, RunRow

ESCROW = "system:escrow"
MOVES = {"charged": "charge", "refunded": "refund"}


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every run, then every account."""
    store = evidence.store
    entries: dict[str, list[LedgerRow]] = {}
    for entry in store.ledger:
        entries.setdefault(entry.run, []).append(entry)
    histories = store.histories()
    runs = {run.run: run for run in store.runs}
    billing = {(plan.tenant, plan.fingerprint): _billing(plan.plan) for plan in store.plans}
    for run_id in {**runs, **entries}:
        run = runs.get(run_id)
        yield from _entries(run_id, run, entries.get(run_id, []))
        if run is not None:
            of_run = histories.get(run_id, [])
            yield from _events(run_id, entries.get(run_id, []), of_run)
            yield from _run(
                run, entries.get(run_id, []), billing.get((run.tenant, run.fingerprint), "prepaid")
            )
    yield from _holds(evidence)
    yield from _accounts(evidence)
    for law in store.money_laws:
        yield Violation(
            invariant="I21",
            what=f"{law.law}: {law.message}",
            where=f"run {law.run}" if law.run else law.tenant,
        )


def _billing(plan: str) -> str:
    return str(msgspec.json.decode(plan).get("billing", "prepaid"))


def _entries(run_id: str, run: RunRow | None, entries: Sequence[LedgerRow]) -> Iterator[Violation]:
    """I21, I22: sides, owner, key."""
    seen: set[str] = set()
    for entry in entries:
        where = f"ledger {entry.key}"
        if entry.key in seen:
            yield Violation(invariant="I22", what="the key is there twice", where=where)
        seen.add(entry.key)
        named = f"{entry.kind}:{run_id}" + ("" if entry.step is None else f":{entry.step}:{entry.cycle}")
        if entry.key != named:
            yield Violation(invariant="I22", what=f"the key should be {named}", where=where)
        sides = (entry.account, ESCROW) if entry.kind == "charge" else (ESCROW, entry.account)
        if (entry.debit, entry.credit) != sides or entry.amount <= 0:
            yield Violation(
                invariant="I21", what=f"{entry.amount} from {entry.debit} to {entry.credit}", where=where
            )
        if run is None or (entry.tenant, entry.account) != (run.tenant, run.account):
            yield Violation(invariant="I21", what="the entry is not on the account of its run", where=where)


def _events(run_id: str, entries: Sequence[LedgerRow], events: Sequence[EventRow]) -> Iterator[Violation]:
    """I23: each entry was written with its event, and each event with its entry."""
    by_key = {entry.key: entry for entry in entries}
    told: dict[str, EventRow] = {}
    for event in events:
        if event.type not in MOVES:
            continue
        key = str(event.body["key"])
        told[key] = event
        entry = by_key.get(key)
        if entry is None:
            yield Violation(
                invariant="I23",
                what=f"{event.type} {key} is in no ledger",
                where=f"run {run_id} seq {event.seq}",
            )
        elif (entry.seq, entry.tx, entry.amount) != (event.seq, event.tx, event.body["amount"]):
            yield Violation(
                invariant="I23",
                what=f"{key} was not written with its event",
                where=f"run {run_id} seq {event.seq}",
                trace=(
                    f"event seq {event.seq} in transaction {event.tx}: {event.body['amount']}",
                    f"ledger seq {entry.seq} in transaction {entry.tx}: {entry.amount}",
                ),
            )
    for key in by_key.keys() - told.keys():
        yield Violation(invariant="I23", what="no event tells of the entry", where=f"ledger {key}")


def _run(run: RunRow, entries: Sequence[LedgerRow], billing: str) -> Iterator[Violation]:
    """I20, I24, and that the run says what its ledger says."""
    where = f"run {run.run}"
    charged = sum(entry.amount for entry in entries if entry.kind == "charge")
    refunded = sum(entry.amount for entry in entries if entry.kind == "refund")
    if not charged >= refunded >= 0:
        yield Violation(invariant="I20", what=f"charged {charged}, refunded {refunded}", where=where)
    cycles: dict[tuple[str | None, int | None], int] = {}
    for entry in entries:
        sign = 1 if entry.kind == "charge" else -1
        cycles[entry.step, entry.cycle] = cycles.get((entry.step, entry.cycle), 0) + sign * entry.amount
    for (step, cycle), net in cycles.items():
        if net < 0:
            yield Violation(
                invariant="I20",
                what=f"more was given back than taken for {step or 'the run'}/{cycle}",
                where=where,
            )
    if charged - refunded > run.cap:
        yield Violation(
            invariant="I20", what=f"net {charged - refunded} is above the cap {run.cap}", where=where
        )
    if (charged, refunded) != (run.charged, run.refunded):
        yield Violation(
            invariant="I21",
            what=f"the ledger says {charged} and {refunded}, the run {run.charged} and {run.refunded}",
            where=where,
        )
    if run.status == "failed" and billing == "prepaid" and charged != refunded:
        yield Violation(
            invariant="I24", what=f"the run has failed and still costs {charged - refunded}", where=where
        )


def _holds(evidence: Evidence) -> Iterator[Violation]:
    """A hold lasts as long as its run (P8)."""
    runs = {run.run: run for run in evidence.store.runs}
    for hold in evidence.store.holds:
        run = runs.get(hold.run)
        if run is None or (run.ended_at is None) != (hold.released_at is None):
            said = "does not exist" if run is None else f"is {run.status}"
            released = "released" if hold.released_at else "open"
            yield Violation(
                invariant="I21",
                what=f"the hold is {released}, its run {said}",
                where=f"hold of run {hold.run}",
            )


def _accounts(evidence: Evidence) -> Iterator[Violation]:
    """I21 for each account, and for each tenant: nothing came from nowhere."""
    store = evidence.store
    held: dict[tuple[str, str], int] = {}
    open_ = {hold.run for hold in store.holds if hold.released_at is None}
    for hold in store.holds:
        if hold.released_at is None:
            held[hold.tenant, hold.account] = held.get((hold.tenant, hold.account), 0) + hold.amount
    spent: dict[tuple[str, str], int] = {}
    for entry in store.ledger:
        if entry.run not in open_:
            sign = 1 if entry.kind == "charge" else -1
            spent[entry.tenant, entry.account] = (
                spent.get((entry.tenant, entry.account), 0) + sign * entry.amount
            )
    for account in store.accounts:
        place = (account.tenant, account.account)
        where = f"account {account.account} of {account.tenant}"
        if account.held != held.get(place, 0):
            yield Violation(
                invariant="I21",
                what=f"the account promises {account.held}, its open holds are {held.get(place, 0)}",
                where=where,
            )
        if evidence.funded is None:
            continue
        expected = evidence.funded.get(place, 0) - spent.get(place, 0)
        if account.balance != expected:
            yield Violation(
                invariant="I21",
                what=f"the account has {account.balance}, it should have {expected}",
                where=where,
            )
