"""The checker's own oracle: what it must reject, what it must accept, and that none of its parts is idle (4.6)."""

from functools import cache

import pytest

from kit.bad_histories import BAD, Bad
from kit.evidence import Case
from kit.good_histories import GOOD
from longtake.testing.checking import judge
from longtake.testing.checking.verdict import CHECKERS


@cache
def rejected_by(bad: Bad) -> dict[str, frozenset[str]]:
    """Which checkers reject a bad history, and for what."""
    case = Case()
    bad.make(case)
    return {
        name: frozenset(violation.invariant for violation in violations)
        for name, violations in case.judged().items()
        if violations
    }


def test_the_real_history_is_accepted():
    case = Case()

    verdict = judge(case.history, case.store, case.witness, **case.options)

    assert verdict.ok, verdict.text()
    assert verdict.counters["runs"] == 5
    assert verdict.counters["ok"] > 100


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_history_is_rejected_for_its_own_reason(bad):
    assert bad.invariant in rejected_by(bad).get(bad.checker, ())


def test_there_are_enough_bad_histories():
    assert len(BAD) >= 20
    assert len({bad.name for bad in BAD}) == len(BAD)


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in GOOD])
def test_an_odd_but_good_history_is_accepted(make):
    case = Case()
    make(case)

    assert {name: found for name, found in case.judged().items() if found} == {}


def test_there_are_enough_good_histories():
    assert len(GOOD) >= 10


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_checker_that_is_left_out_is_missed(checker):
    """Some bad history passes without it: nobody else would have said anything."""
    alone = [bad.name for bad in BAD if set(rejected_by(bad)) == {checker}]

    assert alone, {bad.name: set(rejected_by(bad)) for bad in BAD if bad.checker == checker}
