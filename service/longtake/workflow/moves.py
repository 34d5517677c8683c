"""Moves: the small changes that events are made of, each keeping the counters it touches (P17).

Leaves to others: which event makes which moves (state.py).
"""

import heapq
import uuid
from datetime import datetime, timedelta

from longtake.contracts import events
from longtake.contracts.effects import EffectKind
from longtake.contracts.ids import effect_id_for
from longtake.contracts.summary import Blocker
from longtake.workflow.run_state import (
    RUN_BLOCKER,
    STEP_ENDED,
    Ended,
    Ending,
    OpenEffect,
    RunState,
    StepState,
    StepStatus,
)
from longtake.workflow.step import Step

BLOCKED_SECONDS_MAX = 7 * 24 * 3600
"""How long a blocked run waits for a person before it fails (P19)."""


def touch(state: RunState, key: str) -> tuple[int, StepState]:
    """A step and its position, marked as changed by this revision."""
    index = state.plan.position[key]
    step = state.steps[index]
    step.updated_seq = state.revision
    return index, step


def pay(step: StepState, provider_cost: int | None) -> None:
    """Add what the provider says an attempt cost."""
    if provider_cost is not None:
        step.provider_cost = (step.provider_cost or 0) + provider_cost


def remember_error(
    step: StepState, event: events.AttemptFailed | events.StepBlocked | events.StepFailed
) -> None:
    """Keep why the step stands where it stands."""
    step.error_class, step.error_origin, step.error_message = event.error_class, event.origin, event.message


def derive_effect_id(state: RunState, key: str, attempt: int, kind: EffectKind, ordinal: int) -> uuid.UUID:
    """The id of an effect of this run."""
    return effect_id_for(state.run_id, step=key, attempt=attempt, kind=kind, ordinal=ordinal)


def begin_attempt(step: StepState, attempt: int) -> None:
    """Start an attempt with nothing known of it."""
    step.attempt = attempt
    step.polls = step.lookups = step.looks = step.overdue = 0
    step.external_ref = step.external_until = None
    step.callback = False


def open_effect(
    state: RunState, index: int, effect_id: uuid.UUID, kind: EffectKind, ordinal: int, due_at: datetime
) -> None:
    """Let the step have one open effect, in place of the one it had."""
    step = state.steps[index]
    close_effect(state, step)
    step.effect = effect_id
    state.open[effect_id] = OpenEffect(
        step=index, attempt=step.attempt, kind=kind, ordinal=ordinal, due_at=due_at
    )


def close_effect(state: RunState, step: StepState) -> None:
    """Let the step have no open effect."""
    if step.effect is not None:
        del state.open[step.effect]
        step.effect = None


def look_up(state: RunState, index: int, effect_id: uuid.UUID, at: datetime) -> None:
    """The truth is open: a look-up is under way."""
    step = state.steps[index]
    step.status = "reconciling"
    step.lookups += 1
    step.looks += 1
    open_effect(state, index, effect_id, "reconcile", step.lookups, at)


def make_ready(state: RunState, index: int) -> None:
    """The step waits for nothing but a slot."""
    state.steps[index].status = "ready"
    state.steps[index].updated_seq = state.revision
    heapq.heappush(state.ready, index)


def block(state: RunState, key: str, blocker: Blocker, at: datetime) -> None:
    """Something waits for a person."""
    state.blockers[key] = blocker
    if state.ending is None:  # the time to settle bounds a run that ends
        state.blocked_until = at + timedelta(seconds=BLOCKED_SECONDS_MAX)
    _retry_target_changed(state, key)


def unblock(state: RunState, key: str) -> None:
    """Something waits for a person no more; no change when it did not."""
    if state.blockers.pop(key, None) is None:
        return
    if not state.blockers:
        state.blocked_until = None
    _retry_target_changed(state, key)


def _retry_target_changed(state: RunState, key: str) -> None:
    """Keep `since` (P3): a retry of the whole run has the set of blockers as its target, one of a step its own."""
    if key.startswith(RUN_BLOCKER):
        # Under a blocker of the run no step could be retried, so what stands now stands anew.
        for other in state.blockers:
            if not other.startswith(RUN_BLOCKER):
                state.since["retry_generation", other] = state.revision
    elif key in state.blockers:
        state.since["retry_generation", key] = state.revision
    else:
        state.since.pop(("retry_generation", key), None)
    if state.blockers:
        state.since["retry_generation"] = state.revision
    else:
        state.since.pop("retry_generation", None)


def end_step(state: RunState, index: int, status: StepStatus, *, keep_effect: bool = False) -> None:
    """The step has ended; results that only it still referred to are dropped."""
    step = state.steps[index]
    if not keep_effect:
        close_effect(state, step)
    step.status = status
    while state.cursor < len(state.steps) and state.steps[state.cursor].status in STEP_ENDED:
        state.cursor += 1
    for source in state.plan.sources[index]:
        read = state.steps[source]
        read.readers -= 1
        if read.readers == 0:
            state.results.pop(source, None)


def free_dependents(state: RunState, index: int) -> None:
    """Whoever waited for the step, or for the last of its group, waits for one less."""
    freed: list[int] = list(state.plan.dependents[index])
    name = state.plan.steps[index].group
    if name is not None:
        state.group_unmet[name] -= 1
        if state.group_unmet[name] == 0:
            freed.extend(state.plan.group_dependents[name])
    for other in freed:
        waiting = state.steps[other]
        waiting.unmet -= 1
        if waiting.unmet == 0 and waiting.status == "pending":
            make_ready(state, other)


def begin_ending(state: RunState, ending: Ending, at: datetime) -> None:
    """No new work from here. What is not begun is dropped, and providers that hold a request are told to stop (P10)."""
    state.ending = ending
    state.since.clear()
    for key, blocker in state.blockers.items():
        if blocker.type == "provider_outcome_unknown":
            learn_late(state, state.plan.position[key], "unknown", at)
    state.blockers.clear()
    state.blocked_until = None
    for effect in list(state.open.values()):
        step = state.steps[effect.step]
        if effect.kind == "poll":
            close_effect(state, step)
            learn_late(state, effect.step, "submitted", at)
        elif effect.kind == "execute" and effect.due_at > at:
            close_effect(state, step)
            step.late = "stopped"


def learn_late(state: RunState, index: int, outcome: str, at: datetime) -> None:
    """How an attempt ended after its run began to end; a request that a provider holds is told to stop."""
    step, plan = state.steps[index], state.plan.steps[index]
    step.late = outcome
    if outcome == "submitted":
        if plan.cancellable is not False:
            effect_id = derive_effect_id(state, plan.key, step.attempt, "cancel", 1)
            open_effect(state, index, effect_id, "cancel", 1, at)
            return
        step.late = outcome = "unsupported"
    if _is_kept(plan, outcome) and step.status != "succeeded":
        state.kept += plan.price


def _is_kept(plan: Step, outcome: str) -> bool:
    """Whether a cancel keeps the price: the provider worked for us, or nobody can say that it did not (P10)."""
    if outcome in ("unknown", "impossible"):
        return plan.ambiguous_policy == "block"
    return outcome in ("succeeded", "too_late", "unsupported")


def end_run(state: RunState, ended: Ended, at: datetime) -> None:
    """The run has ended, and nothing of it is open."""
    state.ended = ended
    state.ended_at = at
    state.blockers.clear()
    state.blocked_until = None
    state.since.clear()
    state.open.clear()
    state.results.clear()
    state.ready.clear()
