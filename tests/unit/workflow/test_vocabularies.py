"""The closed sets of the mission: what may be said, by whom, and what it leads to."""

import re
import uuid
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from kit.plans import film, free, one
from kit.promises import promise
from longtake.contracts.command_table import TABLE, CommandKind
from longtake.contracts.commands import Command, CommandStatus
from longtake.contracts.effects import EffectKind
from longtake.contracts.ids import effect_id_for
from longtake.contracts.outcomes import RETRYABLE, Cancelled, ErrorClass, Failed, decode_outcome
from longtake.contracts.signals import Signal
from longtake.contracts.summary import Action, RunStatus
from longtake.engine.commands import read_command
from longtake.errors import Refused
from longtake.workflow.plan import Plan, Retry, Step, compile_plan
from longtake.workflow.reducer import decide
from longtake.workflow.run_state import STEP_ENDED, StepStatus
from longtake.workflow.script import RUN, START, Script

MISSION_KINDS = {"new_turn", "follow_up", "steer", "retry", "cancel", "generation", "utility", "export"}


def started(plan: Plan | None = None) -> Script:
    script = Script(plan or one())
    script.accept()
    return script


# --- commands -----------------------------------------------------------------------------------------------------------


CONTROL_KINDS = {"provide_input", "pause", "resume", "send_event", "fork"}


@promise("G15")
def test_command_kinds_are_the_missions_set_with_those_for_control_and_no_other_is_read() -> None:
    assert MISSION_KINDS | CONTROL_KINDS == set(get_args(CommandKind)) == set(TABLE)
    for kind in ("Generation", "start", ""):
        with pytest.raises(Refused) as refused:
            read_command(msgspec.json.encode({"kind": kind, "project": "p"}), key="k")
        assert ("invalid-command", "/kind") == (
            refused.value.problem.slug,
            refused.value.problem.errors[0].pointer,
        )


@promise("G15", "H59")
def test_only_actions_that_a_command_can_carry_out_are_ever_advertised() -> None:
    assert {row.action for row in TABLE.values() if row.needs_run} == set(get_args(Action))


@promise("G16")
def test_command_states_are_those_of_the_mission_and_the_refusal() -> None:
    mission = "accepted attached scheduled running applied completed failed cancelled superseded"

    assert {*mission.split(), "rejected"} == set(get_args(CommandStatus))
    # A generation is what its run is, so its ends are those of a run.
    assert {"completed", "failed", "cancelled", "superseded"} <= set(get_args(RunStatus))


# --- signals and effects ------------------------------------------------------------------------------------------------

SIGNALS = {
    "activity_succeeded, activity_failed": "OutcomeReported",
    "external_callback_received": "CallbackArrived",
    "lease_expired": "LeaseExpired",
    "retry_run": "RetryRun",
    "cancel_run": "CancelRun",
    "provide_input": "ProvideInput",
    "pause, resume, named events": "PauseRun ResumeRun SendEvent",
    "a successor, a beginning, relatives": "SupersedeRun BeginRun MakeRoom ChildEnded ChildRefused ParentClosed",
    "deadlines, timers, stalls": "DeadlinePassed TimerFired WorkStalled",
    "deploys and defects": "PlanChecked ReducerFailed",
}
"""The mission's words and ours; `start_run` is `accept`."""


@promise("H21")
def test_signals_are_a_closed_set_and_a_stranger_is_no_decision() -> None:
    ours = {name for names in SIGNALS.values() for name in names.split()}
    assert ours == {kind.__name__ for kind in get_args(Signal)}

    with pytest.raises(AssertionError):
        decide(started().state, Command(kind="cancel", project="p"), START)  # type: ignore[arg-type]  # that is the point


@promise("H28")
def test_everything_outside_is_one_of_five_kinds_of_effect_and_each_is_a_row() -> None:
    """A provider call, a look at it, a look-up of it, its cancel and what undoes it; the table takes no other kind."""
    script = started(
        Plan(
            steps=tuple(
                msgspec.structs.replace(step, cancellable=True, compensate="undo@1") for step in one().steps
            )
        )
    )
    script.submit("a", poll_after_seconds=5)
    script.pass_deadline("a")
    script.submit("a", adopted=True)
    script.cancel()
    script.report("a", Cancelled(answer="too_late"))
    kinds = {row.kind for row in script.all_rows.values()}
    ddl = (Path(__file__).parents[3] / "migrations" / "0005_families.sql").read_text()
    checked = re.search(r"check \(kind in \(([^)]*)\)\)", ddl)

    assert set(get_args(EffectKind)) == kinds == {"execute", "poll", "reconcile", "cancel", "compensate"}
    assert checked is not None and set(re.findall(r"'(\w+)'", checked[1])) == kinds


@promise("G43")
def test_steps_pass_through_the_states_of_the_mission() -> None:
    """Ready, queued, retry scheduled, external, reconciling, blocked, and each kind of end; leased is read off the row."""
    seen = set()

    def note(script: Script) -> Script:
        seen.update(step.status for step in script.state.steps)
        return script

    note(started(film(3, max_parallel=1)))
    script = note(started())
    script.fail("a")
    note(script)
    script.submit("a")
    note(script).pass_deadline("a")
    note(script).succeed("a")
    note(script)
    script = started()
    script.fail("a", "auth")
    note(script).cancel()
    note(script)
    script = started(free(on_exhausted="fail"))
    script.fail("a", "auth")
    note(script)
    gates = Plan().sleep("s", seconds=1).input("i", answer={"type": "object"})
    gates = gates.wait("w", event="e", timeout_seconds=9, on_timeout="fail", optional=True)
    script = started(gates.step("x", activity="x@1", depends_on=["w"], optional=True))
    note(script).fire("step:w")
    note(script)

    assert set(get_args(StepStatus)) == seen
    assert {"succeeded", "failed", "timed_out", "skipped", "cancelled"} == STEP_ENDED


# --- failures -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error_class", get_args(ErrorClass))
@promise("W49", "T43")
def test_a_failure_is_classified_by_data_that_crossed_a_process_and_by_nothing_else(error_class: str) -> None:
    """What is tried again follows from a word in stored bytes; no exception and no identity has to survive."""
    said = Failed(error_class=error_class, message="m")  # type: ignore[arg-type]  # a word of the set it is drawn from
    read = decode_outcome(msgspec.json.encode(said))
    script = started(free(on_exhausted="fail"))
    script.report("a", read)

    assert read is not said
    assert (error_class in RETRYABLE) == (script.status("a") == "retry_scheduled")
    with pytest.raises(msgspec.ValidationError):
        decode_outcome(msgspec.json.encode(said).replace(error_class.encode(), b"my_own_error"))


@promise("T43")
def test_a_step_has_its_classes_its_timeout_its_waits_and_what_is_given_back_and_a_run_its_deadline() -> None:
    plan = Plan(deadline_seconds=500).step(
        "a",
        activity="a@1",
        price=4,
        retry=Retry(max_attempts=2),
        timeout_seconds=30,
        external_seconds_max=90,
        on_exhausted="fail",
    )
    script = Script(plan)
    accepted = script.accept()
    assert (30, {"run_deadline": 500}) == (
        (accepted.effects[0].deadline - START).seconds,
        {key: (due - START).seconds for key, due in script.timers.items()},
    )
    script.submit("a", external_seconds_max=1000)
    assert 90 == (script.state.steps[0].external_until - script.now).seconds
    script.fail("a")
    script.wait(60).fail("a")
    assert [("charge", 4), ("refund", 4)] == [(entry.kind, entry.amount) for entry in script.ledger]


@promise("G42")
def test_a_wait_that_goes_on_too_long_is_blocked_and_asks_no_more() -> None:
    """The provider lets its whole time pass, is found still at it, and lets it pass again."""
    script = started()
    script.submit("a", "job-1", poll_after_seconds=1)
    script.pass_deadline("a")
    script.submit("a", "job-1")
    script.pass_deadline("a")
    script.submit("a", "job-1")

    assert ("blocked", {}) == (script.status("a"), script.rows)
    assert "blocked" == script.summary.status
    assert len(script.all_rows) < 8, "a wait is a few rows, never thousands"


@promise("T22")
def test_what_the_provider_accepted_is_not_yet_delivered() -> None:
    """Accepted, called back about, polled: nothing is published and nothing is done before its result is applied."""
    script = started(one(artifacts=["clip"]))
    for decision in (script.submit("a", poll_after_seconds=1), script.call_back("a")):
        assert () == decision.artifacts
    assert ("running", 0) == (script.summary.status, script.summary.progress.completed)

    published = script.succeed("a")
    again = script.report("a", decode_outcome(b'{"outcome":"succeeded"}'), kind="execute")

    assert [("a", "clip")] == [(item.step, item.artifact.name) for item in published.artifacts]
    assert () == again.artifacts
    assert "completed" == script.summary.status


# --- identity -----------------------------------------------------------------------------------------------------------


@promise("T39")
def test_a_step_is_known_by_its_key_whatever_it_is_called_and_wherever_it_stands() -> None:
    """Titles and order of the builder leave every id as it was; another key is another step."""

    def effects(*steps: Step) -> dict[str, uuid.UUID]:
        script = Script(Plan(steps=steps))
        return {row.step: row.id for row in script.accept().effects}

    a, b = Step("a", activity="x@1", label="First"), Step("b", activity="x@1", label="Second")
    renamed = msgspec.structs.replace(a, label="Something else", phase="other")

    assert effects(a, b) == effects(b, renamed)
    assert effects(a)["a"] == effect_id_for(RUN, step="a", attempt=1, kind="execute", ordinal=1)
    assert effects(msgspec.structs.replace(a, key="c"))["c"] != effects(a)["a"]


@promise("T34")
def test_the_members_of_a_fan_out_keep_their_identity_over_a_recovery() -> None:
    """The plan is rebuilt from its stored form and the state from events: the same children, the same effects."""
    script = started(film(4))
    script.succeed("scene:2")
    again = compile_plan(Plan(**{name: getattr(script.plan, name) for name in Plan.__struct_fields__}))

    assert [step.key for step in again.steps] == [step.key for step in script.state.plan.steps]
    assert again.groups == script.state.plan.groups
    assert {row.step: row.id for row in script.all_rows.values()} == {
        step: effect_id_for(RUN, step=step, attempt=1, kind="execute", ordinal=1)
        for step in ("scene:1", "scene:2", "scene:3", "scene:4", "voice")
    }
