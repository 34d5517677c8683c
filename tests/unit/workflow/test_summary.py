"""The summary and the projection rows: one answer for every reader."""

import json
from datetime import timedelta

import msgspec
import pytest

from kit.plans import film, free, one
from kit.promises import promise
from longtake.contracts.outcomes import Cancelled, Impossible, Succeeded
from longtake.workflow.plan import Plan
from longtake.workflow.projection import run_row, step_row
from longtake.workflow.script import RUN, START, Script
from longtake.workflow.summary import poll_after_ms, stored_summary


def started(plan: Plan | None = None) -> Script:
    script = Script(plan or one())
    script.accept()
    return script


@promise("H58")
def test_the_summary_has_exactly_the_fields_of_the_contract() -> None:
    script = started(film(4))
    script.succeed("scene:1")
    document = json.loads(msgspec.json.encode(script.summary))

    assert {
        "run_id": str(RUN),
        "workflow": "short.generation",
        "workflow_version": 1,
        "revision": 4,
        "status": "running",
        "phase": "scenes",
        "label": "Generating scene 2 of 4",
        "progress": {"completed": 1, "total": 7, "percent": 14},
        "current_step": {"key": "scene:2", "attempt": 1, "max_attempts": 3},
        "blockers": [],
        "available_actions": [
            "cancel_generation",
            "pause_generation",
            "steer_generation",
            "follow_up_generation",
        ],
        "cost": {"quoted_credits": 21, "charged_credits": 21, "refunded_credits": 0, "net_credits": 21},
        "timing": {"poll_after_ms": 5000},
    } == document


def test_a_run_of_which_nothing_was_handed_out_is_accepted() -> None:
    assert "accepted" == Script(one()).summary.status


@promise("H10")
def test_percent_is_rounded_and_100_only_when_all_is_done() -> None:
    script = started(film(197, max_parallel=1000))
    for number in range(1, 198):
        script.state.completed = number
        assert script.summary.progress.percent == min(99, round(number * 100 / 200 + 1e-9))
    script.state.completed = 200
    assert 100 == script.summary.progress.percent


@pytest.mark.parametrize(
    ("after_ms", "wait"),
    [(-1, 5000), (0, 5000), (1, 1000), (1500, 1500), (59_999, 59_999), (60_001, 60_000), (10**9, 60_000)],
)
@promise("H60")
def test_the_wait_is_derived_when_it_is_read_and_bounded(after_ms: int, wait: int) -> None:
    assert wait == poll_after_ms(START + timedelta(milliseconds=after_ms), "running", START)


def test_there_is_nothing_to_wait_for_at_the_end_or_without_a_due_time() -> None:
    assert poll_after_ms(None, "blocked", START) is None
    assert poll_after_ms(START, "completed", START) is None


def test_the_next_look_comes_from_the_first_due_time() -> None:
    script = started(film(1))
    script.submit("scene:1", poll_after_seconds=40)
    assert 5000 == script.summary.timing.poll_after_ms

    script.succeed("voice")

    assert 41_000 == script.summary.timing.poll_after_ms
    assert 11_000 == script.wait(30).summary.timing.poll_after_ms
    script.call_back("scene:1")
    assert 1000 == script.summary.timing.poll_after_ms


def test_a_run_that_ends_is_looked_at_when_it_settles_at_the_latest() -> None:
    script = started()
    script.lose_lease("a", call_opened=True)
    script.cancel()

    assert run_row(script.state).poll_at <= script.state.ending.settle_until
    script.wait(9 * 60 + 58)
    assert 5000 == script.summary.timing.poll_after_ms


def test_labels_say_what_the_run_waits_for() -> None:
    script = started()
    assert "Making a" == script.summary.label
    script.fail("a")
    assert "Making a: trying again, attempt 2" == script.summary.label
    script.wait(60).lose_lease("a", call_opened=True)
    assert "Making a: asking the provider what became of it" == script.summary.label
    script.report("a", Impossible(evidence="e"))
    assert "Making a: waiting for a decision" == script.summary.label


def test_the_label_of_a_completed_run() -> None:
    script = started()
    script.succeed("a")

    assert ("Completed", "main", None) == (
        script.summary.label,
        script.summary.phase,
        script.summary.current_step,
    )


def test_a_step_without_a_label_is_called_by_its_key() -> None:
    assert "a" == started(one(label="")).summary.label


def test_work_under_way_is_told_before_what_is_blocked() -> None:
    script = started(film(2))
    script.fail("scene:1", "auth")

    assert ("Generating scene 2 of 2", "blocked") == (script.summary.label, script.summary.status)


def test_what_waits_for_a_blocked_step_does_not_hide_it() -> None:
    script = started(film(1))
    script.succeed("voice")
    script.fail("scene:1", "auth")

    assert "Generating scene 1 of 1: waiting for a decision" == script.summary.label


@promise("G08")
def test_the_money_sentence_of_a_failure() -> None:
    script = started(free())
    script.fail("a", "auth")
    assert "Nothing was charged." == script.summary.failure.money

    script = started()
    script.fail("a", "auth")
    assert (
        "5 credits were charged, none were given back while the outcome is open."
        == script.summary.failure.money
    )


def test_a_cancelled_run_has_not_failed() -> None:
    script = started()
    script.cancel()
    assert script.summary.failure is msgspec.UNSET
    script.report("a", Cancelled())

    assert script.summary.failure is msgspec.UNSET


def test_the_stored_summary_does_not_depend_on_when_it_is_read() -> None:
    script = started()
    row = run_row(script.state)

    assert msgspec.json.encode(stored_summary(script.state)) == row.summary
    assert json.loads(row.summary)["timing"] == {"poll_after_ms": None}
    assert START + timedelta(seconds=5) == row.poll_at


def test_the_run_row_repeats_the_state() -> None:
    script = started(film(1))
    script.wait(5).fail("voice", "auth")
    row = run_row(script.state)

    assert ("blocked", "scenes", 5, 6, 0, 6, 6) == (
        row.status, row.phase, row.revision, row.charged, row.refunded, row.quoted, row.cap,
    )  # fmt: skip
    assert (START, START + timedelta(seconds=5), None) == (row.accepted_at, row.updated_at, row.ended_at)
    assert "retries_exhausted" == row.blockers[0].type


def test_the_step_row_repeats_the_step() -> None:
    script = started(film(1))
    script.report("scene:1", Succeeded())  # its clip is missing
    script.wait(100).submit("scene:1", "job-7")
    script.succeed("scene:1")
    row = step_row(script.state, "scene:1")

    assert ("scene:1", 1, 2, 3, "succeeded", "scenes", "Generating scene 1 of 1", "job-7", ("clip",)) == (
        row.key, row.ordinal, row.attempt, row.max_attempts, row.status, row.phase, row.label, row.external_ref,
        row.artifacts,
    )  # fmt: skip
    assert (None, None, START, script.state.revision) == (
        row.error_class, row.error_message, row.started_at, row.updated_seq,
    )  # fmt: skip


def test_a_failed_step_row_says_why() -> None:
    script = started()
    script.fail("a", "auth", "key revoked")
    row = step_row(script.state, "a")

    assert ("blocked", "auth", "key revoked") == (row.status, row.error_class, row.error_message)


def test_every_row_that_changes_is_touched() -> None:
    """Rows that are written only for touched steps must still equal a rebuild."""
    script = started(film(3, max_parallel=2))
    rows = {step.key: step_row(script.state, step.key) for step in script.plan.steps}

    def follow() -> None:
        for key in script.decisions[-1].touched:
            rows[key] = step_row(script.state, key)
        assert rows == {step.key: step_row(script.state, step.key) for step in script.plan.steps}

    script.succeed("scene:1")
    follow()
    script.fail("scene:2")
    follow()
    script.succeed("scene:3")
    follow()
    script.wait(60).succeed("scene:2")
    follow()
    script.fail("voice", "auth")
    follow()
    script.retry()
    follow()
    script.succeed("voice")
    follow()
    script.cancel()
    follow()
    script.report("render", Cancelled())
    follow()
