"""Signals: typed facts given to the reducer (design.md 3). Nobody but the dispatcher and admission makes decisions of them."""

import uuid
from datetime import datetime
from typing import Literal

import msgspec

from longtake.contracts.effects import EffectKind
from longtake.contracts.outcomes import Outcome


class OutcomeReported(msgspec.Struct, frozen=True, kw_only=True):
    """A receipt lies on an effect row."""

    effect_id: uuid.UUID
    step: str
    attempt: int
    kind: EffectKind
    outcome: Outcome
    owner: str | None = None
    fence: int | None = None
    claimed_at: datetime | None = None
    started_at: datetime | None = None


class CallbackArrived(msgspec.Struct, frozen=True, kw_only=True):
    """An authentic provider callback lies in the inbox, its token naming run, step and attempt."""

    inbox_id: uuid.UUID
    step: str
    attempt: int
    external_ref: str | None


class LeaseExpired(msgspec.Struct, frozen=True, kw_only=True):
    """A leased effect ended its lease without a receipt, after its call was opened or once too often."""

    effect_id: uuid.UUID
    step: str
    attempt: int
    kind: EffectKind
    call_opened: bool
    leases: int
    """How many leases this effect has had."""


class DeadlinePassed(msgspec.Struct, frozen=True, kw_only=True):
    """An open effect outlived its deadline without a receipt."""

    effect_id: uuid.UUID
    step: str
    attempt: int
    kind: EffectKind
    call_opened: bool


class TimerFired(msgspec.Struct, frozen=True, kw_only=True):
    """A timer row of the run is due."""

    key: Literal["run_deadline", "blocked_deadline", "settlement"]


class CancelRun(msgspec.Struct, frozen=True, kw_only=True):
    """A cancel command."""

    command_id: str
    actor: str
    expected_revision: int
    reason: str | None = None


class RetryRun(msgspec.Struct, frozen=True, kw_only=True):
    """A retry command: of one blocked step, or of all."""

    command_id: str
    actor: str
    expected_revision: int
    step: str | None = None
    accept_double_cost: bool = False
    """The person accepts that a call whose truth is open may be paid twice."""


class PlanChecked(msgspec.Struct, frozen=True, kw_only=True):
    """The deployed code rebuilt the run's plan (P15)."""

    signal_id: uuid.UUID
    application: str
    drift: tuple[str, str] | None
    """(field that changed, price effect in words), or None when the plan is the same or no longer claimed."""


class ReducerFailed(msgspec.Struct, frozen=True, kw_only=True):
    """The reducer raised on a signal of this run; the run is blocked and nobody else is held up (F56)."""

    causation: str
    error: str


Signal = (
    OutcomeReported
    | CallbackArrived
    | LeaseExpired
    | DeadlinePassed
    | TimerFired
    | CancelRun
    | RetryRun
    | PlanChecked
    | ReducerFailed
)
