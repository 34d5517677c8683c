"""How a run's state follows from its events: `evolve` for one, `fold` for a history (design.md 2.3).

An event costs what it touches, never what the run holds: the edges it frees and the few open effects (P17). Nothing
here decides; a history that was decided by older rules folds all the same.
Leaves to others: the shape of the state (run_state.py), which events come to be (reducer.py).
"""

import heapq
import uuid
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from longtake.contracts import events
from longtake.contracts.events import Event
from longtake.contracts.summary import Blocker
from longtake.workflow.moves import (
    BLOCKED_SECONDS_MAX,
    begin_attempt,
    begin_ending,
    block,
    close_effect,
    derive_effect_id,
    end_run,
    end_step,
    free_dependents,
    learn_late,
    look_up,
    make_ready,
    open_effect,
    pay,
    remember_error,
    touch,
    unblock,
)
from longtake.workflow.plan import CompiledPlan, Plan
from longtake.workflow.refs import walk_pointer
from longtake.workflow.run_state import (
    RUN_BLOCKER,
    Ending,
    OpenEffect,
    RunState,
    SinceKey,
    StepState,
    dump,
    initial,
)

__all__ = [
    "BLOCKED_SECONDS_MAX", "SETTLE_SECONDS_MAX", "Ending", "OpenEffect", "RunState", "SinceKey", "StepState", "dump",
    "evolve", "fold", "initial", "step_document",
]  # fmt: skip

SETTLE_SECONDS_MAX = 600
"""How long a run that ends waits for its open attempts (P10)."""

GRACE_MAX = 3
"""Attempts granted on top of a retry policy because the provider never took an earlier one."""


def evolve(state: RunState, event: Event, *, at: datetime) -> None:
    """Let one event have happened at the time it was recorded; the revision rises by one."""
    state.revision += 1
    state.updated_at = at
    _HANDLERS[type(event)](state, event, at)


def fold(
    run_id: uuid.UUID, tenant: str, plan: CompiledPlan | Plan, history: Iterable[tuple[Event, datetime]]
) -> RunState:
    """The state that a history of (event, recorded_at) leaves."""
    state = initial(run_id, tenant, plan)
    for event, recorded_at in history:
        evolve(state, event, at=recorded_at)
    return state


def step_document(
    result: dict[str, Any], artifacts: Iterable[Any], external_ref: str | None
) -> dict[str, Any]:
    """What references to a step walk: its result, its artifacts by name, and its provider's reference."""
    return {
        "result": result,
        "artifacts": {item.name: msgspec.to_builtins(item) for item in artifacts},
        "external_ref": external_ref,
    }


# --- the run ---------------------------------------------------------------------------------------------------------


def _run_accepted(state: RunState, event: events.RunAccepted, at: datetime) -> None:
    state.workflow, state.workflow_version = event.workflow, event.workflow_version
    state.project, state.actor, state.account = event.project, event.actor, event.account
    state.command_id, state.fingerprint = event.command_id, event.plan_fingerprint
    state.application = event.application
    state.quoted, state.cap = event.quoted, event.cap
    state.accepted_at = at
    state.since["cancel_generation"] = state.revision
    for index, step in enumerate(state.steps):
        if step.unmet == 0:
            make_ready(state, index)


def _charged(state: RunState, event: events.Charged, at: datetime) -> None:
    state.charged += event.amount


def _refunded(state: RunState, event: events.Refunded, at: datetime) -> None:
    state.refunded += event.amount


def _cancel_requested(state: RunState, event: events.CancelRequested, at: datetime) -> None:
    begin_ending(
        state,
        Ending(
            outcome="cancelled",
            settle_until=event.settle_until,
            reason=event.reason,
            message=event.reason or "the run was cancelled",
        ),
        at,
    )


def _run_blocked(state: RunState, event: events.RunBlocked, at: datetime) -> None:
    key = RUN_BLOCKER + event.blocker
    block(state, key, Blocker(type=event.blocker, details=event.details), at)


def _run_unblocked(state: RunState, event: events.RunUnblocked, at: datetime) -> None:
    unblock(state, RUN_BLOCKER + event.blocker)


def _run_completed(state: RunState, event: events.RunCompleted, at: datetime) -> None:
    end_run(state, "completed", at)


def _run_failed(state: RunState, event: events.RunFailed, at: datetime) -> None:
    if state.ending is None:
        state.ending = Ending(outcome="failed", settle_until=at)
    state.ending = msgspec.structs.replace(
        state.ending, outcome="failed", step=event.step, attempt=event.attempt, error_class=event.error_class,
        origin=event.origin, message=event.message,
    )  # fmt: skip
    end_run(state, "failed", at)


def _run_cancelled(state: RunState, event: events.RunCancelled, at: datetime) -> None:
    end_run(state, "cancelled", at)


# --- attempts --------------------------------------------------------------------------------------------------------


def _steps_scheduled(state: RunState, event: events.StepsScheduled, at: datetime) -> None:
    state.begun = True
    for item in event.steps:
        index, step = touch(state, item.step)
        begin_attempt(step, item.attempt)
        due_at = max(at, step.retry_at) if step.retry_at is not None else at
        step.retry_at = None
        step.status = "queued"
        step.started_at = step.started_at or at
        open_effect(state, index, item.effect_id, "execute", 1, due_at)
    while state.ready and state.steps[state.ready[0]].status != "ready":
        heapq.heappop(state.ready)


def _attempt_submitted(state: RunState, event: events.AttemptSubmitted, at: datetime) -> None:
    index, step = touch(state, event.step)
    pay(step, event.provider_cost)
    unblock(state, event.step)
    step.status = "waiting_external"
    step.external_ref = event.external_ref
    step.external_until = event.external_until
    step.callback = False
    step.looks = 0
    step.polls += 1
    open_effect(state, index, event.poll_effect_id, "poll", step.polls, event.poll_at)


def _callback_received(state: RunState, event: events.CallbackReceived, at: datetime) -> None:
    _, step = touch(state, event.step)
    step.callback = True
    # Whatever is waiting to look at the provider is due now.
    effect = state.open.get(step.effect) if step.effect is not None else None
    if step.effect is not None and effect is not None and effect.kind in ("poll", "reconcile"):
        state.open[step.effect] = msgspec.structs.replace(effect, due_at=min(effect.due_at, at))


def _step_succeeded(state: RunState, event: events.StepSucceeded, at: datetime) -> None:
    index, step = touch(state, event.step)
    plan = state.plan.steps[index]
    pay(step, event.provider_cost)
    unblock(state, event.step)
    step.external_ref = event.external_ref or step.external_ref
    step.artifacts = tuple(artifact.name for artifact in event.artifacts)
    step.error_class = step.error_origin = step.error_message = None
    if step.readers:
        document = step_document(event.result, event.artifacts, step.external_ref)
        state.results[index] = {
            pointer: walk_pointer(document, pointer) for pointer in state.plan.wanted[index]
        }
    state.succeeded += 1
    state.succeeded_by_phase[plan.phase] = state.succeeded_by_phase.get(plan.phase, 0) + 1
    state.kept += plan.price
    end_step(state, index, "succeeded")
    free_dependents(state, index)


def _attempt_failed(state: RunState, event: events.AttemptFailed, at: datetime) -> None:
    index, step = touch(state, event.step)
    pay(step, event.provider_cost)
    unblock(state, event.step)
    remember_error(step, event)
    close_effect(state, step)
    step.status = "blocked"  # a decision without retry_at says next how the step goes on
    if event.retry_at is None:
        return
    step.retry_at = event.retry_at
    if event.next_effect_id is None:
        # The run is blocked: the next attempt is not handed out before that is over (P19).
        make_ready(state, index)
        return
    begin_attempt(step, event.attempt + 1)
    step.status = "retry_scheduled"
    open_effect(state, index, event.next_effect_id, "execute", 1, event.retry_at)


def _attempt_unknown(state: RunState, event: events.AttemptUnknown, at: datetime) -> None:
    index, step = touch(state, event.step)
    if step.status == "waiting_external":
        step.overdue += 1
    unblock(state, event.step)
    look_up(state, index, event.reconcile_effect_id, event.look_at or at)


def _attempt_reconciled(state: RunState, event: events.AttemptReconciled, at: datetime) -> None:
    _, step = touch(state, event.step)
    if event.verdict == "not_found":
        step.grace = min(step.grace + 1, GRACE_MAX)


def _step_blocked(state: RunState, event: events.StepBlocked, at: datetime) -> None:
    _, step = touch(state, event.step)
    remember_error(step, event)
    close_effect(state, step)
    step.status = "blocked"
    block(
        state,
        event.step,
        Blocker(
            type=event.blocker,
            step=event.step,
            attempt=event.attempt,
            details={"class": event.error_class, "origin": event.origin, "message": event.message},
        ),
        at,
    )


def _step_failed(state: RunState, event: events.StepFailed, at: datetime) -> None:
    index, step = touch(state, event.step)
    remember_error(step, event)
    begin_ending(
        state,
        Ending(
            outcome="failed",
            settle_until=at + timedelta(seconds=SETTLE_SECONDS_MAX),
            step=event.step,
            attempt=event.attempt,
            error_class=event.error_class,
            origin=event.origin,
            message=event.message,
        ),
        at,
    )
    end_step(state, index, "failed", keep_effect=True)


def _steps_cancelled(state: RunState, event: events.StepsCancelled, at: datetime) -> None:
    for key in event.steps:
        index, _ = touch(state, key)
        end_step(state, index, "cancelled")


def _late_outcome(state: RunState, event: events.LateOutcome, at: datetime) -> None:
    index, step = touch(state, event.step)
    pay(step, event.provider_cost)
    step.external_ref = event.external_ref or step.external_ref
    close_effect(state, step)
    learn_late(state, index, event.outcome, at)


def _retry_requested(state: RunState, event: events.RetryRequested, at: datetime) -> None:
    look_again = set(event.look_again)
    for key in event.steps:
        index, step = touch(state, key)
        unblock(state, key)
        if key in look_again:
            step.looks = step.overdue = 0
            look_up(
                state, index, derive_effect_id(state, key, step.attempt, "reconcile", step.lookups + 1), at
            )
        else:
            step.base = step.attempt + state.plan.steps[index].retry.max_attempts
            step.grace = 0
            step.retry_at = None
            make_ready(state, index)


_HANDLERS: dict[type[Event], Callable[[RunState, Any, datetime], None]] = {
    events.RunAccepted: _run_accepted,
    events.Charged: _charged,
    events.Refunded: _refunded,
    events.StepsScheduled: _steps_scheduled,
    events.AttemptSubmitted: _attempt_submitted,
    events.CallbackReceived: _callback_received,
    events.StepSucceeded: _step_succeeded,
    events.AttemptFailed: _attempt_failed,
    events.AttemptUnknown: _attempt_unknown,
    events.AttemptReconciled: _attempt_reconciled,
    events.StepBlocked: _step_blocked,
    events.StepFailed: _step_failed,
    events.StepsCancelled: _steps_cancelled,
    events.LateOutcome: _late_outcome,
    events.RetryRequested: _retry_requested,
    events.CancelRequested: _cancel_requested,
    events.RunBlocked: _run_blocked,
    events.RunUnblocked: _run_unblocked,
    events.RunCompleted: _run_completed,
    events.RunFailed: _run_failed,
    events.RunCancelled: _run_cancelled,
}
