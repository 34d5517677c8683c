"""Frozen fragments: an expansion is judged, priced and bound by what the plan froze, and becomes part of it (P15)."""

from typing import Any

import msgspec
import pytest

from kit.plans import FAST
from kit.promises import promise
from longtake.contracts.outcomes import Succeeded
from longtake.contracts.signals import ProvideInput
from longtake.workflow.draft import Draft
from longtake.workflow.expanding import FRAGMENT_BYTES_MAX, PLAN_STEPS_MAX, expand
from longtake.workflow.growth import grown_document
from longtake.workflow.plan import Plan, Step, StepFacts, group, plan_document, read_plan, ref
from longtake.workflow.script import Script
from longtake.workflow.step import Retry

FACTS = {
    "scene@1": StepFacts(pool="gpu", paid=True, cancellable=True),
    "label@1": StepFacts(),
}


def planned(**fields: Any) -> Plan:
    """A script that is expanded into scenes, and a render that waits for all of them."""
    return (
        Plan(**{"cost_cap": 100, "prices": {"scene": 5}, "facts": FACTS, **fields})
        .expand(
            "scenes",
            activity="scenes.plan@1",
            fills="takes",
            expands_to=["scene@1", "label@1"],
            retry=Retry(max_attempts=2, first_delay_ms=0),
            on_exhausted="block",
        )
        .step(
            "render",
            activity="render@1",
            input={"clips": ref(group("takes"), "/result/clip")},
            depends_on=[group("takes")],
        )
    )


def scene(number: int, **fields: Any) -> Step:
    return Step(
        f"scenes:{number}",
        activity="scene@1",
        price_key="scene",
        phase="scenes",
        input={"number": number},
        retry=FAST,
        **fields,
    )


def started(**fields: Any) -> Script:
    script = Script(planned(**fields))
    script.accept()
    return script


def fragment(*steps: Step) -> tuple[dict[str, Any], ...]:
    return tuple(msgspec.to_builtins(step) for step in steps)


def grow(script: Script, *steps: Step, **result: Any) -> Any:
    return script.report("scenes", Succeeded(result=result, fragment=fragment(*steps)))


# --- a fragment becomes part of the plan -------------------------------------------------------------------------------


@promise("H11", "H12")
def test_a_fragment_is_worked_and_its_group_is_waited_for() -> None:
    script = started()
    grow(script, scene(1), scene(2))
    assert ["scenes:1", "scenes:2"] == [row.step for row in script.rows.values()]
    assert script.status("render") == "pending"
    script.succeed("scenes:1", clip="c1")
    assert script.status("render") == "pending"
    script.succeed("scenes:2", clip="c2")

    assert b'{"clips":["c1","c2"]}' == script.row("render").input
    script.succeed("render")
    assert script.summary.status == "completed"


@promise("T31")
def test_the_steps_are_priced_and_bound_by_what_was_frozen() -> None:
    script = started()
    grow(script, scene(1))

    made = script.state.plan_of("scenes:1")
    assert (5, "gpu", True, True, "takes") == (made.price, made.pool, made.paid, made.cancellable, made.group)
    assert 5 == script.summary.cost.quoted_credits == script.summary.cost.charged_credits


def test_an_empty_fragment_opens_the_barrier() -> None:
    script = started()
    grow(script)

    assert b'{"clips":[]}' == script.row("render").input


def test_steps_of_a_fragment_may_wait_for_each_other_and_refer_to_the_step_that_made_them() -> None:
    script = started()
    grow(
        script,
        Step("scenes:label", activity="label@1", input={"of": ref("scenes", "/result/title")}),
        scene(1, depends_on=("scenes:label",)),
        title="Espresso",
    )

    assert b'{"of":"Espresso"}' == script.row("scenes:label").input
    assert script.status("scenes:1") == "pending"
    script.succeed("scenes:label", clip="none")
    assert script.status("scenes:1") == "queued"


def test_a_fragment_may_refer_to_a_step_that_has_not_ended() -> None:
    script = Script(planned().step("voice", activity="voice@1"))
    script.accept()
    grow(script, Step("scenes:1", activity="label@1", input={"of": ref("voice", "/result/words")}))
    script.succeed("voice", words="hello")

    assert b'{"of":"hello"}' == script.row("scenes:1").input


def test_the_history_alone_gives_the_grown_plan_back() -> None:
    """The script compares the fold with the live state after every decision."""
    script = started()
    grow(script, scene(1), scene(2))

    assert ["scenes", "render", "scenes:1", "scenes:2"] == [step.key for step in script.replayed().plan.steps]


def test_the_document_of_a_grown_plan_is_the_plan_of_the_state() -> None:
    script = started()
    grow(script, scene(1))
    [event] = [event for event, _ in script.history if event.TYPE == "plan_expanded"]

    document = grown_document(plan_document(script.plan), [event.steps])  # type: ignore[attr-defined]  # plan_expanded
    assert script.state.plan.plan == read_plan(document)


def test_an_expansion_that_fails_takes_its_barrier_along() -> None:
    script = Script(
        Plan(facts=FACTS)
        .expand("scenes", activity="scenes.plan@1", fills="takes", expands_to=["label@1"], optional=True)
        .step("render", activity="render@1", depends_on=[group("takes")], join="all_terminal")
    )
    script.accept()
    script.fail("scenes", "auth")

    assert script.status("render") == "queued"


# --- money -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("billing", ["prepaid", "pay_as_you_go"])
def test_what_does_not_fit_under_the_cap_waits_for_a_larger_one(billing: str) -> None:
    script = started(cost_cap=7, billing=billing)
    grow(script, scene(1), scene(2), Step("scenes:label", activity="label@1"))
    waiting = [blocker.step for blocker in script.summary.blockers]

    assert script.status("scenes:label") == "queued", "what is free goes on"
    assert "scenes:2" in waiting
    assert {"spend_cap"} == {blocker.type for blocker in script.summary.blockers}
    script.tell(
        ProvideInput(
            command_id="c-5", actor="ann", expected_revision=script.state.revision, step="scenes:2", cap=10
        )
    )
    assert script.status("scenes:1") == script.status("scenes:2") == "queued"
    assert 10 == script.summary.cost.charged_credits


@pytest.mark.parametrize("billing", ["prepaid", "pay_as_you_go"])
def test_a_run_that_was_expanded_costs_what_it_is_quoted_at(billing: str) -> None:
    script = started(billing=billing)
    grow(script, scene(1), scene(2))
    for number in (1, 2):
        script.succeed(f"scenes:{number}", clip="c")
    script.succeed("render")

    cost = script.summary.cost
    assert (10, 10, 0) == (cost.quoted_credits, cost.charged_credits, cost.refunded_credits)


# --- what is refused ---------------------------------------------------------------------------------------------------


BAD: dict[str, tuple[tuple[Any, ...], str]] = {
    "no prefix": ((Step("scene:1", activity="label@1"),), "must begin with 'scenes:'"),
    "twice": ((scene(1), scene(1)), "is also that of step"),
    "taken": ((Step("render", activity="label@1"),), "the plan has a step of that key"),
    "strange activity": ((Step("scenes:1", activity="rm@1"),), "not among those that 'scenes' expands to"),
    "own price": ((Step("scenes:1", activity="label@1", price=1),), "names no price"),
    "no price key": ((Step("scenes:1", activity="scene@1"),), "costs money outside"),
    "strange price key": ((Step("scenes:1", activity="scene@1", price_key="vip"),), "no 'vip'; it has scene"),
    "unknown dependency": ((scene(1, depends_on=("scenes:9",)),), "there is no step 'scenes:9'"),
    "circle": (
        (scene(1, depends_on=("scenes:2",)), scene(2, depends_on=("scenes:1",))),
        "wait for each other",
    ),
    "circle through the plan": ((scene(1, depends_on=("render",)),), "break the circle"),
    "a run": ((Step("scenes:1", kind="run", workflow="film@1"),), "not run"),
    "another group": ((scene(1, group="others"),), "belongs to the group 'takes'"),
    "a group": ((scene(1, depends_on=(group("takes"),)),), "by name, not for the group"),
    "no step": (({"key": "scenes:1", "colour": "red"},), "no list of steps"),
    "a float": (
        ({"key": "scenes:1", "activity": "label@1", "input": {"seconds": 0.5}},),
        "/input/seconds",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_fragment_fails_the_attempt_and_says_what_is_wrong(name: str) -> None:
    steps, words = BAD[name]
    script = started()
    documents = tuple(item if isinstance(item, dict) else msgspec.to_builtins(item) for item in steps)
    script.report("scenes", Succeeded(fragment=documents))

    [event] = [event for event, _ in script.history if event.TYPE == "attempt_failed"]
    assert "bad_output" == event.error_class  # type: ignore[attr-defined]  # attempt_failed
    assert words in event.message  # type: ignore[attr-defined]  # attempt_failed
    assert ["scenes", "render"] == [step.key for step in script.state.plan.steps]


def test_the_same_fragment_without_the_fault_is_taken() -> None:
    """So that the table above fails for the faults it names."""
    script = started()
    grow(script, scene(1), scene(2, depends_on=("scenes:1",)), Step("scenes:3", activity="label@1"))

    assert "plan_expanded" in script.events


def test_a_worker_without_an_expander_is_told_so() -> None:
    script = started()
    script.report("scenes", Succeeded(result={}))

    assert "no expander" in script.state.steps[0].error_message  # type: ignore[operator]  # it has failed


def test_a_step_that_has_ended_cannot_be_waited_for() -> None:
    script = Script(planned().step("early", activity="early@1"))
    script.accept()
    script.succeed("early")
    grow(script, scene(1, depends_on=("early",)))

    assert "'early' has ended" in script.state.steps[0].error_message  # type: ignore[operator]  # it has failed


def test_a_fragment_has_a_longest_size() -> None:
    script = started()
    words = "x" * 1000
    fits = [Step(f"scenes:{n}", activity="label@1", input={"w": words}) for n in range(50)]
    draft = Draft(script.state, script.now)

    said = expand(draft, "scenes", Succeeded(fragment=fragment(*fits, *_more(words, 20))))
    assert said is not None and str(FRAGMENT_BYTES_MAX) in said
    assert expand(draft, "scenes", Succeeded(fragment=fragment(*fits))) is None


def _more(words: str, count: int) -> list[Step]:
    return [Step(f"scenes:more-{n}", activity="label@1", input={"w": words}) for n in range(count)]


def test_a_plan_has_a_largest_number_of_steps() -> None:
    script = started()
    draft = Draft(script.state, script.now)

    said = expand(draft, "scenes", Succeeded(fragment=({},) * PLAN_STEPS_MAX))
    assert said is not None and str(PLAN_STEPS_MAX) in said


def test_a_fragment_that_comes_again_after_the_expansion_changes_nothing() -> None:
    script = started()
    grow(script, scene(1))
    before = list(script.events)

    decision = script.report("scenes", Succeeded(fragment=fragment(scene(2))), kind="execute")
    assert decision.ignored is not None
    assert before == script.events
