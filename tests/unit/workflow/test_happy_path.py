"""A run that goes well: accepted, paid, worked on in the plan's order, completed."""

import hashlib
import json
from datetime import timedelta

import pytest

from kit.plans import film, free, one
from kit.promises import promise
from longtake.workflow.decision import CREDITS_ESCROW
from longtake.workflow.money import InvariantBroken
from longtake.workflow.plan import Plan, Step, group, ref
from longtake.workflow.reducer import accept
from longtake.workflow.script import FACTS, RUN, START, Script


@promise("H43", "H44", "H24")
def test_acceptance_charge_and_first_effects_are_one_decision() -> None:
    script = Script(film())
    decision = script.accept()

    assert ["run_accepted", "charged", "steps_scheduled"] == script.events
    assert ["scene:1", "scene:2", "scene:3", "voice"] == [row.step for row in decision.effects]
    (entry,) = decision.ledger
    assert (f"charge:{RUN}", "acme", CREDITS_ESCROW, 16) == (
        entry.key,
        entry.debit,
        entry.credit,
        entry.amount,
    )
    assert "running" == decision.command_status


def test_acceptance_freezes_what_the_run_may_cost() -> None:
    script = Script(Plan(cost_cap=9, steps=one(price=5).steps))
    script.accept()
    event = script.history[0][0]

    assert (5, 9, "2026-01", "f" * 64) == (
        event.money.quoted,
        event.money.cap,
        event.money.price_list,
        event.plan_fingerprint,
    )


def test_a_run_that_costs_nothing_is_not_charged() -> None:
    script = Script(free())
    decision = script.accept()

    assert ["run_accepted", "steps_scheduled"] == script.events
    assert () == decision.ledger


def test_acceptance_touches_the_steps_it_hands_out_and_the_plan_tells_of_the_others() -> None:
    assert ("scene:1", "scene:2", "scene:3", "voice") == Script(film()).accept().touched


def test_a_run_is_opened_once() -> None:
    script = Script(one())
    script.accept()

    with pytest.raises(InvariantBroken, match="already open"):
        accept(script.state, FACTS, START)


def test_an_effect_carries_what_a_worker_needs() -> None:
    script = Script(
        Plan().step(
            "a",
            activity="make@2",
            input={"z": 1, "b": [True, None]},
            timeout_seconds=90,
            pool="gpu",
            priority=3,
        )
    )
    (row,) = script.accept().effects

    assert ("a", 1, "execute", 1, "make@2", "gpu", 3) == (
        row.step, row.attempt, row.kind, row.ordinal, row.activity, row.pool, row.priority,
    )  # fmt: skip
    assert b'{"b":[true,null],"z":1}' == row.input
    assert (None, START + timedelta(seconds=90)) == (row.not_before, row.deadline)


def test_a_step_without_a_timeout_has_no_deadline() -> None:
    (row,) = Script(one()).accept().effects

    assert row.deadline is None


def test_the_event_of_a_schedule_names_effect_and_input_digest() -> None:
    script = Script(one(input={"x": 1}))
    decision = script.accept()
    (item,) = decision.events[-1].steps

    assert (decision.effects[0].id, hashlib.sha256(b'{"x":1}').hexdigest()) == (
        item.effect_id,
        item.input_digest,
    )


@promise("H11", "H12")
def test_a_barrier_waits_for_every_step_of_the_group() -> None:
    script = Script(film())
    script.accept()
    script.succeed("voice")
    script.succeed("scene:1")
    script.succeed("scene:2")

    assert "pending" == script.status("render")

    decision = script.succeed("scene:3")

    assert ["render"] == [row.step for row in decision.effects]
    assert ("scene:3", "render") == decision.touched


@promise("H13")
def test_references_are_resolved_from_recorded_results_in_plan_order() -> None:
    script = Script(
        Plan()
        .fan_out("parts", [3, 1, 2], lambda n, i: Step(f"p:{i}", activity="p@1"))
        .step(
            "sum",
            activity="s@1",
            input={"all": [ref(group("parts"), "/result/n")], "first": ref("p:1", "/result")},
        )
    )
    script.accept()
    for key, number in (("p:3", 2), ("p:1", 3), ("p:2", 1)):
        script.succeed(key, n=number)

    assert {"all": [[3, 1, 2]], "first": {"n": 3}} == json.loads(script.row("sum").input)


def test_an_empty_group_holds_nobody_up_and_refers_to_nothing() -> None:
    script = Script(
        Plan()
        .fan_out("none", [], lambda n, i: Step(f"p:{i}", activity="p@1"))
        .step("end", activity="e@1", depends_on=[group("none")], input={"all": ref(group("none"))})
    )
    script.accept()

    assert b'{"all":[]}' == script.row("end").input


def test_a_result_is_dropped_when_nobody_can_need_it_any_more() -> None:
    script = Script(film(1))
    script.accept()
    script.succeed("scene:1")
    script.succeed("voice")
    assert {0, 1} == set(script.state.results)

    script.succeed("render", url="u")

    assert {2} == set(script.state.results)


def test_the_run_completes_when_every_step_has_succeeded() -> None:
    script = Script(film(1, deadline_seconds=100))
    script.accept()
    for key in ("scene:1", "voice"):
        script.succeed(key)
    script.succeed("render", url="u")
    decision = script.succeed("verify")

    assert ["step_succeeded", "run_completed"] == [event.TYPE for event in decision.events]
    assert decision.scopes_released and decision.hold_released
    assert ("run_deadline",) == decision.timers_cancelled
    assert "completed" == script.summary.status
    assert {} == script.rows


def test_artifacts_of_a_success_are_published_once() -> None:
    script = Script(film())
    script.accept()
    decision = script.succeed("scene:2")

    assert [("scene:2", 1, "clip")] == [(a.step, a.attempt, a.artifact.name) for a in decision.artifacts]


def test_a_plan_with_a_deadline_arms_its_timer() -> None:
    (timer,) = Script(Plan(deadline_seconds=60, steps=one().steps)).accept().timers

    assert ("run_deadline", START + timedelta(seconds=60)) == (timer.key, timer.due_at)


def test_steps_under_way_never_exceed_max_parallel_and_go_in_plan_order() -> None:
    script = Script(film(5, max_parallel=2))
    script.accept()
    assert ["scene:1", "scene:2"] == [row.step for row in script.rows.values()]

    script.succeed("scene:2")

    assert ["scene:1", "scene:3"] == sorted(row.step for row in script.rows.values())
    assert "ready" == script.status("scene:4")


def test_a_retry_that_waits_keeps_its_slot() -> None:
    script = Script(film(3, max_parallel=1))
    script.accept()
    script.fail("scene:1")

    assert ["scene:1"] == [row.step for row in script.rows.values()]


def test_a_large_schedule_is_split_into_events_of_bounded_size() -> None:
    script = Script(film(600, max_parallel=1000))
    decision = script.accept()

    assert 601 == len(decision.effects)
    assert [250, 250, 101] == [len(e.steps) for e in decision.events if e.TYPE == "steps_scheduled"]
