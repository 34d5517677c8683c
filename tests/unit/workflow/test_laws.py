"""Laws that hold for every sequence of facts, in whatever order, doubled, late or out of place.

A world plays a run at random: workers answer, fall silent, answer late; providers call back; people cancel and retry;
timers go off; deploys drift. `Script` holds every decision to what a store relies on (replay equals live among it);
here stand the laws of the run itself.
"""

import copy
import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.plans import FAST, film, one
from kit.promises import promise
from longtake.contracts.events import EVENT_TYPES, RunFailed
from longtake.contracts.outcomes import (
    Artifact,
    Cancelled,
    Failed,
    Impossible,
    NotFound,
    Pending,
    Submitted,
    Succeeded,
    Unknown,
)
from longtake.contracts.signals import (
    CallbackArrived,
    CancelRun,
    DeadlinePassed,
    LeaseExpired,
    OutcomeReported,
    PlanChecked,
    ReducerFailed,
    RetryRun,
    Signal,
    TimerFired,
)
from longtake.contracts.upcasters import decode_event, encode_event
from longtake.workflow import state as state_module
from longtake.workflow.actions import available_actions
from longtake.workflow.decision import Decision, Ignored
from longtake.workflow.plan import Plan, Retry, Step, group, ref
from longtake.workflow.projection import run_row, step_row
from longtake.workflow.reducer import decide
from longtake.workflow.script import LawBroken, Script, artifacts
from longtake.workflow.state import dump, fold
from longtake.workflow.summary import summarize

OUTCOMES = st.sampled_from(
    [
        Succeeded(),
        Succeeded(result={"url": "u"}, provider_cost=2),
        Submitted(external_ref="job"),
        Submitted(external_ref="job", poll_after_seconds=0, external_seconds_max=5),
        Pending(poll_after_seconds=1),
        Failed(error_class="transient", message="m", provider_cost=1),
        Failed(error_class="transient", message="m", origin="infrastructure"),
        Failed(error_class="transient", message="m", adopted=True),
        Failed(error_class="throttled", message="m", retry_after_seconds=50),
        Failed(error_class="moderation_output", message="m"),
        Unknown(evidence="e"),
        NotFound(evidence="e"),
        Impossible(evidence="e"),
        Cancelled(answer="stopped"),
        Cancelled(answer="too_late"),
        Cancelled(answer="unsupported"),
        Cancelled(answer="unknown"),
    ]
)

PLANS = [
    film(3),
    film(3, max_parallel=1),
    film(2, max_parallel=2, deadline_seconds=500),
    one(),
    one(price=0),
    one(on_exhausted="fail", on_ambiguous="retry"),
    Plan(max_parallel=2)
    .fan_out("g", range(3), lambda _, i: Step(f"g:{i}", activity="a@1", price=i, retry=FAST, artifacts=["x"]))
    .fan_out(
        "h",
        range(2),
        lambda _, i: Step(
            f"h:{i}",
            activity="b@1",
            input={"all": ref(group("g"), "/artifacts/x/bytes")},
            retry=Retry(max_attempts=1),
            on_exhausted="block",
        ),
    )
    .step("end", activity="c@1", depends_on=[group("h")], on_exhausted="fail"),
    Plan(steps=tuple(msgspec.structs.replace(step, cancellable=index % 2 == 0) for index, step in enumerate(film(3).steps))),
]  # fmt: skip


class World:
    """Draws facts, most of them to the point, and plays them."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.script = Script(draw(st.sampled_from(PLANS)))
        self.told: list[Signal] = []

    def signal(self) -> Signal:
        """A fact: about an open effect most of the time, else about anything."""
        kind = self.draw(
            st.sampled_from(
                ["answer"] * 8 + ["lapse"] * 3 + ["late"] * 2 + ["callback"] * 2
                + ["timer", "cancel", "retry", "retry", "retry", "check", "crash", "again"]
            )
        )  # fmt: skip
        make = getattr(self, f"_{kind}")
        made: Signal = make()
        return made

    def _row(self, *, late: bool = False) -> Any:
        script = self.script
        rows = list((script.all_rows if late or not script.rows else script.rows).values())
        return self.draw(st.sampled_from(rows))

    def _answer(self, *, late: bool = False) -> Signal:
        row = self._row(late=late)
        outcome = self.draw(OUTCOMES)
        if isinstance(outcome, Succeeded) and self.draw(st.integers(0, 9)):
            expected = self.script.state.plan_of(row.step).artifacts
            outcome = Succeeded(result={"url": "u"}, artifacts=artifacts(expected))
        return OutcomeReported(
            effect_id=row.id, step=row.step, attempt=row.attempt, kind=row.kind, outcome=outcome
        )

    def _late(self) -> Signal:
        return self._answer(late=True)

    def _lapse(self) -> Signal:
        row = self._row(late=not self.draw(st.integers(0, 4)))
        opened = self.draw(st.booleans())
        where = {"effect_id": row.id, "step": row.step, "attempt": row.attempt, "kind": row.kind}
        if self.draw(st.booleans()):
            return LeaseExpired(**where, call_opened=opened, leases=5)
        return DeadlinePassed(**where, call_opened=opened)

    def _callback(self) -> Signal:
        row = self._row(late=self.draw(st.booleans()))
        return CallbackArrived(
            inbox_id=uuid.UUID(int=len(self.told)), step=row.step, attempt=row.attempt, external_ref=None
        )

    def _timer(self) -> Signal:
        key = self.draw(st.sampled_from(["run_deadline", "blocked_deadline", "settlement"]))
        if self.draw(st.booleans()) and key in self.script.timers:
            self.script.now = max(self.script.now, self.script.timers[key])
        return TimerFired(key=key)

    def _revision(self) -> int:
        current = self.script.state.revision
        return current if self.draw(st.integers(0, 3)) else self.draw(st.integers(0, current + 2))

    def _cancel(self) -> Signal:
        return CancelRun(command_id="c-2", actor="ann", expected_revision=self._revision())

    def _retry(self) -> Signal:
        steps = [None, *self.script.state.plan.position]
        return RetryRun(
            command_id="c-3",
            actor="ann",
            expected_revision=self._revision(),
            step=self.draw(st.sampled_from(steps)) if self.draw(st.booleans()) else None,
            accept_double_cost=self.draw(st.booleans()),
        )

    def _check(self) -> Signal:
        drift = ("/plan/steps/0", "the price stays") if self.draw(st.booleans()) else None
        return PlanChecked(signal_id=uuid.UUID(int=len(self.told)), application="app-2", drift=drift)

    def _crash(self) -> Signal:
        return ReducerFailed(causation="effect:1", error="boom")

    def _again(self) -> Signal:
        return self.draw(st.sampled_from(self.told)) if self.told else self._check()


def hold_laws(script: Script, decision: Decision, was_ended: str | None) -> None:
    """The laws of a run, after one decision."""
    state = script.state
    assert state.charged >= state.refunded >= 0
    assert state.charged - state.refunded <= state.cap
    charges = sum(entry.amount for entry in script.ledger if entry.kind == "charge")
    refunds = sum(entry.amount for entry in script.ledger if entry.kind == "refund")
    assert (charges, refunds) == (state.charged, state.refunded)
    assert len({entry.key for entry in script.ledger}) == len(script.ledger)

    if any(event.TYPE == "steps_scheduled" for event in decision.events):
        assert len(state.open) <= state.plan.plan.max_parallel

    if was_ended is not None:
        assert (was_ended, ()) == (state.ended, decision.events)
        assert () == decision.effects == decision.ledger
    if state.ended == "completed":
        assert all(step.status == "succeeded" for step in state.steps)
        assert 0 == state.refunded
    if state.ended == "failed":
        assert state.charged == state.refunded
    if state.ended is not None:
        assert not script.rows
        assert not state.ready and not state.results
    if state.ended is None and not state.open and state.ending is None:
        assert state.blockers, "a run that is neither at work nor blocked nor ended would wait for ever"
    if state.run_blockers:
        assert not [row for row in decision.effects if row.kind == "execute"]
    attempts: dict[str, int] = {}
    for event, _ in script.history:
        if event.TYPE == "steps_scheduled":
            for item in event.steps:
                assert item.attempt > attempts.get(item.step, 0)
                attempts[item.step] = item.attempt
    published = [event.step for event, _ in script.history if event.TYPE == "step_succeeded"]
    assert len(published) == len(set(published))


def advertised_is_accepted(script: Script) -> None:
    """Try every action on a copy of the state: taken if and only if it is offered."""
    revision = script.state.revision
    for action in ("cancel_generation", "retry_generation"):
        other = script.replayed()
        signal: Signal = (
            CancelRun(command_id="x", actor="bob", expected_revision=revision)
            if action == "cancel_generation"
            else RetryRun(command_id="x", actor="bob", expected_revision=revision)
        )
        accepted = decide(other, signal, script.now).refusal is None
        assert accepted == (action in available_actions(script.state)), action
        assert accepted == (action in script.summary.available_actions)


@promise("H36", "H59", "H76")
@settings(suppress_health_check=list(HealthCheck))
@given(st.data())
def test_laws_hold_for_any_sequence_of_facts(data: st.DataObject) -> None:
    world = World(data.draw)
    script = world.script
    script.accept()
    rows = {step.key: step_row(script.state, step.key) for step in script.plan.steps}
    for _ in range(data.draw(st.integers(1, 40))):
        script.wait(data.draw(st.sampled_from([0, 0, 1, 30, 400])))
        signal = world.signal()
        was_ended = script.state.ended
        before = script.state.revision
        stale = (
            isinstance(signal, OutcomeReported) and signal.attempt < script.state.step_of(signal.step).attempt
        )
        decision = script.tell(signal)
        world.told.append(signal)

        hold_laws(script, decision, was_ended)
        if decision.ignored or decision.refusal or stale:
            assert before == script.state.revision
        for key in decision.touched:
            rows[key] = step_row(script.state, key)
        assert rows == {step.key: step_row(script.state, step.key) for step in script.plan.steps}
        if isinstance(signal, OutcomeReported) and decision.ignored is None:
            repeated = decide(script.replayed(), signal, script.now)
            assert () == repeated.events, "a duplicate decided something"
            assert () == repeated.effects
    advertised_is_accepted(script)

    rebuilt = fold(
        script.state.run_id,
        "t",
        script.plan,
        [(decode_event(event.TYPE, event.VERSION, encode_event(event)), at) for event, at in script.history],
    )
    assert dump(rebuilt) == dump(script.state)
    assert run_row(rebuilt) == run_row(script.state)


@promise("H23")
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_same_facts_always_lead_to_the_same_decisions(data: st.DataObject) -> None:
    world = World(data.draw)
    world.script.accept()
    other = copy.deepcopy(world.script)
    for _ in range(10):
        signal = world.signal()
        other.now = world.script.now
        assert world.script.tell(signal) == other.tell(signal)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_run_whose_workers_answer_always_ends_or_asks(data: st.DataObject) -> None:
    """No run is left at work for ever: with an answer to everything, it ends or waits for a person."""
    world = World(data.draw)
    script = world.script
    script.accept()
    for _ in range(300):
        if not script.rows:
            break
        row = next(iter(script.rows.values()))
        outcome = data.draw(OUTCOMES.filter(lambda item: not isinstance(item, Pending)))
        if isinstance(outcome, Succeeded):
            outcome = Succeeded(
                result={"url": "u"}, artifacts=artifacts(script.state.plan_of(row.step).artifacts)
            )
        script.wait(1).report(row.step, outcome)
    else:
        pytest.fail("the run is still at work after 300 answers")
    assert script.state.terminal or script.state.blockers


def test_the_laws_see_a_state_that_its_history_does_not_leave() -> None:
    """The check of checks: a fold that forgets something is caught."""
    script = Script(one())
    script.accept()
    script.state.steps[0].polls = 7

    with pytest.raises(LawBroken, match="does not leave the live state"):
        script.call_back("a")


def test_the_laws_see_an_effect_that_the_state_forgot() -> None:
    script = Script(one())
    script.accept()
    script.rows.clear()

    with pytest.raises(LawBroken, match="open rows"):
        script.call_back("a")


def test_the_laws_see_a_lost_event() -> None:
    script = Script(one())
    script.accept()
    script.history.pop()

    with pytest.raises(LawBroken, match="number of events"):
        script.call_back("a")


def test_the_laws_see_an_effect_that_is_written_twice() -> None:
    script = Script(one())
    decision = script.accept()

    with pytest.raises(LawBroken, match="written twice"):
        script._keep(decision)


def test_the_laws_see_an_ignored_fact_with_events() -> None:
    script = Script(one())
    decision = script.accept()
    script.all_rows.clear()
    script.history.clear()
    with pytest.raises(LawBroken, match="ignored fact"):
        script._keep(msgspec.structs.replace(decision, ignored=Ignored(reason="x")))


def test_a_history_of_older_rules_folds_all_the_same() -> None:
    """A failure without a failed step before it is nothing that is decided today, and yet it can be read."""
    script = Script(one())
    script.accept()
    failed = RunFailed(error_class="timeout", origin="infrastructure", message="older rules")
    state = fold(script.state.run_id, "t", script.plan, [*script.history, (failed, script.now)])

    assert ("failed", "older rules") == (state.ended, summarize(state, now=script.now).failure.message)


def test_a_script_asked_for_an_unknown_step_says_so() -> None:
    with pytest.raises(KeyError, match="zz"):
        Script(one()).status("zz")


def test_artifacts_and_handlers_cover_every_event() -> None:
    assert set(EVENT_TYPES) == set(state_module.HANDLERS)
    assert isinstance(artifacts(one(artifacts=["c"]).steps[0].artifacts)[0], Artifact)
