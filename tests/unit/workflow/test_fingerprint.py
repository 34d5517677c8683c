"""Fingerprints and drift: equal plans are equal everywhere, and a difference is named (P15)."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from kit.plans import film, free, one
from kit.promises import promise
from longtake.errors import UncanonicalValue
from longtake.workflow.fingerprint import FieldChange, PlanBasis, differences, explain_drift, fingerprint
from longtake.workflow.plan import Plan, plan_document, read_plan

POLICY = {"model": "v2", "seconds": 5}
PRICES = {"scene": 5}

keys = st.text("abc/~", max_size=3)
values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


@promise("H15", "H16")
def test_the_fingerprint_covers_plan_policy_and_prices() -> None:
    same = fingerprint(film(), POLICY, PRICES)

    assert same == fingerprint(read_plan(plan_document(film())), dict(reversed(POLICY.items())), PRICES)
    assert 64 == len(same)
    others = {
        fingerprint(film(4), POLICY, PRICES),
        fingerprint(film(), {**POLICY, "seconds": 6}, PRICES),
        fingerprint(film(), POLICY, {"scene": 6}),
        fingerprint(film(max_parallel=31), POLICY, PRICES),
    }
    assert 4 == len(others - {same})


def test_a_float_has_no_fingerprint() -> None:
    with pytest.raises(UncanonicalValue, match="/policy/x"):
        fingerprint(film(), {"x": 0.5}, None)


@promise("H17")
@pytest.mark.parametrize(
    ("new", "field", "effect"),
    [
        (one(price=6), "/plan/steps/0/price", "the price rises from 5 to 6 credits"),
        (one(price=4), "/plan/steps/0/price", "the price falls from 5 to 4 credits"),
        (one(label="b"), "/plan/steps/0/label", "the price stays at 5 credits"),
        (one(input={"a/b": 1}), "/plan/steps/0/input", "the price stays at 5 credits"),
        (one().step("b", activity="b@1", price=2), "/plan/steps/1", "the price rises from 5 to 7 credits"),
    ],
)
def test_drift_names_the_first_field_and_what_it_does_to_the_price(
    new: object, field: str, effect: str
) -> None:
    assert (field, effect) == explain_drift(one(), new)


def test_plans_that_are_equal_have_not_drifted() -> None:
    assert explain_drift(film(), read_plan(plan_document(film()))) is None


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ({"a/b": 1}, {"a/b": 2}, "/policy/a~1b"),
        ({"x": 1}, {"x": True}, "/policy/x"),
        ({"x": [1, 2]}, {"x": [1]}, "/policy/x/1"),
        ({"x": {}}, {}, "/policy/x"),
        ({"x": [{"y": 1}]}, {"x": [{"y": 2}]}, "/policy/x/0/y"),
    ],
)
def test_drift_of_a_policy_is_named_by_its_place(old: object, new: object, field: str) -> None:
    found = explain_drift(PlanBasis(plan=one(), policy=old), PlanBasis(plan=one(), policy=new))

    assert field == found[0]


def _changes(old: object, new: object) -> list[tuple]:
    found = differences(PlanBasis(plan=old), PlanBasis(plan=new))
    return [(change.pointer, change.before, change.after) for change in found]


def test_every_difference_is_told_with_what_it_was_and_what_it_is() -> None:
    old = one(label="a").step("b", activity="b@1", price=2, input={"model": "v2", "seconds": 5})
    new = one(label="A").step("b", activity="b@1", price=3, input={"model": "v3", "cfg": 1})

    assert _changes(old, new) == [
        ("/plan/steps/0/label", "a", "A"),
        ("/plan/steps/1/input/cfg", UNSET, 1),
        ("/plan/steps/1/input/model", "v2", "v3"),
        ("/plan/steps/1/input/seconds", 5, UNSET),
        ("/plan/steps/1/price", 2, 3),
    ]
    assert _changes(old, old) == []


def test_a_step_more_or_less_is_one_difference_wherever_it_stands() -> None:
    short = Plan().step("b", activity="b@1").step("c", activity="c@1")
    long = Plan().step("a", activity="a@1").step("b", activity="b@1").step("c", activity="c@1")
    a = {"key": "a", "activity": "a@1"}

    assert _changes(short, long) == [("/plan/steps/0", UNSET, a)]
    assert _changes(long, short) == [("/plan/steps/0", a, UNSET)]


def test_another_order_of_the_same_steps_is_named_as_such() -> None:
    """Steps become ready in plan order, so the order is part of the contract."""
    one_way = Plan().step("a", activity="a@1").step("b", activity="b@1")
    other = Plan().step("b", activity="b@1").step("a", activity="a@1")

    assert _changes(one_way, other) == [("/plan/steps", ["a", "b"], ["b", "a"])]
    assert explain_drift(one_way, other) == ("/plan/steps", "the price stays at 0 credits")
    assert fingerprint(one_way, None, None) != fingerprint(other, None, None)


@given(values, values)
def test_there_is_a_difference_exactly_when_the_fingerprints_differ(old: object, new: object) -> None:
    """The broken variant: a comparison that takes 1 for True, or [] for {}, names nothing where the digest differs."""
    was, now = PlanBasis(plan=free(), policy=old), PlanBasis(plan=free(), policy=new)

    assert bool(differences(was, now)) == (fingerprint(free(), old, None) != fingerprint(free(), new, None))
    assert differences(was, was) == []


def test_a_change_is_written_without_the_side_that_is_not_there() -> None:
    assert (
        msgspec.json.encode(FieldChange(pointer="/policy/x", after=1)) == b'{"pointer":"/policy/x","after":1}'
    )
    assert msgspec.json.encode(FieldChange(pointer="/policy/x", before=None, after=1)) == (
        b'{"pointer":"/policy/x","before":null,"after":1}'
    )
