"""What the server answers, as clients see it: tolerant of members that newer servers add.

Commands, receipts, summaries and problems are contracts (contracts/); these are the shapes of reading alone.
"""

from datetime import datetime
from typing import Any

import msgspec

from longtake.contracts.commands import CommandStatus
from longtake.contracts.problems import Problem
from longtake.contracts.summary import Summary


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The receipt of an admitted command."""

    command_id: str
    kind: str
    status: CommandStatus
    run_id: str | None = None
    revision: int | None = None
    summary: Summary | None = None
    replayed: bool = False
    """The server had answered this command before."""


class CommandNow(msgspec.Struct, frozen=True, kw_only=True):
    """A command as it stands."""

    command_id: str
    kind: str
    project: str
    status: CommandStatus
    accepted_at: datetime
    run_id: str | None = None
    problem: Problem | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a list."""

    run_id: str
    project: str
    workflow: str
    workflow_version: int
    status: str
    phase: str | None
    label: str
    revision: int
    charged: int
    refunded: int
    quoted: int
    cap: int
    accepted_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    blockers: list[str]


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of runs."""

    runs: list[Run]
    next_cursor: str | None


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """Who held the work."""

    kind: str
    owner: str
    fence: int
    claimed_at: datetime


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt with its claims."""

    attempt: int
    claims: list[Claim]


class StepNow(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the plan."""

    key: str
    ordinal: int
    phase: str
    label: str
    activity: str
    group: str | None
    price: int
    status: str
    attempt: int
    max_attempts: int
    progress: int | None
    worker: str | None
    external_ref: str | None
    error_class: str | None
    error_message: str | None
    provider_cost: int | None
    artifacts: list[str]
    started_at: datetime | None
    updated_seq: int
    attempts: list[Attempt]
    kind: str = "activity"
    event: str | None = None
    """What a wait is for."""
    answer: dict[str, Any] | None = None
    """Of a question: JSON Schema of the answer."""


class EventSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One event; `data` and `meta` are the exact bytes."""

    run_id: str
    seq: int
    id: str
    type: str
    version: int
    recorded_at: datetime
    store_epoch: int
    tx_id: str
    hash: str
    data: msgspec.Raw
    meta: msgspec.Raw

    @property
    def fields(self) -> dict[str, Any]:
        """The data, read."""
        read: dict[str, Any] = msgspec.json.decode(self.data)
        return read


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of events."""

    run_id: str
    events: list[EventSeen]
    next_after: int | None


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One movement of credits."""

    key: str
    kind: str
    debit: str
    credit: str
    amount: int
    step: str | None
    cycle: int | None
    seq: int
    recorded_at: datetime


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """The money of a run."""

    run_id: str
    entries: list[LedgerEntry]
    charged: int
    refunded: int
    net: int


class PublishedArtifact(msgspec.Struct, frozen=True, kw_only=True):
    """One published artifact."""

    id: str
    run_id: str
    step: str
    attempt: int
    name: str
    kind: str
    object_key: str
    sha256: str
    bytes: int
    content_type: str
    published_at: datetime
    href: str


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What the server says of itself."""

    status: str
    postgres: str
    nats: str
    store_epoch: int
