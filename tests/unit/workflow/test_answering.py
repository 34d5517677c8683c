"""Answers, larger caps and named events: matched to their step, taken once, refused with the place that is wrong."""

import pytest

from kit.commanding import answer, send_event
from kit.plans import FAST
from kit.promises import promise
from longtake.contracts.problems import Problem
from longtake.workflow import answering
from longtake.workflow.answers import ANSWER_BYTES_MAX
from longtake.workflow.plan import Plan, ref
from longtake.workflow.script import Script

CHOICE = {
    "type": "object",
    "required": ["take"],
    "properties": {"take": {"type": "integer", "minimum": 1, "maximum": 3}, "note": {"type": "string"}},
    "additionalProperties": False,
}


def gated(**fields) -> Script:
    """Somebody picks a take, and what was picked is cut."""
    plan = Plan().input("pick", answer=CHOICE, label="Picking a take", **fields).step(
        "cut", activity="cut@1", input={"take": ref("pick", "/result/take")}
    )  # fmt: skip
    script = Script(plan)
    script.accept()
    return script


def waiting(**fields) -> Script:
    """Two waits for the same event, the second after the first; and one for another."""
    plan = (
        Plan()
        .wait("first", event="go", **fields)
        .wait("second", event="go", depends_on=["first"])
        .step("use", activity="use@1", input={"n": ref("second", "/result/n")})
        .wait("other", event="stop")
    )
    script = Script(plan)
    script.accept()
    return script


def refused(problem: Problem | None, slug: str, pointer: str) -> None:
    assert problem is not None
    assert (slug, pointer) == (problem.slug, problem.errors[0].pointer)
    assert all(place.message and place.remedy for place in problem.errors)


# --- answers ---------------------------------------------------------------------------------------------------------


@promise("H64", "H65", "H67")
def test_a_gate_parks_the_run_under_a_typed_blocker_and_its_answer_lets_it_go_on() -> None:
    script = gated()
    summary = script.summary
    (blocker,) = summary.blockers
    assert ("needs_input", "input_required", "pick") == (summary.status, blocker.type, blocker.step)
    assert {"provide_generation_input", "cancel_generation"} <= set(summary.available_actions)
    assert {} == script.rows

    decision = answer(script, "pick", {"take": 2})

    assert "applied" == decision.command_status
    assert b'{"take":2}' == script.row("cut").input
    assert ("running", ()) == (script.summary.status, script.summary.blockers)
    (event,) = [event for event in decision.events if event.TYPE == "step_succeeded"]
    assert ("input", "answer", "ann") == (event.source, event.command_id, event.actor)


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"take": 9}, "/payload/answer/take"),
        ({"take": "2"}, "/payload/answer/take"),
        ({"take": 2, "more": 1}, "/payload/answer"),
        ({}, "/payload/answer"),
        ({"take": 1.5}, "/payload/answer/take"),
        ({"take": 1, "note": "x" * ANSWER_BYTES_MAX}, "/payload/answer"),
        ({"take": 1, "note": "a\x00b"}, "/payload/answer/note"),
    ],
)
def test_an_answer_that_breaks_the_schema_is_refused_at_its_place_and_may_be_given_again(
    given, pointer
) -> None:
    script = gated()

    refused(answer(script, "pick", given).refusal, "invalid-command", pointer)
    assert "needs_input" == script.status("pick")
    assert answer(script, "pick", {"take": 1}).refusal is None


@promise("H66", "T45")
def test_an_answer_counts_once() -> None:
    """A second answer, under another id, finds the gate closed; nothing of it is recorded."""
    script = gated()
    answer(script, "pick", {"take": 1})
    revision = script.state.revision
    decision = answer(script, "pick", {"take": 2}, id_="second")

    refused(decision.refusal, "action-not-available", "/payload/step")
    assert revision == script.state.revision
    assert b'{"take":1}' == script.row("cut").input


@promise("H66", "T45")
def test_a_delayed_answer_does_not_reach_a_later_question() -> None:
    """An answer to the question as it stood before a retry gave it new time is stale."""
    script = gated(timeout_seconds=60)
    seen = script.state.revision
    script.fire("step:pick")
    script.retry("pick")

    refused(
        answer(script, "pick", {"take": 1}, revision=seen).refusal, "stale-revision", "/expected_revision"
    )
    assert answer(script, "pick", {"take": 1}).refusal is None


@promise("T45")
@pytest.mark.parametrize("step", ["cut", "nowhere", "*reducer_error"])
def test_an_answer_to_a_step_that_asks_nothing_is_refused(step: str) -> None:
    refused(answer(gated(), step, {"take": 1}).refusal, "action-not-available", "/payload/step")


def test_an_overdue_question_can_still_be_answered() -> None:
    script = gated(timeout_seconds=60)
    script.fire("step:pick")
    assert ["wait_overdue"] == [blocker.type for blocker in script.summary.blockers]
    assert "provide_generation_input" in script.summary.available_actions

    answer(script, "pick", {"take": 3})

    assert ("running", ()) == (script.summary.status, script.summary.blockers)


def test_progress_elsewhere_does_not_make_an_answer_stale() -> None:
    plan = (
        Plan()
        .input("pick", answer=CHOICE)
        .step("a", activity="a@1")
        .step("b", activity="b@1", depends_on=["a"])
    )
    script = Script(plan)
    script.accept()
    seen = script.state.revision
    script.succeed("a")
    script.succeed("b")

    assert answer(script, "pick", {"take": 1}, revision=seen).refusal is None


def test_an_answer_lacks_nothing_that_others_refer_to() -> None:
    plan = Plan().input("pick", answer={"type": "object"}).step(
        "cut", activity="cut@1", input={"take": ref("pick", "/result/take")}
    )  # fmt: skip
    script = Script(plan)
    script.accept()

    refused(answer(script, "pick", {}).refusal, "invalid-command", "/payload/answer")


# --- caps ------------------------------------------------------------------------------------------------------------


def capped() -> Script:
    plan = Plan(billing="pay_as_you_go", cost_cap=5, hold="cap", prices={}).step(
        "a", activity="a@1", price=5, retry=FAST
    )
    script = Script(plan.step("b", activity="b@1", price=5, depends_on=["a"], retry=FAST))
    script.accept()
    script.succeed("a")
    return script


@promise("H64")
def test_a_larger_cap_lets_a_step_go_on_and_raises_the_hold() -> None:
    script = capped()
    assert ["spend_cap"] == [blocker.type for blocker in script.summary.blockers]

    decision = answer(script, "b", cap=10)

    assert (5, "queued", 10) == (decision.raise_hold_by, script.status("b"), script.state.cap)


def test_an_answer_where_a_cap_is_asked_for_is_refused_and_the_other_way_round() -> None:
    refused(answer(capped(), "b", {"take": 1}).refusal, "invalid-command", "/payload/answer")
    refused(answer(gated(), "pick", cap=10).refusal, "invalid-command", "/payload/cap")


def test_a_cap_that_is_still_too_small_is_refused() -> None:
    script = capped()

    refused(answer(script, "b", cap=9).refusal, "invalid-command", "/payload/cap")
    assert (5, 0) == (script.state.cap, answer(script, "b", cap=9).raise_hold_by)


# --- events ----------------------------------------------------------------------------------------------------------


@promise("W08")
def test_an_event_is_for_the_first_step_that_waits_for_it_and_for_that_one_only() -> None:
    script = waiting()
    assert "applied" == send_event(script, "go", {"n": 1}).command_status
    assert ("succeeded", "waiting_event", "waiting_event") == tuple(
        script.status(key) for key in ("first", "second", "other")
    )

    send_event(script, "go", {"n": 2}, id_="again")

    assert b'{"n":2}' == script.row("use").input
    assert "waiting_event" == script.status("other")


@promise("W08")
def test_an_event_that_comes_early_is_kept_and_consumed_once() -> None:
    plan = (
        Plan()
        .step("a", activity="a@1")
        .wait("one", event="go", depends_on=["a"])
        .wait("two", event="go", depends_on=["one"])
    )
    script = Script(plan)
    script.accept()
    decision = send_event(script, "go", {"n": 1})
    assert ("attached", ["event_received"]) == (
        decision.command_status,
        [event.TYPE for event in decision.events],
    )

    script.succeed("a")

    assert ("succeeded", "waiting_event") == (script.status("one"), script.status("two"))
    assert {} == script.state.buffered


def test_events_that_come_early_are_consumed_in_their_order() -> None:
    plan = Plan().step("a", activity="a@1").wait("one", event="go", depends_on=["a"])
    script = Script(plan.step("b", activity="b@1", input={"n": ref("one", "/result/n")}))
    script.accept()
    for n in (1, 2):
        send_event(script, "go", {"n": n}, id_=f"event-{n}")
    script.succeed("a")

    assert b'{"n":1}' == script.row("b").input
    assert [2] == [kept.payload["n"] for kept in script.state.buffered["go"]]


def test_an_event_that_nobody_waits_for_is_refused() -> None:
    script = waiting()

    refused(send_event(script, "never").refusal, "action-not-available", "/payload/name")
    send_event(script, "stop")
    refused(send_event(script, "stop").refusal, "action-not-available", "/payload/name")


def test_an_expansion_may_bring_waits_so_any_event_is_kept_before_it() -> None:
    plan = Plan().expand("grow", activity="grow@1", fills="more", expands_to=["a@1"])
    script = Script(plan)
    script.accept()

    assert "attached" == send_event(script, "anything").command_status


def test_a_payload_that_cannot_be_kept_or_passed_on_is_refused_at_its_place() -> None:
    script = waiting()
    big = {"n": "x" * ANSWER_BYTES_MAX}

    refused(send_event(script, "go", big).refusal, "invalid-command", "/payload/payload")
    refused(send_event(script, "go", {"n": 0.5}).refusal, "invalid-command", "/payload/payload/n")
    refused(send_event(script, "go", {}).refusal, "invalid-command", "/payload/payload")
    assert send_event(script, "go", {"n": "x" * (ANSWER_BYTES_MAX - 100)}).refusal is None


def test_a_run_keeps_so_many_events_and_no_more(monkeypatch) -> None:
    monkeypatch.setattr(answering, "BUFFERED_MAX", 3)
    script = Script(Plan().step("a", activity="a@1").wait("one", event="go", depends_on=["a"]))
    script.accept()
    told = [send_event(script, "go", {"n": n}, id_=f"event-{n}").command_status for n in range(4)]

    assert ["attached"] * 3 + ["rejected"] == told


def test_an_overdue_wait_still_takes_its_event() -> None:
    script = waiting(timeout_seconds=60)
    script.fire("step:first")
    assert ["wait_overdue"] == [blocker.type for blocker in script.summary.blockers]

    send_event(script, "go", {"n": 1})

    assert ("succeeded", ()) == (script.status("first"), script.summary.blockers)
