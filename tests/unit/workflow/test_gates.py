"""Gates wait without work: for a time, an event, a person. Waiting writes nothing, and an overdue gate says what it waits for."""

from datetime import timedelta

import pytest
from msgspec import UNSET

from kit.promises import promise
from longtake.contracts.signals import TimerFired
from longtake.workflow.plan import Plan
from longtake.workflow.script import START, Script

ASK = {"type": "object", "properties": {"take": {"type": "integer"}}, "required": ["take"]}


def started(plan: Plan) -> Script:
    script = Script(plan)
    script.accept()
    return script


@promise("W32", "T44")
def test_a_sleep_wakes_at_its_time_and_holds_nothing_meanwhile() -> None:
    script = started(
        Plan(max_parallel=1)
        .sleep("nap", seconds=90)
        .step("b", activity="b@1")
        .step("c", activity="c@1", depends_on=["nap"])
    )

    assert ("sleeping", {"step:nap": START + timedelta(seconds=90)}) == (script.status("nap"), script.timers)
    assert ["b"] == [row.step for row in script.rows.values()]
    script.succeed("b")
    assert script.tell(TimerFired(key="step:nap")).ignored is not None
    script.fire("step:nap")
    assert ("succeeded", "queued") == (script.status("nap"), script.status("c"))
    assert {} == script.timers


@promise("W33")
def test_an_event_wait_without_a_deadline_has_no_timer() -> None:
    script = started(Plan().wait("approval", event="approved"))

    assert ("waiting_event", {}, {}) == (script.status("approval"), script.timers, script.rows)
    assert ("running", ()) == (script.summary.status, script.summary.blockers)


@promise("G42")
def test_a_wait_past_its_deadline_becomes_a_blocker_that_names_what_it_waits_for() -> None:
    script = started(Plan().wait("approval", event="approved", timeout_seconds=60))
    script.fire("step:approval")

    blocker = script.summary.blockers[0]
    assert ("blocked", "wait_overdue", "approval") == (script.summary.status, blocker.type, blocker.step)
    assert "the event 'approved'" in blocker.details["message"]


def test_an_overdue_wait_gets_its_time_anew_when_somebody_says_so() -> None:
    script = started(Plan().wait("approval", event="approved", timeout_seconds=60))
    script.fire("step:approval")
    script.retry("approval")

    assert ("waiting_event", "running") == (script.status("approval"), script.summary.status)
    assert {"step:approval": START + timedelta(seconds=120)} == script.timers


@promise("W34")
def test_a_wait_that_may_fail_times_out_and_the_run_with_it() -> None:
    script = started(Plan().wait("approval", event="approved", timeout_seconds=60, on_timeout="fail"))
    script.fire("step:approval")

    assert ("timed_out", "failed", "timeout") == (
        script.status("approval"),
        script.summary.status,
        script.summary.failure.error_class,
    )


def test_an_optional_wait_that_times_out_leaves_the_run_alone() -> None:
    plan = Plan().wait("nod", event="nod", timeout_seconds=60, on_timeout="fail", optional=True)
    script = started(plan.step("b", activity="b@1", depends_on=["nod"], join="all_terminal"))
    script.fire("step:nod")

    assert ("timed_out", "queued") == (script.status("nod"), script.status("b"))


@promise("H64", "H65", "H67")
def test_an_input_step_asks_a_person() -> None:
    script = started(Plan().step("b", activity="b@1").input("choice", answer=ASK, label="Choose a take"))

    blocker = script.summary.blockers[0]
    assert ("needs_input", "input_required", "choice", "Choose a take") == (
        script.summary.status,
        blocker.type,
        blocker.step,
        blocker.details["label"],
    )
    assert "provide_generation_input" in script.summary.available_actions


def test_nobody_answered_and_the_default_is_taken() -> None:
    script = started(Plan().input("choice", answer=ASK, default={"take": 1}, timeout_seconds=30))
    script.fire("step:choice")

    assert ("completed", "default") == (script.summary.status, script.history[-2][0].source)
    assert () == script.summary.blockers


@promise("G41", "G59")
def test_a_thousand_waits_write_nothing_for_an_hour() -> None:
    """Two events open them all: no effect, no attempt, no timer; an hour later there is still nothing to do (F78)."""
    plan = Plan()
    for number in range(1000):
        plan = plan.wait(f"w:{number}", event=f"e:{number}")
    script = Script(plan)
    decision = script.accept()

    assert ["run_accepted"] + ["gates_opened"] * 4 == script.events
    assert ((), (), {}) == (decision.effects, decision.timers, script.timers)
    script.wait(3600)
    assert script.summary.timing.poll_after_ms is None


@pytest.mark.parametrize("kind", ["sleep", "wait", "input"])
def test_a_cancel_ends_what_waits(kind: str) -> None:
    plan = {
        "sleep": Plan().sleep("g", seconds=60),
        "wait": Plan().wait("g", event="e", timeout_seconds=60),
        "input": Plan().input("g", answer=ASK, timeout_seconds=60),
    }[kind]
    script = started(plan)
    script.cancel()

    assert ("cancelled", "cancelled", {}) == (script.summary.status, script.status("g"), script.timers)


def test_a_client_looks_again_when_the_first_gate_wakes() -> None:
    script = started(Plan().sleep("long", seconds=50).sleep("short", seconds=20))
    assert 21_000 == script.summary.timing.poll_after_ms

    script.fire("step:short")
    assert 31_000 == script.summary.timing.poll_after_ms


def test_people_read_what_a_run_waits_for_and_that_is_no_failure() -> None:
    asked = started(Plan().input("choose", answer=ASK, label="Choose a take"))
    assert ("Choose a take: waiting for an answer", None) == (
        asked.summary.label,
        asked.summary.failure if asked.summary.failure is not UNSET else None,
    )

    heard = started(Plan().wait("nod", event="approved", label="Approval"))
    assert "Approval: waiting for the event 'approved'" == heard.summary.label

    child = started(Plan().run("cut", workflow="cut@1", label="Cutting"))
    assert child.summary.label.startswith("Cutting: done by run ")
    # Nobody knows when it ends, and there is something to wait for.
    assert 5000 == child.summary.timing.poll_after_ms
