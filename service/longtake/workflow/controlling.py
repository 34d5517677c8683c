"""People and operators: cancel, retry, a successor, the plan check after a deploy, a reducer that raised (P3, P10, P15).

Leaves to others: whether an action is offered (actions.py), how an ending run settles (ending.py).
"""

from datetime import timedelta

from longtake.contracts.events import (
    CancelRequested,
    RetryRequested,
    RunBlocked,
    RunUnblocked,
    SupersedeRequested,
)
from longtake.contracts.signals import CancelRun, PlanChecked, ReducerFailed, RetryRun, SupersedeRun
from longtake.workflow.actions import CURABLE, refusal, retriable_steps
from longtake.workflow.decision import Decision
from longtake.workflow.draft import Draft
from longtake.workflow.ending import settle_when_known
from longtake.workflow.reconciling import BLOCKER
from longtake.workflow.run_state import RUN_BLOCKER, RunState
from longtake.workflow.scheduling import advance
from longtake.workflow.state import SETTLE_SECONDS_MAX

DRIFT = "plan_drift"
ERROR_TEXT_MAX = 500
"""Longest part of an error that goes into an event."""


def on_cancel(draft: Draft, signal: CancelRun) -> Decision:
    """Stop the run: no new work from here, and it is cancelled when everything open is known."""
    problem = refusal(draft.state, "cancel_generation", expected_revision=signal.expected_revision)
    if problem is not None:
        return draft.refused(problem)
    draft.record(
        CancelRequested(
            command_id=signal.command_id,
            actor=signal.actor,
            reason=signal.reason,
            settle_until=draft.now + timedelta(seconds=SETTLE_SECONDS_MAX),
        )
    )
    settle_when_known(draft)
    return draft.decision()


def on_retry(draft: Draft, signal: RetryRun) -> Decision:
    """Go on with what is blocked: look again where the truth is open, else the next attempt."""
    state = draft.state
    problem = refusal(
        state, "retry_generation", expected_revision=signal.expected_revision, target=signal.step
    )
    if problem is not None:
        return draft.refused(problem)
    steps = tuple(retriable_steps(state) if signal.step is None else [signal.step])
    look_again = tuple(key for key in steps if is_truth_open(state, key) and not signal.accept_double_cost)
    if RUN_BLOCKER + CURABLE in state.blockers:
        draft.record(
            RunUnblocked(blocker=CURABLE, reason=f"command {signal.command_id} of {signal.actor}: try again")
        )
    if steps:
        draft.record(
            RetryRequested(
                command_id=signal.command_id, actor=signal.actor, steps=steps, look_again=look_again
            )
        )
    advance(draft)
    return draft.decision()


def on_supersede(draft: Draft, signal: SupersedeRun) -> Decision:
    """Give way to a successor: settle like a cancelled run, and end as superseded.

    From a steer command it may be refused. From the admission of the successor it is a fact, without a revision: a run
    that ends anyhow ignores it, and its end is all that the successor waits for.
    """
    state = draft.state
    if signal.expected_revision is not None:
        problem = refusal(state, "steer_generation", expected_revision=signal.expected_revision)
        if problem is not None:
            return draft.refused(problem)
    elif state.terminal or state.ending is not None:
        return draft.ignored("run_ended" if state.terminal else "run_ending")
    draft.record(
        SupersedeRequested(
            by_run=signal.by_run,
            command_id=signal.command_id,
            actor=signal.actor,
            settle_until=draft.now + timedelta(seconds=SETTLE_SECONDS_MAX),
        )
    )
    settle_when_known(draft)
    return draft.decision()


def on_plan_checked(draft: Draft, signal: PlanChecked) -> Decision:
    """Block a run whose plan the deployed code builds differently; let it go on when the plan is the same again."""
    state = draft.state
    if state.terminal or state.ending is not None:
        return draft.ignored("run_ended" if state.terminal else "run_ending")
    standing = state.blockers.get(RUN_BLOCKER + DRIFT)
    if signal.drift is None:
        if standing is None:
            return draft.ignored("plan_unchanged")
        built = f"application {signal.application} builds the accepted plan"
        draft.record(RunUnblocked(blocker=DRIFT, reason=signal.accepted or built))
        advance(draft)
        return draft.decision()
    field, price_effect = signal.drift
    details = {"field": field, "price_effect": price_effect, "application": signal.application}
    if standing is not None and standing.details == details:
        return draft.ignored("already_known")
    draft.record(RunBlocked(blocker=DRIFT, details=details))
    return draft.decision()


def is_truth_open(state: RunState, key: str) -> bool:
    """Whether a retry of the step asks its provider once more before anything is paid again."""
    blocker = state.blockers.get(key)
    return blocker is not None and blocker.type == BLOCKER


def on_reducer_failed(draft: Draft, signal: ReducerFailed) -> Decision:
    """Block the run on which the reducer raised; nothing else is decided (F56)."""
    state = draft.state
    if state.terminal:
        return draft.ignored("run_ended")
    if RUN_BLOCKER + CURABLE in state.blockers:
        return draft.ignored("already_known")
    draft.record(
        RunBlocked(
            blocker=CURABLE,
            details={"error": signal.error[:ERROR_TEXT_MAX], "causation": signal.causation},
        )
    )
    return draft.decision()
