"""The tables as they stand committed, and a statement's view of them: its own changes over what others have committed.

A view that is dropped has changed nothing; one that is merged has changed everything at once.
Leaves to others: locks and the order of statements (store_session.py).
"""

import uuid
from typing import Generic, TypeVar

from longtake.memory.tables import (
    AccountRow,
    ArtifactRow,
    ClaimRow,
    CommandRow,
    DeadLetterRow,
    EffectRow,
    ErrandRow,
    EventRow,
    HoldRow,
    InboxRow,
    IncarnationRow,
    LateReceiptRow,
    LedgerRow,
    PlanRow,
    QueuedRun,
    SignalRow,
    StepRow,
    StoredRun,
    StoreRow,
    SuspectRow,
    TimerRow,
)

K = TypeVar("K")
R = TypeVar("R")

CommandKey = tuple[str, str, str]
"""(tenant, actor, client command id)."""
RunAndKey = tuple[uuid.UUID, str]
Place = tuple[str, str]
"""(tenant, account) or (tenant, fingerprint)."""
ScopeKey = tuple[str, str, str]
"""(tenant, project, scope)."""
Fenced = tuple[uuid.UUID, int]
"""(effect id, fence)."""
Open = dict[uuid.UUID, dict[uuid.UUID, None]]
"""By run, ids of rows that somebody must still look at; ordered sets."""

TABLES = (
    "store", "commands", "plans", "runs", "steps", "scopes", "effects", "claims", "late_receipts", "timers", "signals",
    "inbox", "artifacts", "ledger", "accounts", "holds", "incarnations", "suspects", "transport_identity",
    "errands", "scope_queue",
)  # fmt: skip
"""Tables that are looked up by key; events and dead letters are lists."""


class Tables:
    """Everything that is committed."""

    def __init__(self) -> None:
        self.store: dict[int, StoreRow] = {0: StoreRow()}
        self.commands: dict[CommandKey, CommandRow] = {}
        self.plans: dict[Place, PlanRow] = {}
        self.runs: dict[uuid.UUID, StoredRun] = {}
        self.steps: dict[RunAndKey, StepRow] = {}
        self.scopes: dict[ScopeKey, uuid.UUID] = {}
        self.effects: dict[uuid.UUID, EffectRow] = {}
        self.claims: dict[Fenced, ClaimRow] = {}
        self.late_receipts: dict[Fenced, LateReceiptRow] = {}
        self.timers: dict[RunAndKey, TimerRow] = {}
        self.signals: dict[uuid.UUID, SignalRow] = {}
        self.inbox: dict[uuid.UUID, InboxRow] = {}
        self.artifacts: dict[tuple[uuid.UUID, str, str], ArtifactRow] = {}
        self.ledger: dict[str, LedgerRow] = {}
        self.accounts: dict[Place, AccountRow] = {}
        self.holds: dict[uuid.UUID, HoldRow] = {}
        self.incarnations: dict[uuid.UUID, IncarnationRow] = {}
        self.suspects: dict[bytes, SuspectRow] = {}
        self.transport_identity: dict[str, str] = {}
        self.errands: dict[uuid.UUID, ErrandRow] = {}
        self.scope_queue: dict[uuid.UUID, QueuedRun] = {}
        self.events: dict[uuid.UUID, list[EventRow]] = {}
        self.dead_letters: list[DeadLetterRow] = []
        # Partial indexes: what is open, by run.
        self.open_effects: Open = {}
        self.open_inbox: Open = {}
        self.open_signals: Open = {}
        self.timers_by_run: dict[uuid.UUID, dict[str, None]] = {}
        self.scopes_by_run: dict[uuid.UUID, dict[ScopeKey, None]] = {}

    def copy(self) -> "Tables":
        """The same rows in other dictionaries."""
        twin = Tables()
        for name in TABLES:
            setattr(twin, name, dict(getattr(self, name)))
        twin.events = {run_id: list(events) for run_id, events in self.events.items()}
        twin.dead_letters = list(self.dead_letters)
        for name in ("open_effects", "open_inbox", "open_signals", "timers_by_run", "scopes_by_run"):
            setattr(twin, name, {key: dict(ids) for key, ids in getattr(self, name).items()})
        return twin


class Part(Generic[K, R]):
    """One table in a view."""

    __slots__ = ("_touched", "below", "changed")

    def __init__(self, below: dict[K, R], touched: "list[Part[object, object]]") -> None:
        self.below = below
        self.changed: dict[K, R | None] = {}
        self._touched = touched

    def get(self, key: K) -> R | None:
        """The row as this view sees it."""
        if self.changed and key in self.changed:
            return self.changed[key]
        return self.below.get(key)

    def own(self, key: K) -> R | None:
        """A row that this view may change."""
        changed = self.changed
        if key in changed:
            return changed[key]
        row = self.below.get(key)
        if row is None:
            return None
        mine: R = row.__copy__()  # type: ignore[attr-defined]  # every row that is changed is a struct
        self.put(key, mine)
        return mine

    def put(self, key: K, row: R) -> None:
        """Insert, or put in another's place."""
        if not self.changed:
            self._touched.append(self)  # type: ignore[arg-type]  # the list is of parts of all tables
        self.changed[key] = row

    def drop(self, key: K) -> None:
        """Delete, if it is there."""
        if not self.changed:
            self._touched.append(self)  # type: ignore[arg-type]  # the list is of parts of all tables
        self.changed[key] = None

    def merge(self) -> None:
        """Make the changes stand."""
        below = self.below
        for key, row in self.changed.items():
            if row is None:
                below.pop(key, None)
            else:
                below[key] = row
        self.changed.clear()


class _OpenPart(Part[uuid.UUID, R]):
    """A table with a partial index of what is open, by run."""

    __slots__ = ("_ends", "_index")

    def __init__(
        self, below: dict[uuid.UUID, R], touched: list[Part[object, object]], index: Open, ends: str
    ) -> None:
        super().__init__(below, touched)
        self._index = index
        self._ends = ends

    def merge(self) -> None:
        """Make the changes stand, in the index too."""
        ends, index = self._ends, self._index
        for key, row in self.changed.items():
            if row is None:
                continue
            run_id: uuid.UUID = row.run_id  # type: ignore[attr-defined]  # such rows belong to a run
            if getattr(row, ends) is None:
                index.setdefault(run_id, {})[key] = None
            elif (ids := index.get(run_id)) is not None and key in ids:
                del ids[key]
                if not ids:
                    del index[run_id]
        super().merge()


class _TimerPart(Part[RunAndKey, TimerRow]):
    """Timers, with an index by run."""

    __slots__ = ("_index",)

    def __init__(
        self,
        below: dict[RunAndKey, TimerRow],
        touched: list[Part[object, object]],
        index: dict[uuid.UUID, dict[str, None]],
    ) -> None:
        super().__init__(below, touched)
        self._index = index

    def merge(self) -> None:
        """Make the changes stand, in the index too."""
        for (run_id, name), row in self.changed.items():
            if row is not None:
                self._index.setdefault(run_id, {})[name] = None
            elif (names := self._index.get(run_id)) is not None:
                names.pop(name, None)
                if not names:
                    del self._index[run_id]
        super().merge()


class _ScopePart(Part[ScopeKey, uuid.UUID]):
    """Scopes, with an index by run."""

    __slots__ = ("_index",)

    def __init__(
        self,
        below: dict[ScopeKey, uuid.UUID],
        touched: list[Part[object, object]],
        index: dict[uuid.UUID, dict[ScopeKey, None]],
    ) -> None:
        super().__init__(below, touched)
        self._index = index

    def merge(self) -> None:
        """Make the changes stand, in the index too."""
        for key, holder in self.changed.items():
            before = self.below.get(key)
            if before is not None and (keys := self._index.get(before)) is not None:
                keys.pop(key, None)
                if not keys:
                    del self._index[before]
            if holder is not None:
                self._index.setdefault(holder, {})[key] = None
        super().merge()

    def of(self, run_id: uuid.UUID) -> list[ScopeKey]:
        """Scopes of a run as this view sees them."""
        keys = [key for key in self._index.get(run_id, ()) if self.get(key) == run_id]
        keys += [key for key, holder in self.changed.items() if holder == run_id and key not in keys]
        return keys


class View:
    """What one statement, or one transaction, sees and has changed."""

    __slots__ = (*TABLES, "_touched", "dead_letters", "events", "tables")

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        touched: list[Part[object, object]] = []
        self._touched = touched
        self.store = Part(tables.store, touched)
        self.commands = Part(tables.commands, touched)
        self.plans = Part(tables.plans, touched)
        self.runs = Part(tables.runs, touched)
        self.steps = Part(tables.steps, touched)
        self.scopes = _ScopePart(tables.scopes, touched, tables.scopes_by_run)
        self.effects = _OpenPart(tables.effects, touched, tables.open_effects, "closed_at")
        self.claims = Part(tables.claims, touched)
        self.late_receipts = Part(tables.late_receipts, touched)
        self.timers = _TimerPart(tables.timers, touched, tables.timers_by_run)
        self.signals = _OpenPart(tables.signals, touched, tables.open_signals, "settled_at")
        self.inbox = _OpenPart(tables.inbox, touched, tables.open_inbox, "settled_at")
        self.artifacts = Part(tables.artifacts, touched)
        self.ledger = Part(tables.ledger, touched)
        self.accounts = Part(tables.accounts, touched)
        self.holds = Part(tables.holds, touched)
        self.incarnations = Part(tables.incarnations, touched)
        self.suspects = Part(tables.suspects, touched)
        self.transport_identity = Part(tables.transport_identity, touched)
        self.errands = Part(tables.errands, touched)
        self.scope_queue = Part(tables.scope_queue, touched)
        self.events: list[EventRow] = []
        """Events that this view has inserted."""
        self.dead_letters: list[DeadLetterRow] = []

    def merge(self) -> None:
        """Make all changes stand; the view is as new afterwards."""
        for part in self._touched:
            part.merge()
        self._touched.clear()
        if self.events:
            stored = self.tables.events
            for event in self.events:
                stored.setdefault(event.run_id, []).append(event)
            self.events.clear()
        if self.dead_letters:
            self.tables.dead_letters.extend(self.dead_letters)
            self.dead_letters.clear()

    def drop(self) -> None:
        """Forget all changes."""
        for part in self._touched:
            part.changed.clear()
        self._touched.clear()
        self.events.clear()
        self.dead_letters.clear()
