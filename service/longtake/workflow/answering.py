"""What comes from people and producers while a run goes on: answers to gates, larger caps, named events (H64 to H67, W08).

An answer closes its gate, so it counts once: another one finds the gate closed, and one for an earlier state of the step
is stale (T45). A named event is consumed once, by the first step in plan order that waits for it, else it is kept.
Leaves to others: who may speak for a tenant (engine), the hold behind a larger cap (engine), consuming what was kept when
a gate opens (gates.py).
"""

from typing import Any

from longtake.contracts.events import EventReceived, Source
from longtake.contracts.outcomes import Succeeded
from longtake.contracts.problems import Problem, ProblemError, problem
from longtake.contracts.signals import ProvideInput, SendEvent
from longtake.workflow.actions import refusal
from longtake.workflow.answers import answer_faults, size_faults
from longtake.workflow.charging import raise_cap
from longtake.workflow.decision import Decision
from longtake.workflow.draft import Draft
from longtake.workflow.gates import pass_gate
from longtake.workflow.moves import first_awaiting
from longtake.workflow.run_state import RunState
from longtake.workflow.scheduling import advance
from longtake.workflow.settling import fault_of

BUFFERED_MAX = 1000
"""Named events that a run keeps for steps that do not wait for them yet."""


def on_input(draft: Draft, signal: ProvideInput) -> Decision:
    """Take the answer to a gate, or the larger cap that a step waits for."""
    state, key = draft.state, signal.step
    refused = refusal(
        state, "provide_generation_input", expected_revision=signal.expected_revision, target=key
    )
    if refused is None:
        refused = _wrong_member(state, signal)
    if refused is not None:
        return draft.refused(refused)
    if signal.answer is None:
        refused = raise_cap(draft, signal)
        if refused is not None:
            return draft.refused(refused)
        advance(draft)
        return draft.decision()
    faults = answer_faults(state.plan_of(key).answer or {}, signal.answer, "/payload/answer") or _lacks(
        state, key, signal.answer, "/payload/answer"
    )
    if faults:
        return draft.refused(
            problem("invalid-command", f"This is no answer that the step {key!r} takes.", *faults)
        )
    _pass(draft, key, signal.answer, "input", signal)
    return draft.decision()


def on_event(draft: Draft, signal: SendEvent) -> Decision:
    """Let the first step that waits for the event have it, or keep it until one does."""
    state, name = draft.state, signal.name
    refused = refusal(
        state, "send_generation_event", expected_revision=signal.expected_revision, target=name
    ) or _unfit(state, signal)
    if refused is not None:
        return draft.refused(refused)
    waiting = first_awaiting(state, name)
    if waiting is not None:
        _pass(draft, state.plan.steps[waiting].key, signal.payload, "event", signal)
        return draft.decision()
    if state.early >= BUFFERED_MAX:
        place = ProblemError(
            "/payload/name",
            f"{BUFFERED_MAX} events are kept and nobody has waited for them",
            "send it when a step waits for it",
        )
        return draft.refused(problem("action-not-available", "The run keeps no more events.", place))
    draft.record(
        EventReceived(name=name, payload=signal.payload, command_id=signal.command_id, actor=signal.actor)
    )
    return draft.decision(command_status="attached")


def _pass(
    draft: Draft, key: str, result: dict[str, Any], source: Source, signal: ProvideInput | SendEvent
) -> None:
    position = draft.state.plan.position[key]
    pass_gate(draft, position, source, result, command_id=signal.command_id, actor=signal.actor)
    advance(draft)


def _wrong_member(state: RunState, signal: ProvideInput) -> Problem | None:
    """An answer where a cap is asked for, or the other way round."""
    blocker = state.blockers.get(signal.step)
    wanted = "/payload/cap" if blocker is not None and blocker.type == "spend_cap" else "/payload/answer"
    given = "/payload/cap" if signal.answer is None else "/payload/answer"
    if wanted == given:
        return None
    what = "a larger cap" if wanted == "/payload/cap" else "an answer"
    return problem(
        "invalid-command",
        f"The step {signal.step!r} asks for {what}.",
        ProblemError(given, f"the step {signal.step!r} does not ask for it", f"send {wanted} instead"),
    )


def _unfit(state: RunState, signal: SendEvent) -> Problem | None:
    """A payload that cannot be kept, or that a waiting step cannot pass on."""
    faults = size_faults(signal.payload, "/payload/payload")
    for position in state.plan.awaiting.get(signal.name, ()):
        plan = state.plan.steps[position]
        if faults:
            break
        if not state.steps[position].ended:
            faults = _lacks(state, plan.key, signal.payload, "/payload/payload")
    if not faults:
        return None
    return problem("invalid-command", f"The event {signal.name!r} cannot be taken like this.", *faults)


def _lacks(state: RunState, key: str, result: dict[str, Any], at: str) -> tuple[ProblemError, ...]:
    """What other steps refer to and the result has not."""
    fault = fault_of(state, key, Succeeded(result=result))
    if fault is None:
        return ()
    return (ProblemError(at, f"for the step {key!r}, {fault}", "send what the plan passes on"),)
