"""The one step that people are told about, when several things go on at once."""

from longtake import Plan, at_least
from longtake.testing import given


def race() -> Plan:
    return (
        Plan()
        .step("slow", activity="a@1", label="The slow one")
        .step("fast", activity="a@1", label="The fast one")
        .step("first", activity="a@1", depends_on=["slow", "fast"], join=at_least(1), label="The first one")
        .input("choose", answer={"type": "object"}, depends_on=["first"], label="Choosing")
    )


def test_a_loser_that_is_still_at_work_is_not_what_people_are_told_about():
    run = given(race()).start()
    assert run.summary.label == "The slow one"

    run.succeed("fast")
    assert run.summary.label == "The first one"
    run.succeed("first")

    assert run.summary.current_step is not None and run.summary.current_step.key == "choose"
    assert run.summary.label.startswith("Choosing")


def test_when_only_a_loser_is_left_it_is_told_about():
    run = given(Plan(steps=race().steps[:3])).start().succeed("fast").succeed("first")

    assert (run.summary.status, run.summary.label) == ("running", "The slow one")
