"""Laws that hold for every sequence of facts, in whatever order, doubled, late or out of place.

A world (kit/drawn_worlds.py) plays a run of any plan (kit/drawn_plans.py) at random: workers answer, fall silent, answer
late; providers call back; children end; people answer, pause, cancel, steer and retry; timers go off; deploys drift.
`Script` holds every decision to what a store relies on (replay equals live among it); here stand the laws of the run itself.
"""

import copy
import os
import uuid
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kit.drawn_plans import cheaper, plans
from kit.drawn_worlds import World
from kit.plans import FAST, film, one
from kit.promises import promise
from longtake.contracts.events import EVENT_TYPES, RunFailed
from longtake.contracts.outcomes import Artifact
from longtake.contracts.signals import (
    CancelRun,
    OutcomeReported,
    PauseRun,
    ProvideInput,
    ResumeRun,
    RetryRun,
    SendEvent,
    Signal,
    SupersedeRun,
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
from longtake.workflow.state import RunState, dump, fold
from longtake.workflow.summary import summarize

EXAMPLES = int(os.environ.get("LONGTAKE_LAWS", "150"))
DRAWN: dict[str, Any] = {
    "max_examples": EXAMPLES,
    "suppress_health_check": list(HealthCheck),
    # A counterexample is made small; why it is one is read off its facts, so no line is traced.
    "phases": (Phase.explicit, Phase.generate, Phase.shrink),
}

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


COMMANDED: dict[str, Any] = {"command_id": "x", "actor": "bob"}


def drawn_world(data: st.DataObject) -> World:
    """A world with a plan of the small pool, or with any plan there can be; its run is accepted."""
    if data.draw(st.integers(0, 3)):
        plan = data.draw(plans())
        cap = cheaper(data.draw, plan)
    else:
        plan, cap = data.draw(st.sampled_from(PLANS)), None
    world = World(data.draw, plan)
    world.accept(cap=cap)
    return world


def hold_laws(script: Script, decision: Decision, was_ended: str | None) -> None:
    """The laws of a run, after one decision."""
    state = script.state
    hold_money(script)
    hold_counters(state)
    if any(event.TYPE == "steps_scheduled" for event in decision.events):
        assert len(state.open) <= state.plan.plan.max_parallel
    owners = [row.step for row in script.rows.values()]
    assert len(owners) == len(set(owners)), "a step has two open effects"

    if was_ended is not None:
        assert (was_ended, ()) == (state.ended, decision.events)
        assert () == decision.effects == decision.ledger == decision.timers
    if state.ended == "completed":
        assert all(step.ended for step in state.steps)
        delivers = state.plan.plan.delivers
        assert delivers is None or script.status(delivers) == "succeeded"
    if state.ended is not None:
        assert not script.rows and not script.timers
        assert not state.ready and not state.ready_gates and not state.results and not state.gates
        assert not state.blockers and not state.buffered and not state.judged and not state.losers
    elif state.ending is None and not state.open:
        assert state.blockers or state.gates or state.queued or state.paused_at, "the run would wait for ever"
    elif state.ending is not None:
        assert state.open or state.gates, "the run would wait for nothing before it ends"
    if state.run_blockers or state.paused_at is not None or state.queued is not None:
        assert not [row for row in decision.effects if row.kind == "execute"]
    for key in state.blockers:
        assert key.startswith("*") or not state.steps[state.plan.position[key]].ended, key
    published = [event.step for event, _ in script.history if event.TYPE == "step_succeeded"]
    assert len(published) == len(set(published))
    hold_attempts(script)


def hold_money(script: Script) -> None:
    """No credit is made or lost: of the run, of its ledger, and of each settlement cycle."""
    state = script.state
    assert state.charged >= state.refunded >= 0
    assert state.charged - state.refunded <= min(state.cap, state.held)
    charges = {entry.key: entry for entry in script.ledger if entry.kind == "charge"}
    refunds = {entry.key: entry for entry in script.ledger if entry.kind == "refund"}
    assert len(charges) + len(refunds) == len(script.ledger), "a key was used twice"
    assert sum(entry.amount for entry in charges.values()) == state.charged
    assert sum(entry.amount for entry in refunds.values()) == state.refunded
    for key, entry in refunds.items():
        assert entry.amount <= charges[key.replace("refund:", "charge:", 1)].amount, key
    if state.billing == "pay_as_you_go":
        assert sum(step.charged for step in state.steps) <= state.charged - state.refunded
        for plan, step in zip(state.plan.steps, state.steps, strict=True):
            assert not (step.effect and step.attempt and plan.price) or step.cycle, "work without a charge"
    elif state.ended == "completed":
        assert 0 == state.refunded
    elif state.ended == "failed":
        assert state.charged == state.refunded


def hold_counters(state: RunState) -> None:
    """Every counter is what it counts."""
    ended = [step.ended for step in state.steps]
    assert sum(ended) == state.settled
    assert sum(step.abandoned for step in state.steps) == state.abandoned
    assert all(ended[: state.cursor]) and (state.cursor == len(ended) or not ended[state.cursor])
    assert sum(step.status == "succeeded" for step in state.steps) == state.succeeded
    assert sum(map(len, state.buffered.values())) == state.early
    for index in range(len(state.steps)):
        readers = sum(
            index in state.plan.sources[other] and not (ended[other] and not may_be_revived(state, other))
            for other in range(len(ended))
        )
        assert state.steps[index].readers == readers, state.plan.steps[index].key
        assert index not in state.results or readers, "a result is kept after its last reader"
        # A run on its way out tells nobody any more.
        assert state.ending is not None or counts(state, state.plan.needs[index]) == (
            state.steps[index].successes, state.steps[index].failures, state.steps[index].skips,
        )  # fmt: skip
    for name, where in state.plan.groups.items() if state.ending is None else ():
        group_state, fillers = state.groups[name], state.plan.fillers.get(name, ())
        missing = [index for index in fillers if ended[index] and state.steps[index].status != "succeeded"]
        members = counts(state, [*where, *missing])
        assert (group_state.successes, group_state.failures, group_state.skips) == members, name
        assert (group_state.total, group_state.open) == (
            len(where) + len(missing), sum(not ended[index] for index in fillers),
        )  # fmt: skip


def may_be_revived(state: RunState, index: int) -> bool:
    """Whether a person may try the ended step again, so that it still needs its input."""
    return state.plan.steps[index].optional and state.steps[index].status in ("failed", "timed_out")


def counts(state: RunState, where: Iterable[int]) -> tuple[int, int, int]:
    """(successes, failures, skips) among these steps, of those whose end was told."""
    found = [state.steps[index].status for index in where if state.steps[index].ended]
    successes, skips = found.count("succeeded"), found.count("skipped")
    return successes, len(found) - successes - skips, skips


def hold_attempts(script: Script) -> None:
    """Attempts of a step are dense, and an attempt that was taken back is the same attempt, not another."""
    made: dict[str, tuple[int, int]] = {}

    def begins(step: str, attempt: int, ordinal: int) -> None:
        before = made.get(step, (0, 0))
        assert (attempt, ordinal) in ((before[0] + 1, 1), (before[0], before[1] + 1)), (
            step,
            attempt,
            ordinal,
        )
        made[step] = (attempt, ordinal)

    for event, _ in script.history:
        if event.TYPE == "steps_scheduled":
            for item in event.steps:
                begins(item.step, item.attempt, item.ordinal)
        elif event.TYPE == "attempt_failed" and event.next_effect_id is not None:
            begins(event.step, event.attempt + 1, 1)
        elif event.TYPE == "gates_opened":
            for item in event.gates:
                begins(item.step, item.attempt, 1)


def hold_timers(script: Script, signal: Signal, decision: Decision, armed: dict[str, Any]) -> None:
    """A timer whose time has come means something; otherwise its row would be found due again and again."""
    if isinstance(signal, TimerFired) and signal.key in armed and armed[signal.key] <= script.now:
        reason = None if decision.ignored is None else decision.ignored.reason
        assert reason != "timer_not_due", f"{signal.key} was armed for this time and means nothing"


def advertised_is_accepted(script: Script) -> None:
    """Try every action on a copy of the state: taken if and only if it is offered."""
    offered = available_actions(script.state)
    assert offered == script.summary.available_actions
    seen: dict[str, Any] = {**COMMANDED, "expected_revision": script.state.revision}
    commands: dict[str, Signal] = {
        "cancel_generation": CancelRun(**seen),
        "retry_generation": RetryRun(**seen),
        "pause_generation": PauseRun(**seen),
        "resume_generation": ResumeRun(**seen),
        "steer_generation": SupersedeRun(**seen, by_run=uuid.UUID(int=3)),
    }
    state = script.state
    for action, signal in commands.items():
        accepted = decide(script.replayed(), signal, script.now).refusal is None
        if action == "retry_generation" and not accepted:  # not of all, but perhaps of one
            one_step = (RetryRun(**seen, step=key) for key in state.plan.position)
            accepted = any(decide(script.replayed(), item, script.now).refusal is None for item in one_step)
        assert accepted == (action in offered), action
    answers = [
        ProvideInput(**seen, step=state.plan.steps[index].key, answer={"take": 1})
        for index, gate in state.gates.items()
        if gate.kind == "input"
    ] + [
        ProvideInput(**seen, step=key, cap=10_000)
        for key, item in state.blockers.items()
        if item.type == "spend_cap"
    ]
    assert bool(answers and state.ending is None) == ("provide_generation_input" in offered)
    names = [
        plan.event
        for plan, step in zip(state.plan.steps, state.steps, strict=True)
        if plan.event and not step.ended
    ]
    if names:
        assert ("send_generation_event" in offered) == (state.ending is None)
    events = [SendEvent(**seen, name=str(name), payload={"url": "v", "score": 1}) for name in names]
    for signal in [*answers, *events] if state.ending is None else []:
        assert decide(script.replayed(), signal, script.now).refusal is None, signal


def play(world: World, signal: Signal) -> Decision:
    """Tell one fact and hold everything that must hold after it."""
    script = world.script
    was_ended, before, armed = script.state.ended, script.state.revision, dict(script.timers)
    decision = script.tell(signal)
    world.told.append(signal)
    hold_laws(script, decision, was_ended)
    hold_timers(script, signal, decision, armed)
    if (
        isinstance(signal, TimerFired)
        and decision.ignored is None
        and script.timers.get(signal.key) == armed.get(signal.key)
    ):
        script.timers.pop(signal.key, None)
    if decision.ignored or decision.refusal:
        assert before == script.state.revision
    if isinstance(signal, OutcomeReported) and decision.ignored is None:
        repeated = decide(script.replayed(), signal, script.now)
        assert () == repeated.events, "a duplicate decided something"
        assert () == repeated.effects
    return decision


@promise("H36", "H59", "H76")
@settings(**DRAWN)
@given(st.data())
def test_laws_hold_for_any_sequence_of_facts(data: st.DataObject) -> None:
    world = drawn_world(data)
    script = world.script
    hold_laws(script, script.decisions[0], None)
    rows = {step.key: step_row(script.state, step.key) for step in script.plan.steps}
    for _ in range(data.draw(st.integers(1, 40))):
        script.wait(data.draw(st.sampled_from([0, 0, 1, 30, 400])))
        if script.state.terminal and not data.draw(st.integers(0, 3)):
            break
        decision = play(world, world.signal())
        for key in decision.touched:
            rows[key] = step_row(script.state, key)
    assert rows == {step.key: step_row(script.state, step.key) for step in script.state.plan.steps}
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
@settings(**{**DRAWN, "max_examples": 50})
@given(st.data())
def test_the_same_facts_always_lead_to_the_same_decisions(data: st.DataObject) -> None:
    world = drawn_world(data)
    other = copy.deepcopy(world.script)
    for _ in range(10):
        signal = world.signal()
        other.now = world.script.now
        assert world.script.tell(signal) == other.tell(signal)


@promise("H90", "T43")
@settings(**DRAWN)
@given(st.data())
def test_a_run_that_is_answered_always_ends_or_asks(data: st.DataObject) -> None:
    """No run is left at work for ever: with an answer to everything, it ends or waits for a person; what it did is undone."""
    world = drawn_world(data)
    script = world.script
    for _ in range(data.draw(st.integers(0, 12))):
        play(world, world.signal())
    if script.state.paused_at is not None:
        play(world, ResumeRun(**COMMANDED, expected_revision=script.state.revision))
    for _ in range(400):
        signal = None if script.state.terminal else world.helpful()
        if signal is None or (script.state.blockers and not script.rows and not script.timers):
            break
        script.wait(1)
        play(world, signal)
    else:
        pytest.fail("the run is still at work after 400 answers")
    state = script.state
    assert state.terminal or state.blockers
    if state.ended in ("failed", "cancelled", "superseded"):
        undone = [
            step.compensation
            for plan, step in zip(state.plan.steps, state.steps, strict=True)
            if plan.compensate is not None and step.status == "succeeded" and step.reused is None
        ]
        assert set(undone) <= {"done", "failed"}


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
