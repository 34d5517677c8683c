"""The shipped workflows as plans: sound, repeatable, bound to what is registered, and shaped as the mission says."""

from typing import Any

import msgspec
import pytest

from kit.promises import promise
from longtake import App, Plan
from longtake.errors import InvalidPlan, Refused
from longtake.workflow.plan import compile_plan, plan_document, validate
from longtake.workflow.refs import GroupName
from videoads.application import app
from videoads.brief import brief_as_json, parse_brief
from videoads.showcase import SMALL_BRIEF


def brief_of(scenes: int, *, narrated: bool = True) -> dict[str, Any]:
    """The input of a short with so many scenes, as a client sends it."""
    document = {
        **SMALL_BRIEF,
        "seconds": round(4.8 * scenes, 1),
        "scenes": SMALL_BRIEF["scenes"] * scenes,
        "narration": SMALL_BRIEF["narration"] * scenes if narrated else None,
    }
    return {"brief": brief_as_json(parse_brief(msgspec.json.encode(document), base=None))}


INPUTS = {
    "one scene": ("short.generation@1", brief_of(1)),
    "three scenes": ("short.generation@1", brief_of(3)),
    "no narration": ("short.generation@1", brief_of(2, narrated=False)),
    "six jobs": ("film.takes@1", {"scenes": 3}),
    "sixty-one jobs": ("film.takes@1", {"scenes": 30}),
}


@pytest.mark.parametrize(("workflow", "given"), INPUTS.values(), ids=INPUTS.keys())
@promise("H75", "H15", "H13")
def test_a_shipped_plan_is_whole_acyclic_registered_and_the_same_each_time(workflow: str, given: Any) -> None:
    """Dependencies exist and end, fan-out has its order, versions are registered, the fingerprint stands, files are declared."""
    planned, again = app.plan(workflow, given, {}), app.plan(workflow, given, {})
    plan = planned.plan
    compiled = compile_plan(plan)
    numbers = [int(step.key.rpartition(":")[2]) for step in plan.steps if step.group == "clips"]

    assert len(compiled.order) == len(plan.steps), "no circle"
    assert (planned.plan_document, planned.fingerprint) == (again.plan_document, again.fingerprint)
    assert numbers == list(range(1, len(numbers) + 1))
    assert {step.activity for step in plan.steps} <= set(app.activities)
    assert all(step.artifacts for step in plan.steps if step.paid), "what is paid for leaves a file"
    assert all(step.price > 0 for step in plan.steps if step.paid)
    assert not any("latest" in str(value) for value in msgspec.json.decode(planned.policy).values())


BROKEN = {
    "a dependency that is not there": lambda plan: plan.step(
        "x", activity="script.write@1", depends_on=["nobody"]
    ),
    "a circle": lambda plan: plan.step("x", activity="script.write@1", depends_on=["y"]).step(
        "y", activity="script.write@1", depends_on=["x"]
    ),
    "a version that is not registered": lambda plan: plan.step("x", activity="script.write@9"),
    "a paid step without a price": lambda plan: plan.step(
        "x", activity="clip.generate@1", artifacts=["clip"]
    ),
    "a group that is not there": lambda plan: plan.step(
        "x", activity="script.write@1", depends_on=[GroupName("nobody")]
    ),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
@promise("H75", "H09", "H18")
def test_the_same_plan_with_one_fault_is_refused(broken: Any) -> None:
    plan = app.plan(*INPUTS["one scene"], {}).plan
    validate(plan, app.facts())

    with pytest.raises(InvalidPlan):
        validate(broken(plan), app.facts())


@promise("H75")
def test_a_builder_that_answers_otherwise_each_time_is_refused() -> None:
    other = App("fickle")
    count = iter(range(9))

    @other.activity("a@1")
    async def a(call: Any) -> None:
        return None

    @other.workflow("fickle", version=1)
    def build(given: Any, policy: Any) -> Plan:
        return Plan().step(f"s{next(count)}", activity="a@1")

    with pytest.raises(Refused) as refused:
        other.plan("fickle@1", {}, {})
    assert "not pure" in refused.value.problem.detail


@promise("H81", "H01")
def test_the_short_ad_is_script_then_clips_narration_and_music_at_once_then_film_then_check() -> None:
    plan = app.plan(*INPUTS["three scenes"], {}).plan
    compiled = compile_plan(plan)
    waves: dict[str, int] = {}
    for at in compiled.order:
        step = plan.steps[at]
        named = {source for source in compiled.sources[at]}
        waves[step.key] = 1 + max((waves[plan.steps[source].key] for source in named), default=0)

    assert waves == {
        "script.write": 1,
        **{f"clip.generate:{n}": 2 for n in (1, 2, 3)},
        "narration.generate": 2,
        "music.generate": 2,
        "render.prepare": 3,
        "render.submit": 4,
        "delivery.verify": 5,
    }
    assert (plan.delivers, plan.cap, sum(step.price for step in plan.steps)) == ("delivery.verify", 15, 15)
    assert plan_document(plan) == plan_document(app.plan(*INPUTS["three scenes"], {}).plan)


@promise("H05")
def test_the_activities_cover_submit_and_poll_held_requests_and_callbacks() -> None:
    """Clips are polled, sounds are held open, the film is called back about; each can be looked up after a lost answer."""
    from videoads.activities.clips import ClipGenerate
    from videoads.activities.film import RenderSubmit
    from videoads.activities.sounds import HeldWork

    facts = app.facts()
    kinds = {name: type(activity) for name, activity in app.activities.items()}

    assert issubclass(kinds["clip.generate@1"], ClipGenerate)
    assert issubclass(kinds["narration.generate@1"], HeldWork) and issubclass(
        kinds["music.generate@1"], HeldWork
    )
    assert kinds["render.submit@1"] is RenderSubmit and "render" in app.verifiers
    paid = [name for name, fact in facts.items() if fact.paid]
    assert len(paid) == 5
    assert all(facts[name].lookup and facts[name].cancellable for name in paid)
