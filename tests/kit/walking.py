"""Walking the states of a run: everything that may happen next, told to a copy of the state."""

import uuid
from collections.abc import Iterator
from copy import copy
from datetime import datetime, timedelta

import msgspec

from kit.small_plans import ANSWER, EVENT
from longtake.contracts.outcomes import (
    Cancelled,
    Failed,
    Impossible,
    NotFound,
    Outcome,
    Submitted,
    Succeeded,
    Unknown,
)
from longtake.contracts.signals import (
    CancelRun,
    ChildEnded,
    ChildRefused,
    OutcomeReported,
    ParentClosed,
    PauseRun,
    PlanChecked,
    ProvideInput,
    ReducerFailed,
    ResumeRun,
    RetryRun,
    SendEvent,
    Signal,
    SupersedeRun,
    TimerFired,
    WorkStalled,
)
from longtake.contracts.summary import Action
from longtake.workflow.plan import Plan, compile_steps
from longtake.workflow.reducer import accept, decide
from longtake.workflow.run_state import RunState, initial
from longtake.workflow.script import FACTS, RUN, START

SIGNAL = uuid.UUID(int=7)
SUCCESSOR = uuid.UUID(int=8)

OUTCOMES: dict[str, tuple[Outcome, ...]] = {
    "execute": (
        Succeeded(), Submitted(external_ref="job-1"), Failed(error_class="auth", message="no"), Unknown(evidence="reset"),
        Cancelled(answer="stopped"),
    ),
    "poll": (Succeeded(), Failed(error_class="auth", message="no", origin="provider")),
    "reconcile": (Succeeded(), NotFound(evidence="none"), Impossible(evidence="no look-up")),
    "cancel": (Cancelled(answer="stopped"),),
    "compensate": (Succeeded(), Failed(error_class="auth", message="no")),
}  # fmt: skip

TARGETED: frozenset[Action] = frozenset(
    {"retry_generation", "provide_generation_input", "send_generation_event"}
)


class Place(msgspec.Struct, frozen=True):
    """A state at a time."""

    state: RunState
    now: datetime


def beginning(plan: Plan) -> Place:
    """The run just accepted."""
    state = initial(RUN, "t", compile_steps(plan))
    accept(state, FACTS, START)
    return Place(state, START)


OWN: tuple[str, ...] = tuple(
    name
    for name in RunState.__struct_fields__
    if name not in ("steps", "groups", "buffered")
    and isinstance(getattr(initial(RUN, "t", Plan().step("a", activity="a@1")), name), list | dict)
)
"""Members of a state that are changed in place and hold nothing that is."""


def copied(state: RunState) -> RunState:
    """A state of its own, sharing what never changes."""
    own = copy(state)
    for name in OWN:
        setattr(own, name, getattr(state, name).copy())
    own.steps = [copy(step) for step in state.steps]
    own.groups = {name: copy(group) for name, group in state.groups.items()}
    own.buffered = {name: list(kept) for name, kept in state.buffered.items()}
    return own


def mark(state: RunState) -> object:
    """What tells two states apart, clocks and revisions aside."""
    return (
        state.ended, state.ending is not None and state.ending.outcome, state.paused_at is not None, state.charged,
        state.refunded, state.cap, len(state.steps), tuple(sorted((key, item.type) for key, item in state.blockers.items())),
        tuple(
            (
                step.status, step.attempt, step.abandoned, step.withdrawn, step.recalled, step.cycle, step.compensation,
                None if step.effect is None else state.open[step.effect].kind,
            )
            for step in state.steps
        ),
        tuple(sorted(state.gates)), tuple((name, len(kept)) for name, kept in sorted(state.buffered.items())),
    )  # fmt: skip


def command_of(
    state: RunState, action: Action, target: str | None, *, revision: int | None = None
) -> Signal | None:
    """The command behind an action, its payload right; None for one that is not decided by this run."""
    said = {
        "command_id": f"c-{state.revision}",
        "actor": "ann",
        "expected_revision": state.revision if revision is None else revision,
    }
    match action:
        case "cancel_generation":
            return CancelRun(**said)
        case "retry_generation":
            return RetryRun(**said, step=target)
        case "pause_generation":
            return PauseRun(**said)
        case "resume_generation":
            return ResumeRun(**said)
        case "steer_generation":
            return SupersedeRun(**said, by_run=SUCCESSOR)
        case "send_generation_event":
            return None if target is None else SendEvent(**said, name=target)
        case "provide_generation_input":
            if target is None:
                return None
            blocker = state.blockers.get(target)
            if blocker is not None and blocker.type == "spend_cap":
                return ProvideInput(**said, step=target, cap=int(blocker.details["needed"]))
            return ProvideInput(**said, step=target, answer=ANSWER)
        case _:
            return None


def targets_of(state: RunState, action: Action) -> tuple[str | None, ...]:
    """Everything the action might be about."""
    keys = tuple(step.key for step in state.plan.steps)
    if action == "retry_generation":
        return (None, *keys, "nowhere", "*plan_drift")
    if action == "provide_generation_input":
        return (*keys, "nowhere")
    return (EVENT, "never") if action == "send_generation_event" else (None,)


def followers(place: Place, actions: tuple[Action, ...]) -> Iterator[Place]:
    """Every state that one more fact or command may lead to."""
    for signal, later in _facts(place):
        state = copied(place.state)
        decide(state, signal, later)
        yield Place(state, later)
    for action in actions:
        for target in targets_of(place.state, action):
            command = command_of(place.state, action, target)
            if command is not None:
                state = copied(place.state)
                if decide(state, command, place.now).refusal is None:
                    yield Place(state, place.now)


def _facts(place: Place) -> Iterator[tuple[Signal, datetime]]:
    state, now = place.state, place.now
    soon = now + timedelta(seconds=1)
    for effect_id, effect in state.open.items():
        key = state.plan.steps[effect.step].key
        for outcome in OUTCOMES[effect.kind]:
            yield (
                OutcomeReported(
                    effect_id=effect_id, step=key, attempt=effect.attempt, kind=effect.kind, outcome=outcome
                ),
                max(soon, effect.due_at),
            )
        if effect.kind == "execute":
            yield WorkStalled(signal_id=SIGNAL, step=key, attempt=effect.attempt, waits_for="a worker"), soon
    for index, gate in state.gates.items():
        key, attempt = state.plan.steps[index].key, state.steps[index].attempt
        if gate.until is not None:
            yield TimerFired(key=f"step:{key}"), max(soon, gate.until)
        if gate.child is not None:
            told = {"signal_id": SIGNAL, "step": key, "attempt": attempt, "child": gate.child}
            yield ChildEnded(**told, outcome="completed"), soon
            yield ChildEnded(**told, outcome="failed"), soon
            yield ChildRefused(**told, problem="insufficient-funds", message="no credits"), soon
    if state.blocked_until is not None:
        yield TimerFired(key="blocked_deadline"), max(soon, state.blocked_until)
    if state.deadline_at is not None:
        yield TimerFired(key="run_deadline"), max(soon, state.deadline_at)
    yield PlanChecked(signal_id=SIGNAL, application="app-2", drift=("/steps/0/price", "5 to 6")), soon
    yield PlanChecked(signal_id=SIGNAL, application="app-1", drift=None), soon
    yield ReducerFailed(causation="effect:1", error="boom"), soon
    yield ParentClosed(signal_id=SIGNAL, parent=SIGNAL, outcome="cancelled"), soon
