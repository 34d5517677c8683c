"""Ends: how a step ends and whom that frees, how a step is given up, and how a run begins to end and has ended.

Leaves to others: which event makes which of these moves (evolve_*.py), what a join makes of an end (joins.py).
"""

from datetime import datetime

import msgspec

from longtake.workflow.blocking import unblock
from longtake.workflow.joins import losers_of, verdict, wants_to_run
from longtake.workflow.moves import (
    arm,
    close_effect,
    close_gate,
    derive_effect_id,
    make_ready,
    mark,
    open_effect,
)
from longtake.workflow.run_state import (
    ANY_EVENT,
    Ended,
    Ending,
    GroupState,
    RunState,
    StepState,
    StepStatus,
)
from longtake.workflow.step import Step


def end_step(state: RunState, index: int, status: StepStatus, *, keep_effect: bool = False) -> None:
    """The step has ended; results that only it still referred to are dropped."""
    step = state.steps[index]
    if not keep_effect:
        close_effect(state, step)
    close_gate(state, index)
    if step.abandoned:
        step.abandoned = False
        state.abandoned -= 1
    step.status = status
    mark(state, index)
    state.judged.pop(index, None)
    state.losers.pop(index, None)
    state.dated.pop(index, None)
    _build_on_needs(state, index)
    listen(state, index, -1)
    state.settled += 1
    state.completed += status == "succeeded" or state.ending is None
    while state.cursor < len(state.steps) and state.steps[state.cursor].ended:
        state.cursor += 1
    if state.plan.steps[index].optional and status in ("failed", "timed_out"):
        if state.ending is None and not _is_built_on(state, index):
            state.spared[index] = None
        return  # a person may have it tried again, and then it needs its input
    for source in state.plan.sources[index]:
        read = state.steps[source]
        read.readers -= 1
        if read.readers == 0:
            state.results.pop(source, None)


def free_dependents(state: RunState, index: int) -> None:
    """Tell whoever waits for the step, by name or by its group, how it ended."""
    status = state.steps[index].status
    for other in state.plan.dependents[index]:
        _count(state.steps[other], status)
        judge(state, other)
    plan = state.plan.steps[index]
    if plan.group is not None:
        _count_in_group(state, plan.group, status)
    if plan.fills is not None:
        group = state.groups[plan.fills]
        group.open -= 1
        if status == "succeeded":
            _judge_group(state, plan.fills, all_of_them=not group.open)
        else:
            # Nobody will add the members it was to add: it counts as one that ended so itself.
            group.total += 1
            _count_in_group(state, plan.fills, status)


def _count_in_group(state: RunState, name: str, status: StepStatus) -> None:
    group = state.groups[name]
    _count(group, status)
    ended = group.successes + group.failures + group.skips == group.total and not group.open
    first_loss = status != "succeeded" and group.failures + group.skips == 1
    _judge_group(state, name, all_of_them=ended or first_loss)


def _judge_group(state: RunState, name: str, *, all_of_them: bool) -> None:
    # Most joins change their mind at the first loss and at the end only; the others count single successes.
    for other in state.plan.group_dependents[name] if all_of_them else state.plan.counting[name]:
        judge(state, other)


def _count(counters: StepState | GroupState, status: StepStatus) -> None:
    if status == "succeeded":
        counters.successes += 1
    elif status == "skipped":
        counters.skips += 1
    else:
        counters.failures += 1


def revive(state: RunState, index: int) -> None:
    """A failed step that nobody has built on is tried again: take back what was counted of its end."""
    step, plan = state.steps[index], state.plan.steps[index]
    state.spared.pop(index, None)
    listen(state, index, 1)
    state.settled -= 1
    state.completed -= 1
    state.cursor = min(state.cursor, index)
    for other in state.plan.dependents[index]:
        state.steps[other].failures -= 1
    if plan.group is not None:
        state.groups[plan.group].failures -= 1
    if plan.fills is not None:
        group = state.groups[plan.fills]
        group.failures -= 1
        group.total -= 1
        group.open += 1
    if state.billing == "pay_as_you_go":
        step.charged = 0  # its settlement cycle is over, whatever was given back (P9)
    step.status = "pending"


def _build_on_needs(state: RunState, index: int) -> None:
    """The step begins, or will not: what it waits for stands as it ended, and is not tried again."""
    plan = state.plan
    for need in plan.needs[index]:
        state.steps[need].built = True
        state.spared.pop(need, None)
    for name in plan.group_deps[index]:
        group = state.groups[name]
        if not group.built:
            group.built = True
            for member in (*plan.groups[name], *plan.fillers.get(name, ())):
                state.spared.pop(member, None)


def _is_built_on(state: RunState, index: int) -> bool:
    plan = state.plan.steps[index]
    names = (name for name in (plan.group, plan.fills) if name is not None)
    return state.steps[index].built or any(state.groups[name].built for name in names)


def listen(state: RunState, index: int, by: int) -> None:
    """One more, or one fewer, step may wait for a named event."""
    plan = state.plan.steps[index]
    if plan.kind in ("wait", "expand"):
        name = plan.event or ANY_EVENT
        count = state.listening.pop(name, 0) + by
        if count:
            state.listening[name] = count


def judge(state: RunState, index: int) -> None:
    """Let a pending step do what its join and its condition say, as far as that needs no decision."""
    if state.steps[index].status != "pending":
        return
    found = verdict(state, index)
    if found == "wait":
        return
    _build_on_needs(state, index)
    if found in ("skip", "fail"):
        state.judged[index] = "skip" if found == "skip" else "fail"
    elif found == "run":
        if wants_to_run(state, index):
            make_ready(state, index)
        else:
            state.judged[index] = "condition"
        if state.plan.steps[index].join == "at_least":
            for loser in losers_of(state, index):
                state.losers[loser] = index


def abandon(state: RunState, index: int, at: datetime) -> None:
    """A step that is needed no more: what it has not begun is dropped, what a provider holds is told to stop (P19)."""
    step, plan = state.steps[index], state.plan.steps[index]
    blocker = state.blockers.get(plan.key)
    unblock(state, plan.key)
    close_gate(state, index)
    step.abandoned = True
    state.abandoned += 1
    state.losers.pop(index, None)
    effect = state.open.get(step.effect) if step.effect is not None else None
    if blocker is not None and blocker.type == "provider_outcome_unknown":
        learn_late(state, index, "unknown", at)
    elif effect is not None and effect.kind == "poll":
        close_effect(state, step)
        learn_late(state, index, "submitted", at)
    elif effect is not None and effect.kind == "execute" and effect.due_at > at:
        close_effect(state, step)
        step.late = "stopped"
    if step.effect is None:
        end_step(state, index, "cancelled")
        free_dependents(state, index)


def begin_ending(state: RunState, ending: Ending, at: datetime) -> None:
    """No new work from here. What is not begun is dropped, and providers that hold a request are told to stop (P10)."""
    state.ending = ending
    state.queued = None
    state.since.clear()
    state.judged.clear()
    state.losers.clear()
    state.losers_until = None
    state.buffered.clear()
    state.early = 0
    state.spared.clear()
    for key, blocker in state.blockers.items():
        if blocker.type == "provider_outcome_unknown":
            learn_late(state, state.plan.position[key], "unknown", at)
    state.blockers.clear()
    state.blocked_until = None
    for index, gate in list(state.gates.items()):
        # A child that is cancelled with its parent is waited for.
        if gate.kind != "run" or state.plan.steps[index].on_parent_close == "abandon":
            close_gate(state, index)
        elif gate.until is not None:
            # No longer than the run may settle, whatever its own time was.
            arm(state, index, None)
            state.gates[index] = msgspec.structs.replace(gate, until=None)
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
    if plan.compensate is not None and outcome in ("succeeded", "too_late") and step.compensation is None:
        state.made[index] = {"result": {}, "artifacts": {}, "external_ref": step.external_ref}
        remember_to_undo(state, index)
    if is_kept(plan, outcome):
        state.kept += plan.price


def remember_to_undo(state: RunState, index: int) -> None:
    """The step did something: should the run not complete, it is undone, the last first (H90)."""
    state.steps[index].compensation = "due"
    state.undo.append(index)


def is_kept(plan: Step, outcome: str) -> bool:
    """Whether a cancel keeps the price: the provider worked for us, or nobody can say that it did not (P10)."""
    if outcome in ("unknown", "impossible"):
        return plan.ambiguous_policy == "block"
    return outcome in ("succeeded", "too_late", "unsupported")


def end_run(state: RunState, ended: Ended, at: datetime) -> None:
    """The run has ended, and nothing of it is open."""
    state.ended = ended
    state.ended_at = at
    state.queued = None
    state.paused_at = None
    for index in list(state.gates):
        close_gate(state, index)
    state.undoing = None
    state.undo.clear()
    state.spared.clear()
    state.judged.clear()
    state.losers.clear()
    state.buffered.clear()
    state.early = 0
    state.blockers.clear()
    state.blocked_until = None
    state.since.clear()
    state.open.clear()
    state.results.clear()
    state.ready.clear()
    state.ready_gates.clear()
    state.since["follow_up_generation"] = state.revision
    state.since["fork_generation"] = state.revision
