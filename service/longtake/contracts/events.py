"""Events: what happened to a run, the only truth (design.md 2.1).

Each type is a frozen struct with a version; stored data are its fields as exact JSON bytes. Facts that always travel
together are one event (design.md 14). Changing a shape means a new version and an upcaster (contracts/upcasters.py).
"""

import uuid
from datetime import datetime
from typing import Any, ClassVar, Literal

import msgspec

from longtake.contracts.outcomes import Artifact, ErrorClass

Origin = Literal["infrastructure", "provider", "content", "request"]


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Common ground of all events: a wire type and a version."""

    TYPE: ClassVar[str]
    VERSION: ClassVar[int] = 1


class Work(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who did the work an outcome speaks of, so that pruning effects costs the auditor nothing (P25)."""

    effect_id: uuid.UUID
    owner: str | None = None
    fence: int | None = None
    claimed_at: datetime | None = None
    started_at: datetime | None = None


class RunAccepted(Event, frozen=True, kw_only=True):
    """A command was admitted; plan, policy, price and cap are frozen from here on (H16, H43)."""

    TYPE: ClassVar[str] = "run_accepted"

    workflow: str
    workflow_version: int
    project: str
    actor: str
    account: str
    command_id: str
    conversation: str | None = None
    plan_fingerprint: str
    application: str
    """Digest of the application that built the plan (P15)."""
    billing: Literal["prepaid"] = "prepaid"
    quoted: int
    cap: int
    price_list: str
    scopes: tuple[str, ...] = ()


class Charged(Event, frozen=True, kw_only=True):
    """Credits were taken from the run's hold; prepaid: the whole price, step and cycle absent (P9)."""

    TYPE: ClassVar[str] = "charged"

    key: str
    amount: int
    step: str | None = None
    cycle: int | None = None


class Refunded(Event, frozen=True, kw_only=True):
    """Credits were given back."""

    TYPE: ClassVar[str] = "refunded"

    key: str
    amount: int
    reason: str
    step: str | None = None
    cycle: int | None = None


class ScheduledStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt of one step that was handed to the workers."""

    step: str
    attempt: int
    effect_id: uuid.UUID
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
    """The attempt's outcome was applied; its artifacts are published."""

    TYPE: ClassVar[str] = "step_succeeded"

    step: str
    attempt: int
    result: dict[str, Any] = {}
    artifacts: tuple[Artifact, ...] = ()
    external_ref: str | None = None
    adopted: bool = False
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
    """The step ended in failure."""

    TYPE: ClassVar[str] = "step_failed"

    step: str
    attempt: int
    error_class: ErrorClass
    origin: Origin
    message: str


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


class CancelRequested(Event, frozen=True, kw_only=True):
    """The run is being cancelled; monotonic (P10)."""

    TYPE: ClassVar[str] = "cancel_requested"

    command_id: str
    actor: str
    reason: str | None = None
    settle_until: datetime


class RunBlocked(Event, frozen=True, kw_only=True):
    """The whole run waits: plan drift, a reducer that raised, a history that cannot be read."""

    TYPE: ClassVar[str] = "run_blocked"

    blocker: str
    details: dict[str, str] = {}


class RunUnblocked(Event, frozen=True, kw_only=True):
    """A run-wide blocker is gone."""

    TYPE: ClassVar[str] = "run_unblocked"

    blocker: str
    reason: str


class RunCompleted(Event, frozen=True, kw_only=True):
    """The delivery contract is satisfied (H02)."""

    TYPE: ClassVar[str] = "run_completed"


class RunFailed(Event, frozen=True, kw_only=True):
    """The run ended in failure; refunds stand before it in the same decision."""

    TYPE: ClassVar[str] = "run_failed"

    error_class: ErrorClass
    origin: Origin
    message: str
    step: str | None = None
    attempt: int | None = None


class RunCancelled(Event, frozen=True, kw_only=True):
    """Every open attempt is known, or the time to settle is over."""

    TYPE: ClassVar[str] = "run_cancelled"

    reason: str | None = None


EVENT_TYPES: tuple[type[Event], ...] = (
    RunAccepted, Charged, Refunded, StepsScheduled, AttemptSubmitted, CallbackReceived, StepSucceeded, AttemptFailed,
    AttemptUnknown, AttemptReconciled, StepBlocked, StepFailed, StepsCancelled, LateOutcome, RetryRequested,
    CancelRequested, RunBlocked, RunUnblocked, RunCompleted, RunFailed, RunCancelled,
)  # fmt: skip
