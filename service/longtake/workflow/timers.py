"""Timers of a run: its deadlines, the patience with what blocks it, the time to settle, and those of gates (P10, P19, P24).

Leaves to others: arming them, which follows from the state (draft.py).
"""

from datetime import timedelta

from longtake.contracts.events import LateOutcome, RunFailing
from longtake.contracts.signals import TimerFired
from longtake.workflow.decision import Decision
from longtake.workflow.draft import Draft
from longtake.workflow.ending import settle_when_known, settle_with_what_is_known
from longtake.workflow.evolve_attempts import SETTLE_SECONDS_MAX
from longtake.workflow.gates import due_gate, overdue, pass_gate, waits_for
from longtake.workflow.moves import TIMER, first_gate
from longtake.workflow.passing import settle_abandoned
from longtake.workflow.queueing import on_start_due
from longtake.workflow.run_state import RUN_BLOCKER, RunState
from longtake.workflow.scheduling import advance
from longtake.workflow.settling import AttemptFailure, fail_run, fail_step


def on_timer(draft: Draft, signal: TimerFired) -> Decision:
    """Do what a timer is for, unless its time has been moved or its reason is gone."""
    state = draft.state
    if state.terminal:
        return draft.ignored("run_ended")
    if signal.key.startswith(TIMER):
        return _on_gate(draft, signal.key.removeprefix(TIMER))
    match signal.key:
        case "settlement":
            due_at = None if state.ending is None else state.ending.settle_until
        case "run_deadline":
            due_at = None if state.ending is not None else state.deadline_at
        case "blocked_deadline":
            due_at = state.blocked_until
        case "losers":
            due_at = state.losers_until
        case "start_at":
            due_at = None if state.queued is None else state.queued.start_at
        case _:
            due_at = None
    if due_at is None or draft.now < due_at:
        return draft.ignored("timer_not_due")
    if state.paused_at is not None and state.ending is None and signal.key != "losers":
        # Armed anew when the run goes on. What a join gave up is settled all the same: it is under way (P19).
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
        case "losers":
            _give_up_losers(draft)
        case _:
            return on_start_due(draft)
    return draft.decision()


def current_position(state: RunState) -> int:
    """The step that people are told about: the first that is under way, else blocked, else waiting, else not yet ended.

    What a join gave up is told of only when nothing else is left.
    """
    under_way = [effect.step for effect in state.open.values() if not state.steps[effect.step].abandoned]
    if under_way:
        return min(under_way)
    blocked = [state.plan.position[key] for key in state.blockers if key[0] != RUN_BLOCKER]
    if blocked:
        return min(blocked)
    gate = first_gate(state)
    if gate is not None:
        return gate
    left = min((effect.step for effect in state.open.values()), default=state.cursor)
    return min(left, len(state.steps) - 1)


def _on_gate(draft: Draft, key: str) -> Decision:
    """The time of a gate is over: a sleep wakes, a default is taken, and who waits in vain says so or fails."""
    state = draft.state
    found = due_gate(state, key)
    if found is None or state.ending is not None or state.paused_at is not None or draft.now < found[2]:
        return draft.ignored("timer_not_due")
    position, gate, _ = found
    plan = state.plan.steps[position]
    if gate.kind == "sleep":
        pass_gate(draft, position, "timer", {})
        advance(draft)
    elif plan.default is not None:
        pass_gate(draft, position, "default", plan.default)
        advance(draft)
    elif plan.on_timeout == "block":
        overdue(draft, position)
    else:
        message = (
            f"nobody gave what the step waits for in {plan.timeout_seconds} s: {waits_for(state, position)}"
        )
        fail_step(draft, key, _too_late(message), timed_out=True)
        advance(draft)
    return draft.decision()


def _give_up_losers(draft: Draft) -> None:
    """What nobody has told of abandoned attempts in their time counts as unknown (P10)."""
    state = draft.state
    for position in sorted(
        effect.step for effect in state.open.values() if state.steps[effect.step].abandoned
    ):
        key = state.plan.steps[position].key
        draft.record(LateOutcome(step=key, attempt=state.steps[position].attempt, outcome="unknown"))
        settle_abandoned(draft, key)
    advance(draft)


def _blocked_position(state: RunState) -> int:
    blocked = [state.plan.position[key] for key in state.blockers if key[0] != RUN_BLOCKER]
    return min(blocked) if blocked else current_position(state)


def _fail(draft: Draft, position: int, message: str) -> None:
    state = draft.state
    key, step = state.plan.steps[position].key, state.steps[position]
    if not (step.ended or step.abandoned):
        fail_run(draft, key, step.attempt, _too_late(message))
        return
    settle_until = draft.now + timedelta(seconds=SETTLE_SECONDS_MAX)
    draft.record(
        RunFailing(
            error_class="timeout",
            origin="infrastructure",
            message=message,
            step=key,
            settle_until=settle_until,
        )
    )
    settle_when_known(draft)


def _too_late(message: str) -> AttemptFailure:
    return AttemptFailure(error_class="timeout", origin="infrastructure", message=message, retryable=False)
