"""Which action stands when, and what a refusal says: the cases with a reason of their own (the walk has all of them)."""

import uuid

import pytest

from kit.commanding import SUCCESSOR, pause, resume, send_event, steer
from kit.plans import FAST, film, free, one
from kit.promises import promise
from longtake.contracts.events import Parent, RunQueued
from longtake.contracts.outcomes import Cancelled
from longtake.contracts.signals import SupersedeRun, WorkStalled
from longtake.workflow.plan import Plan
from longtake.workflow.script import Script
from longtake.workflow.step import Retry

PARENT = Parent(run_id=uuid.UUID(int=5), step="film", attempt=1)


def started(plan: Plan, **facts) -> Script:
    script = Script(plan)
    script.accept(**facts)
    return script


def spare(**fields) -> Script:
    """An optional step that has failed, a required one still under way, and one that bears the failure."""
    plan = (
        Plan(**fields)
        .step("nice", activity="a@1", price=5, optional=True, retry=Retry(max_attempts=1))
        .step("must", activity="a@1", retry=FAST)
        .step("cut", activity="c@1", depends_on=["nice", "must"], join="all_terminal")
    )
    script = started(plan)
    script.fail("nice", "auth")
    return script


# --- retry -----------------------------------------------------------------------------------------------------------


def test_a_failed_optional_step_is_tried_again_while_nobody_has_built_on_that() -> None:
    script = spare()
    assert ("failed", "running") == (script.status("nice"), script.summary.status)
    assert "retry_generation" in script.summary.available_actions
    assert "action-not-available" == script.retry().refusal.slug, "nothing is blocked"

    assert script.retry("nice").refusal is None

    assert ("queued", 2) == (script.status("nice"), script.state.step_of("nice").attempt)
    for key in ("nice", "must", "cut"):
        script.succeed(key)
    assert ("completed", 3) == (script.summary.status, script.summary.progress.completed)


def test_a_failed_optional_step_that_was_built_on_stays_failed() -> None:
    script = spare()
    script.succeed("must")
    assert "queued" == script.status("cut")

    assert "retry_generation" not in script.summary.available_actions
    refused = script.retry("nice").refusal
    assert ("action-not-available", "/payload/step") == (refused.slug, refused.errors[0].pointer)


def test_a_retry_after_a_refund_is_charged_as_the_next_cycle() -> None:
    script = spare(billing="pay_as_you_go", cost_cap=5)
    assert (5, 5) == (script.state.charged, script.state.refunded)

    script.retry("nice")
    script.succeed("nice")

    assert (10, 5) == (script.state.charged, script.state.refunded)
    run = script.state.run_id
    assert [f"charge:{run}:nice:1", f"refund:{run}:nice:1", f"charge:{run}:nice:2"] == [
        e.key for e in script.ledger
    ]


def test_work_that_nobody_takes_is_no_matter_of_a_retry() -> None:
    script = started(free())
    script.tell(WorkStalled(signal_id=uuid.UUID(int=1), step="a", attempt=1, waits_for="a worker with a@1"))
    assert ["no_worker"] == [blocker.type for blocker in script.summary.blockers]

    assert "retry_generation" not in script.summary.available_actions
    assert "no_worker" in script.retry("a").refusal.errors[0].message
    script.succeed("a")
    assert "completed" == script.summary.status


# --- pause and resume ------------------------------------------------------------------------------------------------


def test_a_run_that_has_not_begun_is_not_paused() -> None:
    script = started(free(), queued=RunQueued(holders=(SUCCESSOR,), scopes=("voice",)))

    assert "the run has not begun" in pause(script).refusal.detail
    assert "cancel_generation" in script.summary.available_actions


# --- steer -----------------------------------------------------------------------------------------------------------


@promise("G24")
def test_a_superseded_run_settles_like_a_cancelled_one_and_names_its_successor() -> None:
    script = started(one())
    steer(script)
    assert "cancelling" == script.summary.status
    script.report("a", Cancelled(answer="stopped"))

    assert ("superseded", SUCCESSOR) == (script.summary.status, script.state.superseded_by)
    assert (5, 5) == (script.state.charged, script.state.refunded)
    assert ["supersede_requested", "run_superseded"] == [
        name for name in script.events if "supersede" in name
    ]


def test_a_steer_that_saw_an_earlier_run_is_refused_and_a_fact_of_admission_is_not() -> None:
    script = started(one())
    assert "stale-revision" == steer(script, revision=99).refusal.slug
    fact = SupersedeRun(by_run=SUCCESSOR, command_id="c", actor="bob", signal_id=uuid.UUID(int=1))

    assert script.tell(fact).events
    assert "run_ending" == script.tell(fact).ignored.reason
    assert "already ending" in steer(script).refusal.detail


def test_the_work_of_another_run_is_not_steered() -> None:
    script = started(one(), parent=PARENT)

    assert "steer_generation" not in script.summary.available_actions
    assert str(PARENT.run_id) in steer(script).refusal.detail


# --- what an end leaves ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_an_ended_run_can_be_forked_and_followed_and_nothing_else(end: str) -> None:
    script = started(free(on_exhausted="fail"))
    if end == "completed":
        script.succeed("a")
    elif end == "failed":
        script.fail("a", "auth")
    else:
        script.cancel()
        script.report("a", Cancelled(answer="stopped"))

    assert (end, ("fork_generation", "follow_up_generation")) == (
        script.summary.status,
        script.summary.available_actions,
    )
    for refused in (pause(script), resume(script), steer(script), send_event(script, "go"), script.cancel()):
        assert "action-not-available" == refused.refusal.slug
        assert f"the run is {end}" in refused.refusal.detail


def test_a_refusal_names_what_the_run_offers_instead() -> None:
    script = started(film(2))
    refused = resume(script).refusal

    assert "/kind" == refused.errors[0].pointer
    for action in script.summary.available_actions:
        assert action in refused.errors[0].remedy
