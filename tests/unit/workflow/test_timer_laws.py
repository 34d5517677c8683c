"""What wakes a run is armed by the decision that lets it rest, for the earliest of its times, and nobody else moves it (W36-W45).

There is no clock in the process that could be late or lost: timers are rows of the decision. The laws are held for any plan and
any sequence of facts, against the times as they can be read off the state alone.
"""

import os
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kit.drawn_plans import plans
from kit.drawn_worlds import World
from kit.plans import FAST, one
from kit.promises import promise
from longtake.contracts.signals import ResumeRun, RetryRun, Signal, TimerFired
from longtake.workflow.moves import TIMER
from longtake.workflow.plan import Plan
from longtake.workflow.run_state import INFORMATIVE, NEEDS_INPUT, RunState
from longtake.workflow.script import START, Script

DRAWN: dict[str, Any] = {
    "max_examples": int(os.environ.get("LONGTAKE_LAWS", "150")),
    "suppress_health_check": list(HealthCheck),
    "phases": (Phase.explicit, Phase.generate, Phase.shrink),
}

WAITS_WITHOUT_END = NEEDS_INPUT | INFORMATIVE
"""A person who is asked has all the time that the plan gives; what only tells of open work ends with that work."""


def times_of(state: RunState) -> dict[str, datetime]:
    """At what times the run must do something by itself, by what is due then. A paused run is late for nothing but losers."""
    found: dict[str, datetime | None] = {}
    if state.ended is not None:
        return {}
    if state.ending is not None:
        return {"settlement": state.ending.settle_until}
    found["losers"] = state.losers_until
    if state.paused_at is None:
        found["run_deadline"] = state.deadline_at
        found["blocked_deadline"] = state.blocked_until
        found["start_at"] = None if state.queued is None else state.queued.start_at
        for index, gate in state.gates.items():
            found[TIMER + state.plan.steps[index].key] = gate.until
    return {key: due_at for key, due_at in found.items() if due_at is not None}


def hold_armed(state: RunState, timers: dict[str, datetime]) -> None:
    """Every time of the state is armed, for exactly then."""
    wanted = times_of(state)
    assert {key: due_at for key, due_at in timers.items() if key in wanted} == wanted


def hold_not_later(signal: Signal, before: dict[str, datetime], after: dict[str, datetime]) -> None:
    """Nothing puts a time off but a pause, which stops the clock, somebody who says: try again, and a blocker more, about
    which people get their time to decide."""
    for key, due_at in after.items():
        if due_at > before.get(key, due_at):
            assert isinstance(signal, ResumeRun | RetryRun) or key == "blocked_deadline", key


def hold_woken(script: Script) -> None:
    """Whoever waits is explained: by work that is open, by a time, by a gate, a line, or a pause."""
    state = script.state
    asked = any(item.type in NEEDS_INPUT for item in state.blockers.values())
    if state.ended is None:
        assert script.rows or script.timers or state.gates or state.queued or state.paused_at or asked
    stuck = {item.type for item in state.blockers.values()} - WAITS_WITHOUT_END
    if stuck and state.ended is None and state.ending is None and state.paused_at is None:
        assert "blocked_deadline" in script.timers, "a blocked run that nobody would ever end"


@promise("W36", "W37", "W38")
@settings(**DRAWN)
@given(st.data())
def test_the_times_of_a_run_are_armed_by_each_decision_and_not_put_off(data: st.DataObject) -> None:
    world = World(data.draw, data.draw(plans()))
    world.accept()
    script = world.script
    hold_armed(script.state, script.timers)
    for _ in range(data.draw(st.integers(1, 40))):
        script.wait(data.draw(st.sampled_from([0, 0, 1, 30, 400])))
        signal, before = world.signal(), dict(script.timers)
        script.tell(signal)
        hold_armed(script.state, script.timers)
        hold_not_later(signal, before, script.timers)
        hold_woken(script)


@pytest.mark.parametrize("broken", ["late", "forgotten"])
def test_a_timer_that_is_late_or_forgotten_is_found_out(broken: str) -> None:
    script = Script(Plan().sleep("nap", seconds=90))
    script.accept()
    hold_armed(script.state, script.timers)
    wrong = {"late": {"step:nap": START + timedelta(seconds=91)}, "forgotten": {}}[broken]
    with pytest.raises(AssertionError):
        hold_armed(script.state, wrong)
    with pytest.raises(AssertionError):
        hold_not_later(TimerFired(key="step:nap"), script.timers, {"step:nap": START + timedelta(hours=1)})


@promise("W40", "W43")
def test_a_run_that_only_waits_for_work_is_watched_by_the_deadline_of_that_work() -> None:
    """The watchdog is no timer of a process: each open effect has a lease or a time after which it counts as silent."""
    script = Script(Plan().step("a", activity="a@1", timeout_seconds=60, retry=FAST))
    script.accept()
    (row,) = script.rows.values()
    assert row.deadline == START + timedelta(seconds=60)
    assert script.timers == {}
    script.pass_deadline("a", call_opened=False)
    (again,) = script.rows.values()
    assert (again.attempt, again.id != row.id) == (2, True)


@promise("W42")
def test_work_that_was_begun_and_interrupted_is_recorded_and_comes_again_only_when_it_is_due() -> None:
    """A worker that died before its call has a failed attempt, with the usual wait; when no attempt is left, it has none."""
    script = Script(one(on_exhausted="fail"))
    script.accept()
    attempts = script.state.plan_of("a").retry.max_attempts
    for attempt in range(1, attempts + 1):
        row = script.row("a")
        assert row.attempt == attempt
        script.lose_lease("a", call_opened=False)
        failed = [event for event, _ in script.history if event.TYPE == "attempt_failed"]
        assert len(failed) == attempt
        if attempt < attempts:
            again = script.row("a")
            assert again.not_before is not None
            assert again.not_before > script.now
    assert "run_failed" in script.events or script.state.ending is not None
    assert [row.kind for row in script.rows.values() if row.kind == "execute"] == []


@promise("W44")
def test_what_waits_for_a_word_from_outside_alone_has_no_timer_at_all() -> None:
    script = Script(Plan().wait("said", event="go").step("b", activity="b@1", depends_on=["said"]))
    script.accept()
    assert ({}, {}) == (script.timers, script.rows)
    assert times_of(script.state) == {}


@promise("W45")
def test_a_timer_that_goes_off_while_its_reason_is_being_decided_changes_nothing() -> None:
    """Decisions of a run are one after the other (P5): the second of two finds the state of the first, and nothing is done twice."""
    script = Script(Plan().sleep("nap", seconds=90).step("b", activity="b@1", depends_on=["nap"]))
    script.accept()
    script.fire("step:nap")
    before = script.state.revision
    again = script.tell(TimerFired(key="step:nap"))
    assert again.ignored is not None
    assert (script.state.revision, [row.step for row in script.rows.values()]) == (before, ["b"])
