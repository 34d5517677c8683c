"""Open truths: a look-up follows on the same attempt, and no second paid call before it says so."""

import json
from datetime import timedelta

import pytest

from kit.plans import FAST, film, free, one
from kit.promises import promise
from longtake.contracts.outcomes import Failed, Impossible, NotFound, Pending, Submitted, Succeeded, Unknown
from longtake.contracts.signals import LeaseExpired, OutcomeReported
from longtake.workflow.plan import Plan
from longtake.workflow.reconciling import LOOK_UPS_FAILED_MAX, LOOK_UPS_LOST_MAX
from longtake.workflow.script import Script


def reconciling(plan: Plan | None = None) -> Script:
    script = Script(plan or one(input={"name": "out-1"}))
    script.accept()
    script.lose_lease("a", call_opened=True)
    return script


def blocked_unknown() -> Script:
    script = reconciling()
    script.report("a", Impossible(evidence="no look-up"))
    return script


def late(script: Script, kind: str, outcome: object) -> object:
    row = script.row("a", kind)
    return script.tell(
        OutcomeReported(effect_id=row.id, step="a", attempt=row.attempt, kind=kind, outcome=outcome)
    )


@promise("T21")
@pytest.mark.parametrize("how", ["lease", "deadline", "report"])
def test_a_call_whose_answer_is_lost_is_looked_up_on_the_same_attempt(how: str) -> None:
    script = Script(one(input={"name": "out-1"}))
    script.accept()
    match how:
        case "lease":
            decision = script.lose_lease("a", call_opened=True, leases=1)
        case "deadline":
            decision = script.pass_deadline("a", call_opened=True)
        case _:
            decision = script.report("a", Unknown(evidence="connection reset"))

    assert ["attempt_unknown"] == [event.TYPE for event in decision.events]
    (row,) = decision.effects
    assert ("reconcile", 1, 1, None) == (row.kind, row.attempt, row.ordinal, row.not_before)
    assert {"external_ref": None, "input": {"name": "out-1"}} == json.loads(row.input)
    assert script.now + timedelta(minutes=5) == row.deadline
    (closing,) = decision.closings
    assert ("unknown", how == "report") == (closing.disposition, closing.expect_receipt)
    assert "reconciling" == script.status("a")


def test_what_was_not_begun_is_tried_again_without_a_look_up() -> None:
    script = Script(one())
    script.accept()
    decision = script.lose_lease("a", call_opened=False, leases=5)

    (event,) = decision.events
    assert ("attempt_failed", "transient", "infrastructure") == (event.TYPE, event.error_class, event.origin)
    assert "lease_expired" in event.message
    assert ("expired", False) == (decision.closings[0].disposition, decision.closings[0].expect_receipt)


def test_a_deadline_before_the_call_is_a_timeout() -> None:
    script = Script(one())
    script.accept()
    (event,) = script.pass_deadline("a", call_opened=False).events

    assert ("timeout", True) == (event.error_class, event.retry_at is not None)


def test_found_and_finished_is_adopted_without_a_second_call() -> None:
    script = reconciling()
    decision = script.report("a", Succeeded())

    assert ["attempt_reconciled", "step_succeeded", "run_completed"] == [
        event.TYPE for event in decision.events
    ]
    assert ("found", True, 1) == (
        decision.events[0].verdict,
        decision.events[1].adopted,
        decision.events[1].attempt,
    )
    assert () == decision.effects


def test_found_and_finished_badly_is_a_failed_attempt() -> None:
    script = reconciling(one(artifacts=["clip"]))
    decision = script.report("a", Succeeded())

    assert ["attempt_reconciled", "attempt_failed"] == [event.TYPE for event in decision.events]


def test_found_and_under_way_is_adopted_and_polled() -> None:
    script = reconciling()
    decision = script.report("a", Submitted(external_ref="job-9"))

    assert ["attempt_reconciled", "attempt_submitted"] == [event.TYPE for event in decision.events]
    assert decision.events[1].adopted
    assert ("poll", 1) == (decision.effects[0].kind, decision.effects[0].attempt)


def test_found_and_failed_is_a_failed_attempt() -> None:
    script = reconciling()
    decision = script.report("a", Failed(error_class="transient", message="gone", adopted=True))

    assert ["attempt_reconciled", "attempt_failed"] == [event.TYPE for event in decision.events]
    assert ("execute", 2) == (decision.effects[0].kind, decision.effects[0].attempt)


def test_not_found_leads_to_the_next_attempt() -> None:
    script = reconciling()
    decision = script.report("a", NotFound(evidence="no such token"))

    assert ["attempt_reconciled", "attempt_failed"] == [event.TYPE for event in decision.events]
    assert ("not_found", 2) == (decision.events[0].verdict, decision.effects[0].attempt)


def test_an_attempt_that_was_never_taken_does_not_count_against_the_policy() -> None:
    script = reconciling(one(retry=FAST.__class__(max_attempts=1)))
    attempts = 1
    while script.status("a") != "blocked":
        script.report("a", NotFound(evidence="no such token"))
        if script.status("a") == "retry_scheduled":
            attempts += 1
            script.wait(100).lose_lease("a", call_opened=True)

    assert 1 + 3 == attempts
    assert "retries_exhausted" == script.summary.blockers[0].type


def test_impossible_to_tell_blocks_a_paid_step_without_call_or_refund() -> None:
    script = reconciling()
    decision = script.report("a", Impossible(evidence="no look-up"))

    assert ["attempt_reconciled", "step_blocked"] == [event.TYPE for event in decision.events]
    assert () == decision.effects == decision.ledger
    (blocker,) = script.summary.blockers
    assert ("provider_outcome_unknown", "a", 1) == (blocker.type, blocker.step, blocker.attempt)
    assert "unknown" == script.summary.failure.error_class


@pytest.mark.parametrize("plan", [free(), one(on_ambiguous="retry")])
def test_impossible_to_tell_is_tried_again_where_the_plan_allows(plan: Plan) -> None:
    script = reconciling(plan)
    decision = script.report("a", Impossible(evidence="no look-up"))

    assert ("execute", 2) == (decision.effects[0].kind, decision.effects[0].attempt)


@pytest.mark.parametrize(
    "outcome",
    [
        Failed(error_class="transient", message="503"),
        Failed(error_class="auth", message="401", origin="infrastructure"),
        Unknown(evidence="cut off"),
    ],
)
def test_a_look_up_that_found_out_nothing_is_repeated_later_and_not_for_ever(outcome: object) -> None:
    script = reconciling()
    for ordinal in range(2, LOOK_UPS_FAILED_MAX + 1):
        (row,) = script.report("a", outcome).effects
        assert ("reconcile", ordinal, 1) == (row.kind, row.ordinal, row.attempt)
        assert row.not_before > script.now
        script.wait(120)

    script.report("a", outcome)

    assert "provider_outcome_unknown" == script.summary.blockers[0].type


@pytest.mark.parametrize("how", ["lease", "deadline"])
def test_look_ups_that_get_lost_are_repeated_and_not_for_ever(how: str) -> None:
    script = reconciling()
    for _ in range(LOOK_UPS_LOST_MAX):
        assert "reconciling" == script.status("a")
        if how == "lease":
            script.lose_lease("a", call_opened=True)
        else:
            script.pass_deadline("a")

    assert "blocked" == script.status("a")


def test_a_look_up_with_nothing_new_is_not_an_answer() -> None:
    assert "nothing_new" == reconciling().report("a", Pending(poll_after_seconds=1)).ignored.reason


@pytest.mark.parametrize(
    "outcome", [Succeeded(), Submitted(external_ref="job-1"), Failed(error_class="transient", message="m")]
)
def test_a_late_receipt_of_the_call_wins_over_its_look_up(outcome: object) -> None:
    script = reconciling()
    look_up, call = script.row("a"), script.row("a", "execute")
    decision = late(script, "execute", outcome)

    assert decision.ignored is None
    closings = {closing.id: (closing.disposition, closing.expect_receipt) for closing in decision.closings}
    assert {look_up.id: ("cancelled", False), call.id: ("applied", True)} == closings


@pytest.mark.parametrize("outcome", [Unknown(evidence="x"), NotFound(evidence="x"), Impossible(evidence="x")])
def test_a_late_receipt_that_says_nothing_does_not_stop_the_look_up(outcome: object) -> None:
    script = reconciling()

    assert "attempt_closed" == late(script, "execute", outcome).ignored.reason
    assert "reconciling" == script.status("a")


@pytest.mark.parametrize("kind", ["execute", "reconcile"])
def test_a_late_success_frees_a_step_that_waits_for_a_person(kind: str) -> None:
    script = blocked_unknown()
    decision = late(script, kind, Succeeded())

    assert "completed" == script.summary.status
    assert ("blocked_deadline",) == tuple(
        key for key in decision.timers_cancelled if key == "blocked_deadline"
    )


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Submitted(external_ref="j"), "waiting_external"),
        (NotFound(evidence="e"), "retry_scheduled"),
        (Failed(error_class="transient", message="m", adopted=True), "retry_scheduled"),
        (Failed(error_class="transient", message="m"), "reconciling"),
        (Impossible(evidence="e"), "reconciling"),
    ],
)
def test_of_late_look_ups_only_an_answer_counts(outcome: object, status: str) -> None:
    script = reconciling()
    first = script.row("a")
    script.lose_lease("a", call_opened=True)
    script.tell(OutcomeReported(effect_id=first.id, step="a", attempt=1, kind="reconcile", outcome=outcome))

    assert status == script.status("a")


@pytest.mark.parametrize(
    ("outcome", "counts"),
    [
        (Succeeded(), True),
        (Failed(error_class="moderation_output", message="m"), True),
        (Failed(error_class="transient", message="m", origin="infrastructure"), False),
        (Submitted(external_ref="j"), False),
    ],
)
def test_of_late_polls_only_the_end_of_the_request_counts(outcome: object, counts: bool) -> None:
    script = Script(one())
    script.accept()
    script.submit("a")
    script.pass_deadline("a")

    assert counts == (late(script, "poll", outcome).ignored is None)


def test_a_cancel_answer_is_no_evidence() -> None:
    script = reconciling()
    decision = script.tell(
        OutcomeReported(
            effect_id=script.row("a", "execute").id, step="a", attempt=1, kind="cancel", outcome=Succeeded()
        )
    )

    assert "attempt_closed" == decision.ignored.reason


def test_a_late_receipt_does_not_revive_a_step_whose_tries_are_used_up() -> None:
    script = Script(one())
    script.accept()
    script.fail("a", "auth")

    assert "attempt_closed" == late(script, "execute", Succeeded()).ignored.reason


def test_a_silent_effect_that_nobody_waits_for_is_closed() -> None:
    script = reconciling()
    call = script.row("a", "execute")
    decision = script.tell(
        LeaseExpired(effect_id=call.id, step="a", attempt=1, kind="execute", call_opened=True, leases=2)
    )

    assert "effect_closed" == decision.ignored.reason
    assert [(call.id, "unknown", False)] == [
        (c.id, c.disposition, c.expect_receipt) for c in decision.closings
    ]


def test_a_callback_hastens_the_look_up() -> None:
    script = reconciling()
    decision = script.call_back("a")

    assert (script.row("a").id,) == decision.expedited


def test_a_callback_reopens_the_question_of_a_blocked_step_once() -> None:
    script = blocked_unknown()
    decision = script.call_back("a")

    assert ["callback_received", "attempt_unknown"] == [event.TYPE for event in decision.events]
    assert ("reconcile", 2) == (decision.effects[0].kind, decision.effects[0].ordinal)

    script.report("a", Impossible(evidence="still not"))

    assert "already_known" == script.call_back("a").ignored.reason


def test_one_open_truth_holds_up_nobody_else() -> None:
    script = Script(film())
    script.accept()
    script.lose_lease("scene:1", call_opened=True)
    script.report("scene:1", Impossible(evidence="e"))
    script.succeed("scene:2")

    assert ("blocked", "succeeded", "queued") == tuple(script.status(f"scene:{n}") for n in (1, 2, 3))


def test_a_blocked_step_that_fails_after_all_waits_for_a_slot_that_others_took() -> None:
    plan = Plan(max_parallel=1).step("a", activity="work@1", price=4, retry=FAST).step("b", activity="work@1")
    script = Script(plan)
    script.accept()
    script.lose_lease("a", call_opened=True)
    script.report("a", Impossible(evidence="no look-up"))
    assert ("blocked", "queued") == (script.status("a"), script.status("b"))

    late(script, "execute", Failed(error_class="overloaded", origin="provider", message="busy"))
    assert ["b"] == [row.step for row in script.rows.values()]
    assert "ready" == script.status("a")

    script.wait(60)
    script.succeed("b")
    assert [("a", 2, "execute")] == [(row.step, row.attempt, row.kind) for row in script.rows.values()]
