"""The laws of money stop a decision that would break them."""

import pytest

from kit.plans import one
from kit.promises import promise
from longtake.contracts.signals import CancelRun
from longtake.workflow import money
from longtake.workflow.decision import CREDITS_ESCROW
from longtake.workflow.draft import Draft
from longtake.workflow.ending import settle_when_known
from longtake.workflow.plan import Plan
from longtake.workflow.reducer import accept, decide
from longtake.workflow.script import FACTS, START, Script
from longtake.workflow.state import initial


@promise("H46")
@pytest.mark.parametrize(
    ("charged", "refunded", "message"),
    [(5, 6, "charged 5 >= refunded 6"), (5, -1, "refunded -1"), (6, 0, "net 6 is above the cap of 5")],
)
def test_a_broken_law_stops_the_next_decision(charged: int, refunded: int, message: str) -> None:
    script = Script(one())
    script.accept()
    script.state.charged, script.state.refunded = charged, refunded

    with pytest.raises(money.InvariantBroken, match=message):
        decide(script.state, CancelRun(command_id="c", actor="a", expected_revision=1), START)


@promise("H46")
def test_a_decision_that_would_break_a_law_is_not_made() -> None:
    plan = Plan(cost_cap=4, steps=one(price=5).steps)  # validation would have refused it

    with pytest.raises(money.InvariantBroken, match="above the cap of 4"):
        accept(initial(Script(one()).state.run_id, "t", plan), FACTS, START)


def test_every_entry_leaves_one_account_and_reaches_another() -> None:
    script = Script(one(on_exhausted="fail"))
    script.accept()
    script.fail("a", "auth")

    assert [("charge", "acme", CREDITS_ESCROW, 5), ("refund", CREDITS_ESCROW, "acme", 5)] == [
        (entry.kind, entry.debit, entry.credit, entry.amount) for entry in script.ledger
    ]


@promise("H45")
def test_a_run_has_one_key_for_its_charge_and_one_for_its_refund() -> None:
    script = Script(one())
    script.accept()

    assert f"charge:{script.state.run_id}" == money.charge_key(script.state)
    assert f"refund:{script.state.run_id}" == money.refund_key(script.state)


def test_nothing_settles_that_does_not_end() -> None:
    script = Script(one())
    script.accept()
    draft = Draft(script.state, START)
    settle_when_known(draft)

    assert () == draft.decision().events


@promise("H46")
@pytest.mark.parametrize(
    ("held", "cap", "message"),
    [(4, 5, "net 5 is above the hold of 4"), (7, 6, "hold of 7 is above the cap of 6")],
)
def test_a_run_takes_no_more_than_its_account_holds_for_it(held: int, cap: int, message: str) -> None:
    script = Script(one())
    script.accept()
    script.state.held, script.state.cap = held, cap

    with pytest.raises(money.InvariantBroken, match=message):
        decide(script.state, CancelRun(command_id="c", actor="a", expected_revision=1), START)


def test_a_run_that_goes_on_owes_nothing_back() -> None:
    script = Script(one())
    script.accept()

    assert 0 == money.refund_due(script.state)
