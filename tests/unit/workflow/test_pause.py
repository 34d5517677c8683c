"""Pause and resume (P19): nothing new begins, everything under way counts, and no time is lost by it."""

from datetime import timedelta

import pytest

from kit.commanding import answer, pause, resume, send_event
from kit.plans import FAST, film, free, one
from kit.promises import promise
from longtake.contracts.outcomes import Cancelled, Submitted, Succeeded, Unknown
from longtake.workflow.plan import Plan, Step
from longtake.workflow.script import Script

CHOICE = {"type": "object", "required": ["take"], "properties": {"take": {"type": "integer"}}}


def started(plan: Plan) -> Script:
    script = Script(plan)
    script.accept()
    return script


def chain() -> Plan:
    return Plan().step("a", activity="a@1", retry=FAST).step("b", activity="b@1", depends_on=["a"])


@promise("W07", "W11")
def test_a_paused_run_begins_nothing_and_says_so() -> None:
    script = started(chain())
    decision = pause(script)
    script.succeed("a")

    assert "paused" == script.summary.status
    assert "ready" == script.status("b")
    assert {} == script.rows
    assert (script.all_rows and script.row("a", "execute").id,) == decision.withdrawn
    assert "resume_generation" in script.summary.available_actions
    assert "pause_generation" not in script.summary.available_actions


@promise("W09")
def test_a_resumed_run_goes_on_where_it_stood() -> None:
    script = started(chain())
    pause(script)
    script.succeed("a")
    resume(script)

    assert "running" == script.summary.status
    assert ["b"] == [row.step for row in script.rows.values()]
    script.succeed("b")
    assert "completed" == script.summary.status


@promise("W09")
@pytest.mark.parametrize("command", [pause, resume])
def test_pausing_twice_and_resuming_what_runs_are_refused(command) -> None:
    script = started(free())
    if command is pause:
        pause(script)
    decision = command(script)

    assert "action-not-available" == decision.refusal.slug
    assert "/kind" == decision.refusal.errors[0].pointer
    assert () == decision.events


def test_an_attempt_that_nobody_had_begun_is_handed_out_again_as_the_same_attempt() -> None:
    script = started(free())
    first = script.row("a")
    decision = pause(script)
    assert (first.id,) == decision.withdrawn
    script.report("a", Cancelled(answer="stopped"))

    assert ("ready", {}) == (script.status("a"), script.rows)
    resume(script)
    again = script.row("a")
    assert (first.attempt, first.ordinal + 1) == (again.attempt, again.ordinal)
    assert first.id != again.id
    script.succeed("a")
    assert "completed" == script.summary.status


def test_an_attempt_that_was_taken_back_twice_is_still_the_first() -> None:
    script = started(free())
    for _ in range(2):
        pause(script)
        script.report("a", Cancelled(answer="stopped"))
        resume(script)

    assert (1, 3) == (script.row("a").attempt, script.row("a").ordinal)


def test_the_answer_to_a_withdrawal_may_come_after_the_pause() -> None:
    script = started(free())
    pause(script)
    resume(script)
    script.report("a", Cancelled(answer="stopped"))

    assert (1, 2) == (script.row("a").attempt, script.row("a").ordinal)


def test_work_that_was_stopped_without_a_pause_is_not_taken_back() -> None:
    """The broken variant: were every Cancelled taken for a withdrawal, a stopped attempt would run for ever."""
    script = started(free())
    script.report("a", Cancelled(answer="stopped"))

    assert "failed" == script.status("a")


def test_a_retry_that_waits_for_its_time_is_closed_at_once_and_keeps_its_time() -> None:
    script = started(free())
    script.fail("a")
    waiting = script.row("a")
    pause(script)

    assert ({}, "ready") == (script.rows, script.status("a"))
    assert "attempts_withdrawn" in script.events
    resume(script)
    again = script.row("a")
    assert (2, 2) == (again.attempt, again.ordinal)
    assert waiting.not_before is not None
    assert waiting.not_before == again.not_before


def test_a_failure_during_the_pause_makes_the_next_attempt_ready_and_no_more() -> None:
    script = started(free())
    pause(script)
    script.fail("a")

    assert ("ready", {}) == (script.status("a"), script.rows)
    resume(script)
    assert (2, 1) == (script.row("a").attempt, script.row("a").ordinal)


@promise("W08")
def test_what_was_begun_is_collected_during_the_pause() -> None:
    script = started(film(2))
    script.submit("scene:1", "job-1")
    pause(script)
    script.call_back("scene:1")
    script.report("scene:1", Submitted(external_ref="job-1", poll_after_seconds=5))
    script.succeed("scene:1")
    script.succeed("scene:2")
    script.succeed("voice")

    assert ["succeeded"] * 3 == [script.status(key) for key in ("scene:1", "scene:2", "voice")]
    assert "ready" == script.status("render")
    resume(script)
    assert "queued" == script.status("render")


def test_an_open_truth_is_looked_up_during_the_pause() -> None:
    script = started(one())
    pause(script)
    script.report("a", Unknown(evidence="reset"))

    assert "reconcile" == script.row("a").kind
    script.report("a", Succeeded())
    assert "completed" == script.summary.status


@promise("W08")
def test_events_and_answers_are_taken_during_the_pause() -> None:
    plan = (
        Plan()
        .input("pick", answer=CHOICE)
        .wait("go", event="go")
        .step("end", activity="a@1", depends_on=["pick", "go"])
    )
    script = started(plan)
    pause(script)

    assert ("applied", "applied") == (
        answer(script, "pick", {"take": 2}).command_status,
        send_event(script, "go").command_status,
    )
    assert ("succeeded", "succeeded", "ready") == tuple(script.status(key) for key in ("pick", "go", "end"))
    resume(script)
    assert "queued" == script.status("end")


def test_times_of_gates_sleeps_and_the_run_are_extended_by_the_pause() -> None:
    plan = (
        Plan(deadline_seconds=1000)
        .input("pick", answer=CHOICE, timeout_seconds=100)
        .sleep("nap", seconds=50)
        .wait("go", event="go", timeout_seconds=70)
    )
    script = started(plan)
    before = dict(script.timers)
    script.wait(10)
    pause(script)
    assert {} == script.timers

    script.wait(3600)
    resume(script)

    assert {key: due + timedelta(seconds=3600) for key, due in before.items()} == script.timers
    assert {"step:pick", "step:nap", "step:go", "run_deadline"} == set(before)


@pytest.mark.parametrize("key", ["step:nap", "run_deadline"])
def test_a_timer_that_goes_off_during_the_pause_does_nothing(key: str) -> None:
    script = started(Plan(deadline_seconds=60).sleep("nap", seconds=50))
    pause(script)
    script.wait(3600)

    assert script.fire(key).ignored is not None
    resume(script)
    assert "sleeping" == script.status("nap")
    script.fire("step:nap")
    assert "completed" == script.summary.status


def test_a_pause_that_took_no_time_keeps_every_timer() -> None:
    script = started(Plan(deadline_seconds=60).sleep("nap", seconds=50))
    before = dict(script.timers)
    pause(script)
    resume(script)

    assert before == script.timers


def test_the_patience_with_a_blocked_run_is_extended_too() -> None:
    script = started(film(2))
    script.fail("scene:1", "auth")
    due = script.timers["blocked_deadline"]
    pause(script)
    assert "blocked_deadline" not in script.timers
    script.wait(100)
    resume(script)

    assert due + timedelta(seconds=100) == script.timers["blocked_deadline"]


def test_a_paused_run_can_be_cancelled_and_settles() -> None:
    script = started(one())
    pause(script)
    script.cancel()

    assert "cancelling" == script.summary.status
    script.report("a", Cancelled(answer="stopped"))
    assert "cancelled" == script.summary.status
    assert (5, 5) == (script.state.charged, script.state.refunded)


def test_a_retry_of_a_blocked_step_waits_for_the_end_of_the_pause() -> None:
    script = started(film(2))
    script.fail("scene:1", "auth")
    pause(script)
    script.retry()

    assert "ready" == script.status("scene:1")
    assert "paused" == script.summary.status
    resume(script)
    assert "queued" == script.status("scene:1")


def test_a_click_on_pause_from_before_a_pause_is_stale() -> None:
    script = started(film(2))
    seen = script.state.revision
    pause(script)
    resume(script)
    decision = pause(script, revision=seen)

    assert "stale-revision" == decision.refusal.slug
    script.succeed("scene:1")
    assert pause(script, revision=script.state.revision - 1).refusal is None


def test_a_fan_out_pauses_between_what_is_out_and_what_is_to_come() -> None:
    plan = Plan(max_parallel=2).fan_out("all", range(5), lambda _, i: Step(f"s:{i}", activity="a@1"))
    script = started(plan)
    pause(script)
    script.succeed("s:1")
    script.report("s:2", Cancelled(answer="stopped"))

    assert {} == script.rows
    resume(script)
    assert ["s:2", "s:3"] == sorted(row.step for row in script.rows.values())
