"""Stalls: work that nobody has taken for long becomes a blocker that names what it waits for (G42, P12).

Leaves to others: finding out that nobody took it, and that somebody has after all (the sweeper).
"""

from longtake.contracts.events import StepStalled
from longtake.contracts.signals import WorkStalled
from longtake.workflow.decision import Decision
from longtake.workflow.draft import Draft

STALLED = "no_worker"
"""The blocker of a step whose work nobody takes."""


def on_stalled(draft: Draft, signal: WorkStalled) -> Decision:
    """Say what the step waits for, or that it waits no more."""
    state = draft.state
    step = state.step_of(signal.step)
    if step is None or state.terminal or state.ending is not None:
        return draft.ignored("run_ended" if state.terminal else "run_ending" if step else "unknown_step")
    blocker = state.blockers.get(signal.step)
    standing = blocker is not None and blocker.type == STALLED
    if signal.waits_for:
        waits = step.effect is not None and step.attempt == signal.attempt and step.status == "queued"
        waits = waits and not step.abandoned
        if not waits or blocker is not None:
            return draft.ignored("already_known" if standing else "attempt_closed")
    elif not standing:
        return draft.ignored("attempt_closed")
    draft.record(StepStalled(step=signal.step, attempt=step.attempt, waits_for=signal.waits_for))
    return draft.decision()
