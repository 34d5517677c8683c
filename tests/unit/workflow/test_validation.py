"""Every rule of a valid plan: what breaks it is named with its place and a remedy."""

import msgspec
import pytest

from kit.plans import film
from kit.promises import promise
from longtake.errors import InvalidPlan
from longtake.workflow import validation
from longtake.workflow.plan import ActivityFacts, ExpectedArtifact, Plan, Retry, Step, group, ref, validate
from longtake.workflow.validation import find_cycle

FACTS = {
    "a@1": ActivityFacts(name="a", version=1),
    "paid@1": ActivityFacts(name="paid", version=1, paid=True, pool="gpu"),
    "gift@2": ActivityFacts(name="gift", version=2, paid=True, free_of_charge=True),
}


def faults(plan: Plan, **policy: object) -> list[tuple[str, str, str]]:
    try:
        validate(plan, FACTS, **policy)
    except InvalidPlan as error:
        return [(item.pointer, item.message, item.remedy) for item in error.errors]
    return []


def the_fault(plan: Plan, **policy: object) -> tuple[str, str, str]:
    found = faults(plan, **policy)
    assert 1 == len(found), found
    return found[0]


def a(key: str = "x", **fields: object) -> Plan:
    return Plan().step(key, **{"activity": "a@1", **fields})


def test_a_good_plan_has_no_faults() -> None:
    known = {
        f"{name}@1": ActivityFacts(name=name, version=1) for name in ("scene", "voice", "render", "verify")
    }

    assert validate(film(30), known) is None


ONE_FAULT = [
    ("empty", Plan(), "/steps", "no steps", "at least one"),
    ("duplicate", a().step("x", activity="a@1"), "/steps/1/key", "also that of step 0", "key of its own"),
    ("missing step", a(depends_on=["y"]), "/steps/0/depends_on/0", "no step 'y'", "add that step"),
    (
        "missing group",
        a(depends_on=[group("g")]),
        "/steps/0/depends_on/0",
        "no group 'g'",
        "fan out that group",
    ),
    ("ref to no step", a(input={"u": [ref("y")]}), "/steps/0/input/u/0", "no step: 'y'", "step of this plan"),
    (
        "ref to no group",
        a(input={"u": ref(group("g"))}),
        "/steps/0/input/u",
        "no group: 'g'",
        "group of this plan",
    ),
    (
        "pointer",
        a().step("y", activity="a@1", input={"u": ref("x", "result")}),
        "/steps/1/input/u",
        "no JSON pointer",
        "begin it",
    ),
    (
        "pointer escape",
        a().step("y", activity="a@1", input={"u": ref("x", "/~2")}),
        "/steps/1/input/u",
        "no JSON pointer",
        "~0",
    ),
    ("bad ref", a(input={"u": {"$ref": "x"}}), "/steps/0/input/u", "an object under it", "ref()"),
    (
        "ref and more",
        a(input={"u": {"$ref": {"step": "x"}, "z": 1}}),
        "/steps/0/input/u",
        "nothing else",
        "ref()",
    ),
    (
        "ref to both",
        a(input={"u": {"$ref": {"step": "x", "group": "g"}}}),
        "/steps/0/input/u",
        "either a step or",
        "ref()",
    ),
    (
        "ref with more",
        a(input={"u": {"$ref": {"step": "x", "n": 1}}}),
        "/steps/0/input/u",
        "either a step or",
        "ref()",
    ),
    ("ref with number", a(input={"u": {"$ref": {"step": 4}}}), "/steps/0/input/u", "are texts", "ref()"),
    ("self", a(depends_on=["x"]), "/steps/0/depends_on", "x -> x", "break the circle"),
    ("self by ref", a(input={"u": ref("x")}), "/steps/0/depends_on", "x -> x", "break the circle"),
    ("own group", a(depends_on=[group("g")], group="g"), "/steps/0/depends_on", "x -> x", "break the circle"),
    (
        "cycle",
        a(depends_on=["y"]).step("y", activity="a@1", depends_on=["x"]),
        "/steps/0/depends_on",
        "x -> y -> x",
        "break",
    ),
    ("unknown activity", a(activity="b@1"), "/steps/0/activity", "the activity 'b@1' is not", "register it"),
    (
        "unknown version",
        a(activity="gift@1"),
        "/steps/0/activity",
        "the version 'gift@1' is not",
        "versions 2",
    ),
    ("no version", a(activity="a"), "/steps/0/activity", "no activity and version", "name@1"),
    ("version latest", a(activity="a@latest"), "/steps/0/activity", "no activity and version", "name@1"),
    ("unpriced", a(activity="paid@1"), "/steps/0/price", "has no price", "free of charge"),
    (
        "no kind",
        a(artifacts=[ExpectedArtifact("clip")]),
        "/steps/0/artifacts/0",
        "has no kind",
        '"clip:video"',
    ),
    ("no kind, short", a(artifacts=["clip:"]), "/steps/0/artifacts/0", "has no kind", '"clip:video"'),
    ("artifact twice", a(artifacts=["c:a", "c:b"]), "/steps/0/artifacts/1", "used twice", "once a step"),
    ("artifact name", a(artifacts=["a b:c"]), "/steps/0/artifacts/0", "odd", "letters"),
    ("key alphabet", a("a b"), "/steps/0/key", "'a b' cannot be a key", "letters"),
    ("key start", a("*a"), "/steps/0/key", "cannot be a key", "letter or digit first"),
    ("key length", a("a" * 129), "/steps/0/key", "aaa...", "at most 128"),
    ("key empty", a(""), "/steps/0/key", "cannot be a key", "letters"),
    ("phase", a(phase="a/b"), "/steps/0/phase", "cannot be a phase", "letters"),
    ("pool", a(pool="moon"), "/steps/0/pool", "nobody works in the pool 'moon'", "default, gpu"),
    ("float", a(input={"u": [0.5]}), "/steps/0/input/u/0", "float", "integer units"),
    ("not json", a(input={"u": object()}), "/steps/0/input", "not JSON", "plain JSON"),
    (
        "model latest",
        a(input={"model": "latest"}),
        "/steps/0/input/model",
        "'latest' is another one",
        "fixed version",
    ),
    (
        "model -latest",
        a(input={"o": [{"video_model": "v:Latest"}]}),
        "/steps/0/input/o/0/video_model",
        "another one",
        "fixed",
    ),
    (
        "cap",
        a(price=5).__class__(cost_cap=4, steps=a(price=5).steps),
        "/cost_cap",
        "4 credits is below the quote of 5",
        "at least 5",
    ),
    ("parallel", Plan(max_parallel=0, steps=a().steps), "/max_parallel", "0 steps at once", "1 to 1000"),
    ("deadline", Plan(deadline_seconds=0, steps=a().steps), "/deadline_seconds", "0 seconds", "or none"),
    ("delivers", Plan(delivers="z", steps=a().steps), "/delivers", "no step 'z'", "delivers"),
    ("scope", Plan(scopes=("a b",), steps=a().steps), "/scopes/0", "no scope", "letters"),
    ("scope twice", Plan(scopes=("v", "v"), steps=a().steps), "/scopes/1", "named twice", "once"),
    ("price", a(price=-1), "/steps/0/price", "-1 is out of bounds", "from 0 to"),
    ("price bool", a(price=True), "/steps/0/price", "True is out of bounds", "whole number"),
    ("timeout", a(timeout_seconds=0), "/steps/0/timeout_seconds", "0 is out of bounds", "from 1"),
    ("external", a(external_seconds_max=0), "/steps/0/external_seconds_max", "out of bounds", "from 1"),
    ("priority", a(priority=101), "/steps/0/priority", "out of bounds", "from -100 to 100"),
    ("attempts", a(retry=Retry(max_attempts=0)), "/steps/0/retry/max_attempts", "0 is out", "from 1 to 100"),
    (
        "first delay",
        a(retry=Retry(first_delay_ms=-1)),
        "/steps/0/retry/first_delay_ms",
        "-1 is out",
        "from 0",
    ),
    ("factor", a(retry=Retry(factor=0)), "/steps/0/retry/factor", "0 is out", "from 1 to 10"),
    (
        "delays",
        a(retry=Retry(first_delay_ms=9, delay_ms_max=8)),
        "/steps/0/retry/delay_ms_max",
        "8 is out",
        "from 9",
    ),
]


@promise("H09", "H18")
@pytest.mark.parametrize(("plan", "pointer", "message", "remedy"), [row[1:] for row in ONE_FAULT], ids=[row[0] for row in ONE_FAULT])  # fmt: skip
def test_each_fault_names_its_place_and_its_remedy(
    plan: Plan, pointer: str, message: str, remedy: str
) -> None:
    found = the_fault(plan)

    assert pointer == found[0]
    assert message in found[1]
    assert remedy in found[2]


@promise("H19")
@pytest.mark.parametrize("policy", [{"video_model": "x-latest"}, {"models": [{"model": "latest"}]}])
def test_a_policy_that_leaves_its_model_open_is_refused(policy: dict) -> None:
    pointer, message, remedy = the_fault(a(), policy=policy)

    assert pointer.startswith("/policy/")
    assert ("tomorrow" in message, "name a fixed version") == (True, remedy)


def test_a_policy_struct_is_read_like_json() -> None:
    class Policy(msgspec.Struct):
        model: str

    assert "/policy/model" == the_fault(a(), policy=Policy("latest"))[0]
    assert [] == faults(a(), policy=Policy("v2"))


@pytest.mark.parametrize("input_", [{"title": "latest"}, {"model": "greatest"}, {"model": 3}])
def test_the_word_latest_is_free_elsewhere(input_: dict) -> None:
    assert [] == faults(a(input=input_))


def test_a_paid_activity_that_is_free_of_charge_needs_no_price() -> None:
    assert [] == faults(a(activity="gift@2"))


def test_all_faults_are_listed_and_no_more_than_anybody_reads() -> None:
    assert 2 == len(faults(a(price=-1, depends_on=["y"])))
    many = Plan(steps=tuple(Step(f"s{n}", activity="b@1") for n in range(200)))
    assert validation.PROBLEMS_MAX == len(faults(many))


def test_the_number_of_steps_is_bounded() -> None:
    full = Plan(steps=tuple(Step(f"s{n}", activity="a@1") for n in range(validation.STEPS_MAX)))
    assert [] == faults(full)

    pointer, message, remedy = the_fault(full.step("one-more", activity="a@1"))

    assert ("/steps", "split it into runs") == (pointer, remedy)
    assert "20001 steps" in message


def test_the_size_of_the_document_is_bounded() -> None:
    pointer, message, remedy = the_fault(a(input={"u": "x" * validation.DOCUMENT_BYTES_MAX}))

    assert ("", "refer to large inputs by key") == (pointer, remedy)
    assert "bytes long" in message


def test_the_number_of_scopes_is_bounded() -> None:
    scopes = tuple(f"s{n}" for n in range(validation.SCOPES_MAX + 1))
    pointer, _, remedy = the_fault(Plan(scopes=scopes, steps=a().steps))

    assert ("/scopes", f"name at most {validation.SCOPES_MAX}") == (pointer, remedy)


def test_an_input_that_nests_too_deep_is_refused_at_its_place() -> None:
    deep: object = 1
    for _ in range(70):
        deep = [deep]
    ((pointer, message, _),) = faults(a(input={"u": deep}))

    assert pointer.startswith("/steps/0/input/u/0")
    assert "deeper than 64" in message


def test_a_long_chain_and_a_long_circle_need_no_stack() -> None:
    chain = Plan(
        steps=tuple(
            Step(f"s{n}", activity="a@1", depends_on=(f"s{n - 1}",) if n else ()) for n in range(5000)
        )
    )
    assert [] == faults(chain)

    circle = Plan(steps=(Step("s0", activity="a@1", depends_on=("s4999",)), *chain.steps[1:]))

    assert "s0 -> s4999" in the_fault(circle)[1]


def test_a_circle_behind_a_diamond_is_found_and_named() -> None:
    plan = Plan(
        steps=(
            Step("top", activity="a@1"),
            Step("left", activity="a@1", depends_on=("top",)),
            Step("right", activity="a@1", depends_on=("top", "left")),
            Step("p", activity="a@1", depends_on=("right", group("g"))),
            Step("q", activity="a@1", depends_on=("p",), group="g"),
        )
    )
    positions = {step.key: index for index, step in enumerate(plan.steps)}

    assert ("p", "q") == find_cycle(plan, positions)
