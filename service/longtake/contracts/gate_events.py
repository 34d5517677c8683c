"""Events of gates: steps that wait for a time, a named event, a person, or another run."""

import uuid
from datetime import datetime
from typing import Any, ClassVar, Literal

import msgspec

from longtake.contracts.event_base import Event

GateKind = Literal["input", "sleep", "wait", "run"]


class OpenedGate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step that waits without work."""

    step: str
    attempt: int
    kind: GateKind
    until: datetime | None = None
    """Sleep: when it wakes. Others: when it is overdue; None: it waits for good."""
    child: uuid.UUID | None = None
    """The run that a `run` step starts; its id is derived, so it is known before it exists (P2)."""
    input_digest: str | None = None


class GatesOpened(Event, frozen=True, kw_only=True):
    """These steps wait. No effect is open for them, and waiting writes nothing (G44, F78)."""

    TYPE: ClassVar[str] = "gates_opened"

    gates: tuple[OpenedGate, ...]


class EventReceived(Event, frozen=True, kw_only=True):
    """A named event came before anybody waited for it; it is kept, and consumed once (W08)."""

    TYPE: ClassVar[str] = "event_received"

    name: str
    payload: dict[str, Any] = msgspec.field(default_factory=dict)
    command_id: str
    actor: str
