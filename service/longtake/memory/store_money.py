"""The laws of money asked of the rows in memory, the same laws as `money_violations` asks of Postgres (H52).

Leaves to others: keeping the laws (the tables' rules and the reducer).
"""

import uuid
from collections.abc import Iterable, Iterator
from datetime import timedelta

import msgspec

from longtake.memory.store_rules import ESCROW
from longtake.memory.store_session import MemoryDatabase, Session
from longtake.memory.tables import EventRow, LedgerRow, StoredRun
from longtake.store import MoneyViolation

Found = tuple[str, str]
"""(law, message)."""


class _Price(msgspec.Struct, frozen=True):
    key: str
    price: int = 0


class _Plan(msgspec.Struct, frozen=True):
    billing: str | None = None
    steps: tuple[_Price, ...] = ()


class _Move(msgspec.Struct, frozen=True):
    """A `charged` or `refunded` event."""

    key: str
    amount: int
    step: str | None = None


class _Item(msgspec.Struct, frozen=True):
    step: str


class _Work(msgspec.Struct, frozen=True):
    """A `steps_scheduled` event."""

    steps: tuple[_Item, ...] = ()


_plans = msgspec.json.Decoder(_Plan)
_moves = msgspec.json.Decoder(_Move)
_works = msgspec.json.Decoder(_Work)


class MemoryMoneyAuditStore:
    """Implements `MoneyAuditStore`."""

    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database

    async def money_violations(self, run_id: uuid.UUID | None) -> list[MoneyViolation]:
        """Every broken law of money, of one run or of all runs and accounts."""

        def read(session: Session) -> list[MoneyViolation]:
            runs = session.tables.runs
            if run_id is not None:
                return _sorted(_of_runs(session, [run_id] if run_id in runs else []))
            found = [*_of_runs(session, runs), *_of_accounts(session), *_of_books(session)]
            return _sorted(found)

        return await self._database.run("money_violations", read)

    async def recent_money_violations(self, seconds: float) -> list[MoneyViolation]:
        """Every broken law of money of runs whose money has moved in the last seconds, and of all accounts."""

        def read(session: Session) -> list[MoneyViolation]:
            since = session.now - timedelta(seconds=seconds)
            entries = session.tables.ledger.values()
            moved = dict.fromkeys(entry.run_id for entry in entries if entry.recorded_at >= since)
            return _sorted([*_of_runs(session, moved), *_of_accounts(session)])

        return await self._database.run("money_violations", read)


def _sorted(found: list[MoneyViolation]) -> list[MoneyViolation]:
    return sorted(found, key=lambda v: (v.tenant, str(v.run_id or "~"), v.law, v.message))


def _of_runs(session: Session, run_ids: Iterable[uuid.UUID]) -> list[MoneyViolation]:
    runs = session.tables.runs
    return [
        MoneyViolation(law=law, tenant=runs[run_id].tenant, message=message, run_id=run_id)
        for run_id in run_ids
        for law, message in _Books(session, runs[run_id]).violations()
    ]


class _Books:
    """Everything that one run has to do with money."""

    def __init__(self, session: Session, run: StoredRun) -> None:
        tables = session.tables
        self._run = run
        self._entries = [entry for entry in tables.ledger.values() if entry.run_id == run.run_id]
        self._hold = tables.holds.get(run.run_id)
        self._events = tables.events.get(run.run_id, [])
        self._moves = [
            (event, _moves.decode(event.data))
            for event in self._events
            if event.type in ("charged", "refunded")
        ]
        self._works = [
            (event, item.step)
            for event in self._events
            if event.type == "steps_scheduled"
            for item in _works.decode(event.data).steps
        ]
        plan = _plans.decode(tables.plans[(run.tenant, run.fingerprint)].plan)
        self._is_paid_by_step = plan.billing == "pay_as_you_go"
        grown = (_plans.decode(e.data).steps for e in self._events if e.type == "plan_expanded")
        steps = (*plan.steps, *(step for steps in grown for step in steps))
        self._prices = {step.key: step.price for step in steps} if self._is_paid_by_step else {}

    def violations(self) -> Iterator[Found]:
        yield from self._sums()
        yield from self._sides()
        yield from self._told()
        yield from self._cycles()
        yield from self._held()

    def _of_kind(self, kind: str) -> int:
        return sum(entry.amount for entry in self._entries if entry.kind == kind)

    def _sums(self) -> Iterator[Found]:
        run = self._run
        charged, refunded = self._of_kind("charge"), self._of_kind("refund")
        if (run.charged, run.refunded) != (charged, refunded):
            says = f"the run says {run.charged} charged and {run.refunded} refunded"
            yield "net_is_the_ledgers", f"{says}, the ledger {charged} and {refunded}"
        if charged - refunded > run.cap:
            yield "net_within_cap", f"the ledger says net {charged - refunded}, the cap is {run.cap}"
        for step, cycle in dict.fromkeys((entry.step, entry.cycle) for entry in self._entries):
            mine = [entry for entry in self._entries if (entry.step, entry.cycle) == (step, cycle)]
            taken = sum(entry.amount for entry in mine if entry.kind == "charge")
            given = sum(entry.amount for entry in mine if entry.kind == "refund")
            if given > taken:
                what = "the run" if step is None else f"cycle {cycle} of {step}"
                yield "refund_has_its_charge", f"{what} was charged {taken} and refunded {given}"

    def _sides(self) -> Iterator[Found]:
        run = self._run
        for entry in self._entries:
            if (entry.tenant, entry.account) != (run.tenant, run.account):
                owner = f"{entry.key} is of {entry.account} in {entry.tenant}"
                yield "owner_is_the_runs", f"{owner}, the run of {run.account} in {run.tenant}"
            sides = (entry.debit, entry.credit)
            wanted = (entry.account, ESCROW) if entry.kind == "charge" else (ESCROW, entry.account)
            if sides != wanted:
                yield "sides_are_known", f"{entry.key} goes from {entry.debit} to {entry.credit}"

    def _told(self) -> Iterator[Found]:
        """Every entry was told by an event of the same transaction, and the reverse."""
        told: dict[str, list[EventRow]] = {}
        amounts: dict[int, int] = {}
        for event, move in self._moves:
            told.setdefault(move.key, []).append(event)
            amounts[event.seq] = move.amount
        booked: dict[str, list[LedgerRow]] = {}
        for entry in self._entries:
            booked.setdefault(entry.key, []).append(entry)
        for key in dict.fromkeys([*told, *booked]):
            events: list[EventRow | None] = [*told.get(key, ())] or [None]
            entries: list[LedgerRow | None] = [*booked.get(key, ())] or [None]
            for telling in events:
                for booking in entries:
                    one = telling and (telling.seq, amounts[telling.seq], telling.tx_id)
                    other = booking and (booking.seq, booking.amount, booking.tx_id)
                    if one != other:
                        yield "events_are_the_ledger", f"{key}: event {one}, ledger {other}"

    def _cycles(self) -> Iterator[Found]:
        """The first work of a paid cycle and its charge are written together (P9)."""
        law = "cycle_opens_with_its_work"
        refunds = [
            (event.seq, move.key.removeprefix("refund"))
            for event, move in self._moves
            if event.type == "refunded"
        ]
        charges = [(event, move) for event, move in self._moves if event.type == "charged"]
        for work, step in self._works:
            is_open = any(
                move.step == step
                and event.seq < work.seq
                and not any(
                    seq < work.seq and rest == move.key.removeprefix("charge") for seq, rest in refunds
                )
                for event, move in charges
            )
            if self._prices.get(step, 0) > 0 and not is_open:
                yield law, f"{step} was handed out at {work.seq} and no cycle of it was open"
        beginnings = {e.tx_id for e in self._events if e.type in ("run_accepted", "run_started")}
        for event, move in charges:
            later = [work for work, step in self._works if step == move.step and work.seq > event.seq]
            if self._is_paid_by_step and later and later[0].tx_id != event.tx_id:
                when = f"{move.key} at {event.seq} and the first work of it at {later[0].seq}"
                yield law, f"{when} were not written together"
            if move.step is None and event.tx_id not in beginnings:
                yield law, f"{move.key} at {event.seq} was not written with the beginning of the run"

    def _held(self) -> Iterator[Found]:
        run, hold = self._run, self._hold
        held, net = 0 if hold is None else hold.amount, run.charged - run.refunded
        if not net <= held <= run.cap:
            yield "hold_covers_the_run", f"held {held}, cap {run.cap}, net {net}"
        if hold is not None and (run.ended_at is None) != (hold.released_at is None):
            ended, released = run.ended_at or "never", hold.released_at or "never"
            message = f"the run ended {ended}, its hold of {held} was released {released}"
            yield "hold_ends_with_the_run", message


def _of_accounts(session: Session) -> Iterator[MoneyViolation]:
    tables = session.tables
    holds: dict[tuple[str, str], int] = {}
    for hold in tables.holds.values():
        if hold.released_at is None:
            place = (hold.tenant, hold.account)
            holds[place] = holds.get(place, 0) + hold.amount
    for place in dict.fromkeys([*tables.accounts, *holds]):
        row = tables.accounts.get(place)
        says = 0 if row is None else row.held
        if says != holds.get(place, 0):
            message = f"account {place[1]} says {says} held, its runs hold {holds.get(place, 0)}"
            yield MoneyViolation(law="account_holds_are_the_runs", tenant=place[0], message=message)


def _of_books(session: Session) -> Iterator[MoneyViolation]:
    tables = session.tables
    payers = {(run.tenant, run.account) for run in tables.runs.values()}
    moved: dict[str, int] = {}
    for entry in tables.ledger.values():
        for account, amount in ((entry.debit, -entry.amount), (entry.credit, entry.amount)):
            if account == ESCROW or (entry.tenant, account) in payers:
                moved[entry.tenant] = moved.get(entry.tenant, 0) + amount
    for tenant, amount in moved.items():
        if amount:
            message = f"{abs(amount)} credits were moved to or from accounts that no run of the tenant has"
            yield MoneyViolation(law="books_balance", tenant=tenant, message=message)
