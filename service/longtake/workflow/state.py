"""How a run's state follows from its events: `evolve` for one, `fold` for a history (design.md 2.3).

An event costs what it touches, never what the run holds: the edges it frees and the few open effects (P17). Nothing
here decides; a history that was decided by older rules folds all the same.
Leaves to others: what each event means (evolve_*.py, one module an area), the shape of the state (run_state.py), which
events come to be (reducer.py).
"""

import uuid
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from longtake.contracts.events import Event
from longtake.workflow import (
    evolve_attempts,
    evolve_compensation,
    evolve_control,
    evolve_gates,
    evolve_money,
    evolve_plan,
    evolve_run,
)
from longtake.workflow.blocking import BLOCKED_SECONDS_MAX
from longtake.workflow.evolve_attempts import SETTLE_SECONDS_MAX, step_document
from longtake.workflow.plan import CompiledPlan, Plan
from longtake.workflow.run_state import Ending, OpenEffect, RunState, SinceKey, StepState, dump, initial

__all__ = [
    "BLOCKED_SECONDS_MAX", "HANDLERS", "SETTLE_SECONDS_MAX", "Ending", "OpenEffect", "RunState", "SinceKey", "StepState",
    "dump", "evolve", "fold", "initial", "step_document",
]  # fmt: skip

HANDLERS: dict[type[Event], Callable[[RunState, Any, datetime], None]] = {
    **evolve_run.HANDLERS,
    **evolve_attempts.HANDLERS,
    **evolve_gates.HANDLERS,
    **evolve_control.HANDLERS,
    **evolve_money.HANDLERS,
    **evolve_plan.HANDLERS,
    **evolve_compensation.HANDLERS,
}


def evolve(state: RunState, event: Event, *, at: datetime) -> None:
    """Let one event have happened at the time it was recorded; the revision rises by one."""
    state.revision += 1
    state.updated_at = at
    state.changed.clear()
    state.timer_changes.clear()
    state.forsaken.clear()
    HANDLERS[type(event)](state, event, at)


def fold(
    run_id: uuid.UUID, tenant: str, plan: CompiledPlan | Plan, history: Iterable[tuple[Event, datetime]]
) -> RunState:
    """The state that a history of (event, recorded_at) leaves."""
    state = initial(run_id, tenant, plan)
    for event, recorded_at in history:
        evolve(state, event, at=recorded_at)
    return state
