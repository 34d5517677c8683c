"""Compensation: what a run did is undone before it ends without completing, the last first (H90)."""

import msgspec

from kit.promises import promise
from longtake.contracts.outcomes import Failed, Succeeded
from longtake.workflow.plan import Plan, Retry
from longtake.workflow.script import Script

RETRY = Retry(max_attempts=2, first_delay_ms=1000)


def booked(**fields: object) -> Plan:
    return (
        Plan(**fields)
        .step("studio", activity="book@1", compensate="unbook@1", retry=RETRY)
        .step("crew", activity="hire@1", compensate="release@1", depends_on=["studio"], retry=RETRY)
        .step(
            "shoot", activity="shoot@1", depends_on=["crew"], retry=Retry(max_attempts=1), on_exhausted="fail"
        )
    )


def failed() -> Script:
    script = Script(booked())
    script.accept()
    script.succeed("studio", booking="s-1")
    script.succeed("crew", booking="c-1")
    script.fail("shoot", "auth")
    return script


@promise("H90", "T43")
def test_what_was_done_is_undone_in_reverse_order_of_completion() -> None:
    script = failed()

    assert ("compensating", "crew", "release@1") == (
        script.summary.status,
        script.row("crew").step,
        script.row("crew").activity,
    )
    assert {
        "step": "crew",
        "attempt": 1,
        "result": {"booking": "c-1"},
        "artifacts": {},
        "external_ref": None,
    } == (msgspec.json.decode(script.row("crew").input))
    assert 1 == len(script.rows)
    script.report("crew", Succeeded())
    assert "unbook@1" == script.row("studio").activity
    script.report("studio", Succeeded())
    assert ("failed", "done") == (script.summary.status, script.history[-1][0].compensation)
    # Why the run failed stands by itself.
    assert "auth" == script.summary.failure.error_class


def test_a_compensation_that_fails_is_tried_again_and_then_said_to_have_failed_while_the_others_go_on() -> (
    None
):
    script = failed()
    script.report("crew", Failed(error_class="transient", message="no line"))
    assert ("compensate", 2) == (script.row("crew").kind, script.row("crew").ordinal)
    script.report("crew", Failed(error_class="transient", message="no line"))
    script.report("studio", Succeeded())

    assert ("failed", "failed") == (script.summary.status, script.history[-1][0].compensation)
    assert ["compensation_scheduled"] * 2 + [
        "compensation_failed",
        "compensation_scheduled",
        "step_compensated",
    ] == [kind for kind in script.events if "compensat" in kind]


def test_a_lost_worker_or_deadline_is_a_try_too() -> None:
    script = failed()
    script.lose_lease("crew", call_opened=True)
    script.pass_deadline("crew")
    script.report("studio", Succeeded())

    assert ("failed", "failed") == (script.summary.status, script.history[-1][0].compensation)


def test_a_cancelled_run_is_undone_as_well_and_what_did_not_happen_is_not() -> None:
    script = Script(booked())
    script.accept()
    script.succeed("studio")
    script.fail("crew", "transient")
    script.cancel()
    assert ["unbook@1"] == [row.activity for row in script.rows.values()]
    script.report("studio", Succeeded())

    assert ("cancelled", "done") == (script.summary.status, script.history[-1][0].compensation)


def test_a_step_that_succeeded_after_the_cancel_is_undone_too() -> None:
    script = Script(booked())
    script.accept()
    script.cancel()
    script.succeed("studio")

    assert ["unbook@1"] == [row.activity for row in script.rows.values()]


def test_a_completed_run_undoes_nothing() -> None:
    script = Script(booked())
    script.accept()
    for step in ("studio", "crew", "shoot"):
        script.succeed(step)

    assert ("completed", False) == (script.summary.status, any("compensat" in kind for kind in script.events))


def test_the_time_to_settle_does_not_cut_a_compensation_short() -> None:
    script = failed()
    script.fire("settlement")

    assert "compensating" == script.summary.status
