"""longtake: durable workflows for work that takes minutes, costs money and depends on unreliable outsiders.

What authors of workflows use is here; producers and dashboards use `longtake.client`. Nothing else is public.
"""

from longtake.contracts.outcomes import (
    Artifact,
    Cancelled,
    Failed,
    Impossible,
    NotFound,
    Outcome,
    Pending,
    Submitted,
    Succeeded,
    Throttled,
    Unknown,
)
from longtake.contracts.problems import ProblemError
from longtake.engine.inbox import AuthenticCallback
from longtake.errors import InvalidInput, InvalidPlan, LongtakeError
from longtake.worker.activity import Activity, Call
from longtake.worker.registry import App
from longtake.workflow.plan import (
    ExpectedArtifact,
    Plan,
    Retry,
    Step,
    all_of,
    any_of,
    at_least,
    condition,
    group,
    not_,
    ref,
)

__all__ = [
    "Activity",
    "App",
    "Artifact",
    "AuthenticCallback",
    "Call",
    "Cancelled",
    "ExpectedArtifact",
    "Failed",
    "Impossible",
    "InvalidInput",
    "InvalidPlan",
    "LongtakeError",
    "NotFound",
    "Outcome",
    "Pending",
    "Plan",
    "ProblemError",
    "Retry",
    "Step",
    "Submitted",
    "Succeeded",
    "Throttled",
    "Unknown",
    "all_of",
    "any_of",
    "at_least",
    "condition",
    "group",
    "not_",
    "ref",
]
