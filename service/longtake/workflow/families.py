"""Families: runs that are the work of a step of another run (P5, H53), and what a run tells others when it ends.

The parent knows its child before it exists, by a derived id; it asks admission to start it and waits without work.
Each side hears of the other by durable facts alone. Leaves to others: admitting the child (engine/starter.py), what
such facts mean to who gets them (children.py).
"""

import uuid
from collections.abc import Container, Iterable, Iterator
from datetime import timedelta
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
    payload = {
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
    }
    draft.send(_fact(state, "start_child", child, payload))
    until = None if plan.timeout_seconds is None else draft.now + timedelta(seconds=plan.timeout_seconds)
    return OpenedGate(step=plan.key, attempt=attempt, kind="run", until=until, child=child)


def child_of(state: RunState, key: str, attempt: int) -> uuid.UUID:
    """The id of the run that does an attempt of a step."""
    command_id = child_command_id_for(state.run_id, step=key, attempt=attempt)
    return run_id_for(tenant=state.tenant, actor=state.actor, client_command_id=command_id)


def above(state: RunState) -> tuple[uuid.UUID, ...]:
    """The runs above this one, the first of the family first."""
    return () if state.parent is None else (*state.parent.above, state.parent.run_id)


def relatives(
    state: RunState,
    *,
    forsaken: Iterable[tuple[int, uuid.UUID]],
    over: Container[uuid.UUID],
    begins_ending: bool,
    ends: bool,
) -> Iterator[Outgoing]:
    """What a decision tells others: children that nobody waits for any more, the parent, whoever waits for the scopes.

    `forsaken` are the children that the decision let go, with their steps' positions, `over` those that it knows to have
    ended. A run that begins to end lets all of them go, and waits for those that are cancelled.
    """
    let_go = [*forsaken, *(_standing(state) if begins_ending else ())]
    for position, child in dict.fromkeys(let_go):
        if child not in over and state.plan.steps[position].on_parent_close == "cancel":
            why = "goes on without it" if state.ending is None else f"is ending as {state.ending.outcome}"
            yield _fact(state, "parent_closed", child, {"parent": str(state.run_id), "outcome": why})
    frees = frees_scopes(state, begins_ending=begins_ending, ends=ends)
    if frees and (state.plan.plan.scopes or is_superseded(state)):
        yield _fact(state, "scopes_freed", state.run_id, {"project": state.project}, about="")
    if ends and state.parent is not None:
        yield _child_ended(state)


def _standing(state: RunState) -> Iterator[tuple[int, uuid.UUID]]:
    for position, gate in state.gates.items():
        if gate.child is not None:
            yield position, gate.child


def frees_scopes(state: RunState, *, begins_ending: bool, ends: bool) -> bool:
    """Whether others may have its scopes now: when it begins to end, or, when it is superseded, not before it has (P10)."""
    if is_superseded(state):
        return ends
    return begins_ending or (ends and state.ended == "completed")


def is_superseded(state: RunState) -> bool:
    """Whether a successor takes its place."""
    return state.ending is not None and state.ending.outcome == "superseded"


def _child_ended(state: RunState) -> Outgoing:
    parent, ending = state.parent, state.ending
    assert parent is not None, "the caller has looked"
    payload: dict[str, Any] = {
        "step": parent.step,
        "attempt": parent.attempt,
        "child": str(state.run_id),
        "outcome": state.ended,
    }
    if state.ended == "completed":
        payload["result"] = state.delivered
    elif ending is not None:
        payload |= {"message": ending.message, "origin": ending.origin}
    return _fact(state, "child_ended", parent.run_id, payload, about="")


def _fact(
    state: RunState,
    kind: OutgoingKind,
    run_id: uuid.UUID,
    payload: dict[str, Any],
    *,
    about: str | None = None,
) -> Outgoing:
    """A fact under an id that follows from its sender, so that a repeated decision writes the same row."""
    id_ = signal_id_for(state.run_id, kind=kind, about=str(run_id) if about is None else about)
    return Outgoing(id=id_, run_id=run_id, kind=kind, payload=payload)
