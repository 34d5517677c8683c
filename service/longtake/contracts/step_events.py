"""Events of steps: attempts handed out, what became of them, and how steps end."""

import uuid
from datetime import datetime
from typing import Any, ClassVar, Literal

import msgspec

from longtake.contracts.event_base import Event, Work
from longtake.contracts.outcomes import Artifact, ErrorClass, Origin

Source = Literal["work", "input", "default", "event", "timer", "child"]
"""What gave a step its result."""


class ScheduledStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt of one step that was handed to the workers."""

    step: str
    attempt: int
    effect_id: uuid.UUID
    ordinal: int = 1
    """1, or more when an attempt was taken back before it began and is handed out again."""
    input_digest: str


class StepsScheduled(Event, frozen=True, kw_only=True):
    """These attempts got their execute effects in this decision."""

    TYPE: ClassVar[str] = "steps_scheduled"

    steps: tuple[ScheduledStep, ...]


class AttemptSubmitted(Event, frozen=True, kw_only=True):
    """The provider owns a request for this attempt (H33)."""

    TYPE: ClassVar[str] = "attempt_submitted"

    step: str
    attempt: int
    external_ref: str
    poll_at: datetime
    external_until: datetime
    poll_effect_id: uuid.UUID
    adopted: bool = False
    provider_cost: int | None = None
    work: Work | None = None


class CallbackReceived(Event, frozen=True, kw_only=True):
    """An authentic callback of the current attempt hastened its next look at the provider (P4)."""

    TYPE: ClassVar[str] = "callback_received"

    step: str
    attempt: int
    inbox_id: uuid.UUID
    external_ref: str | None = None


class StepSucceeded(Event, frozen=True, kw_only=True):
    """The step has its result: of work that was applied, an answer, an event, a child run, or a time that passed."""

    TYPE: ClassVar[str] = "step_succeeded"

    step: str
    attempt: int
    result: dict[str, Any] = msgspec.field(default_factory=dict)
    artifacts: tuple[Artifact, ...] = ()
    external_ref: str | None = None
    adopted: bool = False
    source: Source = "work"
    command_id: str | None = None
    """The command that brought the answer or the named event."""
    actor: str | None = None
    provider_cost: int | None = None
    work: Work | None = None


class AttemptFailed(Event, frozen=True, kw_only=True):
    """The attempt failed; with `retry_at` the next one waits for that time, without it the step's end follows."""

    TYPE: ClassVar[str] = "attempt_failed"

    step: str
    attempt: int
    error_class: ErrorClass
    origin: Origin
    message: str
    retry_at: datetime | None = None
    next_effect_id: uuid.UUID | None = None
    provider_cost: int | None = None
    work: Work | None = None


class AttemptUnknown(Event, frozen=True, kw_only=True):
    """Nobody knows whether the provider took the request; a look-up on the same token follows (design.md 5)."""

    TYPE: ClassVar[str] = "attempt_unknown"

    step: str
    attempt: int
    evidence: str
    reconcile_effect_id: uuid.UUID
    look_at: datetime | None = None
    """When the look-up is due; None: at once."""
    work: Work | None = None


class AttemptReconciled(Event, frozen=True, kw_only=True):
    """What the look-up said. `found` is followed by what was found."""

    TYPE: ClassVar[str] = "attempt_reconciled"

    step: str
    attempt: int
    verdict: Literal["found", "not_found", "impossible"]
    evidence: str
    work: Work | None = None


class StepBlocked(Event, frozen=True, kw_only=True):
    """The step waits for a person: retries exhausted, or the provider's truth is open."""

    TYPE: ClassVar[str] = "step_blocked"

    step: str
    attempt: int
    blocker: str
    error_class: ErrorClass
    origin: Origin
    message: str


class StepFailed(Event, frozen=True, kw_only=True):
    """The step ended in failure, and the run with it unless the failure is contained."""

    TYPE: ClassVar[str] = "step_failed"

    step: str
    attempt: int
    error_class: ErrorClass
    origin: Origin
    message: str
    contained: bool = False
    """The step is optional, or those that wait for it bear its failure: the run goes on."""
    timed_out: bool = False
    """A wait or a gate whose time passed."""


class StepsCancelled(Event, frozen=True, kw_only=True):
    """These steps will not run, or their open attempts are settled as cancelled."""

    TYPE: ClassVar[str] = "steps_cancelled"

    steps: tuple[str, ...]
    reason: str


class LateOutcome(Event, frozen=True, kw_only=True):
    """A run that is being cancelled learned how an open attempt ended; it is priced and changes no plan (P9, P10)."""

    TYPE: ClassVar[str] = "late_outcome"

    step: str
    attempt: int
    outcome: str
    external_ref: str | None = None
    provider_cost: int | None = None
    work: Work | None = None


class RetryRequested(Event, frozen=True, kw_only=True):
    """A person asked to go on with blocked steps. `look_again`: steps whose provider is asked once more first."""

    TYPE: ClassVar[str] = "retry_requested"

    command_id: str
    actor: str
    steps: tuple[str, ...]
    look_again: tuple[str, ...] = ()


class StepsSkipped(Event, frozen=True, kw_only=True):
    """These steps will not run, and the run goes on without them: their condition is false, or their join says so."""

    TYPE: ClassVar[str] = "steps_skipped"

    steps: tuple[str, ...]
    reason: Literal["condition", "dependencies"]


class StepsAbandoned(Event, frozen=True, kw_only=True):
    """These steps are no longer needed (`at_least` has its successes): their open attempts are told to stop (P19)."""

    TYPE: ClassVar[str] = "steps_abandoned"

    steps: tuple[str, ...]
    by: str
    """The step whose join needs them no more."""
    settle_until: datetime


class AttemptsWithdrawn(Event, frozen=True, kw_only=True):
    """Attempts that nobody had begun were taken back, and are handed out again after the pause (P19)."""

    TYPE: ClassVar[str] = "attempts_withdrawn"

    steps: tuple[str, ...]


class StepStalled(Event, frozen=True, kw_only=True):
    """Nobody takes the step's work, or, with nothing to wait for, somebody has taken it after all (G42, P12)."""

    TYPE: ClassVar[str] = "step_stalled"

    step: str
    attempt: int
    waits_for: str
