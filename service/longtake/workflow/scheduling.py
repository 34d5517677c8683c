"""Handing out work: which ready steps get their effects now, and whether the run is done (design.md 6).

Ready steps go in plan order while slots are free. A slot is held by every open effect, a retry that waits for its
time included, so `max_parallel` also bounds what comes due together.
Leaves to others: what makes a step ready (state.py).
"""

import hashlib
import heapq

from longtake.contracts.events import RunCompleted, ScheduledStep, StepsScheduled
from longtake.workflow.draft import Draft
from longtake.workflow.moves import derive_effect_id

STEPS_PER_EVENT_MAX = 250
"""Keeps an event below its size limit."""


def advance(draft: Draft) -> None:
    """Complete the run when every step has succeeded, else hand out what is ready."""
    state = draft.state
    if state.ending is not None:
        return
    if state.succeeded == len(state.steps):
        draft.record(RunCompleted())
        return
    schedule_ready(draft)


def schedule_ready(draft: Draft) -> None:
    """Give ready steps their effects, in plan order, while the run has free slots and nothing blocks all of it."""
    state = draft.state
    if state.run_blockers:
        return
    slots = max(0, state.plan.plan.max_parallel - len(state.open))
    chosen: list[int] = []
    while state.ready and len(chosen) < slots:
        position = heapq.heappop(state.ready)
        if state.steps[position].status == "ready" and position not in chosen[-1:]:
            chosen.append(position)
    for start in range(0, len(chosen), STEPS_PER_EVENT_MAX):
        part = chosen[start : start + STEPS_PER_EVENT_MAX]
        draft.record(StepsScheduled(steps=tuple(_scheduled(draft, position) for position in part)))


def _scheduled(draft: Draft, position: int) -> ScheduledStep:
    state = draft.state
    key, attempt = state.plan.steps[position].key, state.steps[position].attempt + 1
    return ScheduledStep(
        step=key,
        attempt=attempt,
        effect_id=derive_effect_id(state, key, attempt, "execute", 1),
        input_digest=hashlib.sha256(draft.input_of(position)).hexdigest(),
    )
