"""The laws of money, held before and after every decision (design.md 7), the keys of the ledger and its double entries.

Leaves to others: when something is charged or given back (charging.py), writing the ledger (the store).
"""

from longtake.contracts.events import Charged, Event, Refunded
from longtake.workflow.decision import CREDITS_ESCROW, LedgerEntry
from longtake.workflow.run_state import RunState


class InvariantBroken(AssertionError):
    """A law that no decision may break is broken: a defect of this program, never the caller's fault."""


def charge_key(state: RunState, step: str | None = None, cycle: int | None = None) -> str:
    """Ledger key of the one charge of a prepaid run, or of a step's settlement cycle (P9)."""
    return f"charge:{state.run_id}" if step is None else f"charge:{state.run_id}:{step}:{cycle}"


def refund_key(state: RunState, step: str | None = None, cycle: int | None = None) -> str:
    """Ledger key of the one refund of a prepaid run, or of a step's settlement cycle (P9)."""
    return f"refund:{state.run_id}" if step is None else f"refund:{state.run_id}:{step}:{cycle}"


def room(state: RunState) -> int:
    """Credits that the run may still take from its hold under its cap."""
    return min(state.cap, state.held) - (state.charged - state.refunded)


def owed(state: RunState) -> int:
    """What a prepaid run is quoted at by now and has not been charged: an expansion did not fit under the cap."""
    return state.quoted - state.charged


def refund_due(state: RunState) -> int:
    """What an ending prepaid run gives back: all of it when it fails, else all but what was earned (P10)."""
    left = state.charged - state.refunded
    if state.ending is None:
        return 0
    return left if state.ending.outcome == "failed" else max(0, left - state.kept)


def ledger_entries(state: RunState, events: list[Event]) -> tuple[LedgerEntry, ...]:
    """The double entries of a decision's charges and refunds."""
    entries = []
    for event in events:
        match event:
            case Charged():
                kind, debit, credit = "charge", state.account, CREDITS_ESCROW
            case Refunded():
                kind, debit, credit = "refund", CREDITS_ESCROW, state.account
            case _:
                continue
        entries.append(
            LedgerEntry(
                key=event.key,
                kind="charge" if kind == "charge" else "refund",
                debit=debit,
                credit=credit,
                amount=event.amount,
                step=event.step,
                cycle=event.cycle,
            )
        )
    return tuple(entries)


def check(state: RunState) -> None:
    """Raise InvariantBroken unless charged >= refunded >= 0 and net <= hold <= cap."""
    net = state.charged - state.refunded
    if not state.charged >= state.refunded >= 0:
        raise InvariantBroken(
            f"run {state.run_id}: charged {state.charged} >= refunded {state.refunded} >= 0 does not hold"
        )
    if net > state.cap:
        raise InvariantBroken(f"run {state.run_id}: net {net} is above the cap of {state.cap}")
    if net > state.held:
        raise InvariantBroken(f"run {state.run_id}: net {net} is above the hold of {state.held}")
    if state.held > state.cap:
        raise InvariantBroken(f"run {state.run_id}: the hold of {state.held} is above the cap of {state.cap}")
