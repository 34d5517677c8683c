"""Plans whose kinds, joins or conditions make no sense are refused, each fault with its place and what would be right."""

from typing import Any

import pytest

from longtake.errors import InvalidPlan
from longtake.workflow.answers import ANSWER_BYTES_MAX, FAULTS_MAX, answer_faults, size_faults
from longtake.workflow.conditions import DEPTH_MAX, TERMS_MAX, all_of, condition, faults_of, holds, not_
from longtake.workflow.plan import ActivityFacts, Plan, Step, at_least, group, ref, validate

KNOWN = {
    "a@1": ActivityFacts(name="a", version=1),
    "undo@1": ActivityFacts(name="undo", version=1),
}
ASK = {"type": "object", "properties": {"take": {"type": "integer"}}, "required": ["take"]}
HERE = ref("a", "/result/n")


def faults(*steps: Step, **fields: Any) -> dict[str, str]:
    """Place to message of every fault of a plan; its remedies are never empty."""
    with pytest.raises(InvalidPlan) as caught:
        validate(Plan(steps=steps, **fields), KNOWN)
    assert all(error.remedy for error in caught.value.errors)
    return {error.pointer: error.message for error in caught.value.errors}


@pytest.mark.parametrize(
    ("step", "place", "words"),
    [
        (Step("a", kind="dance"), "/steps/0/kind", "no kind of step"),
        (Step("a", kind="sleep", seconds=5, price=3), "/steps/0/price", "a step of kind sleep has no price"),
        (Step("a", activity="a@1", event="go"), "/steps/0/event", "a step of kind activity has no event"),
        (Step("a", kind="sleep"), "/steps/0/seconds", "needs seconds"),
        (Step("a", kind="wait"), "/steps/0/event", "needs event"),
        (Step("a", kind="input"), "/steps/0/answer", "needs answer"),
        (Step("a", kind="run"), "/steps/0/workflow", "needs workflow"),
        (Step("a", kind="expand", activity="a@1", expands_to=("a@1",)), "/steps/0/fills", "needs fills"),
        (Step("a", activity="a@1", compensate="gone@1"), "/steps/0/compensate", "is not registered"),
        (
            Step("a", kind="expand", activity="a@1", fills="g", expands_to=("a@1", "gone@1")),
            "/steps/0/expands_to/1",
            "is not registered",
        ),
        (Step("a", activity="a@1", price_key="scene"), "/steps/0/price_key", ""),
        (Step("a", kind="wait", event="no good"), "/steps/0/event", "cannot name an event"),
        (Step("a", kind="run", workflow="film"), "/steps/0/workflow", "names no workflow and version"),
        (
            Step("a", kind="expand", activity="a@1", fills="no good", expands_to=("a@1",)),
            "/steps/0/fills",
            "cannot name a group",
        ),
        (Step("a", kind="sleep", seconds=5, timeout_seconds=9), "/steps/0/timeout_seconds", "ends by itself"),
        (
            Step("a", kind="input", answer=ASK, default={"take": 1}),
            "/steps/0/timeout_seconds",
            "there is none",
        ),
        (
            Step("a", kind="input", answer=ASK, default={"take": "x"}, timeout_seconds=5),
            "/steps/0/default/take",
            "the default is no answer",
        ),
        (Step("a", kind="input", answer={"type": "array"}), "/steps/0/answer/type", "an answer is an object"),
        (
            Step("a", kind="input", answer={"type": "object", "properties": {"n": {"$ref": "http://x/y"}}}),
            "/steps/0/answer/properties/n/$ref",
            "leads out of the schema",
        ),
        (
            Step("a", kind="input", answer={"type": "object", "required": "take"}),
            "/steps/0/answer/required",
            "",
        ),
        (
            Step("a", kind="input", answer={"type": "object", "properties": {"n": {"maximum": 0.5}}}),
            "/steps/0/answer/properties/n/maximum",
            "",
        ),
        (Step("a", activity="a@1", need=2), "/steps/0/need", "counts nothing"),
        (Step("a", activity="a@1", join=at_least(0)), "/steps/0/need", "cannot be waited for"),
        (Step("a", activity="a@1", join=at_least(1)), "/steps/0/need", "can never come about"),
    ],
)
def test_a_step_that_makes_no_sense_is_named_with_its_field(step: Step, place: str, words: str) -> None:
    found = faults(step)

    assert place in found
    assert words in found[place]


def test_more_successes_than_dependencies_can_never_come_about() -> None:
    found = faults(
        Step("x", activity="a@1", group="g"),
        Step("y", activity="a@1", group="g"),
        Step(
            "z",
            activity="a@1",
            depends_on=(group("g"),),
            input={"n": ref(group("g"), "/result")},
            join=at_least(3),
        ),
        groups=("g",),
    )

    assert {"/steps/2/need": "3 successes of 2 dependencies can never come about"} == found


def test_how_many_an_expansion_brings_is_not_known_yet() -> None:
    validate(
        Plan(
            steps=(
                Step("x", kind="expand", activity="a@1", fills="g", expands_to=("a@1",)),
                Step("y", activity="a@1", depends_on=(group("g"),), join=at_least(30)),
            )
        ),
        KNOWN,
    )


def test_a_price_list_holds_whole_numbers() -> None:
    assert "/prices/scene" in faults(Step("a", activity="a@1"), prices={"scene": -1})


# --- conditions ---------------------------------------------------------------------------------------------------------


def deep(levels: int) -> dict[str, Any]:
    made = condition("exists", HERE)
    for _ in range(levels):
        made = not_(made)
    return made


@pytest.mark.parametrize(
    ("document", "place", "words"),
    [
        ("x > 3", "", "is no condition"),
        ({"all": []}, "/all", "stands alone over a list"),
        ({"any": [condition("exists", HERE)], "op": "eq"}, "/any", "stands alone over a list"),
        ({"not": condition("exists", HERE), "op": "eq"}, "/not", "stands alone over one condition"),
        ({"op": "like", "ref": HERE, "value": 1}, "/op", "is no operator"),
        ({"op": "eq", "ref": HERE}, "", "the members are"),
        ({"op": "exists", "ref": HERE, "value": 1}, "", "the members are"),
        ({"op": "exists", "ref": "a"}, "/ref", "is no reference"),
        ({"op": "exists", "ref": {"$ref": {"step": "a", "group": "g"}}}, "/ref", "either a step or a group"),
        ({"op": "exists", "ref": ref(group("g"), "/n")}, "/ref", "no one value"),
        ({"op": "exists", "ref": ref("a", "n")}, "/ref", "is no JSON pointer"),
        (condition("eq", HERE, 0.5), "/value", "fractions"),
        (condition("in", HERE, [0.5]), "/value", "fractions"),
        (condition("lt", HERE, True), "/value", "compares numbers or texts, not boolean"),
        (condition("gt", HERE, None), "/value", "compares numbers or texts, not null"),
        (condition("in", HERE, "abc"), "/value", "wants a list, not text"),
        (condition("eq", HERE, [1]), "/value", "compares single values, not list"),
        (condition("ne", HERE, {"n": 1}), "/value", "compares single values, not object"),
        (deep(DEPTH_MAX + 1), "/not" * (DEPTH_MAX + 1), "nests too deep"),
        (all_of(*[condition("exists", HERE)] * (TERMS_MAX + 1)), "", "comparisons are too many"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused_at_its_place(
    document: Any, place: str, words: str
) -> None:
    (fault,) = faults_of(document, "/when")

    assert "/when" + place == fault.pointer
    assert words in fault.message
    assert fault.remedy


def test_a_sound_condition_has_no_faults_up_to_its_limits() -> None:
    assert [] == list(faults_of(deep(DEPTH_MAX), "/when"))
    assert [] == list(faults_of(all_of(*[condition("exists", HERE)] * TERMS_MAX), "/when"))


@pytest.mark.parametrize(
    ("op", "found", "value", "expected"),
    [
        ("eq", 1, 1, True), ("eq", 1, True, False), ("eq", None, None, True), ("ne", 1, 2, True), ("ne", 1, 1, False),
        ("lt", 1, 2, True), ("lt", 2, 2, False), ("le", 2, 2, True), ("le", 3, 2, False), ("gt", 3, 2, True),
        ("gt", 2, 2, False), ("ge", 2, 2, True), ("ge", 1, 2, False), ("gt", "b", "a", True), ("gt", "3", 2, False),
        ("lt", None, 2, False), ("in", 2, [1, 2], True), ("in", 3, [1, 2], False), ("in", True, [1], False),
        ("eq", [1], "x", False), ("ne", {"a": 1}, "x", True),
    ],
)  # fmt: skip
def test_comparisons_never_mix_types(op: str, found: Any, value: Any, expected: bool) -> None:
    assert expected == holds(condition(op, HERE, value), lambda _: found)


# --- answers ----------------------------------------------------------------------------------------------------------


def test_an_answer_is_judged_at_its_place() -> None:
    (fault,) = answer_faults(ASK, {"take": "x"}, "/payload/answer")

    assert "/payload/answer/take" == fault.pointer
    assert "schema" in fault.remedy


def test_faults_beyond_a_limit_are_not_told() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    answer = {f"n{number}": "x" for number in range(FAULTS_MAX + 5)}

    assert FAULTS_MAX == len(answer_faults(schema, answer, ""))


def test_a_long_message_is_cut() -> None:
    (fault,) = answer_faults(ASK, {"take": "x" * 1000}, "")

    assert len(fault.message) <= 300
    assert fault.message.endswith("...")


def test_what_cannot_be_kept_is_no_answer() -> None:
    nested: Any = {}
    for _ in range(5000):
        nested = {"n": nested}
    (long,) = size_faults({"text": "x" * ANSWER_BYTES_MAX}, "/payload")
    (fraction,) = size_faults({"n": 0.5}, "/payload")

    assert "at most" in long.message
    assert "/payload/n" == fraction.pointer
    assert size_faults(nested, "/payload") != ()
    assert () == size_faults({"n": 1}, "/payload")


def test_a_reference_inside_the_schema_is_followed() -> None:
    schema = {
        "type": "object",
        "$defs": {"n": {"type": "integer"}},
        "properties": {
            "n": {"$ref": "#/$defs/n"},
            "list": {"type": "array", "prefixItems": [{"type": "integer"}]},
        },
    }

    assert () == answer_faults(schema, {"n": 1, "list": [1]}, "")
    assert "/n" == answer_faults(schema, {"n": "x"}, "")[0].pointer
    validate(Plan(steps=(Step("a", kind="input", answer=schema),)), KNOWN)
