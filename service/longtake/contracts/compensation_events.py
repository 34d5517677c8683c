"""Events of compensation: what was done is undone, last first, before a failed or cancelled run ends (H90)."""

import uuid
from datetime import datetime
from typing import ClassVar

from longtake.contracts.event_base import Event, Work


class CompensationScheduled(Event, frozen=True, kw_only=True):
    """The compensation of a step was handed to the workers."""

    TYPE: ClassVar[str] = "compensation_scheduled"

    step: str
    attempt: int
    """Of the compensation, from 1."""
    effect_id: uuid.UUID
    due_at: datetime | None = None
    """None: at once."""
    message: str | None = None
    """Why the attempt before this one failed."""
    provider_cost: int | None = None
    work: Work | None = None


class StepCompensated(Event, frozen=True, kw_only=True):
    """What the step did is undone."""

    TYPE: ClassVar[str] = "step_compensated"

    step: str
    attempt: int
    provider_cost: int | None = None
    work: Work | None = None


class CompensationFailed(Event, frozen=True, kw_only=True):
    """No try to undo the step is left; the others go on, and the run's end says so."""

    TYPE: ClassVar[str] = "compensation_failed"

    step: str
    attempt: int
    message: str
    provider_cost: int | None = None
    work: Work | None = None
