"""What a run waits for, in words, with the command line that ends the waiting."""

import pytest

from longtake import Plan
from longtake.cli.ways_out import gates_told, ways_out
from longtake.client import StepNow
from longtake.contracts.summary import Summary
from longtake.testing import given


def step(key: str, status: str, **fields: object) -> StepNow:
    known = {"key": key, "ordinal": 0, "phase": "main", "label": key, "activity": "", "group": None, "price": 0,
             "status": status, "attempt": 1, "max_attempts": 3, "progress": None, "worker": None, "external_ref": None,
             "error_class": None, "error_message": None, "provider_cost": None, "artifacts": [], "started_at": None,
             "updated_seq": 1, "attempts": []}  # fmt: skip
    return StepNow(**{**known, **fields})  # type: ignore[arg-type]  # one shape for all cases


def lines(summary: Summary, *steps: StepNow) -> list[str | None]:
    return [way.command for way in ways_out(summary, steps)]


CHOICE = {"type": "object"}


def test_a_question_shows_its_schema_and_the_line_that_answers_it():
    run = given(Plan().input("choose", answer=CHOICE, label="Choosing")).start()
    (way,) = ways_out(run.summary, [step("choose", "needs_input", kind="input", answer=CHOICE)])

    assert (way.word, way.command) == (
        "asks",
        f"longtake run input {run.summary.run_id} choose --answer ANSWER.json",
    )
    assert way.what == 'input_required at choose: Choosing, {"type":"object"}'


def test_a_wait_names_its_event_and_a_blocked_step_its_retry():
    run = given(
        Plan().wait("released", event="go").step("make", activity="a@1", on_exhausted="block")
    ).start()
    run.fail("make", "invalid_input")
    id_ = run.summary.run_id

    told = lines(run.summary, step("released", "waiting_event", kind="wait", event="go"))
    assert told == [f"longtake run retry {id_} --step make", f"longtake run event {id_} go"]


def test_a_run_that_does_not_offer_it_shows_no_line():
    """The lines follow the summary: an ended run has none, whatever its steps look like."""
    run = given(Plan().step("make", activity="a@1")).start()
    run.succeed("make")

    assert lines(run.summary, step("late", "waiting_event", kind="wait", event="go")) == [None]


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        ({"step": "choose", "kind": "input"}, "choose asks a person"),
        (
            {"step": "rest", "kind": "sleep", "until": "2026-11-30T23:26:38.766688Z"},
            "rest sleeps until 23:26:38",
        ),
        ({"step": "go", "kind": "wait"}, "go waits for the event 'released'"),
        ({"step": "other", "kind": "wait"}, "other waits for an event"),
        ({"step": "film", "kind": "run", "child": "c1"}, "film waits for run c1"),
    ],
)
def test_an_opened_gate_says_what_it_waits_for(gate, told):
    assert gates_told([gate], {"go": "released"}) == told
