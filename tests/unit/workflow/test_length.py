"""How long a history may get: a warning at half, an end at the limit, and nothing that goes on beyond it (P17).

The limit of 100,000 is lowered, so that each test tells its whole history.
"""

from kit.plans import free, one
from longtake.contracts.events import HistoryLong
from longtake.contracts.signals import PauseRun, ResumeRun
from longtake.workflow.plan import Plan
from longtake.workflow.run_state import EVENTS_MAX
from longtake.workflow.script import RUN, Script
from longtake.workflow.state import fold


def bounded(plan: Plan, events_max: int) -> Script:
    script = Script(plan)
    script.state.events_max = events_max
    script.accept()
    return script


def pause_and_resume(script: Script, times: int) -> None:
    """What nothing but the limit ends."""
    for _ in range(times):
        if script.state.ending is not None or script.state.terminal:
            return
        for signal in (PauseRun, ResumeRun):
            script.tell(signal(command_id="c-9", actor="ann", expected_revision=script.state.revision))


def chain(steps: int, price: int = 0) -> Plan:
    plan = Plan()
    for number in range(steps):
        before = [f"s:{number - 1}"] if number else []
        plan = plan.step(f"s:{number}", activity="a@1", depends_on=before, price=price)
    return plan


def work(script: Script) -> None:
    """Let everything that is open succeed until nothing is."""
    while script.rows:
        script.succeed(next(iter(script.rows.values())).step)


def test_the_limit_is_a_hundred_thousand() -> None:
    assert 100_000 == EVENTS_MAX == Script(one()).state.events_max


def test_a_run_that_grows_without_end_is_called_long_at_half_and_fails_at_the_limit() -> None:
    script = bounded(free(), 20)
    pause_and_resume(script, 100)

    assert 1 == script.events.count("history_long")
    assert 10 <= script.events.index("history_long") <= 12
    assert "run_failing" in script.events[20:22]
    failure = script.summary.failure
    assert failure and ("quota_exhausted", "request", None) == (
        failure.error_class,
        failure.origin,
        failure.step,
    )
    assert "at most 20 are taken: let child runs" in failure.message


def test_without_a_limit_the_same_run_goes_on_and_on() -> None:
    script = bounded(free(), 1_000_000)
    pause_and_resume(script, 100)

    assert script.state.ending is None
    assert "history_long" not in script.events


def test_what_is_open_at_the_limit_is_collected_and_nothing_new_begins() -> None:
    """One attempt is under way beside the chain; the run has failed when it is known, and all money is back."""
    script = bounded(chain(40, price=1).step("beside", activity="b@1", price=2), 20)
    while script.state.ending is None:
        script.succeed(next(row.step for row in script.rows.values() if row.step != "beside"))
    begun = {step.attempt for step in script.state.steps if step.status == "pending"}
    at_the_limit = script.state.revision

    assert {0} == begun
    assert ["beside"] == [row.step for row in script.rows.values()]
    script.succeed("beside")
    assert ("failed", {}) == (script.summary.status, script.rows)
    assert script.state.charged == script.state.refunded > 0
    assert script.state.revision <= at_the_limit + 5, "no more than what settles it"


def test_a_run_that_is_done_at_the_limit_is_done() -> None:
    plan = chain(6)
    script = bounded(plan, 1_000_000)
    work(script)
    length = script.state.revision
    assert "completed" == script.summary.status
    exact, short = bounded(plan, length), bounded(plan, length - 3)
    work(exact)
    work(short)

    assert ("completed", "failed") == (exact.summary.status, short.summary.status)


def test_a_replay_comes_to_the_same_state_whatever_the_limit_is_by_then() -> None:
    script = bounded(free(), 20)
    pause_and_resume(script, 100)
    replayed = fold(RUN, "t", script.plan, script.history)

    assert replayed.is_long
    assert (script.state.revision, script.state.ending) == (replayed.revision, replayed.ending)
    assert [20] == [event.events_max for event, _ in script.history if isinstance(event, HistoryLong)]
