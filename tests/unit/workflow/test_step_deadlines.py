"""A step has a time in all, beside that of one try: no try begins after it, and none outlives it (T43)."""

from datetime import timedelta

from kit.promises import promise
from longtake.workflow.plan import Plan, Retry
from longtake.workflow.script import START, Script


def started(**fields: object) -> Script:
    retry = Retry(max_attempts=9, first_delay_ms=40_000, delay_ms_max=40_000, factor=1)
    script = Script(
        Plan().step("a", activity="a@1", retry=retry, on_exhausted="fail", deadline_seconds=60, **fields)
    )
    script.accept()
    return script


@promise("T43")
def test_a_try_ends_with_the_step_at_the_latest() -> None:
    assert START + timedelta(seconds=60) == started(timeout_seconds=300).row("a").deadline
    assert START + timedelta(seconds=20) == started(timeout_seconds=20).row("a").deadline


def test_no_try_begins_after_the_step_is_too_late() -> None:
    script = started()
    script.fail("a")
    assert "retry_scheduled" == script.status("a")

    script.wait(45).fail("a")
    assert ("failed", "failed") == (script.status("a"), script.summary.status)


def test_a_poll_ends_with_the_step_too() -> None:
    script = started()
    script.submit("a", poll_after_seconds=5, external_seconds_max=3600)

    assert START + timedelta(seconds=60) == script.row("a").deadline
