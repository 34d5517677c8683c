"""A decision: everything one signal makes of one run, written by one commit (design.md 2.3, P5)."""

import uuid
from datetime import datetime
from typing import Literal

import msgspec

from longtake.contracts.commands import CommandStatus
from longtake.contracts.effects import EffectClosing, EffectIntent
from longtake.contracts.events import Event
from longtake.contracts.outcomes import Artifact
from longtake.contracts.problems import Problem
from longtake.contracts.signals import Outgoing

CREDITS_ESCROW = "system:escrow"
"""Ledger account that prepaid credits wait on until the run is settled."""


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One double entry: the same amount leaves one account and reaches another (design.md 7)."""

    key: str
    kind: Literal["charge", "refund"]
    debit: str
    credit: str
    amount: int
    step: str | None = None
    cycle: int | None = None


class TimerIntent(msgspec.Struct, frozen=True, kw_only=True):
    """A timer row to arm; a later intent of the same key replaces it."""

    key: str
    """run_deadline, blocked_deadline, settlement, start_at, losers, or `step:{key}` of a gate."""
    due_at: datetime


class PublishedArtifact(msgspec.Struct, frozen=True, kw_only=True):
    """An artifact that this decision publishes for a step."""

    step: str
    attempt: int
    artifact: Artifact


class Ignored(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that changes nothing; marked on its own row, never an event (P3)."""

    reason: str


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What the reducer decided. Empty events: nothing about the run changed."""

    events: tuple[Event, ...] = ()
    effects: tuple[EffectIntent, ...] = ()
    closings: tuple[EffectClosing, ...] = ()
    withdrawn: tuple[uuid.UUID, ...] = ()
    """Execute effects that are closed only if nobody has claimed them; a closed one is answered by Cancelled(stopped)."""
    expedited: tuple[uuid.UUID, ...] = ()
    """Open poll and look-up effects that are due now."""
    ledger: tuple[LedgerEntry, ...] = ()
    timers: tuple[TimerIntent, ...] = ()
    timers_cancelled: tuple[str, ...] = ()
    artifacts: tuple[PublishedArtifact, ...] = ()
    outgoing: tuple[Outgoing, ...] = ()
    """Facts for other runs, or for admission (P5)."""
    raise_hold_by: int = 0
    """Credits that this decision adds to the run's hold; only admission asks for it (P8)."""
    scopes_released: bool = False
    hold_released: bool = False
    touched: tuple[str, ...] = ()
    """Keys of steps whose projection row changes."""
    ignored: Ignored | None = None
    refusal: Problem | None = None
    """The command is refused and nothing is written of it but its receipt."""
    command_status: CommandStatus = "applied"
