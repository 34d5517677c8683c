"""A run on its way out: no new work, late answers are priced and change no plan, and then it settles (P9, P10).

Leaves to others: what begins an ending (controlling.py, settling.py, timers.py).
"""

from longtake.contracts.effects import EffectKind
from longtake.contracts.events import (
    LateOutcome,
    RunCancelled,
    RunFailed,
    RunSuperseded,
    StepsCancelled,
    Work,
)
from longtake.contracts.outcomes import (
    Cancelled,
    Failed,
    Impossible,
    NotFound,
    Outcome,
    Submitted,
    Succeeded,
)
from longtake.workflow.charging import settle_run
from longtake.workflow.compensating import outcome_of, undo_next
from longtake.workflow.draft import Draft
from longtake.workflow.run_state import Ending

STEPS_PER_EVENT_MAX = 500
"""Keeps an event below its size limit."""


def late_words(kind: EffectKind, outcome: Outcome) -> str:
    """How an open attempt ended, in the words that decide about its price."""
    match outcome:
        case Succeeded():
            return "too_late" if kind == "cancel" else "succeeded"
        case Submitted():
            return "too_late" if kind == "cancel" else "submitted"
        case Failed() if kind in ("execute", "poll") or outcome.adopted:
            return "failed"
        case NotFound() if kind != "cancel":
            return "not_found"
        case Impossible():
            return "impossible"
        case Cancelled():
            return outcome.answer
        case _:
            return "unknown"


def learn_late(
    draft: Draft,
    key: str,
    words: str,
    *,
    external_ref: str | None = None,
    provider_cost: int | None = None,
    work: Work | None = None,
) -> None:
    """Record how an open attempt ended, and settle the run when it was the last.

    For runs on their way out; an abandoned step of a run that goes on is settled by its caller.
    """
    step = draft.state.steps[draft.state.plan.position[key]]
    draft.record(
        LateOutcome(
            step=key,
            attempt=step.attempt,
            outcome=words,
            external_ref=external_ref,
            provider_cost=provider_cost,
            work=work,
        )
    )
    settle_when_known(draft)


def settle_when_known(draft: Draft) -> None:
    """End the run if it is ending and nothing of it is open: first undo what must be undone, then settle."""
    state = draft.state
    ending = state.ending
    if ending is None or state.terminal or state.open or state.gates:
        return
    if state.undo:
        undo_next(draft)
        return
    _settle(draft, ending)


def settle_with_what_is_known(draft: Draft) -> None:
    """The time to settle is over: what is still open counts as unknown (P10)."""
    state = draft.state
    waiting = {effect.step for effect in state.open.values() if effect.kind != "compensate"}
    for position in sorted(waiting | set(state.gates)):
        key = state.plan.steps[position].key
        draft.record(LateOutcome(step=key, attempt=state.steps[position].attempt, outcome="unknown"))
    settle_when_known(draft)


def _settle(draft: Draft, ending: Ending) -> None:
    state = draft.state
    left = [
        state.plan.steps[index].key
        for index in range(state.cursor, len(state.steps))
        if not state.steps[index].ended
    ]
    reason = ending.reason or ending.message
    for start in range(0, len(left), STEPS_PER_EVENT_MAX):
        draft.record(StepsCancelled(steps=tuple(left[start : start + STEPS_PER_EVENT_MAX]), reason=reason))
    settle_run(draft, ending)
    undone = outcome_of(state)
    if ending.outcome == "cancelled":
        draft.record(RunCancelled(reason=ending.reason, compensation=undone))
        return
    if ending.outcome == "superseded" and ending.by_run is not None:
        draft.record(RunSuperseded(by_run=ending.by_run, compensation=undone))
        return
    draft.record(
        RunFailed(
            error_class=ending.error_class,
            origin=ending.origin,
            message=ending.message,
            step=ending.step,
            attempt=ending.attempt,
            compensation=undone,
        )
    )
