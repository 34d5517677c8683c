"""Compensation: before a run that did not complete ends, what it did is undone, the last first (H90, T43).

Its outcome stands apart from why the run ended. A try that failed, or whose answer is lost, is made again with the same
token: what undoes must bear being asked twice.
Leaves to others: when an ending run comes to this (ending.py).
"""

from longtake.contracts.events import (
    Compensation,
    CompensationFailed,
    CompensationScheduled,
    StepCompensated,
    Work,
)
from longtake.contracts.outcomes import RETRYABLE, Failed, Outcome, Succeeded
from longtake.workflow.draft import Draft
from longtake.workflow.moves import derive_effect_id
from longtake.workflow.retry import retry_time
from longtake.workflow.run_state import RunState


def undo_next(draft: Draft) -> None:
    """Hand out the compensation of the step that was completed last and is not undone."""
    state = draft.state
    index = state.undo[-1]
    key = state.plan.steps[index].key
    draft.record(
        CompensationScheduled(step=key, attempt=1, effect_id=derive_effect_id(state, key, 1, "compensate", 1))
    )


def apply_compensation(draft: Draft, key: str, outcome: Outcome, work: Work | None) -> None:
    """Do what the answer of a compensation means; the caller goes on to the next, or to the run's end."""
    state = draft.state
    step = state.steps[state.plan.position[key]]
    if isinstance(outcome, Succeeded):
        draft.record(
            StepCompensated(
                step=key, attempt=step.compensations, provider_cost=outcome.provider_cost, work=work
            )
        )
        return
    retryable = not isinstance(outcome, Failed) or outcome.error_class in RETRYABLE
    undo_again(draft, key, _words(outcome), retryable=retryable, cost=outcome.provider_cost, work=work)


def undo_again(
    draft: Draft,
    key: str,
    message: str,
    *,
    retryable: bool,
    cost: int | None = None,
    work: Work | None = None,
) -> None:
    """A try did not undo the step: another one while tries are left, else it stays as it is and the end says so."""
    state = draft.state
    plan, step = state.plan_of(key), state.steps[state.plan.position[key]]
    attempt = step.compensations
    if not retryable or attempt >= plan.retry.max_attempts:
        draft.record(
            CompensationFailed(step=key, attempt=attempt, message=message, provider_cost=cost, work=work)
        )
        return
    due_at = retry_time(
        plan.retry, tries=attempt, run_id=state.run_id, step=f"{key}#undo", attempt=attempt, now=draft.now
    )
    following = derive_effect_id(state, key, attempt + 1, "compensate", attempt + 1)
    draft.record(
        CompensationScheduled(
            step=key,
            attempt=attempt + 1,
            effect_id=following,
            due_at=due_at,
            message=message,
            provider_cost=cost,
            work=work,
        )
    )


def outcome_of(state: RunState) -> Compensation | None:
    """How the compensation of the run went; None when there was nothing to undo."""
    words = {step.compensation for step in state.steps} - {None}
    if not words:
        return None
    return "failed" if "failed" in words else "done"


def _words(outcome: Outcome) -> str:
    text = getattr(outcome, "message", None) or getattr(outcome, "evidence", None)
    name = type(outcome).__name__.lower()
    return f"{name}: {text}" if text else name
