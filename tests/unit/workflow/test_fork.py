"""Forks: what is taken over, what it costs, and that the price that was told is the price that is paid (P9, T52)."""

import uuid
from collections.abc import Callable

import pytest

from kit.plans import FAST
from kit.promises import promise
from longtake.contracts.events import PlanExpanded, StepsReused
from longtake.contracts.outcomes import Cancelled, Succeeded
from longtake.contracts.problems import Problem
from longtake.contracts.run_events import Billing
from longtake.contracts.signals import ChildEnded, ProvideInput, SendEvent
from longtake.workflow.decision import Decision
from longtake.workflow.forking import Fork, plan_fork, price_refusal
from longtake.workflow.plan import Plan, Step, StepFacts, at_least, group, ref
from longtake.workflow.script import Script, artifacts

FORKED = uuid.UUID("00000000-0000-8000-8000-00000000f2f2")


def chain(billing: Billing) -> Plan:
    plan = Plan(billing=billing).step("a", activity="a@1", price=1, artifacts=["clip"], retry=FAST)
    plan = plan.step("b", activity="b@1", price=2, input={"of": ref("a", "/artifacts/clip")}, retry=FAST)
    return plan.step("c", activity="c@1", input={"of": ref("b", "/result/url")}).step(
        "d", activity="d@1", price=4, depends_on=["c"], on_exhausted="fail"
    )


def fan(billing: Billing) -> Plan:
    return (
        Plan(billing=billing)
        .fan_out("scenes", range(4), lambda _, i: Step(f"scene:{i}", activity="scene@1", price=i, retry=FAST))
        .step("voice", activity="voice@1", price=7)
        .step(
            "render", activity="render@1", price=9, depends_on=[group("scenes"), "voice"], on_exhausted="fail"
        )
    )


def diamond(billing: Billing) -> Plan:
    return (
        Plan(billing=billing)
        .step("a", activity="a@1", price=1)
        .step("b", activity="b@1", price=2, depends_on=["a"], optional=True)
        .step("c", activity="c@1", price=4, depends_on=["a"])
        .step("d", activity="d@1", price=8, depends_on=["b", "c"], join="all_terminal", on_exhausted="fail")
    )


PLANS = {"chain": chain, "fan": fan, "diamond": diamond}
LAST = {"chain": "d", "fan": "render", "diamond": "d"}
CASES = [(name, step.key) for name, build in PLANS.items() for step in build("prepaid").steps]


def play(script: Script, *, fails: tuple[str, ...] = (), until: str | None = None) -> Script:
    """Let every open effect succeed, or fail for good, to the end of the run or until a step is handed out."""
    while script.rows and not script.state.terminal:
        row = next(iter(script.rows.values()))
        if row.step == until:
            break
        if row.step in fails:
            script.fail(row.step, "auth")
        else:
            script.succeed(row.step, url=f"u/{row.step}")
    return script


def ran(plan: Plan, **how: object) -> Script:
    script = Script(plan)
    script.accept()
    return play(script, **how)


def forked(source: Script, step: str) -> Fork:
    found = plan_fork(source.state, [event for event, _ in source.history], step)
    assert isinstance(found, Fork), found
    return found


def run_fork(source: Script, fork: Fork) -> Script:
    script = Script(source.plan, run_id=FORKED, now=source.now)
    script.accept(fork=fork, forked_from=fork.source, forked_step=fork.step, command_id="c-fork", kind="fork")
    return script


# --- the price -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["completed", "failed", "cancelled", "optional_failed"])
@pytest.mark.parametrize("billing", ["prepaid", "pay_as_you_go"])
@pytest.mark.parametrize(("name", "step"), CASES)
@promise("T52")
def test_the_price_that_was_told_is_the_price_that_is_paid(
    name: str, step: str, billing: Billing, ending: str
) -> None:
    plan, last = PLANS[name](billing), LAST[name]
    match ending:
        case "failed":
            source = ran(plan, fails=(last,))
        case "cancelled":
            source = ran(plan, until=last)
            source.cancel()
            source.report(last, Cancelled())
        case "optional_failed":
            source = ran(plan, fails=("b",) if name == "diamond" else ())
        case _:
            source = ran(plan)
    fork = forked(source, step)
    script = play(run_fork(source, fork))

    assert "completed" == script.state.ended
    assert fork.extra == script.state.charged == script.state.quoted
    assert 0 == script.state.refunded


def test_the_price_of_a_fork_that_reuses_what_was_given_back_is_not_nothing() -> None:
    """The comparison above would pass for forks that are always free; this one may not be."""
    failed, completed = ran(fan("prepaid"), fails=("render",)), ran(fan("prepaid"))

    assert 26 == forked(failed, "render").extra
    assert 9 == forked(completed, "render").extra
    assert ("scene:1", "scene:2", "scene:3", "scene:4", "voice") == forked(failed, "render").repriced
    assert () == forked(completed, "render").repriced


@pytest.mark.parametrize(
    ("billing", "extra"),
    [("prepaid", 7), ("pay_as_you_go", 4)],
)
def test_a_receipt_is_free_when_its_price_was_kept_and_paid_again_when_it_went_back(
    billing: Billing, extra: int
) -> None:
    """A failed prepaid run gives everything back, one that pays as it goes keeps what succeeded (P9)."""
    assert extra == forked(ran(chain(billing), fails=("d",)), "d").extra


def test_a_cancelled_run_keeps_what_it_earned_so_its_receipts_are_free() -> None:
    source = ran(chain("prepaid"), until="d")
    source.cancel()
    source.report("d", Cancelled())

    assert 4 == forked(source, "d").extra


def test_a_fork_of_a_fork_does_not_pay_for_what_the_first_run_paid() -> None:
    source = ran(chain("prepaid"))
    second = play(run_fork(source, forked(source, "d")), fails=("d",))

    assert "failed" == second.state.ended
    assert 4 == forked(second, "d").extra


def test_more_than_was_approved_is_refused_with_the_price() -> None:
    fork = forked(ran(chain("prepaid")), "b")

    refusal = price_refusal(fork, 5)
    assert refusal is not None
    assert "approve 6" in refusal.errors[0].remedy
    assert None is price_refusal(fork, 6)
    assert None is price_refusal(fork, None)


def test_the_fork_holds_and_caps_what_it_costs() -> None:
    source = ran(chain("pay_as_you_go"))
    script = run_fork(source, forked(source, "b"))

    assert (6, 6, 6) == (script.state.quoted, script.state.cap, script.state.held)


def test_receipts_that_are_paid_again_have_keys_of_their_own_and_no_refund() -> None:
    source = ran(chain("pay_as_you_go"), fails=())
    source.state.steps[1].charged = 0  # as if its price had gone back
    script = run_fork(source, forked(source, "d"))

    assert [("b", 1, 2), ("d", 1, 4)] == [(entry.step, entry.cycle, entry.amount) for entry in script.ledger]
    script.cancel()
    script.report("d", Cancelled())
    assert 2 == script.state.charged - script.state.refunded


# --- what is taken over ----------------------------------------------------------------------------------------------


@promise("T52")
def test_a_fork_is_a_new_run_that_names_the_old_one_and_begins_at_the_step() -> None:
    source = ran(chain("prepaid"))
    script = run_fork(source, forked(source, "c"))

    accepted = script.history[0][0]
    assert (source.state.run_id, "c") == (accepted.forked_from, accepted.forked_step)
    [reused] = [event for event, _ in script.history if isinstance(event, StepsReused)]
    assert source.state.run_id == reused.from_run
    assert ["a", "b"] == [item.step for item in reused.steps]
    assert ["c"] == [row.step for row in script.rows.values()]


def test_artifacts_are_published_again_as_those_of_the_new_run() -> None:
    source = ran(chain("prepaid"))
    script = run_fork(source, forked(source, "b"))

    assert [("a", "clip")] == [(item.step, item.artifact.name) for item in script.decisions[0].artifacts]


def test_references_to_what_is_taken_over_resolve() -> None:
    source = ran(chain("prepaid"))
    script = run_fork(source, forked(source, "b"))

    assert b"made/clip" in next(iter(script.rows.values())).input


def test_every_other_branch_is_taken_over_and_all_that_follows_is_not() -> None:
    fork = forked(ran(fan("prepaid")), "scene:2")

    assert {"scene:1", "scene:3", "scene:4", "voice"} == {item.step for item in fork.reused}
    assert ("scene:2", "render") == fork.anew


def test_a_failed_step_before_the_point_is_tried_again_when_somebody_waits_for_it() -> None:
    assert ("b", "d") == forked(ran(diamond("prepaid"), fails=("b",)), "d").anew


def test_a_failed_step_that_nobody_needs_any_more_is_left_alone() -> None:
    plan = diamond("pay_as_you_go").step("e", activity="e@1", price=16, depends_on=["d"])
    source = ran(plan, fails=("b",))
    fork = forked(source, "e")
    script = play(run_fork(source, fork))

    assert (("b",), ("e",), 16) == (fork.idle, fork.anew, fork.extra)
    assert "skipped" == script.status("b")
    assert (16, "completed") == (script.state.charged, script.state.ended)


def test_losers_of_a_join_stay_lost() -> None:
    plan = Plan(billing="pay_as_you_go", max_parallel=1).fan_out(
        "takes", range(3), lambda _, i: Step(f"take:{i}", activity="t@1", price=5)
    )
    plan = plan.step("pick", activity="p@1", price=3, depends_on=[group("takes")], join=at_least(1))
    source = ran(plan)
    fork = forked(source, "pick")
    script = play(run_fork(source, fork))

    assert (("pick",), 3) == (fork.anew, fork.extra)
    assert (3, "completed") == (script.state.charged, script.state.ended)


def test_what_was_undone_is_not_taken_over() -> None:
    plan = Plan().step("a", activity="a@1", price=1, compensate="undo@1").step(
        "b", activity="b@1", price=2, depends_on=["a"], on_exhausted="fail"
    )  # fmt: skip
    source = ran(plan, fails=("b",))

    assert "done" == source.state.steps[0].compensation
    assert () == forked(source, "b").reused


def test_a_fork_does_not_undo_what_it_only_took_over() -> None:
    plan = Plan().step("a", activity="a@1", price=1, compensate="undo@1").step(
        "b", activity="b@1", price=2, depends_on=["a"], on_exhausted="fail"
    )  # fmt: skip
    source = ran(plan)
    script = play(run_fork(source, forked(source, "b")), fails=("b",))

    assert "failed" == script.state.ended
    assert "compensation_scheduled" not in script.events


# --- dynamic plans ---------------------------------------------------------------------------------------------------


def dynamic(billing: Billing) -> Plan:
    facts = {"scene@1": StepFacts(paid=True)}
    return (
        Plan(billing=billing, prices={"scene": 5}, facts=facts, cost_cap=100)
        .expand("split", activity="split@1", fills="scenes", expands_to=["scene@1"], price=1)
        .step("render", activity="render@1", price=3, depends_on=[group("scenes")])
    )


def ran_dynamic(script: Script) -> Script:
    fragment = tuple({"key": f"split:{n}", "activity": "scene@1", "price_key": "scene"} for n in (1, 2))
    if script.status("split") == "queued":
        script.report("split", Succeeded(fragment=fragment, artifacts=artifacts(())))
    return play(script)


def raised(script: Script, step: str, cap: int) -> Decision:
    seen = script.state.revision
    return script.tell(
        ProvideInput(command_id="c-cap", actor="ann", expected_revision=seen, step=step, cap=cap)
    )


def expanded(billing: Billing) -> Script:
    script = Script(dynamic(billing))
    script.accept()
    return ran_dynamic(script)


@pytest.mark.parametrize("billing", ["prepaid", "pay_as_you_go"])
def test_expansions_before_the_point_stand(billing: Billing) -> None:
    source = expanded(billing)
    assert ("completed", 14) == (source.state.ended, source.state.charged)
    fork = forked(source, "split:2")
    script = ran_dynamic(run_fork(source, fork))

    assert ("split:2", "render") == tuple(sorted(fork.anew, reverse=True))
    assert 8 == fork.extra == script.state.charged
    assert "completed" == script.state.ended
    assert 1 == sum(isinstance(event, PlanExpanded) for event, _ in script.history)


@pytest.mark.parametrize("billing", ["prepaid", "pay_as_you_go"])
def test_an_expansion_that_is_done_anew_may_cost_as_much_again(billing: Billing) -> None:
    source = expanded(billing)
    fork = forked(source, "split")
    script = ran_dynamic(run_fork(source, fork))

    assert (4, 14) == (fork.quoted, fork.extra)
    assert ("completed", 14) == (script.state.ended, script.state.charged)


@pytest.mark.parametrize("ends", ["completed", "failed"])
def test_a_prepaid_expansion_beyond_the_cap_waits_for_a_larger_one_and_is_taken_as_one(ends: str) -> None:
    script = Script(dynamic("prepaid"))
    script.accept(cap=10)
    fragment = tuple({"key": f"split:{n}", "activity": "scene@1", "price_key": "scene"} for n in (1, 2))
    script.report("split", Succeeded(fragment=fragment))

    assert ["needs_input", "needs_input"] == [script.status("split:1"), script.status("split:2")]
    assert raised(script, "split:1", 13).refusal is not None
    assert 4 == raised(script, "split:1", 14).raise_hold_by
    assert 14 == script.state.charged
    play(script, fails=("render",) if ends == "failed" else ())
    if ends == "failed":
        script.cancel()
    refunds = {
        entry.key.removeprefix("refund:"): entry.amount for entry in script.ledger if entry.kind == "refund"
    }
    charges = {
        entry.key.removeprefix("charge:"): entry.amount for entry in script.ledger if entry.kind == "charge"
    }
    assert all(amount <= charges[key] for key, amount in refunds.items())


def test_a_prepaid_run_gives_back_what_its_expansion_cost_under_the_key_of_that_charge() -> None:
    script = Script(dynamic("prepaid"))
    script.accept()
    fragment = ({"key": "split:1", "activity": "scene@1", "price_key": "scene", "on_exhausted": "fail"},)
    script.report("split", Succeeded(fragment=fragment))
    script.fail("split:1", "auth")

    run = str(script.state.run_id)
    assert "failed" == script.state.ended
    assert [
        (f"charge:{run}", 4), (f"charge:{run}:split:1", 5), (f"refund:{run}:split:1", 5), (f"refund:{run}", 4),
    ] == [(entry.key, entry.amount) for entry in script.ledger]  # fmt: skip


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "step", "pointer"),
    [
        (lambda: ran(chain("prepaid"), until="d"), "b", "/targets/0"),
        (lambda: ran(chain("prepaid")), "zz", "/payload/step"),
    ],
)
def test_what_cannot_be_forked_is_refused_by_place(
    make: Callable[[], Script], step: str, pointer: str
) -> None:
    source = make()
    found = plan_fork(source.state, [event for event, _ in source.history], step)

    assert isinstance(found, Problem)
    assert pointer == found.errors[0].pointer


# --- gates -----------------------------------------------------------------------------------------------------------


def gated() -> Plan:
    return (
        Plan(billing="pay_as_you_go")
        .step("a", activity="a@1", price=1)
        .input("ask", answer={"type": "object"}, depends_on=["a"])
        .wait("hear", event="go", depends_on=["ask"])
        .run("child", workflow="w@1", depends_on=["hear"])
        .step("d", activity="d@1", price=4, input={"said": ref("ask", "/result/word")}, depends_on=["child"])
    )


def through_the_gates(script: Script) -> Script:
    seen = script.state.revision
    script.tell(
        ProvideInput(command_id="i", actor="a", expected_revision=seen, step="ask", answer={"word": "yes"})
    )
    script.tell(SendEvent(command_id="e", actor="a", expected_revision=script.state.revision, name="go"))
    gate = script.state.gates[script.state.plan.position["child"]]
    assert gate.child is not None
    script.tell(
        ChildEnded(signal_id=uuid.UUID(int=7), step="child", attempt=1, child=gate.child, outcome="completed")
    )
    return play(script)


def test_answers_events_and_child_runs_are_taken_over_like_work() -> None:
    script = Script(gated())
    script.accept()
    source = through_the_gates(play(script))
    assert "completed" == source.state.ended
    fork = forked(source, "d")
    forking = run_fork(source, fork)

    assert (("d",), 4) == (fork.anew, fork.extra)
    assert b'"yes"' in next(iter(forking.rows.values())).input
    assert "completed" == play(forking).state.ended


def test_a_fork_from_a_gate_asks_again() -> None:
    script = Script(gated())
    script.accept()
    source = through_the_gates(play(script))
    forking = run_fork(source, forked(source, "ask"))

    assert ["input_required"] == [blocker.type for blocker in forking.summary.blockers]
    assert "completed" == through_the_gates(forking).state.ended
    assert 4 == forking.state.charged
