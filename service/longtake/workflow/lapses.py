"""Effects that went silent: a lease or a deadline ended and no receipt came (P18).

What was not begun is safe to do again; what may have been begun is an open truth.
Leaves to others: open truths (reconciling.py), polls (outcomes.py), endings (ending.py).
"""

from typing import assert_never

from longtake.contracts.effects import Disposition
from longtake.contracts.events import Work
from longtake.contracts.signals import DeadlinePassed, LeaseExpired
from longtake.workflow.compensating import undo_again
from longtake.workflow.decision import Decision
from longtake.workflow.draft import Draft
from longtake.workflow.ending import learn_late, settle_when_known
from longtake.workflow.outcomes import after_late_outcome, lose_poll
from longtake.workflow.reconciling import LOOK_UPS_LOST_MAX, look, look_again
from longtake.workflow.settling import AttemptFailure, fail

LEASE_EXPIRED = "lease_expired"


def on_lapse(draft: Draft, signal: LeaseExpired | DeadlinePassed) -> Decision:
    """Do what the silence of an effect means."""
    state = draft.state
    step = state.step_of(signal.step)
    key, kind, work = signal.step, signal.kind, Work(effect_id=signal.effect_id)
    begun = signal.call_opened
    # "expired" says that no call was opened: the store refuses it when one was opened since this was read.
    disposition: Disposition = "unknown" if kind == "execute" and begun else "expired"
    draft.close(signal.effect_id, disposition, expect_receipt=False)
    if step is None or state.terminal or step.effect != signal.effect_id:
        # Closed all the same: a row nobody waits for must not be found silent again and again.
        return draft.ignored("effect_closed")
    if kind == "compensate":
        undo_again(draft, key, _words(signal), retryable=True, work=work)
        settle_when_known(draft)
        return draft.decision()
    if state.ending is not None or step.abandoned:
        learn_late(draft, key, "stopped" if kind == "execute" and not begun else "unknown", work=work)
        after_late_outcome(draft, key)
        return draft.decision()
    match kind:
        case "execute" if begun:
            look(draft, key, _words(signal), work)
        case "execute":
            fail(draft, key, _not_begun(signal), work)
        case "poll" if isinstance(signal, DeadlinePassed):
            look(draft, key, "the provider did not finish in its time", work)
        case "poll":
            lose_poll(draft, key, step, _words(signal), work)
        case "reconcile":
            look_again(draft, key, _words(signal), work, looks_max=LOOK_UPS_LOST_MAX)
        case "cancel":
            raise AssertionError("a cancel effect is open of a step that is not given up")
        case _:
            assert_never(kind)
    return draft.decision()


def _words(signal: LeaseExpired | DeadlinePassed) -> str:
    match signal:
        case LeaseExpired():
            after = "after" if signal.call_opened else "before"
            return f"the worker was lost {after} its call was opened, lease {signal.leases}"
        case DeadlinePassed():
            return "no answer came before the deadline"
        case _:
            assert_never(signal)


def _not_begun(signal: LeaseExpired | DeadlinePassed) -> AttemptFailure:
    match signal:
        case LeaseExpired():
            return AttemptFailure(
                error_class="transient",
                origin="infrastructure",
                message=f"{LEASE_EXPIRED}: {signal.leases} workers were lost before they opened a call",
                retryable=True,
            )
        case DeadlinePassed():
            return AttemptFailure(
                error_class="timeout",
                origin="infrastructure",
                message="the time for this try passed before a call was opened",
                retryable=True,
            )
        case _:
            assert_never(signal)
