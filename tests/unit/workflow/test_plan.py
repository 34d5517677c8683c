"""Plans: data that builders make, stored as a document, compiled for walking."""

import msgspec
import pytest

from kit.plans import film
from kit.promises import promise
from longtake.errors import InvalidPlan
from longtake.workflow.plan import (
    ActivityFacts,
    ExpectedArtifact,
    Plan,
    Retry,
    Step,
    bind,
    compile_document,
    compile_plan,
    group,
    plan_document,
    quote,
    read_plan,
    ref,
)


class Brief(msgspec.Struct):
    """An input that authors may hand over as it is."""

    title: str
    sizes: tuple[int, ...]


@promise("H06")
def test_a_builder_returns_a_new_plan_and_leaves_the_old_one_alone() -> None:
    empty = Plan()
    longer = empty.step("a", activity="a@1")

    assert ((), ("a",)) == (empty.steps, tuple(step.key for step in longer.steps))


@promise("H07", "H08")
def test_a_step_carries_everything_that_was_said_of_it() -> None:
    plan = Plan(scopes=["render"]).step(
        "a", activity="a@1", phase="p", label="l", input={"x": 1}, depends_on=["b"], price=3, retry=Retry(max_attempts=9),
        timeout_seconds=7, external_seconds_max=8, artifacts=["clip", "poster:image", ExpectedArtifact("x", "y")],
        on_exhausted="fail", on_ambiguous="retry", pool="gpu", priority=2, group="g",
    )  # fmt: skip

    assert ("render",) == plan.scopes
    assert plan.steps[0] == Step(
        "a", activity="a@1", phase="p", label="l", input={"x": 1}, depends_on=("b",), price=3,
        retry=Retry(max_attempts=9), timeout_seconds=7, external_seconds_max=8,
        artifacts=(ExpectedArtifact("clip", "clip"), ExpectedArtifact("poster", "image"), ExpectedArtifact("x", "y")),
        on_exhausted="fail", on_ambiguous="retry", pool="gpu", priority=2, group="g",
    )  # fmt: skip


@promise("H11", "H13")
def test_a_fan_out_numbers_its_items_from_one_in_order() -> None:
    plan = Plan().fan_out("g", ["x", "y"], lambda item, i: Step(f"{item}:{i}", activity="a@1"))

    assert [("x:1", "g"), ("y:2", "g")] == [(step.key, step.group) for step in plan.steps]
    assert ("g",) == plan.fan_out("g", ["z"], lambda item, i: Step("z", activity="a@1")).groups


def test_structs_in_an_input_become_plain_json() -> None:
    plan = Plan().fan_out("g", [1], lambda _, i: Step("a", input={"brief": Brief("t", (1, 2))}))

    assert {"brief": {"title": "t", "sizes": [1, 2]}} == plan.steps[0].input


@promise("H14")
def test_a_document_reads_back_as_the_same_plan() -> None:
    plan = film()

    assert plan == read_plan(plan_document(plan))
    assert plan_document(plan) == plan_document(read_plan(plan_document(plan)))


@pytest.mark.parametrize(
    "document", [b"", b"{", b'{"steps":[{"key":1}]}', b'{"steps":[],"stepz":[]}', b"\xff"]
)
def test_what_is_no_plan_document_is_refused(document: bytes) -> None:
    with pytest.raises(InvalidPlan, match="no plan|not a plan") as caught:
        read_plan(document)

    assert ("", "store what plan_document() returned") == (
        caught.value.errors[0].pointer,
        caught.value.errors[0].remedy,
    )


def test_the_quote_is_the_sum_of_prices_and_the_cap_defaults_to_it() -> None:
    assert (16, 16) == (quote(film()), film().cap)
    assert 40 == film(cost_cap=40).cap


def test_the_same_document_is_compiled_once() -> None:
    assert compile_plan(film()) is compile_document(plan_document(film()))


def test_compiling_finds_edges_barriers_and_what_is_wanted_of_a_result() -> None:
    compiled = compile_plan(film())

    assert ((0, 0, 0, 0, 1, 1), (("scenes",),)) == (compiled.step_deps, compiled.group_deps[4:5])
    assert ((), (), (), (4,), (5,), ()) == compiled.dependents
    assert {"scenes": (4,)} == compiled.group_dependents
    assert {"scenes": (0, 1, 2)} == compiled.groups
    assert (1, 1, 1, 1, 1, 0) == compiled.readers
    assert (0, 1, 2, 3) == compiled.sources[4]
    assert ("/artifacts/clip/object_key",) == compiled.wanted[0]
    assert ("scenes", "voice", "render", "delivery") == compiled.phases


def test_a_dependency_that_is_also_referred_to_counts_once() -> None:
    plan = (
        Plan()
        .step("a", activity="a@1")
        .step("b", activity="b@1", depends_on=["a", "a"], input={"x": ref("a"), "y": ref("a", "/result")})
    )

    assert (0, 1) == compile_plan(plan).step_deps


def test_two_groups_in_a_row_cost_no_product_of_edges() -> None:
    plan = (
        Plan()
        .fan_out("one", range(300), lambda _, i: Step(f"one:{i}", activity="a@1"))
        .fan_out("two", range(300), lambda _, i: Step(f"two:{i}", activity="a@1", depends_on=[group("one")]))
    )
    compiled = compile_plan(plan)

    assert 300 == sum(map(len, compiled.dependents)) + sum(map(len, compiled.group_dependents.values()))
    assert 600 == len(compiled.order)


def test_the_order_puts_every_step_after_what_it_waits_for() -> None:
    compiled = compile_plan(Plan(steps=tuple(reversed(film().steps)), groups=film().groups))
    place = {position: index for index, position in enumerate(compiled.order)}

    assert 6 == len(place)
    for position, dependents in enumerate(compiled.dependents):
        assert all(place[position] < place[other] for other in dependents)


def test_binding_freezes_what_the_reducer_must_know_of_activities() -> None:
    facts = {"a@1": ActivityFacts(name="a", version=1, paid=True, pool="gpu", cancellable=True)}
    plan = Plan().step("x", activity="a@1", price=1).step("y", activity="a@1", price=1, pool="short")
    first, second = bind(plan, facts).steps

    assert ("gpu", True, True) == (first.pool, first.paid, first.cancellable)
    assert "short" == second.pool


@pytest.mark.parametrize(
    ("step", "exhausted", "ambiguous"),
    [
        (Step("a", price=1), "block", "block"),
        (Step("a"), "fail", "retry"),
        (Step("a", paid=True), "block", "block"),
        (Step("a", price=1, paid=False), "fail", "retry"),
        (Step("a", price=1, on_exhausted="fail", on_ambiguous="retry"), "fail", "retry"),
        (Step("a", on_exhausted="block", on_ambiguous="block"), "block", "block"),
    ],
)
def test_what_may_cost_somebody_waits_for_a_person_unless_the_plan_says_else(
    step: Step, exhausted: str, ambiguous: str
) -> None:
    assert (exhausted, ambiguous) == (step.exhausted_policy, step.ambiguous_policy)
