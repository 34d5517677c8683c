"""The store's ports: what the engine and the workers ask of the authority (floor 2). postgres/ implements them.

Beside ports.py, which holds the transport's: the two never meet but in the engine.
"""

from longtake.store.admitting import (
    AdmissionStore,
    AdmissionTransaction,
    Channel,
    Funds,
    HeldScope,
    NewRun,
    RunOrigin,
    StoredAnswer,
)
from longtake.store.auditing import AuditStore, InboxStore, MoneyAuditStore, MoneyViolation, ProjectionRows
from longtake.store.deciding import (
    CommitResult,
    DecisionStore,
    Fact,
    FactBatch,
    LoadedEvent,
    LoadedRun,
    RunCommit,
)
from longtake.store.durable_signals import read_signal
from longtake.store.errands import Errand, ErrandStore
from longtake.store.planning import PlanCheckStore, PlannedRun, Planner, UncheckedRun
from longtake.store.restoring import KeptMessage, OtherConnection, RestoreFacts, RestoreStore, TransportMemory
from longtake.store.sweeping import (
    FORGOTTEN,
    WINDOW_FACTOR,
    WINDOW_MIN,
    EffectPointer,
    EndedLease,
    LostDoorbell,
    StalledWork,
    StoreIdentity,
    SweepStore,
)
from longtake.store.waiting import WaitingStore
from longtake.store.working import EffectStore, LeaseKeeper

__all__ = [
    "FORGOTTEN",
    "WINDOW_FACTOR",
    "WINDOW_MIN",
    "AdmissionStore",
    "AdmissionTransaction",
    "AuditStore",
    "Channel",
    "CommitResult",
    "DecisionStore",
    "EffectPointer",
    "EffectStore",
    "EndedLease",
    "Errand",
    "ErrandStore",
    "Fact",
    "FactBatch",
    "Funds",
    "HeldScope",
    "InboxStore",
    "KeptMessage",
    "LeaseKeeper",
    "LoadedEvent",
    "LoadedRun",
    "LostDoorbell",
    "MoneyAuditStore",
    "MoneyViolation",
    "NewRun",
    "OtherConnection",
    "PlanCheckStore",
    "PlannedRun",
    "Planner",
    "ProjectionRows",
    "RestoreFacts",
    "RestoreStore",
    "RunCommit",
    "RunOrigin",
    "StalledWork",
    "StoreIdentity",
    "StoredAnswer",
    "SweepStore",
    "TransportMemory",
    "UncheckedRun",
    "WaitingStore",
    "read_signal",
]
