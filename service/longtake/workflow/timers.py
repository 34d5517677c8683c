"""Timers of a run: its deadline, the patience with a blocked run, and the time to settle (P10, P19, P24).

Leaves to others: arming them, which follows from the state (draft.py).
"""

from typing import assert_never

from longtake.contracts.signals import TimerFired
from longtake.workflow.decision import Decision
from longtake.workflow.draft import Draft
from longtake.workflow.ending import settle_with_what_is_known
from longtake.workflow.run_state import RUN_BLOCKER, RunState
from longtake.workflow.settling import AttemptFailure, fail_run


def on_timer(draft: Draft, signal: TimerFired) -> Decision:
    """Do what a timer is for, unless its time has been moved or its reason is gone."""
    state = draft.state
    if state.terminal:
        return draft.ignored("run_ended")
    match signal.key:
        case "settlement":
            due_at = None if state.ending is None else state.ending.settle_until
        case "run_deadline":
            due_at = None if state.ending is not None else state.deadline_at
        case "blocked_deadline":
            due_at = state.blocked_until
        case _:
            assert_never(signal.key)
    if due_at is None or draft.now < due_at:
        return draft.ignored("timer_not_due")
    match signal.key:
        case "settlement":
            settle_with_what_is_known(draft)
        case "run_deadline":
            _fail(
                draft,
                current_position(state),
                f"the run did not finish in {state.plan.plan.deadline_seconds} s",
            )
        case "blocked_deadline":
            _fail(draft, _blocked_position(state), "nobody decided about the blocked run in time")
        case _:
            assert_never(signal.key)
    return draft.decision()


def current_position(state: RunState) -> int:
    """The step that people are told about: the first that is under way, else blocked, else not yet ended."""
    if state.open:
        return min(effect.step for effect in state.open.values())
    blocked = [state.plan.position[key] for key in state.blockers if key[0] != RUN_BLOCKER]
    return min(blocked) if blocked else min(state.cursor, len(state.steps) - 1)


def _blocked_position(state: RunState) -> int:
    blocked = [state.plan.position[key] for key in state.blockers if key[0] != RUN_BLOCKER]
    return min(blocked) if blocked else current_position(state)


def _fail(draft: Draft, position: int, message: str) -> None:
    state = draft.state
    failure = AttemptFailure(error_class="timeout", origin="infrastructure", message=message, retryable=False)
    fail_run(draft, state.plan.steps[position].key, state.steps[position].attempt, failure)
