"""Small worlds, walked to their last state: no promise breaks, everything comes to an end, and what is planted is found."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from kit.promises import promise
from longtake.contracts.signals import OutcomeReported
from longtake.engine.deciding import LiveRun, commit_of
from longtake.memory import Defences, MemoryAdmission
from longtake.store import Fact, RunCommit
from longtake.testing.exhaustive import Report, explore
from longtake.testing.exhaustive_machine import Broken, Machine
from longtake.testing.exhaustive_moves import Move, Moves
from longtake.testing.exhaustive_worlds import ROUNDS, SETTINGS, Budget, Setting, settings_of
from longtake.workflow import actions, controlling, outcomes, pausing


def _world(name: str, *, wishes: bool = True, **budget: int) -> Setting:
    found = next(setting for setting in SETTINGS if setting.name == name)
    return msgspec.structs.replace(found, budget=Budget(**budget), wishes=found.wishes if wishes else ())


def _walk(*args: Any, **options: Any) -> Report:
    report = explore(*args, **{"states_max": 6000, **options})
    print(report.line)
    return report


# --- what holds ----------------------------------------------------------------------------------------------------------


@promise("H76")
@pytest.mark.parametrize("name", ["approval", "blind"])
def test_a_world_with_a_crash_anywhere_is_walked_to_its_last_state_and_keeps_every_promise(name: str) -> None:
    """Two workers, two commands, one crash at any act; from every state fair acts lead to an end or to a person."""
    report = _walk(next(setting for setting in settings_of("crash") if setting.name.startswith(name)))
    assert not report.faults, report.faults[0]
    assert report.complete
    assert report.states > 2500
    assert report.ends > 50


def test_everything_at_once_keeps_every_promise_as_far_as_it_is_walked() -> None:
    """One crash, one duplicate, one callback, one lost answer, one failure, one moment too soon: a first part of it."""
    (first, *_) = settings_of("all")
    report = _walk(first, states_max=1500)
    assert not report.faults, report.faults[0]
    assert report.states >= 1500


def test_a_walk_is_the_same_twice() -> None:
    """What is counted depends on nothing but the code."""
    world = _world("undo", wishes=False, callback=1)
    one, two = (msgspec.structs.replace(_walk(world), seconds=0.0) for _ in range(2))
    assert one == two
    assert one.complete


def test_every_round_can_be_walked_in_every_world() -> None:
    assert {f"{setting.name}, {name}" for setting in SETTINGS for name in ROUNDS} == {
        setting.name for name in ROUNDS for setting in settings_of(name)
    }


def test_a_fault_is_told_with_the_shortest_way_to_it() -> None:
    report = _walk(_world("approval", trouble=1), defences=Defences(lease_expiry=False))
    told = str(report.faults[0])
    assert told.startswith("I14: ")
    assert "  1 w0 claims" in told


def _after(world: Setting, labels: Sequence[str]) -> Iterator[Move]:
    """What may happen when these acts have happened."""
    machine = Machine(world)
    node, moves = machine.genesis(), Moves(machine)
    for label in labels:
        node = next(move.node for move in moves.of(node) if move.label == label)
    return moves.of(node)


POLLED = (
    "w0 claims execute make/1", "w0 opens the call of execute make/1", "w0 execute make/1: taken",
    "w0 reports execute make/1 Submitted", "decides effect execute make/1", "the provider ends make/1: done",
    "time passes: due", "the relay publishes", "w0 claims poll make/1", "w0 poll make/1: done",
    "w0 reports poll make/1 Succeeded",
)  # fmt: skip


def test_a_cancel_is_taken_although_what_it_ends_was_answered_and_nobody_has_decided_that() -> None:
    """The answer is decided first, in the same transaction: the step has succeeded, and the run is cancelled."""
    [cancelled] = [
        move.node for move in _after(_world("approval"), POLLED) if move.label == "somebody says cancel"
    ]
    [run_id] = cancelled.tables.runs
    types = [event.type for event in cancelled.tables.events[run_id]]

    assert cancelled.tables.runs[run_id].status in ("cancelling", "cancelled")
    assert types.index("step_succeeded") < types.index("cancel_requested")


def test_a_cancel_that_hears_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def deaf(self: MemoryAdmission, effects: Sequence[uuid.UUID]) -> list[Fact]:
        return []

    monkeypatch.setattr(MemoryAdmission, "answers", deaf)
    with pytest.raises(Broken, match="P3: cancel is offered and refused"):
        list(_after(_world("approval"), POLLED))


# --- what is planted ------------------------------------------------------------------------------------------------------


def _any_attempt(run: LiveRun, facts: Sequence[Fact], *, traceparent: str | None) -> RunCommit:
    """A reducer that takes the outcome of a closed attempt for one of the current attempt."""
    taken = []
    for fact in facts:
        signal = fact.signal
        step = run.state.step_of(signal.step) if isinstance(signal, OutcomeReported) else None
        if isinstance(signal, OutcomeReported) and step is not None and step.attempt != signal.attempt:
            signal = msgspec.structs.replace(
                signal, attempt=step.attempt, effect_id=step.effect or signal.effect_id, kind="execute"
            )
        taken.append(msgspec.structs.replace(fact, signal=signal))
    return commit_of(run, taken, traceparent=traceparent)


def test_a_reducer_that_applies_the_outcome_of_a_closed_attempt_is_found() -> None:
    report = _walk(
        _world("approval", wishes=False, trouble=1, haste=1), decide=_any_attempt, states_max=20_000
    )
    assert report.faults
    assert report.faults[0].invariant in ("I15", "I17", "F56")


@pytest.mark.parametrize(
    ("defence", "world", "budget", "found"),
    [
        ("claim_fence", "approval", {"trouble": 1}, {"I16", "I25"}),
        ("claim_state", "approval", {"duplicate": 1}, {"I16", "I25"}),
        ("run_lock", "two branches", {"trouble": 1}, {"I1", "F56", "P21"}),
        ("lease_expiry", "approval", {"trouble": 1}, {"I14", "I35"}),
        ("call_opened_asks", "approval", {"trouble": 1}, {"I25"}),
        ("torn_check", "approval", {"trouble": 1, "haste": 1}, {"P1"}),
    ],
)
def test_a_rule_of_the_rows_that_is_missing_is_found(
    defence: str, world: str, budget: dict[str, int], found: set[str]
) -> None:
    report = _walk(
        _world(world, wishes=False, **budget), defences=Defences(**{defence: False}), states_max=20_000
    )
    assert report.faults, f"nobody missed {defence}"
    assert report.faults[0].invariant in found, report.faults[0]


def test_an_unknown_outcome_that_is_tried_again_at_once_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks the request up before the next attempt: the provider may do it twice."""

    def give_up(draft: Any, key: str, evidence: str, work: Any, **_: Any) -> Any:
        failure = outcomes.AttemptFailure(
            error_class="unknown", origin="provider", message=evidence, retryable=True
        )
        return outcomes.fail(draft, key, failure, work)

    monkeypatch.setattr(outcomes, "look", give_up)
    report = _walk(_world("approval", wishes=False, lost=1))
    assert report.faults
    assert report.faults[0].invariant == "I25"
    assert "taken, no answer" in str(report.faults[0])


def test_a_command_that_is_never_stale_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fresh(state: Any, action: Any, *, expected_revision: int, **rest: Any) -> Any:
        return actions.refusal(state, action, expected_revision=state.revision, **rest)

    for module in (controlling, pausing):
        monkeypatch.setattr(module, "refusal", fresh)
    report = _walk(_world("pause", wishes=False))
    assert report.faults
    assert report.faults[0].invariant == "I11"


def test_an_offer_that_is_refused_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(state: Any, action: Any, **rest: Any) -> Any:
        told = {**rest, "expected_revision": 0}
        return actions.refusal(state, action, **told)

    monkeypatch.setattr(pausing, "refusal", never)
    report = _walk(_world("pause", wishes=False))
    assert report.faults
    assert report.faults[0].invariant == "P3"
