"""Children: what a parent makes of how its child ended, and a child of the end of its parent (P5, H53).

Leaves to others: the facts themselves (families.py).
"""

from datetime import timedelta

import msgspec

from longtake.contracts.events import CancelRequested, StepSucceeded
from longtake.contracts.outcomes import Artifact, Succeeded
from longtake.contracts.signals import ChildEnded, ChildRefused, ParentClosed
from longtake.workflow.decision import Decision
from longtake.workflow.draft import Draft
from longtake.workflow.ending import learn_late, settle_when_known
from longtake.workflow.evolve_attempts import SETTLE_SECONDS_MAX
from longtake.workflow.run_state import RunState
from longtake.workflow.scheduling import advance
from longtake.workflow.settling import AttemptFailure, block, fail_step, fault_of

BLOCKER = "child_not_completed"

ENDED_WORDS = {
    "failed": "failed",
    "cancelled": "was cancelled",
    "superseded": "was superseded by another run",
}


def on_child_ended(draft: Draft, signal: ChildEnded) -> Decision:
    """Take what the child delivered as the step's result, or say why there is none."""
    state = draft.state
    reason = _unexpected(state, signal)
    if reason is not None:
        return draft.ignored(reason)
    draft.child_is_over(signal.child)
    if state.ending is not None:
        learn_late(draft, signal.step, "too_late" if signal.outcome == "completed" else "stopped")
        return draft.decision()
    if signal.outcome != "completed":
        words = f"the run {signal.child} {ENDED_WORDS[signal.outcome]}"
        message = f"{words}: {signal.message}" if signal.message else words
        _without_child(
            draft,
            signal.step,
            AttemptFailure(error_class="dependency", origin=signal.origin, message=message, retryable=False),
        )
        return draft.decision()
    artifacts = tuple(msgspec.convert(item, Artifact) for item in signal.result.get("artifacts", {}).values())
    made = Succeeded(
        result={"result": signal.result.get("result", {}), "run_id": str(signal.child)}, artifacts=artifacts
    )
    fault = fault_of(state, signal.step, made)
    if fault is not None:
        failure = AttemptFailure(
            error_class="bad_output",
            origin="content",
            message=f"the run {signal.child} completed, but {fault}",
            retryable=False,
        )
        _without_child(draft, signal.step, failure)
        return draft.decision()
    draft.record(
        StepSucceeded(
            step=signal.step,
            attempt=signal.attempt,
            result=made.result,
            artifacts=artifacts,
            source="child",
        )
    )
    advance(draft)
    return draft.decision()


def on_child_refused(draft: Draft, signal: ChildRefused) -> Decision:
    """The child was not admitted: a person mends what is wrong and tries again, or the step fails."""
    state = draft.state
    reason = _unexpected(state, signal)
    if reason is not None:
        return draft.ignored(reason)
    draft.child_is_over(signal.child)
    if state.ending is not None:
        learn_late(draft, signal.step, "stopped")
        return draft.decision()
    failure = AttemptFailure(
        error_class="dependency",
        origin="request",
        message=f"the run {signal.child} was refused ({signal.problem}): {signal.message}",
        retryable=False,
    )
    _without_child(draft, signal.step, failure)
    return draft.decision()


def on_parent_closed(draft: Draft, signal: ParentClosed) -> Decision:
    """Nobody waits for this run any more, and its parent's plan says that it then stops."""
    state = draft.state
    if state.terminal or state.ending is not None:
        return draft.ignored("run_ended" if state.terminal else "run_ending")
    draft.record(
        CancelRequested(
            command_id=f"parent-{signal.parent}",
            actor=state.actor,
            reason=f"the parent run {signal.parent} {signal.outcome}",
            settle_until=draft.now + timedelta(seconds=SETTLE_SECONDS_MAX),
        )
    )
    settle_when_known(draft)
    return draft.decision()


def _unexpected(state: RunState, signal: ChildEnded | ChildRefused) -> str | None:
    """Why nobody waits for this child, if nobody does."""
    if state.terminal:
        return "run_ended"
    position = state.plan.position.get(signal.step)
    gate = None if position is None else state.gates.get(position)
    return None if gate is not None and gate.child == signal.child else "not_waiting"


def _without_child(draft: Draft, key: str, failure: AttemptFailure) -> None:
    """The attempt has no result: wait for a person, whose retry starts another run, or fail as the plan says."""
    if draft.state.plan_of(key).exhausted_policy == "block":
        block(draft, key, BLOCKER, failure)
        return
    fail_step(draft, key, failure)
    advance(draft)
