"""Runs on their way out: cancelled or failed, settled when everything open is known, money last."""

from datetime import timedelta

import pytest

from kit.plans import film, free, one
from kit.promises import promise
from longtake.contracts.events import StepCompensated
from longtake.contracts.outcomes import (
    Cancelled,
    Failed,
    Impossible,
    NotFound,
    Outcome,
    Submitted,
    Succeeded,
    Unknown,
)
from longtake.contracts.signals import OutcomeReported, PauseRun, ReducerFailed, TimerFired
from longtake.workflow.plan import ActivityFacts, Plan, bind
from longtake.workflow.script import Script


def started(plan: Plan | None = None) -> Script:
    script = Script(plan or one())
    script.accept()
    return script


def bound(plan: Plan, *, cancellable: bool) -> Plan:
    facts = ActivityFacts(name="a", version=1, paid=True, cancellable=cancellable)
    return bind(plan, {"a@1": facts})


def test_a_cancel_withdraws_what_nobody_claimed_and_stops_new_work() -> None:
    script = started(film(3, max_parallel=2))
    open_rows = set(script.rows)
    decision = script.cancel(reason="changed my mind")

    assert ["cancel_requested"] == [event.TYPE for event in decision.events]
    assert open_rows == set(decision.withdrawn)
    assert () == decision.closings == decision.effects
    assert decision.scopes_released and not decision.hold_released
    (timer,) = decision.timers
    assert ("settlement", script.now + timedelta(minutes=10)) == (timer.key, timer.due_at)
    assert ("cancelling", ("follow_up_generation",)) == (
        script.summary.status,
        script.summary.available_actions,
    )


@promise("H76")
def test_the_run_is_cancelled_when_the_last_open_attempt_is_known() -> None:
    script = started(film(2))
    script.cancel()
    script.report("scene:1", Cancelled())
    script.report("voice", Cancelled())
    assert "cancelling" == script.summary.status

    decision = script.report("scene:2", Cancelled())

    assert ["late_outcome", "steps_cancelled", "refunded", "run_cancelled"] == [
        e.TYPE for e in decision.events
    ]
    assert ("scene:1", "scene:2", "voice", "render", "verify") == decision.events[1].steps
    assert 11 == decision.ledger[0].amount
    assert decision.hold_released and not decision.scopes_released
    assert ("settlement",) == decision.timers_cancelled
    assert ("cancelled", "Cancelled", 0) == (
        script.summary.status,
        script.summary.label,
        script.summary.cost.net_credits,
    )


def test_a_success_before_the_cancel_is_not_refunded() -> None:
    script = started(film(2))
    script.succeed("scene:1")
    script.cancel()
    script.report("scene:2", Cancelled())
    decision = script.report("voice", Cancelled())

    assert 11 - 5 == decision.ledger[0].amount


def test_a_success_during_the_cancel_is_priced_and_not_published() -> None:
    script = started(film(1))
    script.cancel()
    decision = script.succeed("scene:1")

    assert () == decision.artifacts == decision.effects
    assert "succeeded" == decision.events[0].outcome
    script.report("voice", Cancelled())
    assert (5, "cancelled") == (script.summary.cost.net_credits, script.status("scene:1"))


def test_nothing_is_refunded_when_everything_was_kept() -> None:
    script = started()
    script.cancel()
    decision = script.succeed("a")

    assert ["late_outcome", "steps_cancelled", "run_cancelled"] == [event.TYPE for event in decision.events]
    assert () == decision.ledger


def test_a_retry_that_waits_for_its_time_is_simply_dropped() -> None:
    script = started()
    script.fail("a")
    decision = script.cancel()

    assert ["cancel_requested", "steps_cancelled", "refunded", "run_cancelled"] == [
        e.TYPE for e in decision.events
    ]
    assert [("cancelled", False)] == [(c.disposition, c.expect_receipt) for c in decision.closings]
    assert decision.scopes_released and decision.hold_released
    assert () == decision.timers == decision.withdrawn


@promise("W28")
@pytest.mark.parametrize(
    "idle", ["sleeping", "waiting for an event", "asking", "between two attempts", "paused"]
)
def test_a_run_that_rests_is_cancelled_at_once(idle: str) -> None:
    """Nothing is under way that would have to be waited for, so the decision that cancels ends the run too."""
    plan = {
        "sleeping": Plan().sleep("a", seconds=3600),
        "waiting for an event": Plan().wait("a", event="said"),
        "asking": Plan().input("a", answer={"type": "object"}),
        "between two attempts": one(),
        "paused": Plan().sleep("a", seconds=3600),
    }[idle]
    script = started(plan)
    if idle == "between two attempts":
        script.fail("a")
    if idle == "paused":
        script.tell(PauseRun(command_id="c-9", actor="ann", expected_revision=script.state.revision))

    script.cancel()
    assert ("cancelled", {}, {}) == (script.summary.status, script.rows, script.timers)


@promise("T53")
def test_a_cancel_undoes_nothing_that_stands_elsewhere_except_by_the_work_that_the_plan_names_for_it() -> (
    None
):
    """Of three paid steps, one names what undoes it, one does not, one is with its provider, whose word decides."""
    plan = (
        Plan()
        .step("undone", activity="a@1", price=5, compensate="undo@1")
        .step("kept", activity="a@1", price=3, artifacts=["clip"])
        .step("open", activity="a@1", price=2)
    )
    script = started(plan)
    script.succeed("undone", ref="r")
    kept = script.succeed("kept")
    script.submit("open")
    before, charged = list(script.history), script.state.charged
    decision = script.cancel()

    assert before == script.history[: len(before)], "what happened, happened"
    assert ["cancel"] == [row.kind for row in decision.effects], "the provider is asked, not assumed"
    script.report("open", Cancelled(answer="too_late"))
    (undo,) = script.rows.values()
    assert ("compensate", "undone") == (undo.kind, undo.step)
    assert "compensating" == script.summary.status
    script.report("undone", Succeeded())

    assert "cancelled" == script.summary.status
    assert charged == script.state.charged, (
        "no charge is rewritten; what is given back is an entry of its own"
    )
    assert ("succeeded", 1) == (script.status("kept"), len(kept.artifacts))
    assert {"open", "kept"}.isdisjoint(
        event.step for event, _ in script.history[len(before) :] if isinstance(event, StepCompensated)
    )


def test_a_retry_whose_time_has_come_is_withdrawn() -> None:
    script = started()
    script.fail("a")
    script.wait(60)

    assert (script.row("a").id,) == script.cancel().withdrawn


@pytest.mark.parametrize(
    ("outcome", "refund", "words"),
    [
        (Cancelled(answer="stopped"), 5, "stopped"),
        (Cancelled(answer="too_late"), 0, "too_late"),
        (Cancelled(answer="unsupported"), 0, "unsupported"),
        (Cancelled(answer="unknown"), 0, "unknown"),
        (Succeeded(), 0, "too_late"),
        (Submitted(external_ref="j"), 0, "too_late"),
        (Failed(error_class="transient", message="m"), 0, "unknown"),
        (NotFound(evidence="e"), 0, "unknown"),
        (Unknown(evidence="e"), 0, "unknown"),
    ],
)
def test_the_providers_answer_to_a_cancel_decides_the_refund(
    outcome: Outcome, refund: int, words: str
) -> None:
    script = started(bound(one(), cancellable=True))
    script.submit("a", "job-1")
    poll = script.row("a")
    decision = script.cancel()
    (row,) = decision.effects
    assert ("cancel", b'{"external_ref":"job-1"}', script.now + timedelta(minutes=10)) == (
        row.kind,
        row.input,
        row.deadline,
    )
    assert [(poll.id, "cancelled", False)] == [
        (c.id, c.disposition, c.expect_receipt) for c in decision.closings
    ]

    decision = script.report("a", outcome)

    assert words == decision.events[0].outcome
    assert refund == script.state.refunded
    assert "cancelled" == script.summary.status


def test_a_provider_that_cannot_stop_is_not_asked_and_keeps_the_price() -> None:
    script = started(bound(one(), cancellable=False))
    script.submit("a")
    decision = script.cancel()

    assert () == decision.effects
    assert ("cancelled", 0) == (script.summary.status, script.state.refunded)


@pytest.mark.parametrize("cancellable", [True, False])
def test_a_submission_during_the_cancel_is_cancelled_too(cancellable: bool) -> None:
    script = started(bound(one(), cancellable=cancellable))
    script.cancel()
    decision = script.submit("a", "job-1")

    assert (["cancel"] if cancellable else []) == [row.kind for row in decision.effects]
    assert cancellable == (script.summary.status == "cancelling")


@pytest.mark.parametrize(
    ("outcome", "refund"),
    [
        (Succeeded(), 0),
        (NotFound(evidence="e"), 5),
        (Impossible(evidence="e"), 0),
        (Failed(error_class="transient", message="m"), 0),
        (Failed(error_class="transient", message="m", adopted=True), 5),
        (Unknown(evidence="e"), 0),
    ],
)
def test_a_look_up_during_the_cancel_decides_the_refund(outcome: Outcome, refund: int) -> None:
    script = started()
    script.lose_lease("a", call_opened=True)
    script.cancel()
    assert "cancelling" == script.summary.status

    script.report("a", outcome)

    assert ("cancelled", refund) == (script.summary.status, script.state.refunded)


@pytest.mark.parametrize(("call_opened", "refund"), [(True, 0), (False, 5)])
@pytest.mark.parametrize("how", ["lease", "deadline"])
def test_a_call_that_goes_silent_during_the_cancel(call_opened: bool, refund: int, how: str) -> None:
    script = started()
    script.cancel()
    if how == "lease":
        script.lose_lease("a", call_opened=call_opened)
    else:
        script.pass_deadline("a", call_opened=call_opened)

    assert ("cancelled", refund) == (script.summary.status, script.state.refunded)


def test_a_failed_call_during_the_cancel_is_refunded() -> None:
    script = started()
    script.cancel()
    script.fail("a")

    assert 5 == script.state.refunded


def test_a_blocked_step_with_an_open_truth_keeps_its_price_when_cancelled() -> None:
    script = started()
    script.lose_lease("a", call_opened=True)
    script.report("a", Impossible(evidence="e"))
    decision = script.cancel()

    assert ("cancelled", 0) == (script.summary.status, script.state.refunded)
    assert ("blocked_deadline",) == decision.timers_cancelled


def test_an_open_truth_is_refunded_where_the_plan_would_have_tried_again() -> None:
    script = started(one(on_ambiguous="retry"))
    script.cancel()
    script.report("a", Unknown(evidence="e"))

    assert 5 == script.state.refunded


def test_a_blocked_step_without_tries_left_is_refunded_when_cancelled() -> None:
    script = started()
    script.fail("a", "auth")
    script.cancel()

    assert ("cancelled", 5) == (script.summary.status, script.state.refunded)


def test_when_the_time_to_settle_is_over_the_rest_counts_as_unknown() -> None:
    script = started(film(2))
    script.cancel()
    script.report("voice", Cancelled())
    decision = script.fire("settlement")

    assert [("late_outcome", "scene:1", "unknown"), ("late_outcome", "scene:2", "unknown")] == [
        (e.TYPE, e.step, e.outcome) for e in decision.events[:2]
    ]
    assert 1 == script.state.refunded
    assert {("cancelled", False)} == {(c.disposition, c.expect_receipt) for c in decision.closings}


@promise("H45")
def test_what_comes_after_the_settlement_changes_no_price() -> None:
    script = started()
    call = script.row("a")
    script.cancel()
    script.fire("settlement")
    before = script.state.revision
    decision = script.tell(
        OutcomeReported(
            effect_id=call.id, step="a", attempt=1, kind="execute", outcome=Succeeded(provider_cost=9)
        )
    )

    assert ("run_ended", before) == (decision.ignored.reason, script.state.revision)


def test_a_poll_that_knew_the_end_settles_a_cancel_before_the_provider_answers() -> None:
    script = started()
    script.submit("a")
    script.cancel()
    poll = script.row("a", "poll")
    script.tell(OutcomeReported(effect_id=poll.id, step="a", attempt=1, kind="poll", outcome=Succeeded()))

    assert ("cancelled", 0, {}) == (script.summary.status, script.state.refunded, script.rows)


def test_of_closed_effects_only_a_sure_end_counts_during_the_cancel() -> None:
    script = started()
    script.submit("a")
    script.cancel()
    poll = script.row("a", "poll")
    decision = script.tell(
        OutcomeReported(effect_id=poll.id, step="a", attempt=1, kind="poll", outcome=Unknown(evidence="e"))
    )

    assert "attempt_closed" == decision.ignored.reason


def test_an_attempt_that_is_already_settled_is_not_settled_again() -> None:
    script = started(film(1))
    call = script.row("scene:1")
    script.cancel()
    script.report("scene:1", Cancelled())
    decision = script.tell(
        OutcomeReported(effect_id=call.id, step="scene:1", attempt=1, kind="execute", outcome=Succeeded())
    )

    assert "attempt_closed" == decision.ignored.reason


# --- failing ---------------------------------------------------------------------------------------------------------


@promise("H50")
def test_a_failed_step_ends_the_run_when_the_rest_is_known_and_all_is_refunded() -> None:
    script = started(film(2))
    script.succeed("scene:1")
    script.succeed("scene:2")
    script.succeed("voice")
    decision = script.fail("render", "invalid_input", "bad clips")

    assert ["attempt_failed", "step_failed", "steps_cancelled", "refunded", "run_failed"] == [
        e.TYPE for e in decision.events
    ]
    assert ("verify",) == decision.events[2].steps
    assert 11 == script.state.refunded
    summary = script.summary
    assert ("failed", "Failed: bad clips", None) == (summary.status, summary.label, summary.current_step)
    assert "11 credits were charged, 11 were given back." == summary.failure.money


def test_a_failing_run_waits_for_what_is_open() -> None:
    plan = film(2).with_steps(free().steps)
    script = started(plan)
    script.submit("scene:1", "job-1")
    decision = script.fail("a", "invalid_input", "no")

    assert ["attempt_failed", "step_failed"] == [event.TYPE for event in decision.events]
    assert ["cancel"] == [row.kind for row in decision.effects]
    assert {"scene:2", "voice"} == {script.rows[effect_id].step for effect_id in decision.withdrawn}
    assert decision.scopes_released
    summary = script.summary
    assert ("cancelling", "Stopping", ("follow_up_generation",), "invalid_input") == (
        summary.status, summary.label, summary.available_actions, summary.failure.error_class,
    )  # fmt: skip

    script.report("scene:1", Cancelled())
    script.succeed("scene:2")
    script.report("voice", Cancelled())

    assert ("failed", 11) == (script.summary.status, script.state.refunded)
    assert "a" == script.summary.failure.step


def test_a_cancel_of_a_failing_run_is_refused() -> None:
    script = started(film(2).with_steps(free().steps))
    script.fail("a", "invalid_input")

    assert "action-not-available" == script.cancel().refusal.slug


# --- timers ----------------------------------------------------------------------------------------------------------


def test_a_run_that_misses_its_deadline_fails_like_a_step() -> None:
    script = started(Plan(deadline_seconds=60, steps=film(1).steps))
    script.succeed("scene:1")
    decision = script.fire("run_deadline")

    (event,) = decision.events
    assert ("step_failed", "voice", "timeout", "infrastructure") == (
        event.TYPE,
        event.step,
        event.error_class,
        event.origin,
    )
    script.succeed("voice")
    assert ("failed", "voice", 6) == (
        script.summary.status,
        script.summary.failure.step,
        script.state.refunded,
    )
    assert "the run did not finish in 60 s" == script.summary.failure.message
    assert "failed" == script.status("voice")


def test_a_blocked_run_that_nobody_decides_about_fails() -> None:
    script = started()
    script.fail("a", "auth")
    script.fire("blocked_deadline")

    assert ("failed", "a", 5) == (script.summary.status, script.summary.failure.step, script.state.refunded)
    assert script.now == script.state.accepted_at + timedelta(days=7)


def test_a_run_blocked_as_a_whole_fails_at_its_current_step() -> None:
    script = started(film(1))
    script.tell(ReducerFailed(causation="effect:1", error="boom"))
    script.succeed("scene:1")
    script.fire("blocked_deadline")

    assert "voice" == script.state.ending.step


@pytest.mark.parametrize("key", ["settlement", "run_deadline", "blocked_deadline"])
def test_timers_without_a_reason_are_ignored(key: str) -> None:
    script = started()

    assert "timer_not_due" == script.tell(TimerFired(key=key)).ignored.reason
    script.succeed("a")
    assert "run_ended" == script.tell(TimerFired(key=key)).ignored.reason


def test_a_timer_whose_time_was_moved_is_ignored() -> None:
    script = started(film(2))
    script.fail("scene:1", "auth")
    script.wait(3600)
    script.fail("scene:2", "auth")
    script.wait(7 * 24 * 3600 - 1800)

    assert "timer_not_due" == script.tell(TimerFired(key="blocked_deadline")).ignored.reason


def test_the_run_deadline_means_nothing_to_a_run_that_already_ends() -> None:
    script = started(Plan(deadline_seconds=60, steps=one().steps))
    script.cancel()
    script.wait(61)

    assert "timer_not_due" == script.tell(TimerFired(key="run_deadline")).ignored.reason


def test_a_large_end_is_split_into_events_of_bounded_size() -> None:
    script = started(film(1100, max_parallel=1))
    script.cancel()
    decision = script.report("scene:1", Cancelled())

    assert [500, 500, 103] == [len(e.steps) for e in decision.events if e.TYPE == "steps_cancelled"]
