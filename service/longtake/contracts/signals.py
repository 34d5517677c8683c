"""Signals: typed facts given to the reducer (design.md 3). Nobody but the dispatcher and admission makes decisions of them."""

import uuid
from datetime import datetime
from typing import Any, Literal

import msgspec

from longtake.contracts.effects import EffectKind
from longtake.contracts.outcomes import Origin, Outcome


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
    """A timer row of the run is due: run_deadline, blocked_deadline, settlement, start_at, losers, or `step:{key}` of a gate."""

    key: str


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


class PauseRun(msgspec.Struct, frozen=True, kw_only=True):
    """A pause command (P19)."""

    command_id: str
    actor: str
    expected_revision: int


class ResumeRun(msgspec.Struct, frozen=True, kw_only=True):
    """A resume command."""

    command_id: str
    actor: str
    expected_revision: int


class ProvideInput(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to a blocker of one step: what a gate asked for, or a larger cap (H64 to H66)."""

    command_id: str
    actor: str
    expected_revision: int
    step: str
    answer: dict[str, Any] | None = None
    cap: int | None = None
    """With a spend_cap blocker: the new cap in credits. Admission has raised the hold before (P8)."""


class SendEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A named event for a `wait` step; kept when it is early (W08)."""

    command_id: str
    actor: str
    expected_revision: int
    name: str
    payload: dict[str, Any] = {}


class SupersedeRun(msgspec.Struct, frozen=True, kw_only=True):
    """A successor takes the run's place. From a steer command, or, with `signal_id`, from the admission of the successor."""

    by_run: uuid.UUID
    command_id: str
    actor: str
    expected_revision: int | None = None
    signal_id: uuid.UUID | None = None


class BeginRun(msgspec.Struct, frozen=True, kw_only=True):
    """A queued run may begin: admission has given it its scopes under the project lock (P5)."""

    signal_id: uuid.UUID | None = None


class MakeRoom(msgspec.Struct, frozen=True, kw_only=True):
    """The time of a run in line has come, and others hold its scopes: they are told to make room for it (P10)."""

    holders: tuple[uuid.UUID, ...]
    scopes: tuple[str, ...]
    """Those of its scopes that they hold."""


class ChildEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was the work of a step has ended (P5)."""

    signal_id: uuid.UUID
    step: str
    attempt: int
    child: uuid.UUID
    outcome: Literal["completed", "failed", "cancelled", "superseded"]
    result: dict[str, Any] = {}
    """Of a completed child: what its delivering step gave, `{"result": ..., "artifacts": {...}}`."""
    message: str = ""
    origin: Origin = "request"
    """Of any other: where its failure comes from (G08)."""


class ChildRefused(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was to be the work of a step was not admitted: bad input, no funds, a scope held by others."""

    signal_id: uuid.UUID
    step: str
    attempt: int
    child: uuid.UUID
    problem: str
    message: str


class ParentClosed(msgspec.Struct, frozen=True, kw_only=True):
    """The parent of this run ends before it; by policy the child is cancelled (P5)."""

    signal_id: uuid.UUID
    parent: uuid.UUID
    outcome: str


class WorkStalled(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody has taken an effect for longer than the stall window, or somebody has after all (G42, P12)."""

    signal_id: uuid.UUID
    step: str
    attempt: int
    waits_for: str
    """What is missing, such as a worker with that activity; empty: the effect was taken."""


class PlanChecked(msgspec.Struct, frozen=True, kw_only=True):
    """The deployed code rebuilt the run's plan (P15)."""

    signal_id: uuid.UUID
    application: str
    drift: tuple[str, str] | None
    """(field that changed, price effect in words), or None when the plan is the same or no longer claimed."""
    accepted: str | None = None
    """Who lets the run go on although the plan is another, and why; `drift` is None then."""


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
    | PauseRun
    | ResumeRun
    | ProvideInput
    | SendEvent
    | SupersedeRun
    | BeginRun
    | MakeRoom
    | ChildEnded
    | ChildRefused
    | ParentClosed
    | WorkStalled
    | PlanChecked
    | ReducerFailed
)

OutgoingKind = Literal[
    "start_child", "child_ended", "child_refused", "parent_closed", "supersede", "scopes_freed", "start_due", "work_stalled",
]  # fmt: skip


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """A durable fact for another run, or for admission, written by the decision that caused it (P5).

    `start_child`: admission starts `run_id` from the payload {tenant, actor, project, workflow, input, policy, account,
    parent}. `child_ended`, `parent_closed`, `supersede`: facts for `run_id`. `scopes_freed`, `start_due`: admission looks
    whether queued runs of the project may begin; `run_id` is the run that says so.
    """

    id: uuid.UUID
    """Derived from the sender, so that a repeated decision writes the same row."""
    run_id: uuid.UUID
    kind: OutgoingKind
    payload: dict[str, Any] = {}
