"""Open truths: nobody knows whether the provider has the request, so it is asked, on the same attempt and token.

Found: adopted, no second call. Not found: the next attempt. Impossible to tell, or asked too often: what the plan says,
which for paid steps is to wait for a person (design.md 5).
Leaves to others: which answer counts (outcomes.py), and the ordinary ends of an attempt (settling.py).
"""

from longtake.contracts.events import AttemptReconciled, AttemptUnknown, Work
from longtake.contracts.outcomes import Failed, Impossible, NotFound, Outcome, Submitted, Succeeded
from longtake.workflow.draft import Draft
from longtake.workflow.moves import derive_effect_id
from longtake.workflow.retry import LOOK_UP, retry_time
from longtake.workflow.scheduling import advance
from longtake.workflow.settling import AttemptFailure, block, fail, failure_of, submitted, succeed

LOOK_UPS_LOST_MAX = 3
"""Look-ups in a row that may get lost before a person must decide."""

LOOK_UPS_FAILED_MAX = 5
"""Look-ups in a row that may fail before a person must decide."""

OVERDUE_MAX = 2
"""How often a provider may let its time pass while it says that it still works."""

BLOCKER = "provider_outcome_unknown"


def look(draft: Draft, key: str, evidence: str, work: Work | None, *, later: bool = False) -> None:
    """The truth is open: ask the provider, at once or after the delay of a look-up that failed."""
    state = draft.state
    step = state.steps[state.plan.position[key]]
    ordinal = step.lookups + 1
    look_at = None
    if later:
        look_at = retry_time(
            LOOK_UP,
            tries=step.looks,
            run_id=state.run_id,
            step=f"{key}#look-up-{ordinal}",
            attempt=step.attempt,
            now=draft.now,
        )
    draft.record(
        AttemptUnknown(
            step=key,
            attempt=step.attempt,
            evidence=evidence,
            reconcile_effect_id=derive_effect_id(state, key, step.attempt, "reconcile", ordinal),
            look_at=look_at,
            work=work,
        )
    )
    advance(draft)


def look_again(draft: Draft, key: str, evidence: str, work: Work | None, *, looks_max: int) -> None:
    """A look-up found out nothing: another one, or a person."""
    step = draft.state.steps[draft.state.plan.position[key]]
    if step.looks < looks_max:
        look(draft, key, evidence, work, later=True)
        return
    _stay_open(draft, key, f"{step.looks} look-ups found out nothing, the last: {evidence}")


def apply_look_up(draft: Draft, key: str, outcome: Outcome, work: Work) -> None:
    """Do what a look-up's answer means."""
    step = draft.state.steps[draft.state.plan.position[key]]
    match outcome:
        case Succeeded():
            _conclude(draft, key, "found", "the provider has finished the request", work)
            succeed(draft, key, outcome, work, adopted=True)
        case Submitted():
            _conclude(draft, key, "found", f"the provider has the request as {outcome.external_ref}", work)
            if step.overdue >= OVERDUE_MAX:
                _stay_open(
                    draft, key, f"the provider still works on {outcome.external_ref}, long after its time"
                )
            else:
                submitted(draft, key, outcome, work, adopted=True)
        case Failed() if outcome.adopted:
            _conclude(draft, key, "found", f"the provider's request failed: {outcome.message}", work)
            fail(draft, key, failure_of(outcome), work)
        case NotFound():
            _conclude(draft, key, "not_found", outcome.evidence, work)
            fail(draft, key, _never_taken(outcome), work)
        case Impossible():
            _conclude(draft, key, "impossible", outcome.evidence, work)
            _decide_ambiguous(draft, key, outcome, work)
        case _:
            look_again(draft, key, _evidence_of(outcome), work, looks_max=LOOK_UPS_FAILED_MAX)


def _conclude(draft: Draft, key: str, verdict: str, evidence: str, work: Work) -> None:
    step = draft.state.steps[draft.state.plan.position[key]]
    draft.record(
        AttemptReconciled(
            step=key,
            attempt=step.attempt,
            verdict="found"
            if verdict == "found"
            else "not_found"
            if verdict == "not_found"
            else "impossible",
            evidence=evidence,
            work=work,
        )
    )


def _decide_ambiguous(draft: Draft, key: str, outcome: Impossible, work: Work) -> None:
    failure = AttemptFailure(
        error_class="unknown",
        origin="provider",
        message=f"nobody can tell whether the provider took the request: {outcome.evidence}",
        retryable=True,
        provider_cost=outcome.provider_cost,
    )
    if draft.state.plan_of(key).ambiguous_policy == "block":
        block(draft, key, BLOCKER, failure)
    else:
        fail(draft, key, failure, work)


def _stay_open(draft: Draft, key: str, message: str) -> None:
    failure = AttemptFailure(error_class="unknown", origin="provider", message=message, retryable=False)
    block(draft, key, BLOCKER, failure)


def _never_taken(outcome: NotFound) -> AttemptFailure:
    return AttemptFailure(
        error_class="transient",
        origin="infrastructure",
        message=f"the provider never took the request: {outcome.evidence}",
        retryable=True,
        provider_cost=outcome.provider_cost,
    )


def _evidence_of(outcome: Outcome) -> str:
    match outcome:
        case Failed():
            return f"the look-up failed ({outcome.error_class}): {outcome.message}"
        case _:
            evidence = getattr(outcome, "evidence", None)
            return f"the look-up answered {type(outcome).__name__.lower()}" + (
                f": {evidence}" if evidence else ""
            )
