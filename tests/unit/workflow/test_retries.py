"""Failures of attempts: which are tried again, when, how often, and what follows when no try is left."""

from datetime import timedelta

import pytest

from kit.plans import film, free, one
from kit.promises import promise
from longtake.contracts.outcomes import (
    RETRYABLE,
    Cancelled,
    Failed,
    NotFound,
    Pending,
    Succeeded,
    Throttled,
)
from longtake.contracts.signals import OutcomeReported
from longtake.workflow.plan import Plan, ref
from longtake.workflow.retry import delay_ms
from longtake.workflow.script import RUN, Script, artifacts
from longtake.workflow.state import fold
from longtake.workflow.step import ExpectedArtifact, Retry

NOT_RETRYABLE = ("invalid_input", "moderation_input", "moderation_output", "quota_exhausted", "auth", "not_found", "cancelled", "unknown")  # fmt: skip


def started(plan: Plan) -> Script:
    script = Script(plan)
    script.accept()
    return script


@promise("H35", "H76")
@pytest.mark.parametrize("error_class", sorted(RETRYABLE))
def test_a_curable_failure_makes_exactly_one_next_attempt(error_class: str) -> None:
    script = started(one())
    decision = script.fail("a", error_class)

    assert ["attempt_failed"] == [event.TYPE for event in decision.events]
    (row,) = decision.effects
    assert ("execute", 2, "retry_scheduled") == (row.kind, row.attempt, script.status("a"))
    assert row.not_before == decision.events[0].retry_at > script.now
    assert ("applied", True) == (decision.closings[0].disposition, decision.closings[0].expect_receipt)


@pytest.mark.parametrize("error_class", NOT_RETRYABLE)
def test_an_incurable_failure_is_not_tried_again(error_class: str) -> None:
    script = started(one())
    script.fail("a", error_class)

    assert "blocked" == script.status("a")
    assert {} == script.rows


def test_one_failure_touches_no_other_step() -> None:
    script = started(film())
    decision = script.fail("scene:2")

    assert ("scene:2",) == decision.touched
    assert "queued" == script.status("scene:1")


def test_delays_double_carry_a_derived_jitter_and_have_a_limit() -> None:
    retry = Retry(first_delay_ms=1000, factor=2, delay_ms_max=5000)
    grown = [1000, 2000, 4000, 5000, 5000]

    for tries, most in enumerate(grown, start=1):
        delay = delay_ms(retry, tries=tries, run_id=RUN, step="a", attempt=tries)
        assert most // 2 <= delay <= most
        assert delay == delay_ms(retry, tries=tries, run_id=RUN, step="a", attempt=tries)
    drawn = {delay_ms(retry, tries=1, run_id=RUN, step=f"s{n}", attempt=1) for n in range(50)}
    assert len(drawn) > 20


@promise("W31")
def test_a_step_is_tried_three_times_unless_its_plan_says_otherwise() -> None:
    """A free step, so that the run fails when no try is left."""
    for retry, tries in ((None, 3), (Retry(max_attempts=1), 1), (Retry(max_attempts=5), 5)):
        script = started(Plan().step("a", activity="a@1", **({} if retry is None else {"retry": retry})))
        for attempt in range(1, tries + 1):
            assert attempt == script.row("a").attempt
            script.now = max(script.now, script.row("a").not_before or script.now)
            script.fail("a")
        assert ("failed", {}) == (script.summary.status, script.rows)


@promise("W35")
def test_delays_climb_the_ladder_that_a_plan_sets_and_each_next_try_is_a_row_with_its_time() -> None:
    """250 ms, doubled up to ten seconds. The time is on the event and on the row: no process need remember it."""
    ladder = [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]
    retry = Retry(max_attempts=len(ladder) + 1, first_delay_ms=250, factor=2, delay_ms_max=10_000)
    script = started(one(retry=retry))
    for step in ladder:
        decision = script.fail("a")
        (row,) = decision.effects
        waits = (row.not_before - script.now) / timedelta(milliseconds=1)
        assert step // 2 <= waits <= step
        assert row.not_before == decision.events[0].retry_at
        assert fold(RUN, "t", script.plan, script.history).steps[0].retry_at == row.not_before
        script.now = row.not_before


def test_a_provider_that_says_when_to_come_back_is_heeded() -> None:
    script = started(one())
    decision = script.fail("a", "throttled", retry_after_seconds=300)

    assert script.now + timedelta(seconds=300) == decision.effects[0].not_before


def test_a_shorter_wish_of_the_provider_does_not_shorten_the_delay() -> None:
    script = started(one(retry=Retry(first_delay_ms=60_000)))
    decision = script.fail("a", retry_after_seconds=1)

    assert decision.effects[0].not_before >= script.now + timedelta(seconds=30)


def test_a_paid_step_without_tries_left_waits_for_a_person() -> None:
    script = started(one())
    script.fail("a")
    script.fail("a")
    decision = script.fail("a", message="third")

    assert ["attempt_failed", "step_blocked"] == [event.TYPE for event in decision.events]
    (timer,) = decision.timers
    assert ("blocked_deadline", script.now + timedelta(days=7)) == (timer.key, timer.due_at)
    summary = script.summary
    (blocker,) = summary.blockers
    assert ("blocked", "retries_exhausted", "a", 3) == (
        summary.status,
        blocker.type,
        blocker.step,
        blocker.attempt,
    )
    assert {"cancel_generation", "retry_generation"} <= set(summary.available_actions)
    assert summary.timing.poll_after_ms is None
    assert 0 == script.state.refunded


def test_a_free_step_without_tries_left_fails_the_run() -> None:
    script = started(free())
    script.fail("a", "invalid_input", "no such thing")

    assert ["attempt_failed", "step_failed", "run_failed"] == script.events[-3:]
    assert ("failed", "failed") == (script.summary.status, script.status("a"))


def test_a_plan_may_say_fail_for_a_paid_step_and_the_price_goes_back_whole() -> None:
    script = started(one(on_exhausted="fail"))
    decision = script.fail("a", "auth")

    assert ["attempt_failed", "step_failed", "refunded", "run_failed"] == [
        event.TYPE for event in decision.events
    ]
    (entry,) = decision.ledger
    assert (f"refund:{RUN}", "system:escrow", "acme", 5) == (
        entry.key,
        entry.debit,
        entry.credit,
        entry.amount,
    )


def test_a_plan_may_say_block_for_a_free_step() -> None:
    script = started(free(on_exhausted="block"))
    script.fail("a", "auth")

    assert "blocked" == script.summary.status


def test_other_branches_go_on_beside_a_blocked_step() -> None:
    script = started(film(3, max_parallel=1))
    decision = script.fail("scene:1", "auth")

    assert ["scene:2"] == [row.step for row in decision.effects]


@promise("G08")
@pytest.mark.parametrize(
    ("error_class", "said", "origin", "intact"),
    [
        ("invalid_input", "provider", "request", False),
        ("moderation_input", "provider", "content", False),
        ("moderation_output", "infrastructure", "content", False),
        ("auth", "infrastructure", "infrastructure", True),
        ("auth", "provider", "provider", True),
    ],
)
def test_lost_execution_and_bad_content_are_told_apart(
    error_class: str, said: str, origin: str, intact: bool
) -> None:
    script = started(one())
    script.fail("a", error_class, "why", origin=said)
    failure = script.summary.failure

    assert (error_class, origin, intact, "a", 1, "why") == (
        failure.error_class, failure.origin, failure.inputs_intact, failure.step, failure.attempt, failure.message,
    )  # fmt: skip
    assert "5 credits were charged, none were given back" in failure.money


@promise("H02")
@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (Succeeded(), "the artifact clip (video) is missing"),
        (
            Succeeded(artifacts=artifacts([ExpectedArtifact("clip", "image")])),
            "is image, the plan expects video",
        ),
        (
            Succeeded(artifacts=artifacts([ExpectedArtifact("clip", "video")], size=0)),
            "the artifact clip is empty",
        ),
    ],
)
def test_a_success_without_its_artifacts_is_a_failed_attempt(outcome: Succeeded, message: str) -> None:
    script = started(one(artifacts=["clip:video"]))
    decision = script.report("a", outcome)

    (event,) = decision.events
    assert ("attempt_failed", "bad_output") == (event.TYPE, event.error_class)
    assert message in event.message
    assert () == decision.artifacts


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({}, "lacks /result/url"),
        ({"url": 0.5}, "cannot be passed on"),
        ({"url": {"x": [0.5]}}, "/result/url/x/0"),
    ],
)
def test_a_result_that_another_step_could_not_use_is_a_failed_attempt(result: dict, message: str) -> None:
    script = started(one().step("b", activity="b@1", input={"u": ref("a", "/result/url")}))
    (event,) = script.report("a", Succeeded(result=result)).events

    assert "bad_output" == event.error_class
    assert message in event.message


def test_floats_that_nobody_refers_to_are_welcome() -> None:
    script = started(one().step("b", activity="b@1", input={"u": ref("a", "/result/url")}))
    script.succeed("a", url="u", seconds=14.4)

    assert b'{"u":"u"}' == script.row("b").input


@promise("H85")
def test_an_outcome_of_a_closed_attempt_is_kept_and_changes_nothing() -> None:
    script = started(one())
    first = script.row("a")
    script.fail("a")
    decision = script.tell(
        OutcomeReported(effect_id=first.id, step="a", attempt=1, kind="execute", outcome=Succeeded())
    )

    assert "late_attempt" == decision.ignored.reason
    (closing,) = decision.closings
    assert (first.id, "ignored", True) == (closing.id, closing.disposition, closing.expect_receipt)


def test_a_repeated_outcome_decides_nothing() -> None:
    script = started(film())
    script.succeed("scene:1")
    again = script.row("scene:1", "execute")
    decision = script.tell(
        OutcomeReported(effect_id=again.id, step="scene:1", attempt=1, kind="execute", outcome=Succeeded())
    )

    assert "attempt_closed" == decision.ignored.reason


def test_an_outcome_of_an_unknown_step_is_ignored() -> None:
    script = started(one())
    decision = script.tell(
        OutcomeReported(effect_id=RUN, step="zz", attempt=1, kind="execute", outcome=Succeeded())
    )

    assert "unknown_step" == decision.ignored.reason


def test_an_outcome_after_the_end_is_ignored() -> None:
    script = started(one())
    script.succeed("a")
    decision = script.tell(
        OutcomeReported(
            effect_id=script.row("a", "execute").id, step="a", attempt=1, kind="execute", outcome=Succeeded()
        )
    )

    assert "run_ended" == decision.ignored.reason


@pytest.mark.parametrize("outcome", [Pending(poll_after_seconds=3), Throttled(retry_after_seconds=3)])
def test_nothing_new_writes_no_event_and_closes_nothing(outcome: object) -> None:
    script = started(one())
    decision = script.report("a", outcome)

    assert ("nothing_new", (), ()) == (decision.ignored.reason, decision.events, decision.closings)


def test_a_call_that_the_provider_certainly_did_not_take_is_tried_again() -> None:
    script = started(one())
    (event,) = script.report("a", NotFound(evidence="connection refused")).events

    assert ("transient", "infrastructure") == (event.error_class, event.origin)
    assert event.retry_at is not None


def test_work_that_somebody_else_stopped_is_not_tried_again() -> None:
    script = started(one())
    script.report("a", Cancelled())

    assert "blocked" == script.status("a")


def test_provider_costs_add_up_beside_the_price_and_never_change_it() -> None:
    script = started(one())
    script.report("a", Failed(error_class="transient", message="m", provider_cost=7))
    script.report("a", Succeeded(provider_cost=5))

    assert (12, 5, 0) == (script.state.steps[0].provider_cost, script.state.charged, script.state.refunded)


def test_the_first_delay_of_a_fresh_allowance_is_the_first_again() -> None:
    script = started(one(retry=Retry(max_attempts=2, first_delay_ms=1000, factor=10)))
    script.fail("a")
    script.fail("a")
    script.retry("a")
    decision = script.fail("a")

    assert decision.effects[0].not_before <= script.now + timedelta(seconds=1)
