"""What events of gates leave in the state: steps that wait without work, and named events that came early."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from longtake.contracts import events
from longtake.contracts.events import Event
from longtake.contracts.summary import Blocker
from longtake.workflow.blocking import block
from longtake.workflow.moves import open_gate, touch
from longtake.workflow.run_state import BufferedEvent, Gate, RunState


def announce_gate(state: RunState, index: int, at: datetime) -> None:
    """A gate that a person opens says so."""
    plan, step, gate = state.plan.steps[index], state.steps[index], state.gates[index]
    if gate.kind == "input":
        block(
            state,
            plan.key,
            Blocker(
                type="input_required", step=plan.key, attempt=step.attempt, details={"label": plan.title}
            ),
            at,
        )


def _gates_opened(state: RunState, event: events.GatesOpened, at: datetime) -> None:
    state.begun = True
    for item in event.gates:
        index, step = touch(state, item.step)
        step.attempt = item.attempt
        step.started_at = step.started_at or at
        open_gate(state, index, Gate(kind=item.kind, until=item.until, child=item.child))
        announce_gate(state, index, at)


def _event_received(state: RunState, event: events.EventReceived, at: datetime) -> None:
    kept = BufferedEvent(command_id=event.command_id, actor=event.actor, payload=event.payload)
    state.buffered.setdefault(event.name, []).append(kept)
    state.early += 1


HANDLERS: dict[type[Event], Callable[[RunState, Any, datetime], None]] = {
    events.GatesOpened: _gates_opened,
    events.EventReceived: _event_received,
}
