"""What the dispatcher asks of the authority: facts in, runs loaded, decisions out."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from longtake.contracts.effects import EffectClosing, EffectIntent
from longtake.contracts.envelope import StoredEvent
from longtake.contracts.signals import Outgoing, Signal
from longtake.store.sweeping import EffectPointer
from longtake.workflow.decision import LedgerEntry, PublishedArtifact, TimerIntent
from longtake.workflow.projection import RunRow, StepRow


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
    ended: bool = False
    """The run is over: no plan is compared any more, and what comes late for it is looked at all the same."""


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
    head_hash: bytes
    events: list[StoredEvent]
    steps: list[StepRow]
    effects: list[tuple[EffectIntent, str | None]]
    """With the external ref that polls, reconciles and cancels carry."""
    row: RunRow | None = None
    """The run's projection; set when everything of the batch is decided."""
    answered: list[str] = []
    """Pools of the work whose receipts this commit decides: each of them was taken, so its window has room again."""
    held_back: set[uuid.UUID] = set()
    """Effects that are due and that the relay is to publish, because the window of their pool is full (P12)."""
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
    outgoing: list[Outgoing] = []
    """Facts for other runs become signals, errands of admission become errands; both are found by their id."""
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

    async def commit(self, commits: Sequence[RunCommit]) -> CommitResult:
        """Write decisions together. DecisionRefused: some row breaks a rule of its table, and nothing was written."""
        ...

    async def set_aside(self, run_id: uuid.UUID) -> None:
        """Block a run that cannot be folded, without an event: nothing of it is looked at until somebody mends it."""
        ...
