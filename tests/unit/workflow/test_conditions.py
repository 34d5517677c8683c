"""Conditions are data: judged without code, refused when they make no sense, false when they name nothing."""

from typing import Any

import pytest

from kit.promises import promise
from longtake.errors import InvalidPlan
from longtake.workflow.conditions import ABSENT, all_of, any_of, condition, faults_of, holds, not_
from longtake.workflow.plan import ActivityFacts, Plan, group, ref, validate
from longtake.workflow.script import Script

A = ref("a", "/result/x")
FACTS = {name: ActivityFacts(name=name[:-2], version=1) for name in ("a@1", "b@1", "c@1")}


def judge(document: dict[str, Any], value: Any) -> bool:
    return holds(document, lambda _: value)


@pytest.mark.parametrize(
    ("op", "value", "true", "false"),
    [
        ("eq", 3, 3, 4),
        ("eq", True, True, 1),
        ("eq", None, None, False),
        ("ne", "a", "b", "a"),
        ("lt", 3, 2, 3),
        ("le", 3, 3, 4),
        ("gt", "b", "c", "a"),
        ("ge", 3, 3, 2),
        ("in", [1, "a"], "a", True),
    ],
)
def test_each_operator_tells_true_from_false(op: str, value: Any, true: Any, false: Any) -> None:
    document = condition(op, A, value)

    assert [] == list(faults_of(document, ""))
    assert judge(document, true)
    assert not judge(document, false)


@pytest.mark.parametrize("op", ["eq", "ne", "lt", "in"])
def test_a_pointer_that_names_nothing_makes_any_comparison_false(op: str) -> None:
    assert not judge(condition(op, A, [1] if op == "in" else 1), ABSENT)
    assert not judge(condition("exists", A), ABSENT)
    assert judge(condition("exists", A), None)
    assert judge(not_(condition("exists", A)), ABSENT)


def test_a_value_of_another_type_is_neither_before_nor_after() -> None:
    assert not judge(condition("lt", A, 3), "2")
    assert not judge(condition("ge", A, "a"), 7)
    assert not judge(condition("gt", A, 0), True)


def test_conditions_combine() -> None:
    both = all_of(condition("gt", A, 1), not_(any_of(condition("eq", A, 3), condition("eq", A, 4))))

    assert [False, True, False, False, True] == [judge(both, value) for value in (1, 2, 3, 4, 5)]


BAD: list[tuple[Any, str, str]] = [
    ("x > 1", "/when", "condition"),
    ({"op": "gte", "ref": A, "value": 1}, "/when/op", "eq, ne"),
    ({"op": "eq", "ref": A}, "/when", "op, ref, value"),
    ({"op": "exists", "ref": A, "value": 1}, "/when", "op, ref"),
    ({"op": "lt", "ref": A, "value": True}, "/when/value", "whole number"),
    ({"op": "in", "ref": A, "value": "abc"}, "/when/value", "list"),
    ({"op": "eq", "ref": A, "value": {"a": 1}}, "/when/value", "part that matters"),
    ({"op": "eq", "ref": A, "value": 1.5}, "/when/value", "whole numbers"),
    ({"op": "eq", "ref": "a/result/x", "value": 1}, "/when/ref", "ref(step, pointer)"),
    ({"op": "eq", "ref": ref(group("g"), "/x"), "value": 1}, "/when/ref", "one step"),
    ({"op": "eq", "ref": ref("a", "result"), "value": 1}, "/when/ref", "begin it"),
    ({"all": []}, "/when/all", "condition, ..."),
    ({"any": [condition("exists", A)], "op": "eq"}, "/when/any", "condition, ..."),
    ({"not": 3}, "/when/not", "condition"),
    ({"op": "eq", "ref": ref("nobody"), "value": 1}, "/when/ref", "step of this plan"),
]


@pytest.mark.parametrize(("document", "place", "remedy"), BAD)
@promise("H09")
def test_a_bad_condition_is_refused_with_its_place_and_remedy(document: Any, place: str, remedy: str) -> None:
    plan = Plan(groups=("g",)).step("a", activity="a@1").step("b", activity="b@1", when=document)
    with pytest.raises(InvalidPlan) as refused:
        validate(plan, FACTS)

    assert [f"/steps/1{place}"] == [error.pointer for error in refused.value.errors]
    assert remedy in refused.value.errors[0].remedy


def test_a_step_whose_condition_is_false_is_skipped_with_what_follows() -> None:
    plan = (
        Plan()
        .step("a", activity="a@1")
        .step("b", activity="b@1", when=condition("gt", ref("a", "/result/n"), 2))
        .step("c", activity="c@1", depends_on=["b"])
    )
    validate(plan, FACTS)
    script = Script(plan)
    script.accept()
    script.succeed("a", n=2)

    assert ("skipped", "skipped", "completed") == (
        script.status("b"),
        script.status("c"),
        script.summary.status,
    )
    assert ["condition", "dependencies"] == [
        event.reason for event, _ in script.history if event.TYPE == "steps_skipped"
    ]


def test_a_condition_alone_makes_a_step_wait_for_what_it_refers_to() -> None:
    script = Script(Plan().step("a", activity="a@1").step("b", activity="b@1", when=condition("exists", A)))
    script.accept()
    assert "pending" == script.status("b")

    script.succeed("a", y=1)
    assert "skipped" == script.status("b")


def test_what_a_condition_asks_for_need_not_be_there_and_what_an_input_refers_to_must() -> None:
    script = Script(
        Plan().step("a", activity="a@1", on_exhausted="fail").step("b", activity="b@1", input={"x": A})
    )
    script.accept()
    script.succeed("a", y=1)

    assert "retry_scheduled" == script.status("a")
