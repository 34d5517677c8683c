"""What events of steps and their attempts leave in the state of the run."""

import heapq
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from longtake.contracts import events
from longtake.contracts.events import Event
from longtake.contracts.outcomes import Artifact
from longtake.contracts.summary import Blocker
from longtake.workflow.blocking import block, unblock
from longtake.workflow.ends import (
    abandon,
    begin_ending,
    end_step,
    free_dependents,
    learn_late,
    remember_to_undo,
)
from longtake.workflow.moves import (
    arm,
    begin_attempt,
    close_effect,
    close_gate,
    consume,
    look_up,
    make_ready,
    open_effect,
    pay,
    remember_error,
    touch,
)
from longtake.workflow.refs import walk_pointer
from longtake.workflow.run_state import Ending, RunState, StepStatus

SETTLE_SECONDS_MAX = 600
"""How long a run that ends waits for its open attempts (P10)."""

GRACE_MAX = 3
"""Attempts granted on top of a retry policy because the provider never took an earlier one."""


def step_document(
    result: dict[str, Any], artifacts: Iterable[Any], external_ref: str | None
) -> dict[str, Any]:
    """What references to a step walk: its result, its artifacts by name, and its provider's reference."""
    return {
        "result": result,
        "artifacts": {item.name: msgspec.to_builtins(item) for item in artifacts},
        "external_ref": external_ref,
    }


def keep_result(state: RunState, index: int, result: dict[str, Any], artifacts: Iterable[Artifact]) -> None:
    """Keep the parts of a result that others refer to; a condition may ask for what is not there."""
    step = state.steps[index]
    if not step.readers:
        return
    document = step_document(result, artifacts, step.external_ref)
    kept: dict[str, Any] = {}
    for pointer in (*state.plan.wanted[index], *state.plan.asked[index]):
        try:
            kept[pointer] = walk_pointer(document, pointer)
        except KeyError:
            continue
    state.results[index] = kept


def _keep_delivery(state: RunState, index: int, event: events.StepSucceeded) -> None:
    """Keep what a child run hands to its parent: of the step that delivers, else of the last in plan order."""
    delivers = state.plan.plan.delivers
    if state.parent is None or index < state.delivered_by or (delivers or event.step) != event.step:
        return
    document = step_document(event.result, event.artifacts, None)
    state.delivered = {"result": document["result"], "artifacts": document["artifacts"]}
    state.delivered_by = index


def _steps_scheduled(state: RunState, event: events.StepsScheduled, at: datetime) -> None:
    state.begun = True
    for item in event.steps:
        index, step = touch(state, item.step)
        if item.ordinal == 1:
            begin_attempt(step, item.attempt)
        due_at = max(at, step.retry_at) if step.retry_at is not None else at
        step.retry_at = None
        step.executes, step.withdrawn = item.ordinal, False
        step.status = "queued"
        step.started_at = step.started_at or at
        seconds = state.plan.steps[index].deadline_seconds
        if seconds is not None and step.deadline_at is None:
            step.deadline_at = at + timedelta(seconds=seconds)
            state.dated[index] = None
        open_effect(state, index, item.effect_id, "execute", item.ordinal, due_at)
    while state.ready and state.steps[state.ready[0]].status != "ready":
        heapq.heappop(state.ready)


def _attempt_submitted(state: RunState, event: events.AttemptSubmitted, at: datetime) -> None:
    index, step = touch(state, event.step)
    pay(step, event.provider_cost)
    unblock(state, event.step)
    step.status = "waiting_external"
    step.external_ref = event.external_ref
    step.external_until = event.external_until
    step.callback = step.recalled = False
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
    state.begun = True
    if event.source != "work":
        # Gates and children have no attempts that are handed out; this one is made by its success.
        step.attempt = event.attempt
    if event.source == "event" and event.command_id is not None:
        consume(state, str(plan.event), event.command_id)
    keep_result(state, index, event.result, event.artifacts)
    _keep_delivery(state, index, event)
    state.succeeded += 1
    state.succeeded_by_phase[plan.phase] = state.succeeded_by_phase.get(plan.phase, 0) + 1
    state.kept += plan.price
    if plan.compensate is not None:
        state.made[index] = step_document(event.result, event.artifacts, step.external_ref)
        remember_to_undo(state, index)
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
        # The run is blocked, or has no free slot: the next attempt is not handed out before that is over (P19).
        make_ready(state, index)
        return
    begin_attempt(step, event.attempt + 1)
    step.executes = 1
    step.status = "retry_scheduled"
    open_effect(state, index, event.next_effect_id, "execute", 1, event.retry_at)


def _attempt_unknown(state: RunState, event: events.AttemptUnknown, at: datetime) -> None:
    index, step = touch(state, event.step)
    if step.status == "waiting_external":
        step.overdue += 1
    unblock(state, event.step)
    step.recalled = False
    look_up(state, index, event.reconcile_effect_id, event.look_at or at)


def _attempt_reconciled(state: RunState, event: events.AttemptReconciled, at: datetime) -> None:
    _, step = touch(state, event.step)
    if event.verdict == "not_found":
        step.grace = min(step.grace + 1, GRACE_MAX)


def _step_blocked(state: RunState, event: events.StepBlocked, at: datetime) -> None:
    index, step = touch(state, event.step)
    remember_error(step, event)
    close_effect(state, step)
    if event.blocker == "child_not_completed":
        close_gate(state, index)
    elif index in state.gates:
        # It stays open; its time is over.
        arm(state, index, None)
        state.gates[index] = msgspec.structs.replace(state.gates[index], until=None)
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
    step.attempt = max(step.attempt, event.attempt)
    remember_error(step, event)
    unblock(state, event.step)
    status: StepStatus = "timed_out" if event.timed_out else "failed"
    if event.contained:
        end_step(state, index, status)
        free_dependents(state, index)
        return
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
    end_step(state, index, status, keep_effect=True)


def _steps_skipped(state: RunState, event: events.StepsSkipped, at: datetime) -> None:
    for key in event.steps:
        index, _ = touch(state, key)
        end_step(state, index, "skipped")
    for key in event.steps:
        free_dependents(state, state.plan.position[key])


def _steps_abandoned(state: RunState, event: events.StepsAbandoned, at: datetime) -> None:
    for key in event.steps:
        index, _ = touch(state, key)
        abandon(state, index, at)
    state.losers_until = event.settle_until if state.abandoned else None


def _attempts_withdrawn(state: RunState, event: events.AttemptsWithdrawn, at: datetime) -> None:
    for key in event.steps:
        index, step = touch(state, key)
        unblock(state, key)
        close_effect(state, step)
        step.recalled, step.withdrawn = False, True
        make_ready(state, index)


def _step_stalled(state: RunState, event: events.StepStalled, at: datetime) -> None:
    touch(state, event.step)
    if not event.waits_for:
        unblock(state, event.step)
        return
    details = {"waits_for": event.waits_for}
    block(
        state,
        event.step,
        Blocker(type="no_worker", step=event.step, attempt=event.attempt, details=details),
        at,
    )


def _steps_cancelled(state: RunState, event: events.StepsCancelled, at: datetime) -> None:
    for key in event.steps:
        index, _ = touch(state, key)
        end_step(state, index, "cancelled")


def _late_outcome(state: RunState, event: events.LateOutcome, at: datetime) -> None:
    index, step = touch(state, event.step)
    pay(step, event.provider_cost)
    step.external_ref = event.external_ref or step.external_ref
    close_effect(state, step)
    close_gate(state, index)
    learn_late(state, index, event.outcome, at)
    if step.abandoned and step.effect is None:
        end_step(state, index, "cancelled")
        free_dependents(state, index)
        if not state.abandoned:
            state.losers_until = None


HANDLERS: dict[type[Event], Callable[[RunState, Any, datetime], None]] = {
    events.StepsScheduled: _steps_scheduled,
    events.AttemptSubmitted: _attempt_submitted,
    events.CallbackReceived: _callback_received,
    events.StepSucceeded: _step_succeeded,
    events.AttemptFailed: _attempt_failed,
    events.AttemptUnknown: _attempt_unknown,
    events.AttemptReconciled: _attempt_reconciled,
    events.AttemptsWithdrawn: _attempts_withdrawn,
    events.StepStalled: _step_stalled,
    events.StepBlocked: _step_blocked,
    events.StepFailed: _step_failed,
    events.StepsSkipped: _steps_skipped,
    events.StepsAbandoned: _steps_abandoned,
    events.StepsCancelled: _steps_cancelled,
    events.LateOutcome: _late_outcome,
}
