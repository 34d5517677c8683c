"""The table of joins: what the end of a dependency means for who waits for it, and for the run (design.md 6)."""

import itertools
import re
from pathlib import Path

import pytest

from kit.promises import promise
from longtake.contracts.outcomes import Cancelled
from longtake.workflow import joins
from longtake.workflow.conditions import condition
from longtake.workflow.plan import Plan, Retry, Step, at_least, group, ref
from longtake.workflow.script import Script

NO_RETRY = Retry(max_attempts=1)
ENDS = ("succeeded", "skipped", "failed-optional", "failed", "cancelled")
JOINS = ("all_succeeded", "all_terminal", "at_least")

TABLE = {
    ("succeeded", "all_succeeded"): ("run", "run"),
    ("succeeded", "all_terminal"): ("run", "run"),
    ("succeeded", "at_least"): ("run", "run"),
    ("skipped", "all_succeeded"): ("skip", "skip"),
    ("skipped", "all_terminal"): ("run", "run"),
    ("skipped", "at_least"): ("skip", "skip"),
    ("failed-optional", "all_succeeded"): ("fail", "skip"),
    ("failed-optional", "all_terminal"): ("run", "run"),
    ("failed-optional", "at_least"): ("fail", "skip"),
    ("failed", "all_succeeded"): ("fail", "skip"),
    ("failed", "all_terminal"): ("run", "run"),
    ("failed", "at_least"): ("fail", "skip"),
    ("cancelled", "all_succeeded"): ("fail", "skip"),
    ("cancelled", "all_terminal"): ("run", "run"),
    ("cancelled", "at_least"): ("fail", "skip"),
}
"""(end of the dependency, join) -> what a required and what an optional dependent does. docs/workflow.md shows the same."""


def join_of(name: str) -> object:
    return at_least(1) if name == "at_least" else name


def plan_of(end: str, join: str, *, optional: bool) -> Plan:
    """The dependency `a` ends as told; `d` waits for it; `x` bears everything, so that the run goes on past a failure."""
    when = None
    plan = Plan()
    if end == "skipped":
        plan = plan.step("seed", activity="s@1")
        when = condition("eq", ref("seed", "/result/go"), True)
    if end == "cancelled":
        # `a` loses a race that `winner` wins; `d` waits for it, and has no say in that.
        plan = plan.step("winner", activity="w@1")
    plan = plan.step(
        "a", activity="a@1", when=when, optional=end == "failed-optional", retry=NO_RETRY, on_exhausted="fail"
    )
    plan = plan.step("d", activity="d@1", depends_on=["a"], join=join_of(join), optional=optional)
    return plan.step("x", activity="x@1", depends_on=["a"], join="all_terminal")


def play(end: str, join: str, *, optional: bool) -> Script:
    script = Script(plan_of(end, join, optional=optional))
    script.accept()
    match end:
        case "succeeded":
            script.succeed("a")
        case "skipped":
            script.succeed("seed", go=False)
        case "failed" | "failed-optional":
            script.fail("a", "auth")
        case _:
            raise AssertionError(end)
    return script


@pytest.mark.parametrize(("end", "join"), [cell for cell in TABLE if cell[0] != "cancelled"])
@pytest.mark.parametrize("optional", [False, True], ids=["required", "optional"])
@promise("T34", "H12")
def test_the_table_of_joins(end: str, join: str, optional: bool) -> None:
    script = play(end, join, optional=optional)
    expected = TABLE[end, join][optional]

    assert (
        expected
        == {"queued": "run", "skipped": "skip", "failed": "fail", "cancelled": "fail"}[script.status("d")]
    )


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("optional", [False, True], ids=["required", "optional"])
def test_a_cancelled_dependency_counts_as_a_failed_one(join: str, optional: bool) -> None:
    """Only a loser can be cancelled while its run goes on, and a loser has nobody left who waits; so the verdict is asked."""
    script = Script(plan_of("cancelled", join, optional=optional))
    script.accept()
    position = script.state.plan.position["d"]
    script.state.steps[position].failures = 1

    assert TABLE["cancelled", join][optional] == joins.verdict(script.state, position)


def test_the_table_is_whole_and_stands_in_the_documentation() -> None:
    text = (Path(__file__).parents[3] / "docs" / "workflow.md").read_text()
    text = text.partition("## Joins")[2].partition("## Conditions")[0]
    rows = dict(
        re.findall(
            r"^\| (succeeded|skipped|failed, optional|failed|cancelled) +\| (.*) \|$", text, re.MULTILINE
        )
    )
    told = {
        (end, join): tuple(cell.strip().split(" / ")) if " / " in cell else (cell.strip(), cell.strip())
        for end in ENDS
        for join, cell in zip(JOINS, rows[end.replace("-", ", ")].split("|"), strict=True)
    }

    assert set(TABLE) == set(itertools.product(ENDS, JOINS))
    assert told == TABLE


def test_the_table_is_asked_of_the_code_and_not_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken variant: a join that skips where it must fail."""
    monkeypatch.setattr("longtake.workflow.ends.verdict", lambda state, index: "skip")

    with pytest.raises((AssertionError, LookupError)):
        test_the_table_of_joins("failed", "all_terminal", False)


# --- several dependencies -----------------------------------------------------------------------------------------------


def takes(count: int, need: int, **fields: object) -> Plan:
    return (
        Plan()
        .fan_out(
            "takes",
            range(count),
            lambda _, i: Step(f"take:{i}", activity="t@1", retry=NO_RETRY, on_exhausted="fail"),
        )
        .step(
            "cut",
            activity="cut@1",
            input={"takes": ref(group("takes"), "/result/n")},
            join=at_least(need),
            **fields,
        )
    )


def test_at_least_begins_at_its_successes_and_lets_the_others_go() -> None:
    script = Script(takes(4, 2))
    script.accept()
    script.succeed("take:3", n=3)
    decision = script.succeed("take:1", n=1)

    assert ("queued", "steps_abandoned") == (script.status("cut"), script.events[-2])
    # Nobody had claimed them: taken back, and answered by the store as stopped.
    assert {script.row("take:2").id, script.row("take:4").id} == set(decision.withdrawn)
    assert b'{"takes":[1,3]}' == script.row("cut").input


def test_losers_are_settled_before_the_run_completes() -> None:
    script = Script(takes(3, 1))
    script.accept()
    script.succeed("take:1", n=1)
    script.succeed("cut")

    assert "running" == script.summary.status
    script.report("take:2", Cancelled())
    script.report("take:3", Cancelled())
    assert ("completed", "cancelled", 100) == (
        script.summary.status,
        script.status("take:2"),
        script.summary.progress.percent,
    )


def test_a_loser_that_a_provider_holds_is_told_to_stop() -> None:
    script = Script(takes(2, 1))
    script.accept()
    script.submit("take:2", poll_after_seconds=5)
    script.succeed("take:1", n=1)

    assert ["cancel", "execute"] == sorted(row.kind for row in script.rows.values())
    script.report("take:2", Cancelled(answer="stopped"))
    script.succeed("cut")
    assert "completed" == script.summary.status


def test_a_loser_that_never_answers_counts_as_unknown_after_its_time() -> None:
    script = Script(takes(2, 1))
    script.accept()
    script.submit("take:2", poll_after_seconds=5)
    script.succeed("take:1", n=1)
    script.succeed("cut")
    script.fire("losers")

    assert ("completed", "cancelled") == (script.summary.status, script.status("take:2"))


def test_what_only_losers_wait_for_is_let_go_too() -> None:
    plan = (
        Plan()
        .step("fast", activity="f@1")
        .step("draft", activity="d@1")
        .step("slow", activity="s@1", depends_on=["draft"])
        .step("end", activity="e@1", depends_on=["fast", "slow"], join=at_least(1))
    )
    script = Script(plan)
    script.accept()
    script.succeed("fast")

    assert {"draft", "slow"} == set(script.history[-2][0].steps)


def test_what_others_still_wait_for_is_no_loser() -> None:
    plan = (
        Plan()
        .step("fast", activity="f@1")
        .step("slow", activity="s@1")
        .step("end", activity="e@1", depends_on=["fast", "slow"], join=at_least(1))
        .step("other", activity="o@1", depends_on=["slow"])
    )
    script = Script(plan)
    script.accept()
    script.succeed("fast")

    assert ("queued", "queued") == (script.status("slow"), script.status("end"))


def test_an_at_least_that_can_no_longer_be_met_fails_at_once() -> None:
    """Two of three are needed; the second failure decides, while the third is still at work."""
    script = Script(takes(3, 2))
    script.accept()
    script.fail("take:1", "auth")
    assert ("failed", "running") == (script.status("take:1"), script.summary.status)

    script.fail("take:2", "auth")
    assert script.state.ending is not None
    assert ("cancelling", "take:2") == (script.summary.status, script.state.ending.step)
    script.succeed("take:3", n=3)
    assert "failed" == script.summary.status


def test_an_optional_at_least_that_cannot_be_met_is_skipped_and_the_run_goes_on() -> None:
    plan = takes(2, 2, optional=True).step("end", activity="e@1", depends_on=["cut"], join="all_terminal")
    script = Script(plan)
    script.accept()
    script.fail("take:1", "auth")

    # Nobody bears the failure of a required take: the optional cut is skipped, and that is not enough.
    assert "cancelling" == script.summary.status


def test_a_required_failure_that_nobody_bears_fails_the_run_at_once() -> None:
    script = Script(
        Plan().step("a", activity="a@1", retry=NO_RETRY, on_exhausted="fail").step("b", activity="b@1")
    )
    script.accept()
    script.fail("a", "auth")

    assert "cancelling" == script.summary.status


def test_an_optional_failure_leaves_the_run_alone() -> None:
    script = Script(Plan().step("a", activity="a@1", retry=NO_RETRY, optional=True).step("b", activity="b@1"))
    script.accept()
    script.fail("a", "auth")
    script.succeed("b")

    assert ("completed", "failed", 2) == (
        script.summary.status,
        script.status("a"),
        script.summary.progress.completed,
    )


def test_a_failure_that_is_borne_lets_the_run_complete() -> None:
    plan = Plan().step("a", activity="a@1", retry=NO_RETRY, on_exhausted="fail")
    script = Script(
        plan.step("tidy", activity="t@1", input={"of": ref("a", "/result/x")}, join="all_terminal")
    )
    script.accept()
    script.fail("a", "auth")

    # What never came to be is null.
    assert b'{"of":null}' == script.row("tidy").input
    script.succeed("tidy")
    assert "completed" == script.summary.status


def test_a_run_whose_delivery_was_skipped_is_not_completed() -> None:
    plan = (
        Plan(delivers="film")
        .step("look", activity="l@1")
        .step("film", activity="f@1", when=condition("eq", ref("look", "/result/good"), True))
    )
    script = Script(plan)
    script.accept()
    script.succeed("look", good=False)

    assert ("failed", "skipped") == (script.summary.status, script.status("film"))
    assert "delivery" in script.summary.failure.message


def test_an_empty_group_holds_nobody_up() -> None:
    script = Script(Plan(groups=("none",)).step("end", activity="e@1", depends_on=[group("none")]))
    script.accept()

    assert "queued" == script.status("end")


def test_two_groups_in_a_row_need_no_product_of_edges() -> None:
    size = 300
    plan = (
        Plan(max_parallel=1000)
        .fan_out("one", range(size), lambda _, i: Step(f"a:{i}", activity="a@1"))
        .fan_out("two", range(size), lambda _, i: Step(f"b:{i}", activity="b@1", depends_on=(group("one"),)))
    )
    script = Script(plan)
    script.accept()
    compiled = script.state.plan

    assert size == sum(map(len, compiled.group_dependents.values()))
    assert 0 == sum(map(len, compiled.dependents))
