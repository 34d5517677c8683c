"""The rows of the authority in memory, one struct a table of migrations/.

A row that is in a table is never changed: a writer changes a copy and puts it in the row's place. So a snapshot is a
copy of the dictionaries, and a reader keeps what it has read.
Leaves to others: who may write when (store_session.py), the rules of the tables (store_commit.py and the stores).
"""

import uuid
from datetime import UTC, datetime

import msgspec

from longtake.contracts.commands import Receipt
from longtake.contracts.effects import Disposition, EffectKind
from longtake.store.errands import ErrandKind
from longtake.workflow.projection import StepRow

NEVER = datetime.min.replace(tzinfo=UTC)
"""`alive_until` of a process that is proved dead."""


class StoreRow(msgspec.Struct, kw_only=True, gc=False):
    """Which store this is."""

    environment: str = "memory"
    store_epoch: int = 1
    transport_epoch: int = 1
    application: str | None = None
    restoring: bool = False
    restored_at: datetime | None = None
    ask_until: datetime | None = None


class CommandRow(msgspec.Struct, kw_only=True):
    """A command with its answer."""

    tenant: str
    actor: str
    client_command_id: str
    kind: str
    project: str
    intent_hash: str
    body: bytes
    channel: str
    status: str
    accepted_at: datetime
    run_id: uuid.UUID | None = None
    receipt: Receipt | None = None
    traceparent: str | None = None
    copied_at: datetime | None = None
    tx_id: int = 0


class PlanRow(msgspec.Struct, frozen=True, kw_only=True):
    """A plan with what it was made of, by fingerprint."""

    workflow: str
    workflow_version: int
    plan: bytes
    input: bytes
    policy: bytes


class StoredRun(msgspec.Struct, kw_only=True):
    """A run's projection, its fence and the head of its chain."""

    run_id: uuid.UUID
    tenant: str
    project: str
    workflow: str
    workflow_version: int
    actor: str
    account: str
    command_id: str
    fingerprint: str
    plan_checked: str
    store_epoch: int
    head_hash: bytes
    quoted: int
    cap: int
    accepted_at: datetime
    updated_at: datetime
    revision: int = 0
    status: str = "accepted"
    phase: str | None = None
    label: str = ""
    charged: int = 0
    refunded: int = 0
    blockers: tuple[str, ...] = ()
    poisoned: bool = False
    poll_at: datetime | None = None
    summary: bytes | None = None
    ended_at: datetime | None = None


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    """An event with its place in the global order."""

    run_id: uuid.UUID
    tenant: str
    seq: int
    id: uuid.UUID
    type: str
    version: int
    data: bytes
    meta: bytes
    store_epoch: int
    recorded_at: datetime
    hash: bytes
    tx_id: int
    position: int


class EffectRow(msgspec.Struct, kw_only=True):
    """Outbox and lease in one row."""

    id: uuid.UUID
    tenant: str
    run_id: uuid.UUID
    step: str
    attempt: int
    kind: EffectKind
    ordinal: int
    activity: str
    pool: str
    priority: int
    input: bytes
    traceparent: str | None
    created_at: datetime
    not_before: datetime
    deadline: datetime | None
    state: str = "queued"
    generation: int = 1
    published_at: datetime | None = None
    incarnation: uuid.UUID | None = None
    claim_id: uuid.UUID | None = None
    lease_owner: str | None = None
    lease_until: datetime | None = None
    fence: int = 0
    leases: int = 0
    claimed_at: datetime | None = None
    call_opened_at: datetime | None = None
    heartbeat_at: datetime | None = None
    progress: int | None = None
    external_ref: str | None = None
    receipt: bytes | None = None
    reporter: str | None = None
    report_fence: int | None = None
    report_traceparent: str | None = None
    reported_at: datetime | None = None
    disposition: Disposition | None = None
    closed_at: datetime | None = None
    tx_id: int = 0


class ClaimRow(msgspec.Struct, frozen=True, kw_only=True):
    """One claim; fences of one effect strictly increase."""

    effect_id: uuid.UUID
    fence: int
    tenant: str
    run_id: uuid.UUID
    step: str
    attempt: int
    kind: EffectKind
    owner: str
    claim_id: uuid.UUID
    claimed_at: datetime


class LateReceiptRow(msgspec.Struct, frozen=True, kw_only=True):
    """A receipt that came when its effect already had one."""

    effect_id: uuid.UUID
    fence: int
    tenant: str
    owner: str
    receipt: bytes
    recorded_at: datetime


class TimerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A timer of a run."""

    tenant: str
    due_at: datetime


class SignalRow(msgspec.Struct, kw_only=True):
    """A durable fact for a run."""

    id: uuid.UUID
    tenant: str
    run_id: uuid.UUID
    kind: str
    payload: bytes
    created_at: datetime
    settled_at: datetime | None = None
    reason: str | None = None


class ErrandRow(msgspec.Struct, kw_only=True):
    """What a decision asks of admission."""

    id: uuid.UUID
    tenant: str
    run_id: uuid.UUID
    kind: ErrandKind
    payload: bytes
    traceparent: str | None
    created_at: datetime
    settled_at: datetime | None = None
    reason: str | None = None


class QueuedRun(msgspec.Struct, kw_only=True):
    """An accepted run that waits for scopes, for other runs, or for its time."""

    tenant: str
    project: str
    scopes: tuple[str, ...]
    place: int
    waits_for: tuple[uuid.UUID, ...] = ()
    supersedes: bool = False
    start_at: datetime | None = None
    overtakes: bool = False


class InboxRow(msgspec.Struct, kw_only=True):
    """An authentic callback."""

    id: uuid.UUID
    tenant: str
    provider: str
    dedupe_key: str
    run_id: uuid.UUID
    step: str
    attempt: int
    external_ref: str | None
    callback_type: str
    payload: bytes
    traceparent: str | None
    received_at: datetime
    status: str = "pending"
    reason: str | None = None
    copies: int = 1
    settled_at: datetime | None = None


class ArtifactRow(msgspec.Struct, frozen=True, kw_only=True):
    """A published artifact."""

    id: uuid.UUID
    tenant: str
    run_id: uuid.UUID
    step: str
    attempt: int
    name: str
    kind: str
    object_key: str
    sha256: str
    bytes: int
    content_type: str
    published_at: datetime


class LedgerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One double entry."""

    key: str
    tenant: str
    run_id: uuid.UUID
    account: str
    kind: str
    debit: str
    credit: str
    amount: int
    step: str | None
    cycle: int | None
    seq: int
    recorded_at: datetime
    tx_id: int


class AccountRow(msgspec.Struct, kw_only=True, gc=False):
    """Credits of an account; `held` are promised to active runs."""

    balance: int = 0
    held: int = 0


class HoldRow(msgspec.Struct, kw_only=True):
    """What an account has promised to a run."""

    tenant: str
    account: str
    amount: int
    released_at: datetime | None = None


class IncarnationRow(msgspec.Struct, kw_only=True):
    """A process that publishes or works."""

    owner: str
    roles: tuple[str, ...]
    pools: tuple[str, ...]
    activities: tuple[str, ...]
    alive_until: datetime
    slots: tuple[int, ...] = ()
    beats: int = 1
    """What it can work on at once, by its pools."""


class SuspectRow(msgspec.Struct, frozen=True, kw_only=True):
    """A message that came again and again."""

    holder: uuid.UUID
    deaths: int


class DeadLetterRow(msgspec.Struct, frozen=True, kw_only=True):
    """What no redelivery will cure."""

    tenant: str | None
    source: str
    subject: str
    reason: str
    body: bytes
    headers: dict[str, str]
    recorded_at: datetime


__all__ = [
    "NEVER", "AccountRow", "ArtifactRow", "ClaimRow", "CommandRow", "DeadLetterRow", "EffectRow", "ErrandRow",
    "EventRow", "HoldRow", "InboxRow", "IncarnationRow", "LateReceiptRow", "LedgerRow", "PlanRow", "QueuedRun", "SignalRow",
    "StepRow", "StoreRow", "StoredRun", "SuspectRow", "TimerRow",
]  # fmt: skip
