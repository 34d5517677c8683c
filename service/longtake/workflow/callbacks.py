"""Callbacks of providers: they hasten the next look at the provider and are never believed beyond that (P4).

Leaves to others: authenticity and the inbox (api, engine).
"""

from longtake.contracts.events import CallbackReceived
from longtake.contracts.signals import CallbackArrived
from longtake.workflow.decision import Decision
from longtake.workflow.draft import Draft
from longtake.workflow.outcomes import is_truth_open
from longtake.workflow.reconciling import look


def on_callback(draft: Draft, signal: CallbackArrived) -> Decision:
    """Remember a callback of the current attempt, or ignore it."""
    state = draft.state
    step = state.step_of(signal.step)
    if step is None:
        return draft.ignored("unknown_step")
    if state.terminal or state.ending is not None:
        return draft.ignored("run_ended" if state.terminal else "run_ending")
    if step.abandoned:
        return draft.ignored("step_abandoned")
    if signal.attempt != step.attempt:
        return draft.ignored("late_attempt" if signal.attempt < step.attempt else "unknown_attempt")
    truth_open = is_truth_open(state, signal.step, step)
    if step.ended or not (step.effect is not None or truth_open):
        return draft.ignored("attempt_closed")
    effect = state.open.get(step.effect) if step.effect is not None else None
    if effect is not None and effect.kind in ("poll", "reconcile"):
        draft.expedite(step.effect)
    if step.callback:
        # The look is hastened again, since this one may say more than the last; nothing of the run changes.
        return draft.ignored("already_known")
    draft.record(
        CallbackReceived(
            step=signal.step,
            attempt=signal.attempt,
            inbox_id=signal.inbox_id,
            external_ref=signal.external_ref,
        )
    )
    if step.status == "blocked":
        # The provider has the request after all: that is worth one more look-up.
        look(draft, signal.step, "a callback came after the look-ups had ended", None)
    return draft.decision()
