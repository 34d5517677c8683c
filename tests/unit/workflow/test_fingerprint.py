"""Fingerprints and drift: equal plans are equal everywhere, and a difference is named (P15)."""

import pytest

from kit.plans import film, one
from kit.promises import promise
from longtake.errors import UncanonicalValue
from longtake.workflow.fingerprint import PlanBasis, explain_drift, fingerprint
from longtake.workflow.plan import plan_document, read_plan

POLICY = {"model": "v2", "seconds": 5}
PRICES = {"scene": 5}


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
