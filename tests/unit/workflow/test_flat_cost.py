"""Cost per event does not grow with the run: counted, not timed (P17)."""

from datetime import timedelta
from typing import Any

import pytest

from kit.operations import watch, work
from longtake.contracts.outcomes import Failed, Submitted, Succeeded
from longtake.contracts.signals import OutcomeReported
from longtake.workflow import state as state_module
from longtake.workflow.plan import Plan, Step, compile_plan, group
from longtake.workflow.projection import run_row, step_row
from longtake.workflow.reducer import accept, decide
from longtake.workflow.script import FACTS, RUN, START
from longtake.workflow.state import RunState, initial

SMALL, LARGE = 100, 8000


def run(size: int) -> RunState:
    """A run of many steps side by side, a barrier behind them; few at work, with a long past and future."""
    plan = (
        Plan(max_parallel=8)
        .fan_out("g", range(size), lambda _, i: Step(f"s:{i}", activity="a@1", phase=f"p{i % 3}", price=1))
        .step("end", activity="b@1", depends_on=[group("g")])
    )
    state = initial(RUN, "t", compile_plan(plan))
    accept(state, FACTS, START)
    for number in range(1, size // 2):
        decide(state, report(state, f"s:{number}", Succeeded()), START)
    return watch(state)


def report(state: RunState, step: str, outcome: Any) -> OutcomeReported:
    found = state.step_of(step)
    assert found is not None and found.effect is not None
    effect = state.open[found.effect]
    return OutcomeReported(
        effect_id=found.effect, step=step, attempt=found.attempt, kind=effect.kind, outcome=outcome
    )


def one_of_each(state: RunState, size: int) -> dict[str, tuple[int, int]]:
    """What each kind of decision costs in the middle of the run."""
    base = size // 2
    costs = {}
    for name, number, outcome in (
        ("succeeded", 0, Succeeded(result={"x": 1})),
        ("failed", 1, Failed(error_class="transient", message="m")),
        ("blocked", 2, Failed(error_class="auth", message="m")),
        ("submitted", 3, Submitted(external_ref="j")),
    ):
        signal = report(state, f"s:{base + number}", outcome)
        costs[name] = work(lambda signal=signal: decide(state, signal, START + timedelta(seconds=1)))
    costs["run_row"] = work(lambda: run_row(state))
    costs["step_row"] = work(lambda: step_row(state, f"s:{base}"))
    return costs


def test_decisions_and_projections_cost_the_same_in_a_large_run() -> None:
    small, large = one_of_each(run(SMALL), SMALL), one_of_each(run(LARGE), LARGE)

    for name, (lines, reads) in large.items():
        assert lines <= small[name][0] * 1.1 + 20, name
        assert reads <= small[name][1] * 1.1 + 5, name


def test_the_count_sees_a_fold_that_looks_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken variant: a handler that sums over all steps does not pass."""
    handlers = state_module.HANDLERS
    event = next(item for item in handlers if item.TYPE == "step_succeeded")
    honest = handlers[event]

    def summing(state: RunState, event: Any, at: Any) -> None:
        honest(state, event, at)
        state.succeeded = sum(step.status == "succeeded" for step in state.steps)

    monkeypatch.setitem(handlers, event, summing)
    small, large = one_of_each(run(20), 20), one_of_each(run(200), 200)

    assert large["succeeded"][1] > small["succeeded"][1] * 1.1 + 5
