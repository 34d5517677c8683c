"""The summary: the one server-owned answer to "how is my run and what may I do" (design.md 8).

The stored form carries `poll_at`; `poll_after_ms` is derived when it is read (P20).
"""

from typing import Literal

import msgspec

RunStatus = Literal[
    "accepted", "running", "paused", "needs_input", "blocked", "compensating", "cancelling", "completed", "failed",
    "cancelled", "superseded",
]  # fmt: skip
TERMINAL: frozenset[str] = frozenset({"completed", "failed", "cancelled", "superseded"})

Action = Literal[
    "cancel_generation", "retry_generation", "provide_generation_input", "pause_generation", "resume_generation",
    "send_generation_event", "steer_generation", "fork_generation", "follow_up_generation",
]  # fmt: skip
"""What a run may offer; contracts/command_table.py says which command each stands for."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Steps that reached an acceptable end, of all the plan has."""

    completed: int
    total: int
    percent: int


class CurrentStep(msgspec.Struct, frozen=True, kw_only=True):
    """The step the label speaks of."""

    key: str
    attempt: int
    max_attempts: int


class Blocker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a run waits for a person or an operator (H65)."""

    type: str
    """Waits for a decision: provider_outcome_unknown, retries_exhausted, wait_overdue, child_not_completed, dependency_failed,
    no_worker, plan_drift, reducer_error, history_unreadable. Waits for input: input_required, spend_cap."""
    step: str | None = None
    attempt: int | None = None
    details: dict[str, str] = {}


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """The user's money, in whole credits."""

    quoted_credits: int
    charged_credits: int
    refunded_credits: int
    net_credits: int


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """When to look again; null when there is nothing to wait for."""

    poll_after_ms: int | None


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run failed or is blocked, so that lost execution and bad content can be told apart (G08)."""

    error_class: str = msgspec.field(name="class")
    origin: Literal["infrastructure", "provider", "content", "request"]
    step: str | None
    attempt: int | None
    message: str
    inputs_intact: bool
    money: str
    """One sentence: what was charged and what was given back."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Exactly the shape of design.md 8, with `failure` only when there is one."""

    run_id: str
    workflow: str
    workflow_version: int
    revision: int
    status: RunStatus
    phase: str | None
    label: str
    progress: Progress
    current_step: CurrentStep | None
    blockers: tuple[Blocker, ...]
    available_actions: tuple[Action, ...]
    cost: Cost
    timing: Timing
    failure: Failure | msgspec.UnsetType = msgspec.UNSET
