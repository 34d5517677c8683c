"""What pausing and resuming leave in the state (P19)."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from longtake.contracts import events
from longtake.contracts.events import Event
from longtake.workflow.moves import arm
from longtake.workflow.run_state import RunState


def _run_paused(state: RunState, event: events.RunPaused, at: datetime) -> None:
    state.paused_at = at
    state.since.pop("pause_generation", None)
    state.since["resume_generation"] = state.revision
    for effect in state.open.values():
        if effect.kind == "execute":
            state.steps[effect.step].recalled = True
    for index, due_at in _times(state):
        arm(state, index, None)


def _run_resumed(state: RunState, event: events.RunResumed, at: datetime) -> None:
    state.since.pop("resume_generation", None)
    state.since["pause_generation"] = state.revision
    pause = at - (state.paused_at or at)
    state.paused_for += pause
    state.paused_at = None
    if state.blocked_until is not None:
        state.blocked_until += pause
    for index, gate in state.gates.items():
        if gate.until is not None:
            state.gates[index] = msgspec.structs.replace(gate, until=gate.until + pause)
    for index in state.dated:
        deadline_at = state.steps[index].deadline_at
        state.steps[index].deadline_at = None if deadline_at is None else deadline_at + pause
    for index, due_at in _times(state):
        arm(state, index, due_at)


def _times(state: RunState) -> list[tuple[int, datetime]]:
    """Every gate that has a time, with when it is over. Deadlines of steps have no timer: they bound effects."""
    return sorted((index, gate.until) for index, gate in state.gates.items() if gate.until is not None)


HANDLERS: dict[type[Event], Callable[[RunState, Any, datetime], None]] = {
    events.RunPaused: _run_paused,
    events.RunResumed: _run_resumed,
}
