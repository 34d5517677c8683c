"""Which actions a run offers, and why a command is refused: one rule for both, so advertised means accepted (P3).

Leaves to others: what an accepted action does (controlling.py); refusals for funds, quota and authority (engine).
"""

from longtake.contracts.problems import Problem, ProblemError, problem
from longtake.contracts.summary import Action
from longtake.workflow.run_state import RUN_BLOCKER, RunState

ACTIONS: tuple[Action, ...] = ("cancel_generation", "retry_generation")

CURABLE = "reducer_error"
"""The one blocker of a whole run that a retry lifts."""


def available_actions(state: RunState) -> tuple[Action, ...]:
    """What the run accepts now."""
    return tuple(action for action in ACTIONS if why_unavailable(state, action) is None)


def why_unavailable(state: RunState, action: Action, step: str | None = None) -> str | None:
    """Why the run does not take an action now, in words; None when it does."""
    if state.terminal:
        return f"the run is {state.ended}"
    if state.ending is not None:
        # A reducer that raised on the way out must not hold up the end for ever.
        curable = action == "retry_generation" and step is None and bool(state.run_blockers)
        return None if curable else "the run is already ending"
    if action == "cancel_generation":
        return None
    if any(blocker.type != CURABLE for blocker in state.run_blockers):
        return "the whole run is blocked by " + ", ".join(blocker.type for blocker in state.run_blockers)
    if step is None:
        return None if state.blockers else "nothing of the run is blocked"
    if state.run_blockers:
        return "the whole run is blocked: retry it without naming a step"
    if step in state.blockers and not step.startswith(RUN_BLOCKER):
        return None
    return f"the step {step!r} is not blocked"


def refusal(
    state: RunState, action: Action, *, expected_revision: int, step: str | None = None
) -> Problem | None:
    """The problem with an action now, or None when it is taken."""
    reason = why_unavailable(state, action, step)
    if reason is not None:
        offered = ", ".join(available_actions(state)) or "nothing"
        return problem(
            "action-not-available",
            f"{action} cannot be done: {reason}. The run offers {offered}.",
            ProblemError(
                "/kind" if step is None else "/payload/step",
                reason,
                f"do what the run offers: {offered}",
            ),
        )
    since = state.since[action] if step is None else state.since["retry_generation", step]
    if since <= expected_revision <= state.revision:
        return None
    what = "since" if expected_revision < since else "only at"
    return problem(
        "stale-revision",
        f"The command speaks of revision {expected_revision}; the run is at revision {state.revision}, and this action"
        f" has stood unchanged since revision {since}.",
        ProblemError(
            "/expected_revision",
            f"expected revision {expected_revision}, current {state.revision}, the action stands {what} "
            f"{since if expected_revision < since else state.revision}",
            "read the summary and send its revision",
        ),
    )
