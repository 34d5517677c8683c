"""Moves: the small changes that events are made of, each keeping the counters it touches (P17).

Leaves to others: which event makes which moves (evolve_*.py), blockers (blocking.py), ends (ends.py).
"""

import heapq
import uuid
from datetime import datetime

from longtake.contracts import events
from longtake.contracts.effects import EffectKind
from longtake.contracts.gate_events import GateKind
from longtake.contracts.ids import effect_id_for
from longtake.workflow.run_state import Gate, OpenEffect, RunState, StepState, StepStatus

TIMER = "step:"
"""What the timer of a gate is called, before the step's key."""

GATE_STATUS: dict[GateKind, StepStatus] = {
    "input": "needs_input",
    "sleep": "sleeping",
    "wait": "waiting_event",
    "run": "waiting_external",
}


def touch(state: RunState, key: str) -> tuple[int, StepState]:
    """A step and its position, marked as changed by this revision."""
    index = state.plan.position[key]
    mark(state, index)
    return index, state.steps[index]


def mark(state: RunState, index: int) -> None:
    """The step's row changes with this event."""
    state.steps[index].updated_seq = state.revision
    state.changed.append(index)


def arm(state: RunState, index: int, due_at: datetime | None) -> None:
    """Let the step have a timer, or none."""
    state.timer_changes[TIMER + state.plan.steps[index].key] = due_at
    if due_at is not None:
        heapq.heappush(state.wakes, (due_at, index))


def first_gate(state: RunState) -> int | None:
    """The first gate in plan order that stands."""
    while state.standing:
        if state.standing[0] in state.gates:
            return state.standing[0]
        heapq.heappop(state.standing)
    return None


def first_awaiting(state: RunState, name: str) -> int | None:
    """The first gate in plan order that waits for the event."""
    waiting = state.awaited.get(name, [])
    while waiting:
        if waiting[0] in state.gates:
            return waiting[0]
        heapq.heappop(waiting)
    state.awaited.pop(name, None)
    return None


def next_wake(state: RunState) -> datetime | None:
    """When the first gate that has a time wakes, or is overdue."""
    while state.wakes:
        due_at, index = state.wakes[0]
        gate = state.gates.get(index)
        if gate is not None and gate.until == due_at:
            return due_at
        heapq.heappop(state.wakes)
    return None


def pay(step: StepState, provider_cost: int | None) -> None:
    """Add what the provider says an attempt cost."""
    if provider_cost is not None:
        step.provider_cost = (step.provider_cost or 0) + provider_cost


def remember_error(
    step: StepState, event: events.AttemptFailed | events.StepBlocked | events.StepFailed
) -> None:
    """Keep why the step stands where it stands."""
    step.error_class, step.error_origin, step.error_message = event.error_class, event.origin, event.message


def derive_effect_id(state: RunState, key: str, attempt: int, kind: EffectKind, ordinal: int) -> uuid.UUID:
    """The id of an effect of this run."""
    return effect_id_for(state.run_id, step=key, attempt=attempt, kind=kind, ordinal=ordinal)


def begin_attempt(step: StepState, attempt: int) -> None:
    """Start an attempt with nothing known of it."""
    step.attempt = attempt
    step.polls = step.lookups = step.looks = step.overdue = step.executes = 0
    step.external_ref = step.external_until = None
    step.callback = step.recalled = False


def open_effect(
    state: RunState, index: int, effect_id: uuid.UUID, kind: EffectKind, ordinal: int, due_at: datetime
) -> None:
    """Let the step have one open effect, in place of the one it had."""
    step = state.steps[index]
    close_effect(state, step)
    step.effect = effect_id
    state.open[effect_id] = OpenEffect(
        step=index, attempt=step.attempt, kind=kind, ordinal=ordinal, due_at=due_at
    )


def close_effect(state: RunState, step: StepState) -> None:
    """Let the step have no open effect."""
    if step.effect is not None:
        del state.open[step.effect]
        step.effect = None


def look_up(state: RunState, index: int, effect_id: uuid.UUID, at: datetime) -> None:
    """The truth is open: a look-up is under way."""
    step = state.steps[index]
    step.status = "reconciling"
    step.lookups += 1
    step.looks += 1
    open_effect(state, index, effect_id, "reconcile", step.lookups, at)


def make_ready(state: RunState, index: int) -> None:
    """The step waits for nothing but a slot; a gate not even for that."""
    state.steps[index].status = "ready"
    mark(state, index)
    heapq.heappush(state.ready if state.plan.steps[index].is_worked else state.ready_gates, index)


def open_gate(state: RunState, index: int, gate: Gate) -> None:
    """Let the step wait without work."""
    plan = state.plan.steps[index]
    if index not in state.gates:
        state.children += gate.kind == "run"
    state.gates[index] = gate
    heapq.heappush(state.standing, index)
    if plan.event is not None:
        heapq.heappush(state.awaited.setdefault(plan.event, []), index)
    state.steps[index].status = GATE_STATUS[gate.kind]
    if gate.until is not None:
        arm(state, index, gate.until)


def close_gate(state: RunState, index: int) -> None:
    """Let the step wait no more; no change when it did not."""
    gate = state.gates.pop(index, None)
    if gate is None:
        return
    state.children -= gate.kind == "run"
    if gate.until is not None:
        arm(state, index, None)
    if gate.child is not None:
        state.forsaken.append((index, gate.child))


def consume(state: RunState, name: str, command_id: str) -> None:
    """A kept event is used; no change when it was not kept."""
    waiting = state.buffered.get(name, [])
    left = [event for event in waiting if event.command_id != command_id]
    state.early -= len(waiting) - len(left)
    if left:
        state.buffered[name] = left
    else:
        state.buffered.pop(name, None)
