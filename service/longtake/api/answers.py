"""The shapes of answers over HTTP, as clients and the OpenAPI document know them.

Commands, receipts, summaries and problems are contracts of their own (contracts/); here is what only reading has.
Leaves to others: making them from rows (the routes).
"""

import uuid
from datetime import datetime
from typing import Any

import msgspec

from longtake.contracts.command_table import CommandKind
from longtake.contracts.commands import CommandStatus
from longtake.contracts.problems import Problem
from longtake.contracts.summary import RunStatus, Summary
from longtake.workflow.step import StepKind


class Links(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look on."""

    self: str
    summary: str
    steps: str
    events: str
    stream: str


class ReceiptAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a command: the same bytes for every repeat."""

    command_id: str
    kind: CommandKind
    status: CommandStatus
    run_id: str | None = None
    revision: int | None = None
    summary: Summary | None = None
    links: Links | None = None


class CommandAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command as it stands now; the status of one that started a run is that of the run."""

    command_id: str
    kind: CommandKind
    project: str
    status: CommandStatus
    intent_hash: str
    accepted_at: datetime
    run_id: str | None = None
    revision: int | None = None
    problem: Problem | None = None
    links: Links | None = None


class RunAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One run as lists show it."""

    run_id: uuid.UUID
    project: str
    workflow: str
    workflow_version: int
    status: RunStatus
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
    """A page of runs, newest first; `next_cursor` is null on the last one."""

    runs: list[RunAnswer]
    next_cursor: str | None


class RunDetails(RunAnswer, frozen=True, kw_only=True):
    """One run with who started it and what is frozen."""

    actor: str
    account: str
    command_id: str
    plan_fingerprint: str
    store_epoch: int
    head_hash: str
    links: Links


class ClaimAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One claim: who held the work, since when, under which fence."""

    kind: str
    owner: str
    fence: int
    claimed_at: datetime


class AttemptAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a step with everybody who worked at it."""

    attempt: int
    claims: list[ClaimAnswer]


class StepAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the plan and what became of it so far. `running` is read off a live lease."""

    key: str
    ordinal: int
    kind: StepKind
    phase: str
    label: str
    activity: str
    event: str | None
    """What a wait is for."""
    answer: dict[str, Any] | None
    """Of a question: JSON Schema of the answer."""
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
    attempts: list[AttemptAnswer]


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """All steps of a run in plan order, those that never started too."""

    run_id: uuid.UUID
    steps: list[StepAnswer]


class EffectAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One intention towards the outside, with its evidence."""

    id: uuid.UUID
    step: str
    attempt: int
    kind: str
    ordinal: int
    activity: str
    pool: str
    state: str
    disposition: str | None
    generation: int
    fence: int
    leases: int
    lease_owner: str | None
    lease_until: datetime | None
    created_at: datetime
    not_before: datetime
    deadline: datetime | None
    claimed_at: datetime | None
    call_opened_at: datetime | None
    heartbeat_at: datetime | None
    progress: int | None
    external_ref: str | None
    receipt: Any
    """The outcome that was reported, as it was stored."""
    reporter: str | None
    reported_at: datetime | None
    closed_at: datetime | None


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """All effects of a run."""

    run_id: uuid.UUID
    effects: list[EffectAnswer]


class EventAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One stored event; `data` and `meta` are the exact bytes that the hash is taken over."""

    run_id: uuid.UUID
    seq: int
    id: uuid.UUID
    type: str
    version: int
    recorded_at: datetime
    store_epoch: int
    tx_id: str
    hash: str
    data: Any
    meta: Any


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Events after a place in the history; `next_after` is null at its end."""

    run_id: uuid.UUID
    events: list[EventAnswer]
    next_after: int | None


class LedgerEntryAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One movement of credits from one account to another."""

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

    run_id: uuid.UUID
    entries: list[LedgerEntryAnswer]
    charged: int
    refunded: int
    net: int


class PlanAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The frozen plan of a run with what it was made from."""

    run_id: uuid.UUID
    workflow: str
    workflow_version: int
    fingerprint: str
    plan: Any
    input: Any
    policy: Any


class ArtifactAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One published artifact. Its identity is object key and digest; `href` is where this server has it."""

    id: uuid.UUID
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
    href: str


class Artifacts(msgspec.Struct, frozen=True, kw_only=True):
    """All published artifacts of a run."""

    run_id: uuid.UUID
    artifacts: list[ArtifactAnswer]


class CallbackReceived(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider is told after its callback was kept."""

    inbox_id: uuid.UUID
    duplicate: bool


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """The process answers."""

    status: str


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """The authority answers; NATS may be away without anything being lost."""

    status: str
    postgres: str
    nats: str
    store_epoch: int


def links_of(run_id: object) -> Links:
    """Addresses of a run."""
    base = f"/v1/runs/{run_id}"
    return Links(
        self=base,
        summary=f"{base}/summary",
        steps=f"{base}/steps",
        events=f"{base}/events",
        stream=f"{base}/events/stream",
    )
