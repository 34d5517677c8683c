"""Events of a run as a whole: accepted, controlled, blocked, ended."""

import uuid
from datetime import datetime
from typing import ClassVar, Literal

import msgspec

from longtake.contracts.event_base import Event
from longtake.contracts.outcomes import ErrorClass, Origin

Billing = Literal["prepaid", "pay_as_you_go"]
Compensation = Literal["done", "failed"]


class Money(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was frozen of a run's money when it was accepted (H43)."""

    account: str
    billing: Billing = "prepaid"
    quoted: int
    cap: int
    held: int
    """What the account promised, at most the cap (P8)."""
    price_list: str


class Parent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The step of another run that this run is the work of."""

    run_id: uuid.UUID
    step: str
    attempt: int
    on_close: Literal["cancel", "abandon"] = "cancel"
    """What becomes of this run when its parent ends first (P5)."""
    above: tuple[uuid.UUID, ...] = ()
    """The runs above the parent, the first of the family first."""


class RunAccepted(Event, frozen=True, kw_only=True):
    """A command was admitted; plan, policy, price and cap are frozen from here on (H16, H43).

    Version 1 had account, billing, quoted, cap and price_list beside each other; version 2 keeps them under `money`.
    """

    TYPE: ClassVar[str] = "run_accepted"
    VERSION: ClassVar[int] = 2

    kind: str = "generation"
    """The command kind that started the run."""
    workflow: str
    workflow_version: int
    project: str
    actor: str
    command_id: str
    conversation: str | None = None
    plan_fingerprint: str
    application: str
    """Digest of the application that built the plan (P15)."""
    money: Money
    scopes: tuple[str, ...] = ()
    parent: Parent | None = None
    supersedes: tuple[uuid.UUID, ...] = ()
    """Active runs that were told to make room for this one (steer, or the scope policy supersede). One with a time to
    begin tells them when that has come: see RunQueued."""
    follows: uuid.UUID | None = None
    """The earlier run that a follow_up refers to."""
    forked_from: uuid.UUID | None = None
    forked_step: str | None = None


class RunQueued(Event, frozen=True, kw_only=True):
    """The run does not begin yet: its time has not come, or others hold its scopes.

    Recorded anew when its time has come and it tells those in its way to make room.
    """

    TYPE: ClassVar[str] = "run_queued"

    start_at: datetime | None = None
    holders: tuple[uuid.UUID, ...] = ()
    """Runs that hold a scope of this one, or that it supersedes and waits for."""
    scopes: tuple[str, ...] = ()
    """The scopes that are held by others."""
    supersedes: tuple[uuid.UUID, ...] = ()
    """Those holders that are told to make room now, after the acceptance."""


class RunStarted(Event, frozen=True, kw_only=True):
    """A queued run begins: its time has come and its scopes are its own."""

    TYPE: ClassVar[str] = "run_started"


class RunPaused(Event, frozen=True, kw_only=True):
    """No new attempts from here; what is under way is still collected (P19)."""

    TYPE: ClassVar[str] = "run_paused"

    command_id: str
    actor: str


class RunResumed(Event, frozen=True, kw_only=True):
    """The run goes on; gates and sleeps are extended by the time it was paused (P19)."""

    TYPE: ClassVar[str] = "run_resumed"

    command_id: str
    actor: str


class SupersedeRequested(Event, frozen=True, kw_only=True):
    """A successor takes this run's place: it settles like a cancelled one and ends as superseded (P10)."""

    TYPE: ClassVar[str] = "supersede_requested"

    by_run: uuid.UUID
    command_id: str
    actor: str
    settle_until: datetime


class RunSuperseded(Event, frozen=True, kw_only=True):
    """Everything of the superseded run is settled; its successor may begin."""

    TYPE: ClassVar[str] = "run_superseded"

    by_run: uuid.UUID
    compensation: Compensation | None = None


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
    details: dict[str, str] = msgspec.field(default_factory=dict)


class RunUnblocked(Event, frozen=True, kw_only=True):
    """A run-wide blocker is gone."""

    TYPE: ClassVar[str] = "run_unblocked"

    blocker: str
    reason: str


class HistoryLong(Event, frozen=True, kw_only=True):
    """A warning: half of the events that are kept of a run are recorded; at all of them it fails (P17)."""

    TYPE: ClassVar[str] = "history_long"

    events_max: int


class RunFailing(Event, frozen=True, kw_only=True):
    """The run cannot complete, though no step is to blame now: its time is over, or its delivery did not come about."""

    TYPE: ClassVar[str] = "run_failing"

    error_class: ErrorClass
    origin: Origin
    message: str
    step: str | None = None
    settle_until: datetime


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
    compensation: Compensation | None = None
    """How the compensation went, apart from why the run failed."""


class RunCancelled(Event, frozen=True, kw_only=True):
    """Every open attempt is known, or the time to settle is over."""

    TYPE: ClassVar[str] = "run_cancelled"

    reason: str | None = None
    compensation: Compensation | None = None
