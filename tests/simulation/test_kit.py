"""The public test kit: a run played by hand, and a user's workflow simulated under faults."""

from collections.abc import Mapping
from typing import Any

import pytest

from kit.promises import promise
from longtake import App, Plan
from longtake.errors import Refused
from longtake.testing import PromiseBroken, Script, given, simulate
from longtake.testing import users as kit
from longtake.workflow.refs import ref

ANSWER = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def film() -> Plan:
    """A shot, a person who approves it, a cut."""
    return (
        Plan()
        .step("shoot", activity="film.shoot@1", price=5, artifacts=("clip",), compensate="film.discard@1")
        .input("approve", answer=ANSWER, depends_on=("shoot",))
        .step("cut", activity="film.cut@1", depends_on=("approve",), input={"clip": ref("shoot", "/artifacts/clip/object_key")})
    )  # fmt: skip


def app() -> App:
    from longtake import Activity, Call, Outcome, Succeeded

    class Shoot(Activity):
        name = "film.shoot@1"
        paid = True

        async def execute(self, call: Call) -> Outcome:
            return Succeeded()

    made = App("film")

    @made.workflow("film", version=1)
    def build(input: Any, policy: Mapping[str, Any]) -> Plan:
        return film()

    made.add(Shoot())
    made.activity("film.cut@1")(_nothing)
    made.activity("film.discard@1")(_nothing)
    return made


async def _nothing(call: Any) -> None:
    return None


def test_a_run_is_played_by_hand_from_its_start_to_its_end() -> None:
    run = given(film()).start()
    assert run.waiting_for == ("shoot",)
    run.succeed("shoot")
    assert run.summary.status == "needs_input"
    run.answer("approve", {"ok": True}).succeed("cut")
    assert run.summary.status == "completed"
    assert run.summary.cost.net_credits == 5
    assert isinstance(run, Script)


def test_an_answer_that_the_gate_does_not_take_is_refused_and_changes_nothing() -> None:
    run = given(film()).start().succeed("shoot")
    before = run.state.revision
    with pytest.raises(Refused):
        run.answer("approve", {"ok": "perhaps"})
    assert run.state.revision == before


def test_a_paused_run_hands_out_nothing_until_it_is_resumed() -> None:
    run = given(film()).start().pause().succeed("shoot")
    assert run.waiting_for == ()
    assert run.resume().answer("approve", {"ok": True}).waiting_for == ("cut",)


@promise("H76")
def test_a_users_workflow_comes_to_its_end_under_faults() -> None:
    report = simulate(app(), "film@1", {}, answers={"approve": {"ok": True}}, seeds=range(12))
    assert report.seeds == 12
    assert report.statuses.get("completed", 0) >= 6
    assert report.faults, "things went wrong on the way"


def test_a_broken_promise_is_raised_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    from longtake.testing.ablations import ABLATIONS
    from longtake.testing.simulation import play

    experiment = next(ablation.experiment for ablation in ABLATIONS if ablation.name == "derived tokens")
    monkeypatch.setattr(kit, "play", lambda seed, **rest: play(seed, experiment=experiment, **rest))
    with pytest.raises(PromiseBroken, match=r"seed \d+ breaks"):
        simulate(app(), "film@1", {}, answers={"approve": {"ok": True}}, seeds=range(5))


def test_a_workflow_that_nobody_registered_is_refused_at_once() -> None:
    with pytest.raises(Refused):
        simulate(app(), "film@2", {}, seeds=range(1))
