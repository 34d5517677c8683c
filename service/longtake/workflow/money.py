"""The laws of money, held before and after every decision (design.md 7), and what a run gives back when it ends.

Leaves to others: writing the ledger; here amounts are only computed and checked.
"""

from longtake.contracts.events import Charged, Event, Refunded
from longtake.workflow.decision import CREDITS_ESCROW, LedgerEntry
from longtake.workflow.run_state import RunState


class InvariantBroken(AssertionError):
    """A law that no decision may break is broken: a defect of this program, never the caller's fault."""


def charge_key(state: RunState) -> str:
    """Ledger key of the one charge of a prepaid run (P9)."""
    return f"charge:{state.run_id}"


def refund_key(state: RunState) -> str:
    """Ledger key of the one refund of a prepaid run (P9)."""
    return f"refund:{state.run_id}"


def refund_due(state: RunState) -> int:
    """What an ending run gives back: all of it when it fails, all but what was kept when it is cancelled (P10)."""
    left = state.charged - state.refunded
    if state.ending is not None and state.ending.outcome == "cancelled":
        return max(0, left - state.kept)
    return left


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
    """Raise InvariantBroken unless charged >= refunded >= 0 and net <= cap."""
    if not state.charged >= state.refunded >= 0:
        raise InvariantBroken(
            f"run {state.run_id}: charged {state.charged} >= refunded {state.refunded} >= 0 does not hold"
        )
    if state.charged - state.refunded > state.cap:
        raise InvariantBroken(
            f"run {state.run_id}: net {state.charged - state.refunded} is above the cap of {state.cap}"
        )
