"""What a worker makes of an author's expander: data, made twice, or a failure that says why (P15)."""

import itertools
from typing import Any

import pytest

from kit.promises import promise
from longtake.contracts.outcomes import Failed, Pending, Succeeded
from longtake.errors import ConfigurationError, Refused
from longtake.worker.fragments import with_fragment
from longtake.worker.registry import App
from longtake.workflow.plan import Plan, Step

_numbers = itertools.count()


def scenes(result: dict[str, Any]) -> list[Step]:
    return [Step(f"scenes:{number}", activity="scene@1") for number in range(result["count"])]


def restless(result: dict[str, Any]) -> list[Step]:
    return [Step(f"scenes:{next(_numbers)}", activity="scene@1")]


def greedy(result: dict[str, Any]) -> list[Step]:
    result["count"] -= 1
    return scenes(result)


@promise("H13")
def test_a_result_becomes_steps_in_the_order_of_the_builder() -> None:
    made = with_fragment(Succeeded(result={"count": 3}), scenes)

    assert isinstance(made, Succeeded)
    assert ["scenes:0", "scenes:1", "scenes:2"] == [step["key"] for step in made.fragment or ()]


def test_an_expander_that_differs_from_itself_is_refused() -> None:
    made = with_fragment(Succeeded(), restless)

    assert isinstance(made, Failed)
    assert ("bad_output", "content") == (made.error_class, made.origin)
    assert "not pure" in made.message


def test_an_expander_that_writes_into_its_argument_harms_nobody() -> None:
    outcome = Succeeded(result={"count": 2})
    made = with_fragment(outcome, greedy)

    assert {"count": 2} == outcome.result
    assert isinstance(made, Succeeded) and len(made.fragment or ()) == 1


@pytest.mark.parametrize(
    ("expander", "words"),
    [
        (lambda result: result["nothing"], "KeyError"),
        (lambda result: ["scene"], "not a Step"),
        (lambda result: [Step("a", activity="a@1", input={"s": 0.5})], "plain JSON"),
    ],
)
def test_an_expander_that_breaks_says_how(expander: Any, words: str) -> None:
    made = with_fragment(Succeeded(), expander)

    assert isinstance(made, Failed) and words in made.message


def test_what_is_no_success_has_no_fragment() -> None:
    pending = Pending(poll_after_seconds=5)

    assert pending is with_fragment(pending, scenes)
    assert Succeeded() == with_fragment(Succeeded(), None)


def test_a_plan_that_expands_what_nobody_can_expand_is_refused() -> None:
    app = _app()
    with pytest.raises(Refused) as caught:
        app.plan("film@1", {}, {})
    assert "/steps/0/activity" == caught.value.problem.errors[0].pointer
    app.expander("scenes.plan@1")(scenes)

    assert app.plan("film@1", {}, {}).plan.facts, "with one it is taken, and the facts are frozen"


def test_an_activity_has_one_expander() -> None:
    app = _app()
    app.expander("scenes.plan@1")(scenes)

    with pytest.raises(ConfigurationError):
        app.expander("scenes.plan@1")(scenes)


def _app() -> App:
    app = App("shop")

    @app.activity("scenes.plan@1")
    async def plan(call: Any) -> None: ...

    @app.activity("scene@1")
    async def scene(call: Any) -> None: ...

    @app.workflow("film", version=1)
    def film(input: Any, policy: Any) -> Plan:
        return Plan().expand("scenes", activity="scenes.plan@1", fills="takes", expands_to=["scene@1"])

    return app
