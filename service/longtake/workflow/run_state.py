"""The memory of one run: what a fold of its events leaves, with counters where a sum would cost (P17).

Only `evolve` (state.py) changes it, one event at a time; the reducer reads it and writes it by no other way.
Leaves to others: what an event means (state.py), what people are shown (projection.py, summary.py).
"""

import uuid
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from longtake.contracts.codec import canonical
from longtake.contracts.effects import EffectKind
from longtake.contracts.events import Origin
from longtake.contracts.outcomes import ErrorClass
from longtake.contracts.summary import Action, Blocker
from longtake.workflow.plan import CompiledPlan, Plan, compile_plan
from longtake.workflow.step import Step

StepStatus = Literal[
    "pending", "ready", "queued", "waiting_external", "retry_scheduled", "reconciling", "blocked", "succeeded", "failed",
    "cancelled",
]  # fmt: skip
"""`running` is no state of the reducer: it is read off a live lease (design.md 5)."""

STEP_ENDED: frozenset[str] = frozenset({"succeeded", "failed", "cancelled"})

Ended = Literal["completed", "failed", "cancelled"]

SinceKey = Action | tuple[Action, str]
"""An action of the run, or an action on one step."""


class StepState(msgspec.Struct, kw_only=True):
    """What is remembered of one step."""

    status: StepStatus = "pending"
    attempt: int = 0
    """The attempt under way or last made; 0 before the first."""
    base: int
    """Attempts the retry policy allows, raised when a person asks to go on."""
    grace: int = 0
    """Attempts granted on top because the provider never took an earlier one."""
    effect: uuid.UUID | None = None
    """The one open effect of the step."""
    polls: int = 0
    lookups: int = 0
    """Look-ups of this attempt so far, which is also the ordinal of the last."""
    looks: int = 0
    """Look-ups since the truth was last open anew; bounded."""
    overdue: int = 0
    """How often the provider let its time pass in this attempt."""
    external_ref: str | None = None
    external_until: datetime | None = None
    callback: bool = False
    """An authentic callback of this attempt is remembered."""
    retry_at: datetime | None = None
    error_class: str | None = None
    error_origin: Origin | None = None
    error_message: str | None = None
    provider_cost: int | None = None
    artifacts: tuple[str, ...] = ()
    """Names only: the rest lies in the projection (P17)."""
    started_at: datetime | None = None
    updated_seq: int = 0
    late: str | None = None
    """How the open attempt ended after the run began to end (P10)."""
    unmet: int
    readers: int
    """Unsettled steps that still refer to the result."""

    @property
    def attempts_allowed(self) -> int:
        """Attempts that may be made before a person must decide."""
        return self.base + self.grace


class OpenEffect(msgspec.Struct, frozen=True, kw_only=True):
    """An effect without a known end."""

    step: int
    """Position in the plan."""
    attempt: int
    kind: EffectKind
    ordinal: int
    due_at: datetime
    """When it may first be worked on."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """The run is on its way out: no new work, and open attempts are waited for until `settle_until` (P10)."""

    outcome: Literal["failed", "cancelled"]
    settle_until: datetime
    reason: str | None = None
    step: str | None = None
    attempt: int | None = None
    error_class: ErrorClass = "cancelled"
    origin: Origin = "request"
    message: str = ""


class RunState(msgspec.Struct, kw_only=True):
    """One run in memory."""

    run_id: uuid.UUID
    tenant: str
    plan: CompiledPlan
    revision: int = 0

    workflow: str = ""
    workflow_version: int = 0
    project: str = ""
    actor: str = ""
    account: str = ""
    command_id: str = ""
    fingerprint: str = ""
    application: str = ""

    quoted: int = 0
    cap: int = 0
    charged: int = 0
    refunded: int = 0
    kept: int = 0
    """Credits of steps that succeeded, or whose provider may have worked for us: not given back by a cancel."""

    steps: list[StepState]
    group_unmet: dict[str, int]
    ready: list[int] = []
    """Heap of positions; an entry whose step is no longer ready is dropped when it surfaces."""
    open: dict[uuid.UUID, OpenEffect] = {}
    results: dict[int, dict[str, Any]] = {}
    """Position to the parts of its result that others want, while one of them may still need them."""
    succeeded: int = 0
    succeeded_by_phase: dict[str, int] = {}
    begun: bool = False
    """A step was handed out."""
    cursor: int = 0
    """Every step before this position has ended."""

    blockers: dict[str, Blocker] = {}
    """Step key, or `*` and the type, to what waits for a person."""
    blocked_until: datetime | None = None
    since: dict[SinceKey, int] = {}
    ending: Ending | None = None
    ended: Ended | None = None

    accepted_at: datetime | None = None
    updated_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def terminal(self) -> bool:
        """Whether the run has ended; it never starts again."""
        return self.ended is not None

    @property
    def run_blockers(self) -> tuple[Blocker, ...]:
        """Blockers of the whole run, under which nothing new is scheduled (P19)."""
        return tuple(item for key, item in self.blockers.items() if key.startswith(RUN_BLOCKER))

    @property
    def deadline_at(self) -> datetime | None:
        """When the run has failed for taking too long."""
        seconds = self.plan.plan.deadline_seconds
        if seconds is None or self.accepted_at is None:
            return None
        return self.accepted_at + timedelta(seconds=seconds)

    def step_of(self, key: str) -> StepState | None:
        """The state of a step by its key."""
        position = self.plan.position.get(key)
        return None if position is None else self.steps[position]

    def plan_of(self, key: str) -> Step:
        """The plan of a step by its key."""
        return self.plan.steps[self.plan.position[key]]


RUN_BLOCKER = "*"
"""First letter of the keys of blockers of the whole run; no step key has it."""


def initial(run_id: uuid.UUID, tenant: str, plan: CompiledPlan | Plan) -> RunState:
    """The state of a run of which nothing has happened yet."""
    compiled = compile_plan(plan) if isinstance(plan, Plan) else plan
    return RunState(
        run_id=run_id,
        tenant=tenant,
        plan=compiled,
        steps=[
            StepState(base=step.retry.max_attempts, unmet=unmet, readers=readers)
            for step, unmet, readers in zip(compiled.steps, compiled.unmet, compiled.readers, strict=True)
        ],
        group_unmet={name: len(where) for name, where in compiled.groups.items()},
    )


def dump(state: RunState) -> bytes:
    """Canonical bytes of everything that a fold must reproduce: equal dumps are equal states."""
    fields = {name: getattr(state, name) for name in state.__struct_fields__ if name != "plan"}
    fields["ready"] = sorted({index for index in state.ready if state.steps[index].status == "ready"})
    fields["since"] = {
        key if isinstance(key, str) else ":".join(key): rev for key, rev in state.since.items()
    }
    fields["steps"] = list(state.steps)
    return canonical(fields)
