"""Handing out work: which ready steps begin now, which are passed over, and whether the run is done (design.md 6).

Ready steps go in plan order while slots are free. A slot is held by every open effect, a retry that waits for its
time included, so `max_parallel` also bounds what comes due together. Gates need no slot.
Leaves to others: what makes a step ready (ends.py, joins.py), opening gates (gates.py), paying (charging.py).
"""

import hashlib
import heapq

from longtake.contracts.events import RunCompleted, ScheduledStep, StepsScheduled
from longtake.workflow.charging import charge_before
from longtake.workflow.draft import Draft
from longtake.workflow.gates import open_gates
from longtake.workflow.length import bound_length
from longtake.workflow.moves import derive_effect_id
from longtake.workflow.passing import miss_delivery, pass_over
from longtake.workflow.run_state import RunState

STEPS_PER_EVENT_MAX = 250
"""Keeps an event below its size limit."""


def advance(draft: Draft) -> None:
    """Say what the joins decided, complete the run when every step has ended, else hand out what is ready."""
    state = draft.state
    while state.ending is None and not state.terminal:
        pass_over(draft)
        if state.ending is not None:
            return
        if state.settled == len(state.steps) and not state.open:
            _complete(draft)
            return
        bound_length(draft)
        if state.ending is not None:
            return
        if not schedule_ready(draft):
            return


def schedule_ready(draft: Draft) -> bool:
    """Give ready steps their effects while the run has free slots and nothing holds all of it; open ready gates.

    True when a gate was passed at once, so that more may be ready now.
    """
    state = draft.state
    if is_held(state):
        return False
    slots = max(0, state.plan.plan.max_parallel - len(state.open))
    chosen: list[int] = []
    while state.ready and len(chosen) < slots:
        part: list[int] = []
        while state.ready and len(chosen) + len(part) < slots:
            position = heapq.heappop(state.ready)
            if state.steps[position].status == "ready" and position not in (part or chosen)[-1:]:
                part.append(position)
        # Those that the cap keeps back leave their slots to others.
        chosen += charge_before(draft, part)
    for start in range(0, len(chosen), STEPS_PER_EVENT_MAX):
        part = chosen[start : start + STEPS_PER_EVENT_MAX]
        draft.record(StepsScheduled(steps=tuple(_scheduled(draft, position) for position in part)))
    return open_gates(draft)


def is_held(state: RunState) -> bool:
    """Whether nothing new may begin in the whole run: a blocker of the run, a pause, or its beginning is to come."""
    return bool(state.run_blockers) or state.paused_at is not None or state.queued is not None


def _complete(draft: Draft) -> None:
    state = draft.state
    delivers = state.plan.plan.delivers
    if delivers is not None and state.steps[state.plan.position[delivers]].status != "succeeded":
        miss_delivery(draft, delivers)
        return
    draft.record(RunCompleted())


def _scheduled(draft: Draft, position: int) -> ScheduledStep:
    state = draft.state
    step, key = state.steps[position], state.plan.steps[position].key
    attempt, ordinal = (step.attempt, step.executes + 1) if step.withdrawn else (step.attempt + 1, 1)
    return ScheduledStep(
        step=key,
        attempt=attempt,
        effect_id=derive_effect_id(state, key, attempt, "execute", ordinal),
        ordinal=ordinal,
        input_digest=hashlib.sha256(draft.input_of(position)).hexdigest(),
    )
