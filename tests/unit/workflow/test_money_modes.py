"""Both ways of billing: what is taken when, what is given back, and what is kept (design.md 7, P9, P10)."""

import uuid

import pytest

from kit.plans import FAST, film, one
from kit.promises import promise
from longtake.contracts.events import Charged, Refunded, StepsScheduled
from longtake.contracts.outcomes import Cancelled, Failed, Succeeded, Unknown
from longtake.workflow.decision import CREDITS_ESCROW
from longtake.workflow.plan import Plan, Step, at_least, group
from longtake.workflow.script import Script


def paying(*steps: Step, **fields: object) -> Plan:
    """A plan that is charged step by step."""
    return Plan(billing="pay_as_you_go", steps=steps, **fields)


def paid(key: str, price: int = 5, **fields: object) -> Step:
    return Step(key, activity=f"{key.partition(':')[0]}@1", **{"price": price, "retry": FAST, **fields})


def accepted(plan: Plan) -> Script:
    script = Script(plan)
    script.accept()
    return script


def moves(script: Script) -> list[tuple[str, int]]:
    """All ledger entries, without the run's id."""
    return [(entry.key.replace(f":{script.state.run_id}", ""), entry.amount) for entry in script.ledger]


def net(script: Script) -> int:
    return script.state.charged - script.state.refunded


# --- pay as you go ---------------------------------------------------------------------------------------------------


@promise("H51", "H44")
def test_a_step_is_charged_by_the_decision_that_hands_out_its_first_work() -> None:
    script = accepted(paying(paid("a"), paid("b", 7, depends_on=("a",))))

    decision = script.decisions[-1]
    types = [type(event) for event in decision.events]
    assert [("charge:a:1", 5)] == moves(script)
    assert types.index(Charged) < types.index(StepsScheduled)
    assert ["a"] == [effect.step for effect in decision.effects]

    script.succeed("a")

    assert [("charge:a:1", 5), ("charge:b:1", 7)] == moves(script)


@promise("H51")
def test_completed_steps_keep_their_value_when_the_run_fails() -> None:
    script = accepted(paying(paid("a"), paid("b", 7, depends_on=("a",), on_exhausted="fail")))
    script.succeed("a")
    script.fail("b", "auth")

    assert "failed" == script.state.ended
    assert [("charge:a:1", 5), ("charge:b:1", 7), ("refund:b:1", 7)] == moves(script)


@promise("H50")
def test_a_prepaid_run_that_fails_gives_back_what_its_completed_steps_cost_too() -> None:
    script = accepted(Plan(steps=(paid("a"), paid("b", 7, depends_on=("a",), on_exhausted="fail"))))
    script.succeed("a")
    script.fail("b", "auth")

    assert [("charge", 12), ("refund", 12)] == moves(script)


@promise("H45")
def test_tries_of_a_step_and_of_a_blocked_step_stay_in_one_cycle() -> None:
    script = accepted(paying(paid("a")))
    for _ in range(3):
        script.wait(100)
        script.fail("a")

    assert "blocked" == script.status("a")
    assert [("charge:a:1", 5)] == moves(script)

    script.retry()
    script.fail("a")
    script.wait(100)
    script.succeed("a")

    assert "completed" == script.state.ended
    assert [("charge:a:1", 5)] == moves(script)


def test_nothing_is_given_back_while_the_truth_is_open() -> None:
    script = accepted(paying(paid("a", on_ambiguous="block")))
    script.report("a", Unknown(evidence="the answer was lost"))

    assert "reconciling" == script.status("a")
    assert [("charge:a:1", 5)] == moves(script)


def test_a_failed_step_that_is_tried_again_begins_the_next_cycle() -> None:
    """`charge:{run}:{step}:{n}`, and its refund, once each (P9)."""
    script = accepted(paying(paid("a", optional=True), paid("b")))
    script.fail("a", "auth")

    assert [("charge:a:1", 5), ("charge:b:1", 5), ("refund:a:1", 5)] == moves(script)

    script.retry("a")
    assert ("charge:a:2", 5) == moves(script)[-1]
    script.fail("a", "auth")
    assert ("refund:a:2", 5) == moves(script)[-1]
    script.succeed("b")

    assert "completed" == script.state.ended
    assert 5 == net(script)


def test_a_step_whose_rule_gives_nothing_back_is_paid_again_when_it_is_tried_again() -> None:
    script = accepted(paying(paid("a", optional=True, refund="none"), paid("b"), cost_cap=20))
    script.fail("a", "auth")
    script.retry("a")
    script.succeed("a")
    script.succeed("b")

    assert [("charge:a:1", 5), ("charge:b:1", 5), ("charge:a:2", 5)] == moves(script)


@pytest.mark.parametrize(
    ("answer", "given_back"),
    [("stopped", 5), ("too_late", 0), ("unsupported", 0), ("unknown", 0)],
)
@pytest.mark.parametrize("billing", ["prepaid", "pay_as_you_go"])
@promise("H45")
def test_the_providers_answer_to_a_cancel_decides_the_price(
    answer: str, given_back: int, billing: str
) -> None:
    script = accepted(Plan(billing=billing, steps=(paid("a"),)))
    script.submit("a")
    script.cancel()
    script.report("a", Cancelled(answer=answer))

    assert "cancelled" == script.state.ended
    assert given_back == script.state.refunded


def test_what_is_cancelled_before_it_began_is_given_back() -> None:
    script = accepted(paying(paid("a"), paid("b", depends_on=("a",))))
    script.cancel()
    script.report("a", Cancelled())

    assert [("charge:a:1", 5), ("refund:a:1", 5)] == moves(script)


def test_losers_of_a_join_settle_by_the_same_rules_while_the_run_goes_on() -> None:
    plan = Plan(billing="pay_as_you_go", cost_cap=40).fan_out(
        "takes", range(3), lambda _, i: paid(f"take:{i}")
    )
    script = accepted(plan.step("pick", activity="pick@1", depends_on=[group("takes")], join=at_least(1)))
    script.submit("take:2")
    script.succeed("take:1")
    script.report("take:2", Cancelled(answer="too_late"))
    script.report("take:3", Cancelled())
    script.succeed("pick")

    assert "completed" == script.state.ended
    assert [("refund:take:3:1", 5)] == [move for move in moves(script) if move[0].startswith("refund")]
    assert 10 == net(script)


def test_a_late_success_after_settlement_costs_the_provider_and_changes_no_price() -> None:
    script = accepted(paying(paid("a", on_ambiguous="block")))
    script.report("a", Unknown(evidence="lost"))
    script.cancel()
    script.wait(601).fire("settlement")
    before = moves(script)
    late = script.report("a", Succeeded(provider_cost=99), kind="execute")

    assert before == moves(script)
    assert () == late.events


@promise("H43")
def test_the_providers_cost_stands_beside_the_price_and_never_changes_it() -> None:
    script = accepted(paying(paid("a")))
    script.report("a", Failed(error_class="transient", message="it broke", provider_cost=3))
    script.wait(100)
    script.report("a", Succeeded(provider_cost=4))

    assert 7 == script.state.steps[0].provider_cost
    assert 5 == net(script)


def test_free_steps_move_no_money() -> None:
    script = accepted(paying(paid("a", 0)))
    script.succeed("a")

    assert [] == script.ledger


def test_skipped_steps_are_not_charged() -> None:
    plan = paying(
        paid("a", optional=True), paid("b", 7, optional=True, depends_on=("a",)), paid("c"), cost_cap=30
    )
    script = accepted(plan)
    script.fail("a", "auth")
    script.succeed("c")

    assert "skipped" == script.status("b")
    assert [("charge:a:1", 5), ("charge:c:1", 5), ("refund:a:1", 5)] == moves(script)


@pytest.mark.parametrize("billing", ["prepaid", "pay_as_you_go"])
def test_every_entry_goes_from_the_account_to_escrow_or_back(billing: str) -> None:
    script = accepted(film(2, billing=billing))
    script.cancel()
    for step in ("scene:1", "scene:2", "voice"):
        script.report(step, Cancelled())

    sides = {(entry.kind, entry.debit, entry.credit) for entry in script.ledger}
    assert {("charge", "acme", CREDITS_ESCROW), ("refund", CREDITS_ESCROW, "acme")} == sides
    assert 0 == net(script)


@promise("H43")
def test_what_was_agreed_is_frozen_at_acceptance() -> None:
    script = Script(one(price=5))
    script.plan = script.plan  # the plan says nothing of money but its price
    decision = script.accept(cap=9)
    money = decision.events[0].money

    assert ("prepaid", 5, 9, 9, "2026-01") == (
        money.billing, money.quoted, money.cap, money.held, money.price_list,
    )  # fmt: skip


def test_a_plan_may_hold_its_quote_only() -> None:
    script = accepted(paying(paid("a"), cost_cap=50, hold="quote"))

    assert (5, 50) == (script.state.held, script.state.cap)


# --- what is prepaid -------------------------------------------------------------------------------------------------


def test_a_queued_run_is_charged_when_it_begins() -> None:
    """So that the charge and the first work share a transaction (P9), and a run that never begins costs nothing."""
    from longtake.contracts.events import RunQueued
    from longtake.contracts.signals import BeginRun

    script = Script(one())
    script.accept(queued=RunQueued(holders=(uuid.UUID(int=1),), scopes=("s",)))
    assert [] == script.ledger
    script.tell(BeginRun())

    assert [("charge", 5)] == moves(script)


def test_a_cancelled_prepaid_run_keeps_what_was_earned() -> None:
    script = accepted(Plan(steps=(paid("a"), paid("b", 7, depends_on=("a",)))))
    script.succeed("a")
    script.cancel()
    script.report("b", Cancelled())

    assert [("charge", 12), ("refund", 7)] == moves(script)


def test_a_refund_is_written_before_the_end_of_its_run_in_the_same_decision() -> None:
    script = accepted(one(on_exhausted="fail"))
    decision = script.fail("a", "auth")

    assert isinstance(decision.events[-2], Refunded)
    assert "run_failed" == decision.events[-1].TYPE
