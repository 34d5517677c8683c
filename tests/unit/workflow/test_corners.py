"""Rare turns of a run: what comes for a step that was given up, ends with gates open, forks of many steps, odd histories."""

import uuid
from datetime import timedelta

import msgspec
import pytest

from kit.commanding import answer, pause, resume, send_event, steer
from kit.plans import one
from kit.promises import promise
from longtake.contracts.events import RunFailed
from longtake.contracts.outcomes import Cancelled, Impossible, Submitted, Succeeded, Unknown
from longtake.contracts.signals import ChildEnded, ChildRefused, ParentClosed
from longtake.workflow.draft import Draft
from longtake.workflow.expanding import expand
from longtake.workflow.forking import STEPS_PER_EVENT_MAX, plan_fork
from longtake.workflow.gates import waits_for
from longtake.workflow.growth import grown_document
from longtake.workflow.plan import Plan, Retry, Step, StepFacts, at_least, group, plan_document, ref
from longtake.workflow.script import START, Script, artifacts
from longtake.workflow.state import fold

ONCE = Retry(max_attempts=1)
ASK = {"type": "object"}


def started(plan: Plan) -> Script:
    script = Script(plan)
    script.accept()
    return script


def race(**fields: object) -> Plan:
    """Two tries of which one is enough."""
    return (
        Plan(**fields)
        .step("fast", activity="a@1")
        .step("slow", activity="b@1", price=4, refund="full")
        .step("end", activity="c@1", depends_on=["fast", "slow"], join=at_least(1))
    )


# --- what a join gave up --------------------------------------------------------------------------------------------


def test_a_callback_for_a_step_that_is_needed_no_more_is_ignored() -> None:
    script = started(race())
    script.succeed("fast")

    assert "step_abandoned" == script.call_back("slow").ignored.reason


@pytest.mark.parametrize("billing", ["prepaid", "pay_as_you_go"])
def test_a_step_whose_truth_is_open_is_given_up_as_unknown_and_its_price_is_kept(billing: str) -> None:
    script = started(race(billing=billing))
    script.report("slow", Unknown(evidence="lost"))
    script.report("slow", Impossible(evidence="no look-up"))
    script.succeed("fast")
    script.succeed("end")

    assert ("cancelled", "unknown", "completed") == (
        script.status("slow"),
        script.state.steps[1].late,
        script.summary.status,
    )
    assert 0 == script.state.refunded


def test_the_deadline_of_a_run_can_come_while_only_what_was_given_up_is_open() -> None:
    plan = msgspec.structs.replace(race(), deadline_seconds=300)
    script = started(plan)
    script.succeed("fast")
    script.succeed("end")
    script.fire("run_deadline")

    assert "run_failing" == script.events[-1]
    assert "timeout" == script.summary.failure.error_class
    script.report("slow", Succeeded())
    assert "failed" == script.summary.status


@promise("T43")
def test_what_was_given_up_and_done_all_the_same_is_undone_when_the_run_fails() -> None:
    plan = (
        Plan()
        .step("fast", activity="a@1")
        .step("slow", activity="b@1", compensate="undo@1")
        .step("end", activity="c@1", depends_on=["fast", "slow"], join=at_least(1), retry=ONCE)
    )
    script = started(plan)
    script.succeed("fast")
    script.report("slow", Succeeded(external_ref="booking-7"))
    script.fail("end", "auth")

    row = script.row("slow", "compensate")
    assert b'"external_ref":"booking-7"' in row.input
    script.report("slow", Succeeded())
    assert "done" == script.history[-1][0].compensation


# --- children ---------------------------------------------------------------------------------------------------------


def test_a_child_that_is_refused_while_its_parent_ends_is_over() -> None:
    script = started(Plan().run("film", workflow="film@1"))
    child = script.state.gates[0].child
    script.cancel()
    refused = ChildRefused(
        signal_id=uuid.UUID(int=1), step="film", attempt=1, child=child, problem="no-funds", message="m"
    )
    script.tell(refused)

    assert ("cancelled", "stopped") == (script.summary.status, script.state.steps[0].late)
    assert "run_ended" == script.tell(refused).ignored.reason


def test_a_child_whose_parent_is_gone_is_cancelled_once() -> None:
    script = started(one())
    gone = ParentClosed(signal_id=uuid.UUID(int=1), parent=uuid.UUID(int=2), outcome="is ending as failed")
    script.tell(gone)

    assert "run_ending" == script.tell(gone).ignored.reason
    script.report("a", Cancelled())
    assert ("cancelled", "run_ended") == (script.summary.status, script.tell(gone).ignored.reason)


def test_only_children_that_end_with_their_parent_are_told_and_waited_for() -> None:
    script = started(
        Plan()
        .run("film", workflow="film@1")
        .run("archive", workflow="archive@1", on_parent_close="abandon")
        .wait("nod", event="nod")
    )
    film = script.state.gates[0].child
    decision = script.cancel()

    assert [("parent_closed", film)] == [(fact.kind, fact.run_id) for fact in decision.outgoing]
    assert ["film"] == [script.plan.steps[index].key for index in script.state.gates]
    ended = ChildEnded(signal_id=uuid.UUID(int=1), step="film", attempt=1, child=film, outcome="cancelled")
    assert () == script.tell(ended).outgoing
    assert "cancelled" == script.summary.status


# --- gates ------------------------------------------------------------------------------------------------------------


def test_what_a_gate_waits_for_is_told_in_words() -> None:
    script = started(
        Plan()
        .input("q", answer=ASK, label="Which take?")
        .wait("w", event="go")
        .run("film", workflow="film@1")
        .sleep("nap", seconds=5)
    )

    assert ["an answer to 'Which take?'", "the event 'go'", "its time"] == [
        waits_for(script.state, index) for index in (0, 1, 3)
    ]
    assert str(script.state.gates[2].child) in waits_for(script.state, 2)


def test_a_pause_leaves_gates_without_a_time_alone() -> None:
    script = started(Plan().wait("w", event="go").sleep("nap", seconds=100))
    pause(script)
    script.wait(50)
    resume(script)

    assert {"step:nap": START + timedelta(seconds=150)} == script.timers
    assert script.state.gates[0].until is None


def test_the_first_gate_in_plan_order_gets_the_event() -> None:
    script = started(Plan().wait("one", event="go").wait("two", event="go"))
    send_event(script, "go", {"n": 1})
    assert ("succeeded", "waiting_event") == (script.status("one"), script.status("two"))

    send_event(script, "go", {"n": 2})
    assert "completed" == script.summary.status


def test_people_are_told_of_the_first_gate_that_still_stands() -> None:
    script = started(Plan().wait("one", event="a").wait("two", event="b").wait("three", event="c"))
    send_event(script, "a")
    assert "two" == script.summary.current_step.key
    send_event(script, "c")
    assert "two" == script.summary.current_step.key


def test_a_history_that_ends_with_gates_open_can_be_read() -> None:
    """Older rules ended a run without closing its gates; it folds all the same."""
    script = started(Plan().wait("w", event="go", timeout_seconds=50))
    failed = RunFailed(error_class="timeout", origin="infrastructure", message="older rules")
    state = fold(script.state.run_id, "t", script.plan, [*script.history, (failed, script.now)])

    assert ("failed", {}) == (state.ended, state.gates)


def test_an_answer_to_a_step_that_the_run_has_not_is_refused() -> None:
    script = started(Plan().input("q", answer=ASK))

    assert "has no step 'zz'" in answer(script, "zz", {}).refusal.detail


# --- fragments ----------------------------------------------------------------------------------------------------------


def cutting() -> Plan:
    return Plan(facts={"part@1": StepFacts()}).expand(
        "cut", activity="cut@1", fills="parts", expands_to=["part@1"], retry=ONCE, on_exhausted="fail"
    )


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (
            Step("cut:1", activity="part@1", input={"all": ref(group("parts"), "")}),
            "not to the group 'parts'",
        ),
        (Step("cut:1", activity="part@1", input={"n": ref("gone", "")}), "there is no step 'gone'"),
        (Step("cut:1", activity="part@1", group="others"), "belongs to the group 'parts'"),
        (Step("cut:1", kind="run", workflow="film@1"), "not run"),
    ],
)
def test_a_fragment_that_reaches_beyond_itself_is_a_failed_attempt(step: Step, words: str) -> None:
    script = started(cutting())
    script.report("cut", Succeeded(fragment=(msgspec.to_builtins(step),)))

    assert ("failed", "bad_output") == (script.summary.status, script.summary.failure.error_class)
    assert words in script.summary.failure.message


def test_a_fragment_may_build_on_itself_and_on_the_step_that_made_it() -> None:
    script = started(cutting())
    steps = (
        Step("cut:1", activity="part@1", input={"n": ref("cut", "/result/n")}),
        Step("cut:2", activity="part@1", input={"n": ref("cut:1", "/result/n")}),
    )
    script.report(
        "cut", Succeeded(result={"n": 4}, fragment=tuple(msgspec.to_builtins(step) for step in steps))
    )
    assert b'{"n":4}' == script.row("cut:1").input
    script.succeed("cut:1", n=5)

    assert b'{"n":5}' == script.row("cut:2").input


def test_an_expansion_without_a_fragment_says_why() -> None:
    script = started(cutting())

    assert "sent no fragment" in str(expand(Draft(script.state, script.now), "cut", Succeeded()))


def test_a_plan_without_fragments_is_the_document_itself() -> None:
    document = plan_document(cutting())

    assert grown_document(document, []) is document


# --- forks ------------------------------------------------------------------------------------------------------------


def test_a_fork_of_many_steps_takes_them_over_in_parts() -> None:
    size = STEPS_PER_EVENT_MAX + 5
    plan = Plan(max_parallel=size).fan_out("g", range(size), lambda _, i: Step(f"s:{i}", activity="a@1"))
    plan = plan.step("end", activity="b@1", depends_on=[group("g")], retry=ONCE)
    source = Script(plan)
    source._check = lambda decision: None  # 255 folds of 255 events would be no more of a proof
    source.accept()
    for number in range(1, size + 1):
        source.succeed(f"s:{number}")
    source.fail("end", "auth")
    fork = plan_fork(source.state, [event for event, _ in source.history], "end")
    other = Script(plan, run_id=uuid.UUID(int=5))
    decision = other.accept(fork=fork, forked_from=source.state.run_id, forked_step="end")

    reused = [len(event.steps) for event in decision.events if event.TYPE == "steps_reused"]
    assert [STEPS_PER_EVENT_MAX, 5] == reused
    assert ["end"] == [row.step for row in other.rows.values()]


def test_artifacts_of_a_fork_are_published_again_for_it() -> None:
    plan = (
        Plan()
        .step("a", activity="a@1", artifacts=["clip"])
        .step("b", activity="b@1", depends_on=["a"], retry=ONCE)
    )
    source = started(plan)
    source.report("a", Succeeded(artifacts=artifacts(plan.steps[0].artifacts)))
    source.fail("b", "auth")
    fork = plan_fork(source.state, [event for event, _ in source.history], "b")
    decision = Script(plan, run_id=uuid.UUID(int=5)).accept(fork=fork)

    assert [("a", 0, "clip")] == [
        (item.step, item.attempt, item.artifact.name) for item in decision.artifacts
    ]


# --- words --------------------------------------------------------------------------------------------------------------


def test_the_label_of_a_run_says_what_it_does() -> None:
    script = started(one(label="Making a"))
    script.fail("a")
    assert "Making a: trying again, attempt 2" == script.summary.label
    script.wait(60).report("a", Unknown(evidence="lost"))
    assert "Making a: asking the provider what became of it" == script.summary.label
    script.report("a", Submitted(external_ref="j"))
    script.cancel()
    assert ("cancelling", "Cancelling") == (script.summary.status, script.summary.label)
    script.report("a", Cancelled())
    assert "Cancelled" == script.summary.label


def test_a_superseded_run_is_stopping_and_names_no_failure() -> None:
    script = started(one())
    steer(script)

    assert ("cancelling", "Stopping", msgspec.UNSET) == (
        script.summary.status,
        script.summary.label,
        script.summary.failure,
    )
    script.report("a", Cancelled())
    assert "superseded" == script.summary.status
