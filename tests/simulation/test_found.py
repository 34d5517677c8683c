"""What simulated worlds found, each by an example of its own that fails without its cure."""

import uuid
from datetime import UTC, datetime
from typing import Any

from kit.promises import promise
from longtake.contracts.effects import EffectClosing
from longtake.contracts.ids import effect_id_for
from longtake.contracts.outcomes import Failed, Submitted, Succeeded
from longtake.contracts.signals import CallbackArrived, DeadlinePassed, OutcomeReported, Signal
from longtake.engine.deciding import LiveRun, commit_of, empty_commit
from longtake.engine.history import Head
from longtake.memory import ManualClock, MemoryDatabase
from longtake.memory.store_rules import torn_runs
from longtake.memory.tables import EffectRow
from longtake.store import Fact
from longtake.workflow.plan import Plan, compile_plan
from longtake.workflow.reducer import accept
from longtake.workflow.script import FACTS
from longtake.workflow.state import initial
from longtake.workflow.step import Retry

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
RUN = uuid.UUID("00000000-0000-8000-8000-00000000f1f1")


def begun(plan: Plan) -> LiveRun:
    """A run that has handed out its first steps."""
    state = initial(RUN, "t", compile_plan(plan))
    accept(state, FACTS, NOW)
    head = Head(
        run_id=RUN,
        tenant="t",
        store_epoch=1,
        seq=state.revision,
        hash=bytes(32),
        actor="ann",
        correlation="c",
    )
    return LiveRun(state=state, head=head, clock=NOW)


def fact(signal: Signal) -> Fact:
    """A signal as a dispatcher reads it."""
    return Fact(
        run_id=RUN, tenant="t", signal=signal, causation="effect:1", traceparent=None, revision=1, plan_checked="a",
        application="a", now=NOW,
    )  # fmt: skip


def effect_of(step: str) -> uuid.UUID:
    return effect_id_for(RUN, step=step, attempt=1, kind="execute", ordinal=1)


def report(step: str, outcome: Any) -> Fact:
    return fact(
        OutcomeReported(effect_id=effect_of(step), step=step, attempt=1, kind="execute", outcome=outcome)
    )


@promise("H28")
def test_receipts_of_one_batch_that_end_each_others_effects_are_written_together() -> None:
    """The first fails the run, which has an end for the second; the second's receipt was read all the same."""
    once = Retry(max_attempts=1)
    run = begun(
        Plan().step("a", activity="x@1", retry=once).step("b", activity="x@1").step("c", activity="x@1")
    )
    commit = commit_of(
        run, [report("a", Failed(error_class="invalid_input", message="no")), report("b", Succeeded())]
    )
    by_id: dict[uuid.UUID, list[EffectClosing]] = {}
    for closing in commit.closings:
        by_id.setdefault(closing.id, []).append(closing)
    assert all(len(closings) == 1 for closings in by_id.values())
    assert by_id[effect_of("a")][0].expect_receipt
    assert by_id[effect_of("b")][0].expect_receipt, "a commit that expected none would be torn for ever"


def test_a_poll_that_one_batch_opens_and_hastens_is_due_at_once() -> None:
    run = begun(Plan().step("a", activity="x@1"))
    callback = CallbackArrived(inbox_id=uuid.UUID(int=7), step="a", attempt=1, external_ref="job-1")
    commit = commit_of(
        run, [report("a", Submitted(external_ref="job-1", poll_after_seconds=60)), fact(callback)]
    )
    ((poll, _),) = [pair for pair in commit.effects if pair[0].kind == "poll"]
    assert poll.not_before is None
    assert not commit.expedited, "there is no row yet that could be hastened"


def test_a_lapse_is_not_written_when_a_call_was_opened_since_it_was_read() -> None:
    run = begun(Plan().step("a", activity="x@1", price=3, timeout_seconds=5))
    commit = commit_of(
        run,
        [
            fact(
                DeadlinePassed(
                    effect_id=effect_of("a"), step="a", attempt=1, kind="execute", call_opened=False
                )
            )
        ],
    )
    assert [closing.disposition for closing in commit.closings] == ["expired"]
    database = MemoryDatabase(ManualClock(NOW))
    row = EffectRow(
        id=effect_of("a"), tenant="t", run_id=RUN, step="a", attempt=1, kind="execute", ordinal=1, activity="x@1",
        pool="default", priority=0, input=b"{}", traceparent=None, created_at=NOW, not_before=NOW, deadline=NOW,
        state="leased",
    )  # fmt: skip
    database.tables.effects[row.id] = row
    session = database.begin()
    assert torn_runs(session, [commit]) == set()
    row.call_opened_at = NOW
    assert torn_runs(session, [commit]) == {RUN}


def test_an_empty_commit_ends_nothing() -> None:
    """The control of the rules above: nothing decided, nothing believed."""
    run = begun(Plan().step("a", activity="x@1"))
    assert not empty_commit(run, traceparent=None).closings
    assert not commit_of(run, []).closings
