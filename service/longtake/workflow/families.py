"""Families: runs that are the work of a step of another run (P5, H53).

The parent knows its child before it exists, by a derived id; it asks admission to start it and waits without work.
Each side hears of the other by durable facts alone. Leaves to others: admitting the child (engine/starter.py), what
such facts mean to who gets them (children.py).
"""

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from longtake.contracts.events import OpenedGate
from longtake.contracts.ids import child_command_id_for, run_id_for, signal_id_for
from longtake.contracts.signals import Outgoing, OutgoingKind
from longtake.workflow.run_state import RunState

if TYPE_CHECKING:
    from longtake.workflow.draft import Draft

DEPTH_MAX = 8
"""Generations of a family, the first run's included; a workflow that starts itself ends here."""


def open_child(draft: "Draft", position: int) -> OpenedGate:
    """Ask for the run that does this step; returns the gate that waits for it."""
    state = draft.state
    plan, attempt = state.plan.steps[position], state.steps[position].attempt + 1
    child = child_of(state, plan.key, attempt)
    _send(
        draft,
        "start_child",
        child,
        {
            "tenant": state.tenant,
            "actor": state.actor,
            "project": state.project,
            "account": state.account,
            "workflow": plan.workflow,
            "input": msgspec.json.decode(draft.input_of(position)),
            "policy": plan.policy,
            "parent": {
                "run_id": str(state.run_id),
                "step": plan.key,
                "attempt": attempt,
                "on_close": plan.on_parent_close,
                "above": [str(run_id) for run_id in above(state)],
            },
        },
    )
    return OpenedGate(step=plan.key, attempt=attempt, kind="run", until=until, child=child)


def close_child(draft: "Draft", position: int) -> None:
    """A join needs the step no more: its child is told that its parent is done with it."""


def child_of(state: RunState, key: str, attempt: int) -> uuid.UUID:
    """The id of the run that does an attempt of a step."""
    command_id = child_command_id_for(state.run_id, step=key, attempt=attempt)
    return run_id_for(tenant=state.tenant, actor=state.actor, client_command_id=command_id)


def above(state: RunState) -> tuple[uuid.UUID, ...]:
    """The runs above this one, the first of the family first."""
    return () if state.parent is None else (*state.parent.above, state.parent.run_id)


def relatives(state: RunState, *, begins_ending: bool, ends: bool) -> tuple[Outgoing, ...]:
    """What a decision tells the children of a run that begins to end, and the parent of one that has ended."""
    return ()
