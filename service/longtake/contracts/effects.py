"""Effects: durable intentions towards the outside, rows of the deciding transaction (design.md 2.4, P16)."""

import uuid
from datetime import datetime
from typing import Literal

import msgspec

Asks = Literal["no", "new", "lost"]
"""Whether the outside may know a call from a past that a restore has lost (F70): the run is from before the restore, or
from soon after it, when clients send again what was lost."""

EffectKind = Literal["execute", "poll", "reconcile", "cancel", "compensate"]

Disposition = Literal["applied", "ignored", "expired", "unknown", "cancelled"]
"""How an effect ended: its receipt applied or ignored, its lease or deadline gone, its truth open, or withdrawn."""


class EffectIntent(msgspec.Struct, frozen=True, kw_only=True):
    """A new effect, as the reducer wants it written."""

    id: uuid.UUID
    step: str
    attempt: int
    kind: EffectKind
    ordinal: int
    """1, 2, ... among the effects of one (step, attempt, kind)."""
    activity: str
    pool: str
    input: bytes
    """Canonical JSON given to the activity, references resolved."""
    not_before: datetime | None = None
    """None: due at once."""
    deadline: datetime | None = None
    """When an unanswered effect counts as timed out, on the database clock."""
    priority: int = 0


class EffectClosing(msgspec.Struct, frozen=True, kw_only=True):
    """An open effect that a decision ends.

    `expect_receipt` is what the decision believed: closing for expiry, timeout or cancel expects none, and a receipt
    that came meanwhile makes the whole decision be taken again (P1).
    """

    id: uuid.UUID
    disposition: Disposition
    expect_receipt: bool


class ClaimedEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker holds after a claim: the work, its fence, and how long it may believe in the lease."""

    id: uuid.UUID
    tenant: str
    run_id: uuid.UUID
    step: str
    attempt: int
    kind: EffectKind
    activity: str
    pool: str
    input: bytes
    fence: int
    lease_seconds: int
    traceparent: str | None
    external_ref: str | None
    call_opened_before: bool
    """An earlier lease of this effect had opened its call (P18)."""
    asks: Asks = "no"
    """Unless `no`, the provider is asked first whether it has this call already."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's answer to one claimed effect; stored whatever its fence (P1)."""

    effect_id: uuid.UUID
    fence: int
    owner: str
    outcome: bytes
    """Encoded Outcome, at most OUTCOME_BYTES_MAX."""
    traceparent: str | None = None
