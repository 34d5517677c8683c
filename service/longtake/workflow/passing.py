"""What a decision says of steps that will not run: skipped, failed by their dependencies, or needed no more.

Leaves to others: how a join comes to its verdict (joins.py), attempts that failed (settling.py).
"""

from datetime import timedelta
from itertools import groupby

from longtake.contracts.events import RunFailing, StepFailed, StepsAbandoned, StepsSkipped
from longtake.workflow.charging import settle_step
from longtake.workflow.draft import Draft
from longtake.workflow.ending import settle_when_known
from longtake.workflow.evolve_attempts import SETTLE_SECONDS_MAX
from longtake.workflow.joins import bears, waiters
from longtake.workflow.run_state import RunState

STEPS_PER_EVENT_MAX = 250
"""Keeps an event below its size limit."""


def pass_over(draft: Draft) -> None:
    """Say everything that joins have decided, and what follows from it, until nothing is left or the run ends."""
    state = draft.state
    while state.ending is None and (state.judged or state.losers):
        if state.losers:
            _abandon_losers(draft)
            continue
        failed = sorted(index for index, why in state.judged.items() if why == "fail")
        for index in failed:
            if state.ending is None and not state.losers and state.judged.get(index) == "fail":
                _fail_dependent(draft, index)
        if not failed:
            _skip(draft, "condition")
            _skip(draft, "skip")


def is_contained(state: RunState, index: int) -> bool:
    """Whether the run goes on when this step fails: it is optional, or somebody who waits for it bears that."""
    return state.plan.steps[index].optional or any(
        bears(state, waiter, index) for waiter in waiters(state, index)
    )


def settle_abandoned(draft: Draft, key: str) -> None:
    """The last of an abandoned step is known: give back what its rule gives back."""
    if draft.state.steps[draft.state.plan.position[key]].ended:
        settle_step(draft, key)


def miss_delivery(draft: Draft, key: str) -> None:
    """Every step has ended and the one that delivers did not succeed: that is no completion (H02)."""
    status = draft.state.steps[draft.state.plan.position[key]].status
    draft.record(
        RunFailing(
            error_class="dependency",
            origin="infrastructure",
            message=f"the delivery did not come about: the step {key!r} is {status}",
            step=key,
            settle_until=draft.now + timedelta(seconds=SETTLE_SECONDS_MAX),
        )
    )
    settle_when_known(draft)


def _skip(draft: Draft, why: str) -> None:
    state = draft.state
    keys = [state.plan.steps[index].key for index, found in sorted(state.judged.items()) if found == why]
    for start in range(0, len(keys), STEPS_PER_EVENT_MAX):
        draft.record(
            StepsSkipped(
                steps=tuple(keys[start : start + STEPS_PER_EVENT_MAX]),
                reason="condition" if why == "condition" else "dependencies",
            )
        )


def _fail_dependent(draft: Draft, index: int) -> None:
    state = draft.state
    key = state.plan.steps[index].key
    contained = is_contained(state, index)
    draft.record(
        StepFailed(
            step=key,
            attempt=state.steps[index].attempt,
            error_class="dependency",
            origin="infrastructure",
            message="what the step waits for can no longer succeed often enough",
            contained=contained,
        )
    )
    if not contained:
        settle_when_known(draft)


def _abandon_losers(draft: Draft) -> None:
    state = draft.state
    by_join = sorted(state.losers.items(), key=lambda pair: (pair[1], pair[0]))
    for join, group in groupby(by_join, key=lambda pair: pair[1]):
        positions = [position for position, _ in group if position in state.losers]
        for start in range(0, len(positions), STEPS_PER_EVENT_MAX):
            part = positions[start : start + STEPS_PER_EVENT_MAX]
            draft.record(
                StepsAbandoned(
                    steps=tuple(state.plan.steps[position].key for position in part),
                    by=state.plan.steps[join].key,
                    settle_until=draft.now + timedelta(seconds=SETTLE_SECONDS_MAX),
                )
            )
            for position in part:
                effect_id = state.steps[position].effect
                if effect_id is not None and state.open[effect_id].kind == "execute":
                    draft.withdraw(effect_id)
                settle_abandoned(draft, state.plan.steps[position].key)
