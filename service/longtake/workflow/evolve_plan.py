"""What additions to a plan leave in the state: fragments of an expansion, and steps that a fork takes over."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from longtake.contracts import events
from longtake.contracts.events import Event
from longtake.workflow.ends import end_step, free_dependents, judge, listen
from longtake.workflow.evolve_attempts import keep_result
from longtake.workflow.growth import grow
from longtake.workflow.moves import mark, touch
from longtake.workflow.plan import compile_plan
from longtake.workflow.run_state import RunState, StepState


def _plan_expanded(state: RunState, event: events.PlanExpanded, at: datetime) -> None:
    state.quoted = event.quoted
    before, after = state.plan, compile_plan(grow(state.plan.plan, event.steps))
    state.plan = after
    for index, readers in enumerate(before.readers):
        # The fragment may refer to steps that stood there before.
        state.steps[index].readers += after.readers[index] - readers
    first = len(before.steps)
    for index, plan in enumerate(after.steps[first:], start=first):
        state.steps.append(StepState(base=plan.retry.max_attempts, readers=after.readers[index]))
        state.groups[str(plan.group)].total += 1
        listen(state, index, 1)
        mark(state, index)
    for index in range(first, len(after.steps)):
        judge(state, index)


def _steps_reused(state: RunState, event: events.StepsReused, at: datetime) -> None:
    for item in event.steps:
        index, step = touch(state, item.step)
        plan = state.plan.steps[index]
        step.external_ref = item.external_ref
        step.reused = "free" if item.free else "again"
        if not item.free:
            state.kept += plan.price
        step.artifacts = tuple(artifact.name for artifact in item.artifacts)
        keep_result(state, index, item.result, item.artifacts)
        state.succeeded += 1
        state.succeeded_by_phase[plan.phase] = state.succeeded_by_phase.get(plan.phase, 0) + 1
        end_step(state, index, "succeeded")
        free_dependents(state, index)


HANDLERS: dict[type[Event], Callable[[RunState, Any, datetime], None]] = {
    events.PlanExpanded: _plan_expanded,
    events.StepsReused: _steps_reused,
}
