"""The store's ports: what the engine and the workers ask of the authority (floor 2). postgres/ implements them.

Beside ports.py, which holds the transport's: the two never meet but in the engine.
"""

import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Literal, Protocol

import msgspec

from longtake.contracts.commands import Command, Receipt
from longtake.contracts.effects import ClaimedEffect, EffectClosing, EffectIntent, Report
from longtake.contracts.envelope import StoredEvent
from longtake.contracts.principal import Principal
from longtake.contracts.signals import Signal
from longtake.workflow.decision import LedgerEntry, PublishedArtifact, TimerIntent
from longtake.workflow.projection import RunRow, StepRow

Channel = Literal["http", "nats", "local"]


class StoreIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Which store this is; epochs are in every id and pointer (P2)."""

    environment: str
    store_epoch: int
    transport_epoch: int
    application: str | None


class EffectPointer(msgspec.Struct, frozen=True, kw_only=True):
    """What a relay or dispatcher publishes of an effect."""

    id: uuid.UUID
    attempt: int
    generation: int
    pool: str
    traceparent: str | None = None


# --- deciding ---------------------------------------------------------------------------------------------------


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A signal for one run, read from its row, with what the dispatcher must know to decide it."""

    run_id: uuid.UUID
    tenant: str
    signal: Signal
    causation: str
    traceparent: str | None
    revision: int
    """Revision of the run's row when the fact was read."""
    plan_checked: str
    application: str | None
    now: datetime


class FactBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Facts behind a batch of pointers. Pointers that name rows with nothing new are simply not in it."""

    facts: tuple[Fact, ...]
    known: frozenset[uuid.UUID]
    """Ids of the batch that exist; the others are quarantined (P25)."""


class LoadedEvent(msgspec.Struct, frozen=True):
    """An event as stored; whoever folds it decodes it, so that one unreadable run does not spoil a batch."""

    seq: int
    type: str
    version: int
    data: bytes
    recorded_at: datetime


class LoadedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as stored: what to fold, and onto what."""

    run_id: uuid.UUID
    tenant: str
    revision: int
    head_hash: bytes
    actor: str
    correlation: str
    plan: bytes
    fingerprint: str
    events: tuple[LoadedEvent, ...]


class RunCommit(msgspec.Struct, kw_only=True):
    """Everything one batch writes of one run; built by engine/deciding.py."""

    run_id: uuid.UUID
    expected_revision: int
    row: RunRow
    head_hash: bytes
    events: list[StoredEvent]
    steps: list[StepRow]
    effects: list[tuple[EffectIntent, str | None]]
    """With the external ref that polls, reconciles and cancels carry."""
    traceparent: str | None = None
    closings: list[EffectClosing] = []
    withdrawn: list[uuid.UUID] = []
    expedited: list[uuid.UUID] = []
    ledger: list[tuple[LedgerEntry, int]] = []
    timers: list[TimerIntent] = []
    timers_cancelled: list[str] = []
    artifacts: list[PublishedArtifact] = []
    inbox: list[tuple[uuid.UUID, Literal["dispatched", "ignored"], str | None]] = []
    signals: list[uuid.UUID] = []
    scopes_released: bool = False
    hold_released: bool = False
    poisoned: bool = False
    checked_application: str | None = None


class CommitResult(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs were written; the others moved meanwhile and are decided again."""

    committed: frozenset[uuid.UUID]
    pointers: tuple[EffectPointer, ...]
    """Of effects that are due at once: new, or expedited."""
    withdrawn: tuple[uuid.UUID, ...] = ()


class DecisionStore(Protocol):
    """What the dispatcher needs. The number of statements never depends on the size of the batch."""

    async def facts(
        self, *, effects: Sequence[uuid.UUID], inbox: Sequence[uuid.UUID], runs: Sequence[uuid.UUID]
    ) -> FactBatch: ...
    async def load(self, after: Mapping[uuid.UUID, int]) -> list[LoadedRun]:
        """Load runs with their events after the given seqs."""
        ...

    async def commit(self, commits: Sequence[RunCommit]) -> CommitResult: ...
    async def set_aside(self, run_id: uuid.UUID) -> None:
        """Block a run that cannot be folded, without an event: nothing of it is looked at until somebody mends it."""
        ...


# --- admission --------------------------------------------------------------------------------------------------


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """What admission lays down before the first decision of a run."""

    run_id: uuid.UUID
    project: str
    workflow: str
    workflow_version: int
    account: str
    fingerprint: str
    plan: bytes
    input: bytes
    policy: bytes
    quoted: int
    cap: int
    scopes: tuple[str, ...]
    application: str


class StoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer that a command id already has."""

    intent_hash: str
    receipt: Receipt | None


class HeldScope(msgspec.Struct, frozen=True, kw_only=True):
    """A scope that an active run owns."""

    scope: str
    run_id: uuid.UUID
    phase: str | None


class Funds(msgspec.Struct, frozen=True, kw_only=True):
    """An account's credits; `held` are promised to active runs."""

    balance: int
    held: int


class AdmissionTransaction(Protocol):
    """One transaction of admission, steps in the order of P6."""

    async def insert_command(self, command: Command, *, intent_hash: str) -> datetime | None:
        """Keep the command; None when its id is taken. A concurrent copy waits for the first (P23)."""
        ...

    async def stored_answer(self, client_command_id: str) -> StoredAnswer | None: ...
    async def lock_project(self, project: str) -> None: ...
    async def held_scopes(self, project: str, scopes: Sequence[str]) -> list[HeldScope]: ...
    async def lay_down(self, run: NewRun, *, command_id: str, now: datetime) -> bool:
        """Write plan, run row, scopes and hold; False (and nothing written) when the account cannot pay."""
        ...

    async def funds(self, account: str) -> Funds | None: ...
    async def lock_run(self, run_id: uuid.UUID) -> tuple[LoadedRun, datetime, str, str | None] | None:
        """Lock a run of the caller's tenant: (run with its events, now, plan_checked, deployed application)."""
        ...

    async def commit_run(self, commit: RunCommit) -> CommitResult: ...
    async def settle_command(self, receipt: Receipt) -> None: ...


class AdmissionStore(Protocol):
    """Opens admission transactions."""

    def transaction(
        self, principal: Principal, *, channel: Channel, traceparent: str | None
    ) -> AbstractAsyncContextManager[AdmissionTransaction]: ...


# --- work -------------------------------------------------------------------------------------------------------


class EffectStore(Protocol):
    """What a worker may do: claim, renew, open a call, report. It never touches the event store (P6)."""

    async def claim(
        self,
        *,
        claim_id: uuid.UUID,
        effects: Sequence[tuple[uuid.UUID, int]],
        limit: int,
        owner: str,
        lease_seconds: int,
    ) -> list[ClaimedEffect]: ...
    async def open_call(self, *, effect_id: uuid.UUID, fence: int) -> bool: ...
    async def report(self, reports: Sequence[Report]) -> list[tuple[uuid.UUID, uuid.UUID]]:
        """Store receipts; (effect id, run id) of those that the dispatcher must look at."""
        ...

    async def put_back(
        self, *, effect_id: uuid.UUID, fence: int, delay_seconds: float, progress: int | None
    ) -> datetime | None: ...
    async def release(self, *, leases: Sequence[tuple[uuid.UUID, int]], owner: str) -> None: ...


class LeaseKeeper(Protocol):
    """Renews leases, in a thread and connection of its own (P18)."""

    async def renew(
        self, leases: Sequence[tuple[uuid.UUID, int]], progress: Mapping[uuid.UUID, int]
    ) -> set[uuid.UUID]:
        """Renew; returns the ids that are still ours."""
        ...

    async def close(self) -> None: ...


# --- finding what was lost ---------------------------------------------------------------------------------------


class LostDoorbell(msgspec.Struct, frozen=True, kw_only=True):
    """Something that has waited for the dispatcher too long."""

    what: Literal["effect", "inbox", "run"]
    id: uuid.UUID
    run_id: uuid.UUID


class SweepStore(Protocol):
    """What relay and sweeper need."""

    async def identity(self) -> StoreIdentity: ...
    async def due_pointers(
        self, *, limit: int, grace_seconds: float, oldest: Mapping[str, datetime | None], all_lost: bool
    ) -> list[EffectPointer]: ...
    async def expire_leases(
        self, *, leases_max: int, authority_up_seconds: float, connected: bool
    ) -> list[tuple[uuid.UUID, uuid.UUID, str]]:
        """(effect id, run id, new state) of leases that ended."""
        ...

    async def lost_doorbells(self, *, grace_seconds: float, limit: int) -> list[LostDoorbell]: ...
    async def next_due_seconds(self, *, grace_seconds: float) -> float | None: ...
    async def announce(
        self, *, roles: Sequence[str], pools: Sequence[str], activities: Sequence[str]
    ) -> None: ...
    async def retire(self) -> None: ...
    async def bury_others(self) -> list[str]: ...
    async def uncopied_commands(self, limit: int) -> list[tuple[str, str, str, str, bytes, str | None]]: ...
    async def mark_copied(self, commands: Sequence[tuple[str, str, str]]) -> None: ...
    async def dead_letter(
        self,
        *,
        tenant: str | None,
        source: str,
        subject: str,
        reason: str,
        body: bytes,
        headers: Mapping[str, str],
    ) -> None: ...
    async def stream_identities(self) -> dict[str, str]: ...
    async def save_stream_identities(self, created: Mapping[str, str]) -> None: ...
    async def raise_transport_epoch(self) -> int: ...


# --- plans of deployed code ---------------------------------------------------------------------------------------


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A validated plan with what is frozen beside it."""

    workflow: str
    workflow_version: int
    plan: Any
    plan_document: bytes
    input: bytes
    policy: bytes
    fingerprint: str
    quoted: int
    cap: int
    price_list: str
    scopes: tuple[str, ...]
    application: str


class Planner(Protocol):
    """The deployed application's builders. Lives where user code lives, never in the dispatcher (P15)."""

    @property
    def application(self) -> str: ...
    def plan(self, workflow: str, input: Any, policy: Mapping[str, Any]) -> PlannedRun:
        """Build twice, compare, validate. Raises Refused with the places that are wrong."""
        ...

    def claims(self, workflow: str, version: int) -> bool: ...


# --- callbacks, plan checks, audit ------------------------------------------------------------------------------


class InboxStore(Protocol):
    """Where callbacks are kept."""

    async def insert_callback(
        self,
        *,
        id: uuid.UUID,
        tenant: str,
        provider: str,
        dedupe_key: str,
        run_id: uuid.UUID,
        step: str,
        attempt: int,
        external_ref: str | None,
        type: str,
        payload: bytes,
        traceparent: str | None,
    ) -> int | None:
        """Number of copies received so far; None when there is no such run."""
        ...

    async def run_tenant(self, run_id: uuid.UUID) -> str | None: ...


class UncheckedRun(msgspec.Struct, frozen=True, kw_only=True):
    """An active run with everything its plan was made of."""

    run_id: uuid.UUID
    tenant: str
    workflow: str
    workflow_version: int
    fingerprint: str
    plan: bytes
    input: bytes
    policy: bytes
    drift_blocked: bool
    """The run is blocked by an earlier drift; the return of a matching build unblocks it."""


class PlanCheckStore(Protocol):
    """Where unchecked runs are found and verdicts are kept."""

    async def deploy(self, application: str) -> None: ...
    async def unchecked_runs(self, application: str, limit: int) -> list[UncheckedRun]: ...
    async def mark_checked(self, run_ids: Sequence[uuid.UUID], application: str) -> None: ...
    async def signal(
        self, *, id: uuid.UUID, tenant: str, run_id: uuid.UUID, kind: str, payload: bytes
    ) -> None: ...


class ProjectionRows(msgspec.Struct, frozen=True, kw_only=True):
    """A run's projection as it stands."""

    run: Mapping[str, Any]
    steps: tuple[Mapping[str, Any], ...]
    charged: int
    refunded: int
    """Sums of the ledger."""


class AuditStore(Protocol):
    """What the auditor reads."""

    async def run_ids(self, after: uuid.UUID, limit: int) -> list[tuple[uuid.UUID, str]]: ...
    async def history(self, run_id: uuid.UUID) -> list[StoredEvent]: ...
    async def plan_document(self, tenant: str, run_id: uuid.UUID) -> bytes | None: ...
    async def projection(self, run_id: uuid.UUID) -> ProjectionRows | None: ...
    async def replace_projection(
        self, run_id: uuid.UUID, tenant: str, row: RunRow, steps: Sequence[StepRow], *, poisoned: bool
    ) -> bool: ...
