"""Durable signals: how a row of `signals` is read as a fact for the reducer (P5).

Leaves to others: who writes such rows (decisions, admission, the starter, the plan check, the sweeper).
"""

import uuid

import msgspec

from longtake.contracts.signals import (
    BeginRun,
    ChildEnded,
    ChildRefused,
    ParentClosed,
    PlanChecked,
    ReducerFailed,
    Signal,
    SupersedeRun,
    WorkStalled,
)

SHAPES: dict[str, type[Signal]] = {
    "begin": BeginRun,
    "child_ended": ChildEnded,
    "child_refused": ChildRefused,
    "parent_closed": ParentClosed,
    "plan_checked": PlanChecked,
    "supersede": SupersedeRun,
    "work_stalled": WorkStalled,
}
"""By kind of the row; the payload holds every member but the id."""


def read_signal(kind: str, id: uuid.UUID, payload: bytes | str) -> Signal:
    """The fact that a row tells. One that nobody can read blocks its own run and no other (F56)."""
    shape = SHAPES.get(kind)
    if shape is None:
        return ReducerFailed(causation=f"signal:{id}", error=f"nobody knows signals of the kind {kind!r}")
    try:
        members = msgspec.json.decode(payload, type=dict[str, object])
        return msgspec.convert({**members, "signal_id": str(id)}, shape)
    except msgspec.DecodeError as error:
        return ReducerFailed(causation=f"signal:{id}", error=f"the signal {kind} cannot be read: {error}")
