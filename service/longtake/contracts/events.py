"""Events: what happened to a run, the only truth (design.md 2.1). The list of all types, and where each stands.

Facts that always travel together are one event (design.md 14). Changing a shape means a new version and an upcaster.
"""

from longtake.contracts.compensation_events import CompensationFailed, CompensationScheduled, StepCompensated
from longtake.contracts.event_base import Event, Work
from longtake.contracts.gate_events import EventReceived, GateKind, GatesOpened, OpenedGate
from longtake.contracts.money_events import CapRaised, Charged, Refunded, SpendCapReached
from longtake.contracts.outcomes import Origin
from longtake.contracts.plan_events import PlanExpanded, ReusedStep, StepsReused
from longtake.contracts.run_events import (
    Billing,
    CancelRequested,
    Compensation,
    HistoryLong,
    Money,
    Parent,
    RunAccepted,
    RunBlocked,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunFailing,
    RunPaused,
    RunQueued,
    RunResumed,
    RunStarted,
    RunSuperseded,
    RunUnblocked,
    SupersedeRequested,
)
from longtake.contracts.step_events import (
    AttemptFailed,
    AttemptReconciled,
    AttemptSubmitted,
    AttemptsWithdrawn,
    AttemptUnknown,
    CallbackReceived,
    LateOutcome,
    RetryRequested,
    ScheduledStep,
    Source,
    StepBlocked,
    StepFailed,
    StepsAbandoned,
    StepsCancelled,
    StepsScheduled,
    StepsSkipped,
    StepStalled,
    StepSucceeded,
)

__all__ = [
    "EVENT_TYPES", "AttemptFailed", "AttemptReconciled", "AttemptSubmitted", "AttemptUnknown", "AttemptsWithdrawn",
    "Billing", "CallbackReceived", "CancelRequested", "CapRaised", "Charged", "Compensation", "CompensationFailed",
    "CompensationScheduled", "Event", "EventReceived", "GateKind", "GatesOpened", "HistoryLong", "LateOutcome", "Money", "OpenedGate",
    "Origin", "Parent", "PlanExpanded", "Refunded", "RetryRequested", "ReusedStep", "RunAccepted", "RunBlocked",
    "RunCancelled", "RunCompleted", "RunFailed", "RunFailing", "RunPaused", "RunQueued", "RunResumed", "RunStarted", "RunSuperseded",
    "RunUnblocked", "ScheduledStep", "Source", "SpendCapReached", "StepBlocked", "StepCompensated", "StepFailed",
    "StepStalled", "StepSucceeded", "StepsAbandoned", "StepsCancelled", "StepsReused", "StepsScheduled", "StepsSkipped",
    "SupersedeRequested", "Work",
]  # fmt: skip

EVENT_TYPES: tuple[type[Event], ...] = (
    RunAccepted, RunQueued, RunStarted, Charged, Refunded, CapRaised, SpendCapReached, StepsScheduled, AttemptSubmitted,
    CallbackReceived, StepSucceeded, AttemptFailed, AttemptUnknown, AttemptReconciled, AttemptsWithdrawn, StepBlocked,
    StepFailed, StepsSkipped, StepsAbandoned, StepsCancelled, LateOutcome, RetryRequested, GatesOpened, EventReceived,
    PlanExpanded, StepsReused, CancelRequested, SupersedeRequested, RunPaused, RunResumed, RunBlocked, RunUnblocked,
    StepStalled, HistoryLong, RunFailing, CompensationScheduled, StepCompensated, CompensationFailed, RunCompleted, RunFailed, RunCancelled, RunSuperseded,
)  # fmt: skip
