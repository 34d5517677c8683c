"""What an outcome does to an attempt: success, submission, failure with or without a next try (design.md 5).

Leaves to others: open truths (reconciling.py), runs on their way out (ending.py), which outcome counts (outcomes.py).
"""

import uuid
from datetime import datetime, timedelta

import msgspec

from longtake.contracts.codec import canonical
from longtake.contracts.events import (
    AttemptFailed,
    AttemptSubmitted,
    Origin,
    StepBlocked,
    StepFailed,
    StepSucceeded,
    Work,
)
from longtake.contracts.outcomes import RETRYABLE, ErrorClass, Failed, Submitted, Succeeded
from longtake.errors import UncanonicalValue
from longtake.workflow.charging import settle_step
from longtake.workflow.draft import Draft
from longtake.workflow.ending import settle_when_known
from longtake.workflow.expanding import expand
from longtake.workflow.moves import derive_effect_id
from longtake.workflow.passing import is_contained
from longtake.workflow.refs import walk_pointer
from longtake.workflow.retry import retry_time
from longtake.workflow.run_state import RunState
from longtake.workflow.scheduling import advance, is_held
from longtake.workflow.state import step_document

POLL_AFTER_SECONDS = 30
"""When a provider is first asked that did not say when to ask."""


class AttemptFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why an attempt failed, and whether another may cure it."""

    error_class: ErrorClass
    origin: Origin
    message: str
    retry_after_seconds: int | None = None
    retryable: bool
    provider_cost: int | None = None


def failure_of(outcome: Failed) -> AttemptFailure:
    """A reported failure; bad input and moderation are the content's or the request's own, whoever says so."""
    origin: Origin = outcome.origin
    if outcome.error_class == "invalid_input":
        origin = "request"
    elif outcome.error_class in ("moderation_input", "moderation_output"):
        origin = "content"
    return AttemptFailure(
        error_class=outcome.error_class,
        origin=origin,
        message=outcome.message,
        retry_after_seconds=outcome.retry_after_seconds,
        retryable=outcome.error_class in RETRYABLE,
        provider_cost=outcome.provider_cost,
    )


def succeed(draft: Draft, key: str, outcome: Succeeded, work: Work, *, adopted: bool = False) -> None:
    """Publish what the attempt made, or fail the attempt when that is not what the plan expects."""
    state = draft.state
    step = state.steps[state.plan.position[key]]
    fault = fault_of(state, key, outcome)
    if fault is None and state.plan_of(key).kind == "expand":
        fault = expand(draft, key, outcome)
    if fault is not None:
        fail(
            draft,
            key,
            AttemptFailure(
                error_class="bad_output",
                origin="provider",
                message=fault,
                retryable=True,
                provider_cost=outcome.provider_cost,
            ),
            work,
        )
        return
    draft.record(
        StepSucceeded(
            step=key,
            attempt=step.attempt,
            result=outcome.result,
            artifacts=outcome.artifacts,
            external_ref=outcome.external_ref or step.external_ref,
            adopted=adopted or outcome.adopted,
            provider_cost=outcome.provider_cost,
            work=work,
        )
    )
    advance(draft)


def fault_of(state: RunState, key: str, outcome: Succeeded) -> str | None:
    """What is wrong with a success: a missing or empty artifact, or a result that others cannot use."""
    position = state.plan.position[key]
    kinds = {artifact.name: artifact.kind for artifact in outcome.artifacts}
    for expected in state.plan.steps[position].artifacts:
        if expected.name not in kinds:
            return f"the artifact {expected.name} ({expected.kind}) is missing"
        if kinds[expected.name] != expected.kind:
            return f"the artifact {expected.name} is {kinds[expected.name]}, the plan expects {expected.kind}"
    for artifact in outcome.artifacts:
        if artifact.bytes <= 0:
            return f"the artifact {artifact.name} is empty"
    wanted = state.plan.wanted[position]
    document = step_document(outcome.result, outcome.artifacts, outcome.external_ref) if wanted else None
    for pointer in wanted:
        try:
            canonical(walk_pointer(document, pointer))
        except KeyError:
            return f"the result lacks {pointer}, which another step refers to"
        except UncanonicalValue as error:
            return f"the result at {pointer}{error.pointer} cannot be passed on: {error.message}"
    return None


def submitted(draft: Draft, key: str, outcome: Submitted, work: Work, *, adopted: bool = False) -> None:
    """The provider owns the request: ask it again later, or at once when its callback was faster than its answer."""
    state = draft.state
    position = state.plan.position[key]
    step, plan = state.steps[position], state.plan.steps[position]
    seconds = POLL_AFTER_SECONDS if outcome.poll_after_seconds is None else outcome.poll_after_seconds
    longest = min(outcome.external_seconds_max, plan.external_seconds_max)
    poll_again(
        draft,
        key,
        external_ref=outcome.external_ref,
        poll_at=draft.now if step.callback else draft.now + timedelta(seconds=seconds),
        external_until=draft.now + timedelta(seconds=longest),
        adopted=adopted or outcome.adopted,
        provider_cost=outcome.provider_cost,
        work=work,
    )


def poll_again(
    draft: Draft,
    key: str,
    *,
    external_ref: str,
    poll_at: datetime,
    external_until: datetime,
    adopted: bool = False,
    provider_cost: int | None = None,
    work: Work | None = None,
) -> None:
    """Record that the provider has the request, and the poll that will look at it next."""
    step = draft.state.steps[draft.state.plan.position[key]]
    draft.record(
        AttemptSubmitted(
            step=key,
            attempt=step.attempt,
            external_ref=external_ref,
            poll_at=poll_at,
            external_until=external_until,
            poll_effect_id=derive_effect_id(draft.state, key, step.attempt, "poll", step.polls + 1),
            adopted=adopted,
            provider_cost=provider_cost,
            work=work,
        )
    )


def fail(draft: Draft, key: str, failure: AttemptFailure, work: Work | None) -> None:
    """Close the attempt as failed: try again when that may help and tries are left, else as the plan says."""
    state = draft.state
    position = state.plan.position[key]
    step, plan = state.steps[position], state.plan.steps[position]
    retry_at, following = None, None
    if failure.retryable and step.attempt < step.attempts_allowed:
        retry_at = retry_time(
            plan.retry,
            tries=max(1, step.attempt - (step.base - plan.retry.max_attempts)),
            run_id=state.run_id,
            step=key,
            attempt=step.attempt,
            now=draft.now,
            retry_after_seconds=failure.retry_after_seconds,
        )
        if step.deadline_at is not None and retry_at >= step.deadline_at:
            retry_at = None
        else:
            following = _next_effect_id(state, key, step.attempt + 1)
    draft.record(
        AttemptFailed(
            step=key,
            attempt=step.attempt,
            error_class=failure.error_class,
            origin=failure.origin,
            message=failure.message,
            retry_at=retry_at,
            next_effect_id=following,
            provider_cost=failure.provider_cost,
            work=work,
        )
    )
    if retry_at is None:
        exhaust(draft, key, failure)


def exhaust(draft: Draft, key: str, failure: AttemptFailure) -> None:
    """No try is left: wait for a person, or let the step fail."""
    if draft.state.plan_of(key).exhausted_policy == "block":
        block(draft, key, "retries_exhausted", failure)
        return
    fail_step(draft, key, failure)
    advance(draft)


def block(draft: Draft, key: str, blocker: str, failure: AttemptFailure) -> None:
    """Let the step wait for a person; other branches go on (P19)."""
    step = draft.state.steps[draft.state.plan.position[key]]
    draft.record(
        StepBlocked(
            step=key,
            attempt=step.attempt,
            blocker=blocker,
            error_class=failure.error_class,
            origin=failure.origin,
            message=failure.message,
        )
    )
    advance(draft)


def fail_step(draft: Draft, key: str, failure: AttemptFailure, *, timed_out: bool = False) -> None:
    """End the step in failure, and the run with it unless the failure is contained; then the caller advances."""
    state = draft.state
    position = state.plan.position[key]
    contained = is_contained(state, position)
    _end_in_failure(draft, key, state.steps[position].attempt, failure, contained, timed_out)
    if contained:
        settle_step(draft, key)


def fail_run(draft: Draft, key: str, attempt: int, failure: AttemptFailure) -> None:
    """End the step and with it the run, once everything that is open is known."""
    _end_in_failure(draft, key, attempt, failure, contained=False, timed_out=False)


def _end_in_failure(
    draft: Draft, key: str, attempt: int, failure: AttemptFailure, contained: bool, timed_out: bool
) -> None:
    draft.record(
        StepFailed(
            step=key,
            attempt=attempt,
            error_class=failure.error_class,
            origin=failure.origin,
            message=failure.message,
            contained=contained,
            timed_out=timed_out,
        )
    )
    settle_when_known(draft)


def _next_effect_id(state: RunState, key: str, attempt: int) -> uuid.UUID | None:
    # While the whole run is held no new attempt is handed out; it becomes ready instead (P19). So does one whose step
    # was blocked, and gave its slot to another step before this evidence came.
    has_slot = state.steps[state.plan.position[key]].effect is not None
    if is_held(state) or not (has_slot or len(state.open) < state.plan.plan.max_parallel):
        return None
    return derive_effect_id(state, key, attempt, "execute", 1)
