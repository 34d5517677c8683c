"""Events that add to a plan: dynamic fan-out, and results taken over by a fork."""

import uuid
from typing import Any, ClassVar

import msgspec

from longtake.contracts.event_base import Event
from longtake.contracts.outcomes import Artifact


class PlanExpanded(Event, frozen=True, kw_only=True):
    """The result of an `expand` step became a frozen part of the plan (P15)."""

    TYPE: ClassVar[str] = "plan_expanded"

    step: str
    steps: tuple[dict[str, Any], ...]
    """The fragment, priced and bound: plan steps as JSON."""
    quoted: int
    """What the whole plan is quoted at now, in credits."""


class ReusedStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A committed receipt of another run."""

    step: str
    result: dict[str, Any] = {}
    artifacts: tuple[Artifact, ...] = ()
    external_ref: str | None = None
    free: bool = False
    """Net-charged there and no longer refundable, so it costs nothing here; otherwise it is priced again (P9)."""


class StepsReused(Event, frozen=True, kw_only=True):
    """A fork begins with these steps done: their receipts are those of the run it was forked from."""

    TYPE: ClassVar[str] = "steps_reused"

    from_run: uuid.UUID
    steps: tuple[ReusedStep, ...]
