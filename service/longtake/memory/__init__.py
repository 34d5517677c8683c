"""The ports in one process, with the unpleasant habits of the real things (floor 4).

`MemoryDatabase` is the authority; each store is a thin port onto one. Nothing here reads a clock, draws a number or
needs an event loop: time, faults and waiting are given from outside. A contract suite holds all of it to Postgres.
"""

from longtake.memory.clock import Clock, ManualClock
from longtake.memory.faults import Defences, Faults, Hooks, LoopHooks, NoFaults, Strike
from longtake.memory.store_admission import MemoryAdmission, MemoryAdmissionStore
from longtake.memory.store_audits import MemoryAuditStore, MemoryInboxStore, MemoryPlanCheckStore
from longtake.memory.store_decisions import MemoryDecisionStore
from longtake.memory.store_effects import MemoryEffectStore, MemoryLeaseKeeper
from longtake.memory.store_line import MemoryErrandStore
from longtake.memory.store_money import MemoryMoneyAuditStore
from longtake.memory.store_session import MemoryDatabase, RowRefused, Snapshot
from longtake.memory.store_sweeps import MemorySweepStore

__all__ = [
    "Clock",
    "Defences",
    "Faults",
    "Hooks",
    "LoopHooks",
    "ManualClock",
    "MemoryAdmission",
    "MemoryAdmissionStore",
    "MemoryAuditStore",
    "MemoryDatabase",
    "MemoryDecisionStore",
    "MemoryEffectStore",
    "MemoryErrandStore",
    "MemoryInboxStore",
    "MemoryLeaseKeeper",
    "MemoryMoneyAuditStore",
    "MemoryPlanCheckStore",
    "MemorySweepStore",
    "NoFaults",
    "RowRefused",
    "Snapshot",
    "Strike",
]
