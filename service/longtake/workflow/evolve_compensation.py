"""What compensations leave in the state: steps are undone one at a time, the last completed first (H90)."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from longtake.contracts import events
from longtake.contracts.events import Event
from longtake.workflow.moves import close_effect, open_effect, pay, touch
from longtake.workflow.run_state import RunState


def _scheduled(state: RunState, event: events.CompensationScheduled, at: datetime) -> None:
    index, step = touch(state, event.step)
    pay(step, event.provider_cost)
    step.compensations = event.attempt
    state.undoing = index
    open_effect(state, index, event.effect_id, "compensate", event.attempt, event.due_at or at)


def _compensated(state: RunState, event: events.StepCompensated, at: datetime) -> None:
    index, step = touch(state, event.step)
    pay(step, event.provider_cost)
    step.compensation = "done"
    _next(state, index)


def _failed(state: RunState, event: events.CompensationFailed, at: datetime) -> None:
    index, step = touch(state, event.step)
    pay(step, event.provider_cost)
    step.compensation = "failed"
    _next(state, index)


def _next(state: RunState, index: int) -> None:
    close_effect(state, state.steps[index])
    state.undo.pop()  # nothing else is open while a step is undone, so nothing has come after it
    state.undoing = None


HANDLERS: dict[type[Event], Callable[[RunState, Any, datetime], None]] = {
    events.CompensationScheduled: _scheduled,
    events.StepCompensated: _compensated,
    events.CompensationFailed: _failed,
}
