"""Gates: steps that wait without work, for a time, a named event, a person or another run (G44, W32, W33, H67).

A gate holds no slot, has no effect, and writes nothing while it waits. What opens it is given elsewhere: a timer here, an
answer or an event in answering.py, a child run in families.py.
"""

import heapq
from datetime import datetime, timedelta
from typing import Any

from longtake.contracts.events import GatesOpened, OpenedGate, Source, StepBlocked, StepSucceeded
from longtake.contracts.outcomes import Artifact
from longtake.workflow.draft import Draft
from longtake.workflow.families import open_child
from longtake.workflow.run_state import Gate, RunState

STEPS_PER_EVENT_MAX = 250
"""Keeps an event below its size limit."""

OVERDUE = "wait_overdue"


def open_gates(draft: Draft) -> bool:
    """Open every gate that is ready; True when one was passed at once, by an event that had come early."""
    state = draft.state
    opened: list[OpenedGate] = []
    passed = False
    while state.ready_gates:
        position = heapq.heappop(state.ready_gates)
        if state.steps[position].status != "ready" or any(
            gate.step == state.plan.steps[position].key for gate in opened[-1:]
        ):
            continue
        plan = state.plan.steps[position]
        if plan.kind == "wait" and state.buffered.get(str(plan.event)):
            early = state.buffered[str(plan.event)][0]
            pass_gate(draft, position, "event", early.payload, command_id=early.command_id, actor=early.actor)
            passed = True
        else:
            opened.append(_opened(draft, position))
    for start in range(0, len(opened), STEPS_PER_EVENT_MAX):
        draft.record(GatesOpened(gates=tuple(opened[start : start + STEPS_PER_EVENT_MAX])))
    return passed


def pass_gate(
    draft: Draft,
    position: int,
    source: Source,
    result: dict[str, Any],
    *,
    command_id: str | None = None,
    actor: str | None = None,
    artifacts: tuple[Artifact, ...] = (),
    external_ref: str | None = None,
) -> None:
    """The step has what it waited for; what follows is handed out by the caller's `advance`."""
    state = draft.state
    step = state.steps[position]
    draft.record(
        StepSucceeded(
            step=state.plan.steps[position].key,
            attempt=max(1, step.attempt),
            result=result,
            artifacts=artifacts,
            external_ref=external_ref,
            source=source,
            command_id=command_id,
            actor=actor,
        )
    )


def overdue(draft: Draft, position: int) -> None:
    """The time of a gate that waits for somebody is over, and it may stand open: say what it waits for."""
    state = draft.state
    plan = state.plan.steps[position]
    draft.record(
        StepBlocked(
            step=plan.key,
            attempt=state.steps[position].attempt,
            blocker=OVERDUE,
            error_class="timeout",
            origin="infrastructure",
            message=f"waits for {waits_for(state, position)}, for longer than {plan.timeout_seconds} s",
        )
    )


def waits_for(state: RunState, position: int) -> str:
    """What a gate waits for, in words."""
    plan, gate = state.plan.steps[position], state.gates.get(position)
    match plan.kind:
        case "input":
            return f"an answer to {plan.title!r}"
        case "wait":
            return f"the event {plan.event!r}"
        case "run":
            return f"the run {None if gate is None else gate.child} of {plan.workflow}"
        case _:
            return "its time"


def due_gate(state: RunState, key: str) -> tuple[int, Gate, datetime] | None:
    """The open gate of a step that has a time, with its position and that time."""
    position = state.plan.position.get(key)
    gate = None if position is None else state.gates.get(position)
    if position is None or gate is None or gate.until is None:
        return None
    return position, gate, gate.until


def _opened(draft: Draft, position: int) -> OpenedGate:
    plan, step = draft.state.plan.steps[position], draft.state.steps[position]
    seconds = plan.seconds if plan.kind == "sleep" else plan.timeout_seconds
    until = None if seconds is None else draft.now + timedelta(seconds=seconds)
    match plan.kind:
        case "run":
            return open_child(draft, position)
        case "input" | "sleep" | "wait":
            return OpenedGate(step=plan.key, attempt=step.attempt + 1, kind=plan.kind, until=until)
        case _:
            raise AssertionError(f"the step {plan.key} is no gate")
