"""The authority's clock may step: within a run time does not go back, and what was not due is not due (F48)."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from longtake.contracts.outcomes import Failed, Succeeded
from longtake.contracts.signals import OutcomeReported, Signal, TimerFired
from longtake.engine.deciding import LiveRun, add_decision, blocked_commit, commit_of, empty_commit, finish
from longtake.engine.history import Head
from longtake.store import Fact, RunCommit
from longtake.workflow.plan import Plan, compile_plan
from longtake.workflow.reducer import accept
from longtake.workflow.script import FACTS, RUN, START
from longtake.workflow.state import initial

HOUR = timedelta(hours=1)


class Stepping:
    """One run under a clock that somebody sets."""

    def __init__(self, plan: Plan) -> None:
        state = initial(RUN, "t", compile_plan(plan))
        head = Head(run_id=RUN, tenant="t", store_epoch=1, seq=0, hash=b"", actor="ann", correlation="c-1")
        self.run = LiveRun(state=state, head=head)
        decision = accept(state, FACTS, START)
        commit = empty_commit(self.run, traceparent=None)
        add_decision(commit, self.run, decision, causation="command:c-1", traceparent=None, now=START)
        self.accepted = finish(commit, self.run, dict.fromkeys(decision.touched))
        self.recorded: list[datetime] = [event.recorded_at for event in self.accepted.events]

    def tell(self, signal: Signal, now: datetime) -> RunCommit:
        commit = commit_of(self.run, [_fact(signal, now)])
        self.recorded += [event.recorded_at for event in commit.events]
        return commit

    def report(self, row: Any, outcome: Any, now: datetime) -> RunCommit:
        signal = OutcomeReported(
            effect_id=row.id, step=row.step, attempt=row.attempt, kind=row.kind, outcome=outcome
        )
        return self.tell(signal, now)


def _fact(signal: Signal, now: datetime) -> Fact:
    return Fact(
        run_id=RUN, tenant="t", signal=signal, causation="fact", traceparent=None, revision=1, plan_checked="app",
        application="app", now=now,
    )  # fmt: skip


def test_an_hour_back_moves_no_event_and_no_due_time_back() -> None:
    run = Stepping(Plan().step("a", activity="a@1").step("b", activity="b@1", depends_on=["a"]))
    ((first, _),) = run.accepted.effects
    ((again, _),) = run.report(first, Failed(error_class="transient", message="m"), START - HOUR).effects
    assert again.not_before is not None
    assert again.not_before > START
    run.report(again, Succeeded(), START - HOUR)
    assert run.recorded == sorted(run.recorded)
    assert min(run.recorded) == START


@pytest.mark.parametrize("step", [-HOUR, timedelta(0)])
def test_a_timer_fires_not_before_its_time_by_a_clock_that_went_back(step: timedelta) -> None:
    run = Stepping(Plan().sleep("nap", seconds=60))
    early = run.tell(TimerFired(key="step:nap"), START + timedelta(seconds=59) + step)
    assert early.events == []
    due = run.tell(TimerFired(key="step:nap"), START + timedelta(seconds=60))
    assert next(event.type for event in due.events) == "step_succeeded"


def test_an_hour_ahead_and_back_again_fires_once() -> None:
    """What fired too early by a wrong clock has fired: the clock of the run stays where it was told to be."""
    run = Stepping(Plan().sleep("nap", seconds=60).step("b", activity="b@1", depends_on=["nap"]))
    fired = run.tell(TimerFired(key="step:nap"), START + HOUR)
    ((row, _),) = fired.effects
    assert run.tell(TimerFired(key="step:nap"), START + timedelta(seconds=61)).events == []
    run.report(row, Succeeded(), START + timedelta(seconds=62))
    assert run.recorded == sorted(run.recorded)
    assert max(run.recorded) == START + HOUR


def test_a_run_that_is_blocked_by_a_defect_keeps_its_clock_too() -> None:
    run = Stepping(Plan().step("a", activity="a@1"))
    commit = blocked_commit(run.run, _fact(TimerFired(key="x"), START - HOUR), "it broke")
    assert [event.recorded_at for event in commit.events] == [START]
