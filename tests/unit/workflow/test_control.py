"""Commands to a run: staleness by `since` (P3), what is offered, retry, the plan check and a reducer that raised."""

import uuid

import pytest

from kit.plans import film, free, one
from kit.promises import promise
from longtake.contracts.outcomes import Cancelled, Impossible
from longtake.contracts.problems import Problem
from longtake.contracts.signals import PlanChecked, ReducerFailed
from longtake.workflow.actions import available_actions
from longtake.workflow.plan import Plan
from longtake.workflow.script import Script

DRIFT = ("/plan/steps/0/price", "the price rises from 5 to 6 credits")


AGAIN = ("fork_generation", "follow_up_generation")
"""What an ended run offers: new runs that speak of it."""


def started(plan: Plan | None = None) -> Script:
    script = Script(plan or one())
    script.accept()
    return script


def blocked(plan: Plan | None = None) -> Script:
    script = started(plan)
    script.fail("a", "auth")
    return script


def unknown() -> Script:
    script = started()
    script.lose_lease("a", call_opened=True)
    script.report("a", Impossible(evidence="no look-up"))
    return script


def check(script: Script, drift: tuple[str, str] | None, application: str = "app-2"):
    return script.tell(PlanChecked(signal_id=uuid.uuid4(), application=application, drift=drift))


def crash(script: Script, causation: str = "effect:1"):
    return script.tell(ReducerFailed(causation=causation, error="boom " * 500))


def refused(problem: Problem | None, slug: str, pointer: str, remedy: str) -> None:
    assert problem is not None
    assert (slug, pointer) == (problem.slug, problem.errors[0].pointer)
    assert remedy in problem.errors[0].remedy


# --- staleness -------------------------------------------------------------------------------------------------------


def test_progress_does_not_make_a_persons_cancel_stale() -> None:
    script = started(film(3))
    seen = script.state.revision
    for number in (1, 2, 3):
        script.succeed(f"scene:{number}")

    assert script.cancel(revision=seen).refusal is None


@promise("H37")
def test_a_command_from_the_future_is_stale_and_told_all_numbers() -> None:
    script = started()
    decision = script.cancel(revision=99)

    refused(decision.refusal, "stale-revision", "/expected_revision", "read the summary")
    assert "revision 99" in decision.refusal.detail
    assert f"at revision {script.state.revision}" in decision.refusal.detail
    assert ("rejected", ()) == (decision.command_status, decision.events)


def test_a_cancel_is_never_older_than_the_acceptance() -> None:
    script = started()

    refused(script.cancel(revision=0).refusal, "stale-revision", "/expected_revision", "read the summary")
    assert script.cancel(revision=1).refusal is None


@promise("H37")
def test_a_retry_of_all_is_stale_when_another_step_has_blocked_since() -> None:
    script = started(film(2))
    script.fail("scene:1", "auth")
    seen = script.state.revision
    script.fail("scene:2", "auth")

    decision = script.retry(revision=seen)
    refused(decision.refusal, "stale-revision", "/expected_revision", "read the summary")
    assert f"since {script.state.revision}" in decision.refusal.errors[0].message
    assert script.retry("scene:1", revision=seen).refusal is None


def test_a_retry_of_all_stays_fresh_while_others_make_progress() -> None:
    script = started(film(2))
    script.fail("scene:1", "auth")
    seen = script.state.revision
    script.succeed("scene:2")
    script.succeed("voice")

    assert script.retry(revision=seen).refusal is None


def test_a_retry_that_was_not_offered_for_a_while_stands_anew() -> None:
    script = blocked()
    seen = script.state.revision
    check(script, DRIFT)
    check(script, None)

    refused(
        script.retry("a", revision=seen).refusal, "stale-revision", "/expected_revision", "read the summary"
    )
    assert script.retry("a").refusal is None


# --- what is offered -------------------------------------------------------------------------------------------------


@promise("H76")
def test_a_cancel_is_monotonic() -> None:
    script = started()
    script.cancel()

    refused(script.cancel().refusal, "action-not-available", "/kind", "follow_up_generation")
    script.report("a", Cancelled())
    decision = script.cancel()
    refused(decision.refusal, "action-not-available", "/kind", "follow_up_generation")
    assert "the run is cancelled" in decision.refusal.detail


def test_a_run_that_is_not_blocked_takes_no_retry() -> None:
    script = started()

    refused(script.retry().refusal, "action-not-available", "/kind", "the run offers: cancel_generation")


@pytest.mark.parametrize("step", ["scene:2", "nowhere", "*reducer_error"])
def test_only_blocked_steps_take_a_retry(step: str) -> None:
    script = started(film(2))
    script.fail("scene:1", "auth")
    decision = script.retry(step)

    refused(decision.refusal, "action-not-available", "/payload/step", "cancel_generation, retry_generation")
    assert "is not blocked" in decision.refusal.errors[0].message


@promise("H76")
def test_terminal_stays_terminal() -> None:
    script = started()
    script.succeed("a")
    before = script.state.revision

    assert "action-not-available" == script.cancel().refusal.slug
    assert "action-not-available" == script.retry().refusal.slug
    assert "run_ended" == check(script, DRIFT).ignored.reason
    assert "run_ended" == crash(script).ignored.reason
    assert (before, AGAIN) == (script.state.revision, available_actions(script.state))


# --- retry -----------------------------------------------------------------------------------------------------------


def test_a_retry_makes_the_next_attempt_with_a_fresh_allowance() -> None:
    script = blocked()
    decision = script.retry()

    assert ["retry_requested", "steps_scheduled"] == [event.TYPE for event in decision.events]
    assert ("execute", 2) == (decision.effects[0].kind, decision.effects[0].attempt)
    assert ("blocked_deadline",) == decision.timers_cancelled
    for _ in range(2):
        script.fail("a")
        assert "retry_scheduled" == script.status("a")
    script.fail("a")
    assert "blocked" == script.status("a")
    assert ["charged"] == [name for name in script.events if name in ("charged", "refunded")]


def test_a_retry_without_a_step_goes_on_with_all_in_plan_order() -> None:
    script = started(film(3))
    script.fail("scene:3", "auth")
    script.lose_lease("scene:1", call_opened=True)
    script.report("scene:1", Impossible(evidence="e"))
    decision = script.retry()

    assert (("scene:1", "scene:3"), ("scene:1",)) == (decision.events[0].steps, decision.events[0].look_again)
    assert [("scene:1", "reconcile", 1), ("scene:3", "execute", 2)] == [
        (row.step, row.kind, row.attempt) for row in decision.effects
    ]


def test_the_patience_with_what_stays_blocked_goes_on() -> None:
    script = started(film(2))
    script.fail("scene:1", "auth")
    script.fail("scene:2", "auth")
    decision = script.retry("scene:1")

    assert () == decision.timers_cancelled
    assert ("blocked", ("scene:2",)) == (
        script.summary.status,
        tuple(b.step for b in script.summary.blockers),
    )


def test_an_open_truth_is_looked_up_once_more_before_anything_is_paid() -> None:
    script = unknown()
    decision = script.retry()

    (row,) = decision.effects
    assert ("reconcile", 1, 2) == (row.kind, row.attempt, row.ordinal)
    assert "reconciling" == script.status("a")


def test_a_person_may_accept_to_pay_twice() -> None:
    script = unknown()
    decision = script.retry("a", accept_double_cost=True)

    assert ("execute", 2) == (decision.effects[0].kind, decision.effects[0].attempt)


def test_a_retry_waits_for_a_slot() -> None:
    script = started(film(2, max_parallel=1))
    script.fail("scene:1", "auth")
    decision = script.retry()

    assert () == decision.effects
    assert "ready" == script.status("scene:1")
    script.succeed("scene:2")
    assert "queued" == script.status("scene:1")


# --- drift and failures of our own -----------------------------------------------------------------------------------


@promise("H17")
def test_drift_blocks_the_run_and_says_what_changed() -> None:
    script = started()
    decision = check(script, DRIFT)

    assert ["run_blocked"] == [event.TYPE for event in decision.events]
    (blocker,) = script.summary.blockers
    assert ("plan_drift", {"field": DRIFT[0], "price_effect": DRIFT[1], "application": "app-2"}) == (
        blocker.type, blocker.details,
    )  # fmt: skip
    assert "blocked" == script.summary.status
    assert "retry_generation" not in script.summary.available_actions
    failure = script.summary.failure
    assert ("plan_drift", "infrastructure", True, None) == (
        failure.error_class, failure.origin, failure.inputs_intact, failure.step,
    )  # fmt: skip


def test_the_same_drift_again_is_no_event_and_another_is() -> None:
    script = started()
    check(script, DRIFT)

    assert "already_known" == check(script, DRIFT).ignored.reason
    assert 1 == len(check(script, ("/policy", "the price stays at 5 credits")).events)
    assert 1 == len(script.summary.blockers)


def test_a_plan_that_is_the_same_is_no_event() -> None:
    assert "plan_unchanged" == check(started(), None).ignored.reason


def test_a_drifted_run_records_outcomes_and_schedules_nothing() -> None:
    script = started(film(1))
    check(script, DRIFT)
    script.succeed("scene:1")
    decision = script.succeed("voice")

    assert ["step_succeeded"] == [event.TYPE for event in decision.events]
    assert "ready" == script.status("render")

    decision = check(script, None)

    assert ["run_unblocked", "steps_scheduled"] == [event.TYPE for event in decision.events]
    assert ["render"] == [row.step for row in decision.effects]


def test_a_drifted_run_makes_no_new_attempt_before_it_may() -> None:
    script = started()
    check(script, DRIFT)
    decision = script.fail("a", retry_after_seconds=100)
    assert () == decision.effects
    assert "ready" == script.status("a")

    decision = check(script, None)

    (row,) = decision.effects
    assert (2, 100) == (row.attempt, (row.not_before - script.now).seconds)


def test_a_drifted_run_goes_on_looking_up_open_truths() -> None:
    script = started()
    check(script, DRIFT)
    script.lose_lease("a", call_opened=True)

    assert "reconciling" == script.status("a")


def test_a_drifted_run_takes_no_retry() -> None:
    script = blocked()
    check(script, DRIFT)
    decision = script.retry()

    refused(decision.refusal, "action-not-available", "/kind", "cancel_generation")
    assert "plan_drift" in decision.refusal.detail


def test_a_drifted_run_can_be_cancelled() -> None:
    script = started()
    check(script, DRIFT)
    script.cancel()
    script.report("a", Cancelled())

    assert "cancelled" == script.summary.status


def test_a_run_whose_steps_all_succeeded_completes_in_spite_of_drift() -> None:
    script = started()
    check(script, DRIFT)
    script.succeed("a")

    assert ("completed", ()) == (script.summary.status, script.summary.blockers)


def test_a_reducer_that_raises_blocks_its_run_and_decides_nothing_else() -> None:
    script = started()
    decision = crash(script)

    assert ["run_blocked"] == [event.TYPE for event in decision.events]
    assert () == decision.effects == decision.closings
    (blocker,) = script.summary.blockers
    assert ("reducer_error", "effect:1", 500) == (
        blocker.type, blocker.details["causation"], len(blocker.details["error"]),
    )  # fmt: skip
    assert "already_known" == crash(script).ignored.reason


def test_a_retry_lifts_a_reducer_error_and_what_is_blocked_with_it() -> None:
    script = blocked()
    crash(script)
    refused(script.retry("a").refusal, "action-not-available", "/payload/step", "retry_generation")

    decision = script.retry()

    assert ["run_unblocked", "retry_requested", "steps_scheduled"] == [
        event.TYPE for event in decision.events
    ]


def test_a_retry_lifts_a_reducer_error_alone() -> None:
    script = started(free())
    crash(script)
    decision = script.retry()

    assert ["run_unblocked"] == [event.TYPE for event in decision.events]
    assert "running" == script.summary.status


def test_a_plan_check_means_nothing_to_a_run_that_ends() -> None:
    script = started()
    script.cancel()

    assert "run_ending" == check(script, DRIFT).ignored.reason


def test_a_reducer_that_raises_on_the_way_out_can_be_tried_again() -> None:
    script = started(film(1))
    script.cancel()
    decision = crash(script)
    assert () == decision.timers
    assert ("cancelling", ("retry_generation", "follow_up_generation")) == (
        script.summary.status,
        script.summary.available_actions,
    )
    assert "reducer_error" == script.summary.blockers[0].type

    assert ["run_unblocked"] == [event.TYPE for event in script.retry().events]
    assert ("follow_up_generation",) == script.summary.available_actions
    script.report("scene:1", Cancelled())
    script.report("voice", Cancelled())
    assert ("cancelled", 6) == (script.summary.status, script.state.refunded)


def test_a_cancel_lifts_a_reducer_error() -> None:
    script = started()
    crash(script)
    script.cancel()

    assert ((), ("follow_up_generation",)) == (script.state.run_blockers, script.summary.available_actions)


def test_blockers_of_the_run_stand_first_and_those_of_steps_in_plan_order() -> None:
    script = started(film(2))
    script.fail("voice", "auth")
    script.fail("scene:1", "auth")
    check(script, DRIFT)
    crash(script)

    assert [("plan_drift", None), ("reducer_error", None), ("retries_exhausted", "scene:1"), ("retries_exhausted", "voice")] == [
        (blocker.type, blocker.step) for blocker in script.summary.blockers
    ]  # fmt: skip
