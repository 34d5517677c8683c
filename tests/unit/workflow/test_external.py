"""Requests that a provider holds: submitted, polled, called back, or overdue."""

import uuid
from datetime import timedelta

import pytest

from kit.plans import film, free, one
from kit.promises import promise
from longtake.contracts.outcomes import Cancelled, Failed, Impossible, NotFound, Submitted, Succeeded, Unknown
from longtake.contracts.signals import CallbackArrived, OutcomeReported
from longtake.workflow.outcomes import POLLS_LOST_MAX
from longtake.workflow.script import Script


def started(**fields: object) -> Script:
    script = Script(one(**fields))
    script.accept()
    return script


def waiting(**fields: object) -> Script:
    script = started(**fields)
    script.submit("a", "job-1", poll_after_seconds=10)
    return script


@promise("H33")
def test_a_submitted_request_is_polled_later_and_has_its_time() -> None:
    script = started()
    decision = script.submit("a", "job-1", poll_after_seconds=10, external_seconds_max=100)

    (row,) = decision.effects
    assert ("poll", 1, 1, "a@1", b'{"external_ref":"job-1"}') == (
        row.kind,
        row.attempt,
        row.ordinal,
        row.activity,
        row.input,
    )
    assert script.now + timedelta(seconds=10) == row.not_before
    assert script.now + timedelta(seconds=100) == row.deadline
    assert "waiting_external" == script.status("a")


def test_a_provider_that_names_no_time_is_polled_after_thirty_seconds() -> None:
    decision = started().submit("a")

    assert timedelta(seconds=30) == decision.effects[0].not_before - Script(free()).now


def test_the_plan_bounds_the_time_a_provider_may_take() -> None:
    script = started(external_seconds_max=50)
    decision = script.submit("a", external_seconds_max=3600)

    assert script.now + timedelta(seconds=50) == decision.effects[0].deadline


def test_a_poll_that_finds_the_end_publishes_it() -> None:
    script = waiting()
    script.succeed("a", url="u")

    assert "completed" == script.summary.status
    assert "job-1" == script.history[-2][0].external_ref


def test_a_poll_that_finds_a_failed_request_fails_the_attempt() -> None:
    script = waiting()
    decision = script.fail("a", "provider_bug")

    assert ("attempt_failed", 2) == (decision.events[0].TYPE, script.state.steps[0].attempt)
    assert script.state.steps[0].external_ref is None


@pytest.mark.parametrize(
    "outcome",
    [
        Failed(error_class="transient", message="no route", origin="infrastructure"),
        Unknown(evidence="cut off"),
    ],
)
def test_a_poll_that_itself_failed_costs_no_attempt(outcome: object) -> None:
    script = waiting()
    decision = script.report("a", outcome)

    (row,) = decision.effects
    assert ("poll", 2, 1) == (row.kind, row.ordinal, row.attempt)
    assert row.not_before > script.now
    assert script.state.steps[0].external_until == row.deadline


def test_a_poll_that_got_lost_is_made_again() -> None:
    script = waiting()
    decision = script.lose_lease("a", call_opened=False)

    assert ("poll", 2) == (decision.effects[0].kind, decision.effects[0].ordinal)
    assert ("expired", False) == (decision.closings[0].disposition, decision.closings[0].expect_receipt)


def test_polls_are_not_lost_for_ever() -> None:
    script = waiting()
    for _ in range(POLLS_LOST_MAX - 1):
        script.lose_lease("a", call_opened=False)
    assert "waiting_external" == script.status("a")

    script.lose_lease("a", call_opened=False)

    assert "reconciling" == script.status("a")


@pytest.mark.parametrize("outcome", [NotFound(evidence="404"), Impossible(evidence="?")])
def test_a_poll_that_no_longer_finds_the_request_leads_to_a_look_up(outcome: object) -> None:
    script = waiting()
    script.report("a", outcome)

    assert "reconciling" == script.status("a")


def test_a_poll_may_learn_another_reference() -> None:
    script = waiting()
    script.submit("a", "job-2")

    assert ("job-2", "waiting_external") == (script.state.steps[0].external_ref, script.status("a"))


def test_a_request_that_was_cancelled_at_the_provider_has_failed() -> None:
    script = waiting()
    (event, _) = script.report("a", Cancelled()).events

    assert ("attempt_failed", "cancelled") == (event.TYPE, event.error_class)


def test_a_callback_is_remembered_and_hastens_the_poll() -> None:
    script = waiting()
    poll = script.row("a").id
    decision = script.call_back("a", external_ref="job-1")

    assert ["callback_received"] == [event.TYPE for event in decision.events]
    assert (poll,) == decision.expedited
    assert () == decision.effects


@promise("H76")
def test_a_second_callback_is_no_event_and_hastens_the_poll_again() -> None:
    script = waiting()
    script.call_back("a")
    decision = script.call_back("a")

    assert ("already_known", ()) == (decision.ignored.reason, decision.events)
    assert (script.row("a").id,) == decision.expedited


def test_a_callback_that_outruns_the_submission_makes_the_first_poll_due_at_once() -> None:
    script = started()
    assert () == script.call_back("a").expedited
    assert "already_known" == script.call_back("a").ignored.reason

    decision = script.submit("a", poll_after_seconds=30)

    assert decision.effects[0].not_before is None
    assert script.call_back("a").ignored is None


def test_a_callback_of_an_older_attempt_is_ignored() -> None:
    script = waiting()
    script.fail("a", "provider_bug")

    assert "late_attempt" == script.call_back("a", attempt=1).ignored.reason


def test_a_callback_of_an_attempt_that_never_was_is_ignored() -> None:
    assert "unknown_attempt" == waiting().call_back("a", attempt=9).ignored.reason


def test_a_callback_of_an_unknown_step_is_ignored() -> None:
    script = waiting()
    signal = CallbackArrived(inbox_id=uuid.uuid4(), step="zz", attempt=1, external_ref=None)

    assert "unknown_step" == script.tell(signal).ignored.reason


def test_a_callback_after_the_step_is_ignored() -> None:
    script = Script(film())
    script.accept()
    script.succeed("voice")

    assert "attempt_closed" == script.call_back("voice").ignored.reason
    assert "attempt_closed" == script.call_back("render", attempt=0).ignored.reason


def test_a_callback_after_the_run_is_ignored() -> None:
    script = started()
    script.succeed("a")

    assert "run_ended" == script.call_back("a").ignored.reason


def test_a_callback_while_the_run_ends_is_ignored() -> None:
    script = waiting()
    script.cancel()

    assert "run_ending" == script.call_back("a").ignored.reason


def test_a_callback_of_a_blocked_exhausted_step_is_ignored() -> None:
    script = started()
    script.fail("a", "auth")

    assert "attempt_closed" == script.call_back("a").ignored.reason


def test_an_overdue_request_is_looked_up_on_the_same_attempt() -> None:
    script = waiting()
    decision = script.pass_deadline("a")

    (row,) = decision.effects
    assert ("reconcile", 1) == (row.kind, row.attempt)
    assert "the provider did not finish in its time" == decision.events[0].evidence


def test_a_provider_that_is_overdue_twice_is_no_longer_believed() -> None:
    script = waiting()
    script.pass_deadline("a")
    script.submit("a", "job-1")
    assert "waiting_external" == script.status("a")

    script.pass_deadline("a")
    decision = script.submit("a", "job-1")

    assert ["attempt_reconciled", "step_blocked"] == [event.TYPE for event in decision.events]
    assert "provider_outcome_unknown" == script.summary.blockers[0].type


def test_a_late_success_of_the_call_counts_while_its_adopted_request_is_polled() -> None:
    script = started()
    call = script.row("a")
    script.lose_lease("a", call_opened=True)
    script.submit("a", "job-1")
    decision = script.tell(
        OutcomeReported(effect_id=call.id, step="a", attempt=1, kind="execute", outcome=Succeeded())
    )

    assert ["step_succeeded", "run_completed"] == [event.TYPE for event in decision.events]


def test_a_repeated_submission_changes_nothing() -> None:
    script = waiting()
    call = script.row("a", "execute")
    decision = script.tell(
        OutcomeReported(
            effect_id=call.id, step="a", attempt=1, kind="execute", outcome=Submitted(external_ref="job-1")
        )
    )

    assert "attempt_closed" == decision.ignored.reason


def test_a_late_poll_that_saw_the_request_fail_counts() -> None:
    script = waiting()
    first = script.row("a")
    script.lose_lease("a", call_opened=False)
    outcome = Failed(error_class="moderation_output", message="no")
    decision = script.tell(
        OutcomeReported(effect_id=first.id, step="a", attempt=1, kind="poll", outcome=outcome)
    )

    assert "attempt_failed" == decision.events[0].TYPE
