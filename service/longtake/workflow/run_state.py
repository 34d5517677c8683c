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
from longtake.contracts.events import Billing, GateKind, Origin, Parent
from longtake.contracts.outcomes import ErrorClass
from longtake.contracts.summary import Action, Blocker
from longtake.workflow.plan import CompiledPlan, Plan, compile_plan
from longtake.workflow.step import Step

StepStatus = Literal[
    "pending", "ready", "queued", "waiting_external", "retry_scheduled", "sleeping", "waiting_event", "needs_input",
    "reconciling", "blocked", "succeeded", "failed", "timed_out", "skipped", "cancelled",
]  # fmt: skip
"""`running` is no state of the reducer: it is read off a live lease (design.md 5)."""

STEP_ENDED: frozenset[str] = frozenset({"succeeded", "failed", "timed_out", "skipped", "cancelled"})

Ended = Literal["completed", "failed", "cancelled", "superseded"]

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
    """How the open attempt ended after the run began to end, or the step was abandoned (P10)."""
    abandoned: bool = False
    """A join needs it no more: its open attempt is being settled, and counts for nothing (P19)."""
    recalled: bool = False
    """A pause takes the open execute effect back, unless somebody has claimed it."""
    withdrawn: bool = False
    """The attempt was taken back before it began, and will be handed out again."""
    executes: int = 0
    """Execute effects of this attempt so far: an attempt that was taken back before it began has more than one."""
    deadline_at: datetime | None = None
    """When the step as a whole is too late."""
    cycle: int = 0
    """Settlement cycles begun; the charge of the last is `charged` (P9)."""
    charged: int = 0
    """Net credits of the last cycle, pay_as_you_go only."""
    refunded: bool = False
    """The last cycle was given back."""
    reused: Literal["free", "again"] | None = None
    """Its receipt is that of the run this one was forked from, and whether its price is taken again (P9)."""
    compensation: Literal["due", "done", "failed"] | None = None
    compensations: int = 0
    """Attempts to undo the step so far."""
    successes: int = 0
    failures: int = 0
    """Dependencies that ended as failed, timed out or cancelled."""
    skips: int = 0
    readers: int
    """Unsettled steps that still refer to the result."""
    built: bool = False
    """A step that waits for it by name has begun, or will not."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to the step."""
        return self.status in STEP_ENDED

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

    outcome: Literal["failed", "cancelled", "superseded"]
    settle_until: datetime
    reason: str | None = None
    step: str | None = None
    attempt: int | None = None
    error_class: ErrorClass = "cancelled"
    origin: Origin = "request"
    message: str = ""
    by_run: uuid.UUID | None = None
    """Of a superseded run: its successor."""


class GroupState(msgspec.Struct, kw_only=True):
    """The members of one group, counted."""

    total: int
    successes: int = 0
    failures: int = 0
    skips: int = 0
    open: int = 0
    """Expand steps that may still add members."""
    built: bool = False
    """A step that waits for all of it has begun, or will not."""


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """A step that waits without work."""

    kind: GateKind
    until: datetime | None = None
    child: uuid.UUID | None = None


class BufferedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A named event that came early."""

    command_id: str
    actor: str
    payload: dict[str, Any]


class Queued(msgspec.Struct, frozen=True, kw_only=True):
    """Why an accepted run has not begun."""

    start_at: datetime | None = None
    holders: tuple[uuid.UUID, ...] = ()
    scopes: tuple[str, ...] = ()


EVENTS_MAX = 100_000
"""Events that a run may have while it goes on (P17); longer work is the work of child runs."""


class RunState(msgspec.Struct, kw_only=True):
    """One run in memory."""

    run_id: uuid.UUID
    tenant: str
    plan: CompiledPlan
    revision: int = 0
    events_max: int = EVENTS_MAX
    """What this program takes; no fold depends on it."""
    is_long: bool = False
    """Whether its history was called long."""

    workflow: str = ""
    workflow_version: int = 0
    project: str = ""
    actor: str = ""
    account: str = ""
    command_id: str = ""
    fingerprint: str = ""
    application: str = ""

    kind: str = "generation"
    billing: Billing = "prepaid"
    price_list: str = ""
    conversation: str | None = None
    parent: Parent | None = None
    supersedes: tuple[uuid.UUID, ...] = ()
    superseded_by: uuid.UUID | None = None
    follows: uuid.UUID | None = None
    forked_from: uuid.UUID | None = None
    queued: Queued | None = None
    """Set while the run is accepted and has not begun."""
    paused_at: datetime | None = None
    paused_for: timedelta = timedelta()
    """How long pauses have lasted that are over."""

    quoted: int = 0
    cap: int = 0
    held: int = 0
    charged: int = 0
    refunded: int = 0
    kept: int = 0
    """Credits of steps that succeeded, or whose provider may have worked for us: not given back by a cancel."""

    steps: list[StepState]
    groups: dict[str, GroupState]
    judged: dict[int, Literal["condition", "skip", "fail"]] = {}
    """Steps that will not run, and why; the next decision says so."""
    losers: dict[int, int] = {}
    """Steps that a join needs no more, and the step whose join it is; the next decision says so."""
    losers_until: datetime | None = None
    """When abandoned attempts that are still open count as unknown."""
    abandoned: int = 0
    """Abandoned steps whose attempt is still open."""
    ready: list[int] = []
    """Heap of positions; an entry whose step is no longer ready is dropped when it surfaces."""
    ready_gates: list[int] = []
    """The same for gates, which need no slot."""
    open: dict[uuid.UUID, OpenEffect] = {}
    results: dict[int, dict[str, Any]] = {}
    """Position to the parts of its result that others want, while one of them may still need them."""
    gates: dict[int, Gate] = {}
    """Position to what the step waits for."""
    children: int = 0
    """Gates among them that wait for another run."""
    buffered: dict[str, list[BufferedEvent]] = {}
    """Named events that nobody has waited for yet, oldest first."""
    made: dict[int, dict[str, Any]] = {}
    """Position to the document of a step that has a compensation: what undoing it goes by."""
    delivered: dict[str, Any] = {}
    """Of a child run: what its parent will get, `{"result": ..., "artifacts": {...}}`."""
    delivered_by: int = -1
    """Position of the step that made it."""
    spared: dict[int, None] = {}
    """Positions of optional steps that failed and on which nobody has built: they may be tried again."""
    early: int = 0
    """Named events that are kept."""
    listening: dict[str, int] = {}
    """Name of an event to how many steps that have not ended may wait for it; ANY_EVENT counts expansions."""
    dated: dict[int, None] = {}
    """Positions of unended steps that have a deadline of their own."""
    undo: list[int] = []
    """Positions of steps that have a compensation, in the order of their completion; the last is undone first (H90)."""
    undoing: int | None = None
    """The step that is being undone."""
    settled: int = 0
    """Steps that have ended, in whatever way."""
    completed: int = 0
    """Steps that have ended in a way that the run can complete with."""
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

    changed: list[int] = []
    """Positions of the steps that the last event touched; scratch, no part of the state."""
    wakes: list[tuple[datetime, int]] = []
    """Heap of when gates wake, with their positions; what is no longer so is dropped when it surfaces. Scratch."""
    standing: list[int] = []
    """Heap of positions of gates; one that is closed is dropped when it surfaces. Scratch."""
    awaited: dict[str, list[int]] = {}
    """Name of an event to a heap of positions of gates that wait for it; the same. Scratch."""
    forsaken: list[tuple[int, uuid.UUID]] = []
    """Children that the last event let go, with the positions of their steps. Scratch."""
    timer_changes: dict[str, datetime | None] = {}
    """Step timers that the last event armed, or with None disarmed; scratch, no part of the state."""

    accepted_at: datetime | None = None
    started_at: datetime | None = None
    """When it began: at acceptance, unless it was queued."""
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
        if seconds is None or self.started_at is None:
            return None
        return self.started_at + timedelta(seconds=seconds) + self.paused_for

    def step_of(self, key: str) -> StepState | None:
        """The state of a step by its key."""
        position = self.plan.position.get(key)
        return None if position is None else self.steps[position]

    def plan_of(self, key: str) -> Step:
        """The plan of a step by its key."""
        return self.plan.steps[self.plan.position[key]]


INFORMATIVE: frozenset[str] = frozenset({"no_worker"})
"""Blockers that lift by themselves: no command helps."""

NEEDS_INPUT: frozenset[str] = frozenset({"input_required", "spend_cap"})
"""Blockers that wait for input; all others wait for a decision."""

ANY_EVENT = ""
"""What an expansion may wait for: the names are not known before it."""

RUN_BLOCKER = "*"
"""First letter of the keys of blockers of the whole run; no step key has it."""


def initial(run_id: uuid.UUID, tenant: str, plan: CompiledPlan | Plan) -> RunState:
    """The state of a run of which nothing has happened yet."""
    compiled = compile_plan(plan) if isinstance(plan, Plan) else plan
    listening: dict[str, int] = {}
    for index in compiled.listeners:
        name = compiled.steps[index].event or ANY_EVENT
        listening[name] = listening.get(name, 0) + 1
    return RunState(
        listening=listening,
        run_id=run_id,
        tenant=tenant,
        plan=compiled,
        steps=[
            StepState(base=step.retry.max_attempts, readers=readers)
            for step, readers in zip(compiled.steps, compiled.readers, strict=True)
        ],
        groups={
            name: GroupState(total=len(where), open=len(compiled.fillers.get(name, ())))
            for name, where in compiled.groups.items()
        },
    )


def dump(state: RunState) -> bytes:
    """Canonical bytes of everything that a fold must reproduce: equal dumps are equal states."""
    scratch = ("plan", "events_max", "changed", "wakes", "standing", "awaited", "forsaken", "timer_changes")
    fields = {name: getattr(state, name) for name in state.__struct_fields__ if name not in scratch}
    for name in ("ready", "ready_gates"):
        heap: list[int] = fields[name]
        fields[name] = sorted({index for index in heap if state.steps[index].status == "ready"})
    fields["paused_for"] = state.paused_for // timedelta(microseconds=1)
    fields["since"] = {
        key if isinstance(key, str) else ":".join(key): rev for key, rev in state.since.items()
    }
    fields["steps"] = list(state.steps)
    return canonical(fields)
