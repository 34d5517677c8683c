"""What events of the run as a whole leave in its state."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from longtake.contracts import events
from longtake.contracts.events import Event
from longtake.contracts.summary import Blocker
from longtake.workflow.blocking import block, unblock
from longtake.workflow.ends import begin_ending, end_run, judge, revive
from longtake.workflow.evolve_gates import announce_gate
from longtake.workflow.moves import derive_effect_id, look_up, make_ready, open_gate, touch
from longtake.workflow.run_state import RUN_BLOCKER, Ending, Queued, RunState


def _run_accepted(state: RunState, event: events.RunAccepted, at: datetime) -> None:
    state.workflow, state.workflow_version = event.workflow, event.workflow_version
    state.project, state.actor, state.kind = event.project, event.actor, event.kind
    state.command_id, state.fingerprint = event.command_id, event.plan_fingerprint
    state.application, state.conversation = event.application, event.conversation
    money = event.money
    state.account, state.billing, state.price_list = money.account, money.billing, money.price_list
    state.quoted, state.cap, state.held = money.quoted, money.cap, money.held
    state.parent, state.supersedes = event.parent, event.supersedes
    state.follows, state.forked_from = event.follows, event.forked_from
    state.accepted_at = state.started_at = at
    for action in ("cancel_generation", "pause_generation", "steer_generation", "follow_up_generation"):
        state.since[action] = state.revision
    if any(step.kind in ("wait", "expand") for step in state.plan.steps):
        state.since["send_generation_event"] = state.revision
    for index in range(len(state.steps)):
        judge(state, index)


def _run_queued(state: RunState, event: events.RunQueued, at: datetime) -> None:
    state.queued = Queued(start_at=event.start_at, holders=event.holders, scopes=event.scopes)
    state.supersedes += event.supersedes
    state.started_at = None
    state.since.pop("pause_generation", None)


def _run_started(state: RunState, event: events.RunStarted, at: datetime) -> None:
    state.queued = None
    state.started_at = at
    state.since["pause_generation"] = state.revision


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


def _supersede_requested(state: RunState, event: events.SupersedeRequested, at: datetime) -> None:
    state.superseded_by = event.by_run
    begin_ending(
        state,
        Ending(
            outcome="superseded",
            settle_until=event.settle_until,
            reason=f"superseded by run {event.by_run}",
            message=f"superseded by run {event.by_run}",
            by_run=event.by_run,
        ),
        at,
    )


def _run_blocked(state: RunState, event: events.RunBlocked, at: datetime) -> None:
    key = RUN_BLOCKER + event.blocker
    block(state, key, Blocker(type=event.blocker, details=event.details), at)


def _run_unblocked(state: RunState, event: events.RunUnblocked, at: datetime) -> None:
    unblock(state, RUN_BLOCKER + event.blocker)


def _history_long(state: RunState, event: events.HistoryLong, at: datetime) -> None:
    state.is_long = True


def _run_failing(state: RunState, event: events.RunFailing, at: datetime) -> None:
    begin_ending(
        state,
        Ending(
            outcome="failed",
            settle_until=event.settle_until,
            step=event.step,
            attempt=None if event.step is None else state.steps[state.plan.position[event.step]].attempt,
            error_class=event.error_class,
            origin=event.origin,
            message=event.message,
        ),
        at,
    )


def _run_completed(state: RunState, event: events.RunCompleted, at: datetime) -> None:
    end_run(state, "completed", at)


def _run_superseded(state: RunState, event: events.RunSuperseded, at: datetime) -> None:
    end_run(state, "superseded", at)


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


def _retry_requested(state: RunState, event: events.RetryRequested, at: datetime) -> None:
    look_again = set(event.look_again)
    for key in event.steps:
        index, step = touch(state, key)
        plan = state.plan.steps[index]
        unblock(state, key)
        if key in look_again:
            step.looks = step.overdue = 0
            look_up(
                state, index, derive_effect_id(state, key, step.attempt, "reconcile", step.lookups + 1), at
            )
        elif index in state.gates:
            # An overdue gate stands open all the while; it gets its time anew.
            seconds = plan.timeout_seconds or 0
            gate = state.gates[index]
            open_gate(state, index, msgspec.structs.replace(gate, until=at + timedelta(seconds=seconds)))
            announce_gate(state, index, at)
        else:
            if step.ended:
                revive(state, index)
                if plan.kind in ("wait", "expand"):
                    state.since["send_generation_event"] = state.revision
            step.base = step.attempt + plan.retry.max_attempts
            step.grace = 0
            step.retry_at = None
            step.deadline_at = None
            state.dated.pop(index, None)
            make_ready(state, index)


HANDLERS: dict[type[Event], Callable[[RunState, Any, datetime], None]] = {
    events.RunAccepted: _run_accepted,
    events.RunQueued: _run_queued,
    events.RunStarted: _run_started,
    events.CancelRequested: _cancel_requested,
    events.SupersedeRequested: _supersede_requested,
    events.RunBlocked: _run_blocked,
    events.RunUnblocked: _run_unblocked,
    events.RetryRequested: _retry_requested,
    events.HistoryLong: _history_long,
    events.RunFailing: _run_failing,
    events.RunCompleted: _run_completed,
    events.RunFailed: _run_failed,
    events.RunCancelled: _run_cancelled,
    events.RunSuperseded: _run_superseded,
}
