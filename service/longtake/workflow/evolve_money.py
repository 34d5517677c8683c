"""What charges, refunds and caps leave in the state (design.md 7)."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from longtake.contracts import events
from longtake.contracts.events import Event
from longtake.contracts.summary import Blocker
from longtake.workflow.blocking import block, unblock
from longtake.workflow.moves import make_ready, touch
from longtake.workflow.run_state import RunState


def _charged(state: RunState, event: events.Charged, at: datetime) -> None:
    state.charged += event.amount
    if event.step is not None:
        _, step = touch(state, event.step)
        step.cycle, step.charged, step.refunded = event.cycle or 1, event.amount, False


def _refunded(state: RunState, event: events.Refunded, at: datetime) -> None:
    state.refunded += event.amount
    if event.step is not None:
        _, step = touch(state, event.step)
        step.charged -= event.amount
        step.refunded = True
    _release_what_fits(state)


def _cap_raised(state: RunState, event: events.CapRaised, at: datetime) -> None:
    state.cap, state.held = event.cap, event.held
    _release_what_fits(state)


def _release_what_fits(state: RunState) -> None:
    """Steps that waited for a larger cap and fit now are ready, in plan order; their price is taken when they begin."""
    waiting = [state.plan.position[key] for key, item in state.blockers.items() if item.type == "spend_cap"]
    left = min(state.cap, state.held) - (state.charged - state.refunded)
    for index in sorted(waiting):
        price = state.plan.steps[index].price
        if price <= left:
            left -= price
            unblock(state, state.plan.steps[index].key)
            make_ready(state, index)


def _spend_cap_reached(state: RunState, event: events.SpendCapReached, at: datetime) -> None:
    for key in event.steps:
        index, step = touch(state, key)
        step.status = "needs_input"
        details = {
            "price": str(state.plan.steps[index].price),
            "net": str(event.net),
            "cap": str(event.cap),
            "needed": str(event.needed),
        }
        block(state, key, Blocker(type="spend_cap", step=key, attempt=step.attempt, details=details), at)


HANDLERS: dict[type[Event], Callable[[RunState, Any, datetime], None]] = {
    events.Charged: _charged,
    events.Refunded: _refunded,
    events.CapRaised: _cap_raised,
    events.SpendCapReached: _spend_cap_reached,
}
