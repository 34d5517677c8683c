"""Advertised if and only if accepted (P3), in every state that small plans of every kind and join can get to."""

import os
import time
from collections.abc import Callable, Iterator

import pytest

from kit.promises import promise
from kit.small_plans import small_plans
from kit.walking import Place, beginning, command_of, copied, followers, mark, targets_of
from longtake.contracts.summary import Action
from longtake.workflow.actions import ACTIONS, available_actions, since_of, why_unavailable
from longtake.workflow.plan import Plan
from longtake.workflow.reducer import decide
from longtake.workflow.run_state import NEEDS_INPUT, RUN_BLOCKER, RunState

DECIDED: tuple[Action, ...] = tuple(
    action for action in ACTIONS if action not in ("fork_generation", "follow_up_generation")
)
"""Actions that the run itself decides; the other two start a run and leave this one alone."""

SEARCHING = os.environ.get("LONGTAKE_EXAMPLES") == "searching"
DEPTHS = {1: 6, 2: 4, 3: 3} if SEARCHING else {1: 5, 2: 2, 3: 2}
"""By number of steps: how many facts and commands a walk is long."""

PARTS = 4
"""So that several processes share the work."""

STATES_MIN = 8_000
"""Fewer states a part would mean that the walk has lost its way."""

Advertised = Callable[[RunState], tuple[Action, ...]]


def taken(place: Place, action: Action, target: str | None, *, revision: int | None = None) -> bool:
    """Whether the run takes the command now."""
    command = command_of(place.state, action, target, revision=revision)
    assert command is not None
    # A refusal changes nothing, so only what is taken needs a state of its own.
    refusable = why_unavailable(place.state, action, target) is not None
    state, before = place.state if refusable else copied(place.state), place.state.revision
    accepted = decide(state, command, place.now).refusal is None
    assert place.state.revision == before, f"{action} of {target} was to be refused and has changed the run"
    return accepted


def disagreements(place: Place, advertised: Advertised = available_actions) -> list[str]:
    """Actions that are offered and not taken, or taken and not offered; with a target, by what the rule says of it."""
    wrong: list[str] = []
    state = place.state
    for action in DECIDED:
        accepted = []
        for target in targets_of(state, action):
            accepted.append(taken(place, action, target))
            if accepted[-1] != (why_unavailable(state, action, target) is None):
                wrong.append(f"{action} of {target}: taken is {accepted[-1]}")
        if any(accepted) != (action in advertised(state)):
            wrong.append(f"{action}: offered is {action in advertised(state)}")
    for key, blocker in state.blockers.items():
        if key.startswith(RUN_BLOCKER) or blocker.type == "no_worker":
            continue
        way_out: Action = "provide_generation_input" if blocker.type in NEEDS_INPUT else "retry_generation"
        if state.ending is None and not state.run_blockers and not taken(place, way_out, key):
            wrong.append(f"{way_out} does not help against {blocker.type} of {key}")
    return wrong


def staleness(before: RunState, place: Place) -> list[str]:
    """Where `since` is wrong: an action that was not there is taken by somebody who saw none, or is never fresh."""
    wrong: list[str] = []
    for action in DECIDED:
        for target in targets_of(place.state, action):
            if why_unavailable(place.state, action, target) is not None:
                continue
            since = since_of(place.state, action, target)
            if not 1 <= since <= place.state.revision:
                wrong.append(f"{action} of {target} stands since {since} of {place.state.revision}")
            was_there = (
                target in targets_of(before, action) and why_unavailable(before, action, target) is None
            )
            if not was_there and since <= before.revision:
                wrong.append(f"{action} of {target} is new and stands since {since}")
    return wrong


def walk(plan: Plan, depth: int) -> Iterator[tuple[RunState | None, Place]]:
    """Every state within so many steps, each with the one it was found from."""
    first = beginning(plan)
    seen = {mark(first.state)}
    yield None, first
    here = [first]
    for _ in range(depth):
        following: list[Place] = []
        for place in here:
            for after in followers(place, DECIDED):
                found = mark(after.state)
                if found not in seen:
                    seen.add(found)
                    following.append(after)
                    yield place.state, after
        here = following


@promise("H37", "G16", "W11")
@pytest.mark.timeout(3600 if SEARCHING else 120)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_state_offers_exactly_what_it_takes(part: int, capsys: pytest.CaptureFixture[str]) -> None:
    """All plans of up to three steps across every kind and join, walked with every fact and every command."""
    began = time.monotonic()
    plans = list(small_plans())
    states = 0
    wrong: list[str] = []
    for name, plan in plans[part::PARTS]:
        for before, place in walk(plan, DEPTHS[len(plan.steps)]):
            states += 1
            wrong += [f"{name}: {item}" for item in disagreements(place)]
            if before is not None:
                wrong += [f"{name}: {item}" for item in staleness(before, place)]
    seconds = time.monotonic() - began
    with capsys.disabled():
        print(
            f"\nadvertised, part {part + 1} of {PARTS}: {len(plans[part::PARTS])} plans, {states} states, "
            f"{len(wrong)} disagreements, {seconds:.0f} s"
        )

    assert [] == wrong[:20]
    assert states > STATES_MIN


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (lambda state: (*available_actions(state), "pause_generation"), "pause_generation"),
        (
            lambda state: tuple(a for a in available_actions(state) if a != "retry_generation"),
            "retry_generation",
        ),
        (
            lambda state: (*available_actions(state), *(["send_generation_event"] if state.blockers else [])),
            "send_generation_event",
        ),
    ],
    ids=["too much", "too little", "at the wrong time"],
)
def test_an_offer_that_is_not_the_rule_would_be_noticed(broken: Advertised, found: str) -> None:
    plans = dict(small_plans())
    wrong = {
        item.partition(":")[0] for _, place in walk(plans["paid"], 3) for item in disagreements(place, broken)
    }

    assert {found} == wrong
