"""Which actions a run offers, and why a command is refused: one rule for both, so advertised means accepted (P3).

An action may have a target: a step for retry and input, the name of an event for send_event.
Leaves to others: what an accepted action does (controlling.py, pausing.py, answering.py); refusals for funds, quota and
authority (engine); whether a payload is right, which is refused at its own place.
"""

from longtake.contracts.problems import Problem, ProblemError, problem
from longtake.contracts.summary import Action
from longtake.workflow.run_state import ANY_EVENT, NEEDS_INPUT, RUN_BLOCKER, RunState

ACTIONS: tuple[Action, ...] = (
    "cancel_generation", "retry_generation", "provide_generation_input", "pause_generation", "resume_generation",
    "send_generation_event", "steer_generation", "fork_generation", "follow_up_generation",
)  # fmt: skip

CURABLE = "reducer_error"
"""The one blocker of a whole run that a retry lifts."""

NOT_BY_RETRY: frozenset[str] = frozenset({"no_worker"})
"""Blockers of a step that somebody else lifts: its work is handed out, and waits to be taken."""


TARGETS: dict[Action, str] = {
    "retry_generation": "/payload/step",
    "provide_generation_input": "/payload/step",
    "send_generation_event": "/payload/name",
}
"""Action to where its command names a target."""


def available_actions(state: RunState) -> tuple[Action, ...]:
    """What the run accepts now."""
    return tuple(
        action for action in ACTIONS if why_unavailable(state, action) is None or _by_step(state, action)
    )


def why_unavailable(state: RunState, action: Action, target: str | None = None) -> str | None:
    """Why the run does not take an action now, in words; None when it does. Without a target: for any."""
    if action == "follow_up_generation":
        return None
    if action == "fork_generation":
        return None if state.terminal else "the run has not ended"
    if state.terminal:
        return f"the run is {state.ended}"
    if state.ending is not None:
        # A reducer that raised on the way out must not hold up the end for ever.
        curable = action == "retry_generation" and target is None and RUN_BLOCKER + CURABLE in state.blockers
        return None if curable else "the run is already ending"
    match action:
        case "cancel_generation":
            return None
        case "steer_generation":
            return (
                None
                if state.parent is None
                else f"the run is the work of a step of run {state.parent.run_id}"
            )
        case "pause_generation":
            return _why_no_pause(state)
        case "resume_generation":
            return None if state.paused_at is not None else "the run is not paused"
        case "retry_generation":
            return _why_no_retry(state, target)
        case "provide_generation_input":
            return _why_no_input(state, target)
        case "send_generation_event":
            return _why_no_event(state, target)


def _by_step(state: RunState, action: Action) -> bool:
    """Whether the action is there for some step, though not for all that is blocked."""
    if action != "retry_generation":
        return False
    return any(why_unavailable(state, action, state.plan.steps[index].key) is None for index in state.spared)


def retriable_steps(state: RunState) -> list[str]:
    """Keys of the blocked steps that a retry sets going again, in plan order."""
    keys = [
        key
        for key, blocker in state.blockers.items()
        if key[0] != RUN_BLOCKER and blocker.type not in NEEDS_INPUT and blocker.type not in NOT_BY_RETRY
    ]
    return sorted(keys, key=state.plan.position.__getitem__)


def refusal(
    state: RunState, action: Action, *, expected_revision: int, target: str | None = None
) -> Problem | None:
    """The problem with an action now, or None when it is taken."""
    reason = why_unavailable(state, action, target)
    if reason is not None:
        offered = ", ".join(available_actions(state)) or "nothing"
        return problem(
            "action-not-available",
            f"{action} cannot be done: {reason}. The run offers {offered}.",
            ProblemError(
                "/kind" if target is None else TARGETS[action],
                reason,
                f"do what the run offers: {offered}",
            ),
        )
    since = since_of(state, action, target)
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


def since_of(state: RunState, action: Action, target: str | None = None) -> int:
    """The revision from which an available action has stood without interruption, for the same target and price."""
    if target is None or action == "send_generation_event":
        return state.since.get(action, 1)
    since = state.since.get((action, target))
    if since is None:
        # A failed step that may be tried again has changed by nothing but its failure.
        step = state.step_of(target)
        since = 1 if step is None else step.updated_seq
    return max(since, state.since.get((action, RUN_BLOCKER), 1))


def _why_no_pause(state: RunState) -> str | None:
    if state.paused_at is not None:
        return "the run is already paused"
    return None if state.queued is None else "the run has not begun"


def _why_no_retry(state: RunState, step: str | None) -> str | None:
    if any(blocker.type != CURABLE for blocker in state.run_blockers):
        return "the whole run is blocked by " + ", ".join(blocker.type for blocker in state.run_blockers)
    if step is None:
        return None if state.run_blockers or retriable_steps(state) else "nothing of the run is blocked"
    if state.run_blockers:
        return "the whole run is blocked: retry it without naming a step"
    blocker = state.blockers.get(step)
    if step.startswith(RUN_BLOCKER) or blocker is None:
        return None if is_revivable(state, step) else f"the step {step!r} is not blocked"
    if blocker.type in NEEDS_INPUT:
        return f"the step {step!r} waits for input"
    if blocker.type in NOT_BY_RETRY:
        return f"the step {step!r} waits to be taken: {blocker.type}"
    return None


def is_revivable(state: RunState, key: str) -> bool:
    """Whether the step is optional and failed, and nobody has built on that: it may be tried again."""
    return state.plan.position.get(key) in state.spared


def _why_no_input(state: RunState, step: str | None) -> str | None:
    if step is None:
        # An input gate says so, or says that it is overdue.
        asking = (
            key for key, blocker in state.blockers.items() if blocker.type in (*NEEDS_INPUT, "wait_overdue")
        )
        return None if any(_why_no_input(state, key) is None for key in asking) else "nothing needs input"
    position = state.plan.position.get(step)
    if position is None:
        return f"the run has no step {step!r}"
    gate, blocker = state.gates.get(position), state.blockers.get(step)
    if gate is not None and gate.kind == "input":
        return None
    if blocker is not None and blocker.type == "spend_cap":
        return None
    return f"the step {step!r} is {state.steps[position].status} and needs no input"


def _why_no_event(state: RunState, name: str | None) -> str | None:
    # What an expansion brings is not known yet, so any name may be waited for.
    listening = state.listening
    if listening if name is None else name in listening or ANY_EVENT in listening:
        return None
    return "no step waits for an event" if name is None else f"no step that has not ended waits for {name!r}"
