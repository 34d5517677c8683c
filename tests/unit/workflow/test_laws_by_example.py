"""Single sequences of facts that once broke a law of test_laws.py; each states the rule that holds now."""

import uuid
from datetime import timedelta

import msgspec
import pytest

from kit.commanding import answer, pause, resume, send_event
from kit.plans import FAST, one
from kit.promises import promise
from longtake.contracts.outcomes import Cancelled, Failed, Submitted, Succeeded
from longtake.contracts.signals import ChildEnded, OutcomeReported, TimerFired, WorkStalled
from longtake.workflow.plan import Plan, Retry, Step, StepFacts, at_least, group, ref
from longtake.workflow.reconciling import OVERDUE_MAX
from longtake.workflow.script import START, Script

ONCE = Retry(max_attempts=1)
ASK = {"type": "object"}


def started(plan: Plan) -> Script:
    script = Script(plan)
    script.accept()
    return script


# --- timers: one whose time has come means something, or its row would be found due for ever --------------------------


def test_the_deadline_of_a_run_goes_when_the_run_begins_to_end() -> None:
    script = started(Plan(deadline_seconds=100).step("a", activity="a@1"))
    decision = script.cancel()

    assert ("run_deadline" in decision.timers_cancelled, "cancelling") == (True, script.summary.status)
    assert ["settlement"] == list(script.timers)


def test_a_child_that_is_waited_for_while_the_run_ends_has_no_time_of_its_own() -> None:
    script = started(Plan().run("film", workflow="film@1", timeout_seconds=60))
    script.cancel()

    assert ["settlement"] == list(script.timers)
    script.fire("settlement")
    assert ("cancelled", {}) == (
        script.summary.status,
        {k: v for k, v in script.timers.items() if k != "settlement"},
    )


def test_what_blocks_a_paused_run_has_no_time_before_the_run_goes_on() -> None:
    script = started(one(on_exhausted="block", retry=ONCE))
    pause(script)
    script.fail("a", "auth")
    assert "blocked_deadline" not in script.timers

    script.wait(3600)
    resume(script)
    assert "blocked_deadline" in script.timers


def test_a_deadline_of_a_step_bounds_its_effects_and_has_no_timer_after_a_pause() -> None:
    script = started(one(deadline_seconds=90))
    script.submit("a", poll_after_seconds=10)
    pause(script)
    script.wait(30)
    resume(script)

    assert {} == script.timers
    assert START + timedelta(seconds=120) == script.state.steps[0].deadline_at


def test_what_a_join_gave_up_is_settled_although_the_run_is_paused() -> None:
    plan = (
        Plan()
        .step("fast", activity="a@1")
        .step("slow", activity="b@1")
        .step("end", activity="c@1", depends_on=["fast", "slow"], join=at_least(1))
    )
    script = started(plan)
    script.succeed("fast")
    pause(script)
    script.fire("losers")

    assert "cancelled" == script.status("slow")


# --- receipts and withdrawn attempts --------------------------------------------------------------------------------


@promise("T43")
def test_a_receipt_that_comes_again_does_not_take_the_place_of_undoing() -> None:
    script = started(
        Plan()
        .step("book", activity="book@1", compensate="unbook@1", price=3)
        .step("pay", activity="pay@1", depends_on=["book"], retry=ONCE)
    )
    receipt = script.row("book")
    script.succeed("book")
    script.fail("pay", "auth")
    again = OutcomeReported(
        effect_id=receipt.id, step="book", attempt=1, kind="execute", outcome=Succeeded(result={})
    )

    assert "attempt_closed" == script.tell(again).ignored.reason
    assert ["compensate"] == [row.kind for row in script.rows.values()]
    script.report("book", Succeeded())
    assert ("failed", "done") == (script.summary.status, script.history[-1][0].compensation)


def test_a_request_that_a_provider_holds_is_not_made_again_after_a_pause() -> None:
    """The pause recalled the attempt, its worker had begun: what the provider stops later is no attempt that never began."""
    script = started(one(on_exhausted="fail"))
    pause(script)
    script.submit("a")
    resume(script)
    script.report("a", Cancelled(answer="stopped"))

    assert ["execute", "poll"] == [row.kind for row in script.all_rows.values()]
    assert "failed" == script.status("a")


def test_the_same_answer_about_an_overdue_request_is_taken_once() -> None:
    script = started(one())
    script.submit("a")
    for _ in range(OVERDUE_MAX):
        script.pass_deadline("a")
        script.submit("a")
    row = script.row("a", "reconcile")
    assert "blocked" == script.status("a")
    again = OutcomeReported(
        effect_id=row.id, step="a", attempt=1, kind="reconcile", outcome=Submitted(external_ref="job-1")
    )

    assert "attempt_closed" == script.tell(again).ignored.reason


def test_work_that_nobody_takes_is_no_blocker_of_a_step_that_is_needed_no_more() -> None:
    plan = (
        Plan()
        .step("fast", activity="a@1")
        .step("slow", activity="b@1")
        .step("end", activity="c@1", depends_on=["fast", "slow"], join=at_least(1))
    )
    script = started(plan)
    script.succeed("fast")
    stalled = WorkStalled(signal_id=uuid.UUID(int=1), step="slow", attempt=1, waits_for="a worker")

    assert "attempt_closed" == script.tell(stalled).ignored.reason


# --- tries that a person asks for ----------------------------------------------------------------------------------


def test_a_failed_optional_step_that_is_tried_again_still_has_its_input() -> None:
    script = started(
        Plan()
        .step("look", activity="look@1")
        .step("b", activity="b@1", input={"n": ref("look", "/result/n")}, optional=True, retry=ONCE)
        .step("long", activity="long@1")
    )
    script.succeed("look", n=7)
    script.fail("b", "auth")
    script.retry("b")

    assert b'{"n":7}' == script.row("b").input


def test_a_failed_expansion_that_is_tried_again_fills_its_group_once() -> None:
    plan = (
        Plan()
        .expand("cut", activity="cut@1", fills="parts", expands_to=[], optional=True, retry=ONCE)
        .step("all", activity="all@1", depends_on=[group("parts"), "long"], join="all_terminal")
        .step("long", activity="long@1")
    )
    script = started(plan)
    script.fail("cut", "auth")
    script.retry("cut")
    before = script.state.groups["parts"]
    assert (0, 0, 1) == (before.total, before.failures, before.open)

    script.report("cut", Succeeded(fragment=()))
    script.succeed("long")
    assert "queued" == script.status("all")


def test_a_step_that_somebody_has_built_on_is_not_tried_again() -> None:
    plan = (
        Plan()
        .step("a", activity="a@1", optional=True, retry=ONCE)
        .step("b", activity="b@1", depends_on=["a"], join="all_terminal")
    )
    script = started(plan)
    script.fail("a", "auth")

    assert script.retry("a").refusal is not None
    assert {} == script.state.spared


# --- joins ------------------------------------------------------------------------------------------------------------


def expanded(**waiting: object) -> Script:
    plan = (
        Plan(facts={"part@1": StepFacts()})
        .expand("cut", activity="cut@1", fills="parts", expands_to=["part@1"])
        .step("all", activity="all@1", depends_on=[group("parts")], **waiting)
    )
    script = started(plan)
    assert "pending" == script.status("all")
    parts = tuple(msgspec.to_builtins(Step(f"cut:{n}", activity="part@1", retry=ONCE)) for n in range(3))
    script.report("cut", Succeeded(fragment=parts))
    return script


def test_all_terminal_waits_for_what_an_expansion_may_still_add() -> None:
    script = expanded(join="all_terminal")
    for number in range(3):
        assert "pending" == script.status("all")
        script.succeed(f"cut:{number}")

    assert "queued" == script.status("all")


def test_at_least_is_not_given_up_while_an_expansion_may_add_members() -> None:
    script = expanded(join=at_least(2))
    script.succeed("cut:0")
    assert "pending" == script.status("all")
    script.succeed("cut:1")

    assert "queued" == script.status("all")


def test_a_step_that_others_wait_for_is_not_given_up_with_the_losers_of_a_join() -> None:
    plan = (
        Plan()
        .step("fast", activity="a@1")
        .step("slow", activity="b@1")
        .step("first", activity="c@1", depends_on=["fast", "slow"], join=at_least(1))
        .step("other", activity="d@1", depends_on=["slow"])
    )
    script = started(plan)
    script.succeed("fast")
    assert ("queued", False) == (script.status("slow"), script.state.steps[1].abandoned)

    script.succeed("slow")
    assert "queued" == script.status("other")


def test_a_required_step_that_nothing_can_save_ends_the_run_at_once() -> None:
    plan = (
        Plan()
        .step("a", activity="a@1", optional=True, retry=ONCE)
        .step("b", activity="b@1", depends_on=["a"])
    )
    script = started(plan)
    script.fail("a", "auth")

    assert ("failed", "dependency", "b") == (
        script.summary.status,
        script.summary.failure.error_class,
        script.summary.failure.step,
    )


# --- relatives ----------------------------------------------------------------------------------------------------


def test_a_child_that_one_decision_starts_and_lets_go_is_told() -> None:
    """A gate that an early event passes meets the join, which needs the child no more that was asked for a moment ago."""
    plan = (
        Plan()
        .step("first", activity="a@1")
        .run("film", workflow="film@1", depends_on=["first"])
        .wait("nod", event="nod", depends_on=["first"])
        .step("end", activity="b@1", depends_on=["film", "nod"], join=at_least(1))
    )
    script = started(plan)
    send_event(script, "nod")
    decision = script.succeed("first")

    assert ["start_child", "parent_closed"] == [fact.kind for fact in decision.outgoing]
    assert "cancelled" == script.status("film")


def test_a_child_that_ended_is_not_told_that_nobody_waits() -> None:
    script = started(Plan().run("film", workflow="film@1").step("end", activity="b@1", depends_on=["film"]))
    child = script.state.gates[0].child
    ended = ChildEnded(signal_id=uuid.UUID(int=1), step="film", attempt=1, child=child, outcome="completed")

    assert () == script.tell(ended).outgoing


# --- 1,000 waits ------------------------------------------------------------------------------------------------------


@promise("G41", "G59")
@pytest.mark.parametrize("kind", ["input", "run"])
def test_a_thousand_questions_or_children_write_nothing_for_an_hour(kind: str) -> None:
    """Four events open them all; no effect, no timer, and after an hour of virtual time nothing is due (F78)."""
    plan = Plan()
    for number in range(1000):
        plan = (
            plan.input(f"w:{number}", answer=ASK)
            if kind == "input"
            else plan.run(f"w:{number}", workflow="film@1")
        )
    script = Script(plan)
    decision = script.accept()
    children = len(decision.outgoing)
    script.wait(3600)

    assert ["run_accepted"] + ["gates_opened"] * 4 == script.events
    assert ((), (), {}, {}) == (decision.effects, decision.timers, script.timers, script.rows)
    assert (1000 if kind == "run" else 0) == children
    assert (
        None if kind == "input" else 5000
    ) == script.summary.timing.poll_after_ms  # a child may end at any time
    assert "timer_not_due" == script.tell(TimerFired(key="step:w:1")).ignored.reason
    assert 5 == script.state.revision


def test_an_answer_after_an_hour_counts_all_the_same() -> None:
    script = started(Plan().input("q", answer=ASK))
    script.wait(3600)
    answer(script, "q", {"take": 1})

    assert "completed" == script.summary.status


def test_a_failure_of_the_request_that_a_poll_tells_of_ends_the_attempt() -> None:
    script = started(one(retry=FAST))
    script.submit("a")
    script.report("a", Failed(error_class="transient", message="gone"))

    assert ("retry_scheduled", 2) == (script.status("a"), script.state.steps[0].attempt)


def test_a_kept_event_that_is_consumed_makes_room_for_another() -> None:
    plan = Plan().step("a", activity="a@1").wait("w", event="go", depends_on=["a"])
    script = started(plan)
    send_event(script, "go")
    assert 1 == script.state.early

    script.succeed("a")
    assert (0, {}) == (script.state.early, script.state.buffered)


def test_a_retry_of_what_is_needed_no_more_is_dropped_at_once() -> None:
    plan = (
        Plan()
        .step("fast", activity="a@1")
        .step("slow", activity="b@1", retry=FAST)
        .step("end", activity="c@1", depends_on=["fast", "slow"], join=at_least(1))
    )
    script = started(plan)
    script.fail("slow")
    assert "retry_scheduled" == script.status("slow")
    script.succeed("fast")

    assert ("cancelled", "stopped", ["end"]) == (
        script.status("slow"),
        script.state.steps[1].late,
        [row.step for row in script.rows.values()],
    )


def test_a_barrier_knows_at_the_first_failure_in_its_group() -> None:
    """Nobody waits for the rest of a group when one of it has failed already."""
    plan = (
        Plan()
        .fan_out("g", range(3), lambda _, i: Step(f"s:{i}", activity="a@1", optional=True, retry=ONCE))
        .step("all", activity="b@1", depends_on=[group("g")], optional=True)
    )
    script = started(plan)
    script.fail("s:1", "auth")

    assert ("skipped", "queued") == (script.status("all"), script.status("s:2"))
