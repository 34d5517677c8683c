"""A run of ten thousand steps costs no more a step than one of ten, from its acceptance to its end: counted, not timed.

Every fact is decided alone, through the function that the dispatcher commits with, its events sealed and its rows made.
"""

import uuid
from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from kit.operations import watch, work
from kit.promises import promise
from longtake.contracts.outcomes import Failed, Succeeded
from longtake.contracts.signals import (
    ChildEnded,
    OutcomeReported,
    ProvideInput,
    SendEvent,
    Signal,
    TimerFired,
)
from longtake.engine.deciding import LiveRun, add_decision, commit_of, empty_commit, finish
from longtake.engine.history import Head
from longtake.store import Fact, RunCommit
from longtake.workflow import state as state_module
from longtake.workflow.plan import Plan, Retry, Step, at_least, compile_plan, group, ref
from longtake.workflow.reducer import accept
from longtake.workflow.script import FACTS, RUN, START
from longtake.workflow.state import RunState, initial

SMALL, LONG, LARGE = 10, 2_000, 10_000
RATIO_MAX = 1.2
ONCE = Retry(max_attempts=1)
ASK = {"type": "object"}


def fan_out(size: int) -> Plan:
    """All steps side by side, and one that reads them all."""
    return (
        Plan(max_parallel=4)
        .fan_out(
            "g", range(size - 1), lambda _, i: Step(f"s:{i}", activity="a@1", price=1, phase=f"p{i % 3}")
        )
        .step("end", activity="b@1", input={"all": ref(group("g"), "/result/n")})
    )


def chain(size: int) -> Plan:
    """Each step refers to the one before it, and can be undone."""
    steps = [Step("s:0", activity="a@1", compensate="undo@1")]
    for number in range(1, size):
        steps.append(
            Step(
                f"s:{number}",
                activity="a@1",
                input={"n": ref(f"s:{number - 1}", "/result/n")},
                compensate="undo@1",
            )
        )
    return Plan(steps=tuple(steps))


def gates(size: int) -> Plan:
    """Waits, sleeps and child runs that stand open together; one that stands first is the last to end."""
    steps = [Step("w:0", kind="wait", event="last")]
    for number in range(1, size):
        kind = number % 3
        steps.append(
            Step(f"w:{number}", kind="wait", event=f"e:{number}", timeout_seconds=10**6)
            if kind == 0
            else Step(f"w:{number}", kind="sleep", seconds=number)
            if kind == 1
            else Step(f"w:{number}", kind="run", workflow="child@1")
        )
    return Plan(steps=tuple(steps))


def inputs(size: int) -> Plan:
    """One question after the other."""
    return Plan(
        steps=tuple(
            Step(f"q:{number}", kind="input", answer=ASK, depends_on=(f"q:{number - 1}",) if number else ())
            for number in range(size)
        )
    )


def mixed_joins(size: int) -> Plan:
    """Fives of: two tries, of which one fails, the first success, what bears a failure, and what is skipped by it."""
    steps: list[Step] = []
    for number in range(0, size, 5):
        one, two, any_, all_, skipped = (
            f"{name}:{number}" for name in ("one", "two", "any", "all", "skipped")
        )
        steps += [
            Step(one, activity="fails@1", optional=True, retry=ONCE),
            Step(two, activity="a@1"),
            Step(any_, activity="a@1", depends_on=(one, two), join=at_least(1)),
            Step(all_, activity="a@1", depends_on=(one, two), join="all_terminal"),
            Step(skipped, activity="a@1", depends_on=(one,), optional=True),
        ]
    return Plan(max_parallel=4, steps=tuple(steps))


def contained(size: int) -> Plan:
    """One failure that every other step waits for, and one that bears what comes of it."""
    return (
        Plan(max_parallel=4)
        .step("one", activity="fails@1", optional=True, retry=ONCE)
        .fan_out("g", range(size - 2), lambda _, i: Step(f"s:{i}", activity="a@1", depends_on=("one",)))
        .step("end", activity="b@1", depends_on=[group("g")], join="all_terminal")
    )


def pay_as_you_go(size: int) -> Plan:
    """Each step is charged when it begins; a third of them fail and are given back."""
    return Plan(
        max_parallel=4,
        billing="pay_as_you_go",
        steps=tuple(
            Step(
                f"s:{number}", activity="fails@1" if number % 3 == 0 else "a@1", price=2, optional=True, retry=ONCE,
                on_exhausted="fail",
            )
            for number in range(size)
        ),
    )  # fmt: skip


def undone(size: int) -> Plan:
    """A chain whose last step fails, so that everything before it is undone, the last first."""
    steps = chain(size).steps
    return Plan(
        steps=(*steps[:-1], Step("last", activity="fails@1", depends_on=(steps[-2].key,), retry=ONCE))
    )


class Played:
    """One run, played to its end with one fact a commit."""

    def __init__(self, plan: Plan) -> None:
        self.state = watch(initial(RUN, "t", compile_plan(plan)))
        head = Head(run_id=RUN, tenant="t", store_epoch=1, seq=0, hash=b"", actor="ann", correlation="c-1")
        self.run = LiveRun(state=self.state, head=head)
        self.now: datetime = START
        self.rows: deque[Any] = deque()
        self.timers: dict[str, datetime] = {}
        self.children: deque[Any] = deque()
        self.decided = 0

    def to_the_end(self) -> None:
        decision = accept(self.state, FACTS, self.now)
        commit = empty_commit(self.run, traceparent=None)
        add_decision(commit, self.run, decision, causation="command:c-1", traceparent=None, now=self.now)
        self._take(finish(commit, self.run, dict.fromkeys(decision.touched)))
        while not self.state.terminal:
            signal = self._next()
            fact = Fact(
                run_id=RUN, tenant="t", signal=signal, causation=f"fact:{self.decided}", traceparent=None,
                revision=self.state.revision, plan_checked="app", application="app", now=self.now,
            )  # fmt: skip
            self._take(commit_of(self.run, [fact]))

    def _take(self, commit: RunCommit) -> None:
        self.decided += 1
        self.rows.extend(effect for effect, _ in commit.effects)
        self.timers.update((timer.key, timer.due_at) for timer in commit.timers)
        for key in commit.timers_cancelled:
            self.timers.pop(key, None)
        self.children.extend(fact for fact in commit.outgoing if fact.kind == "start_child")

    def _next(self) -> Signal:
        commanded = {
            "command_id": f"c-{self.decided}",
            "actor": "ann",
            "expected_revision": self.state.revision,
        }
        if self.rows:
            row = self.rows.popleft()
            outcome: Any = (
                Failed(error_class="auth", message="m")
                if row.activity == "fails@1"
                else Succeeded(result={"n": 1})
            )
            return OutcomeReported(
                effect_id=row.id, step=row.step, attempt=row.attempt, kind=row.kind, outcome=outcome
            )
        if self.children:
            parent = self.children.popleft().payload["parent"]
            child = self.state.gates[self.state.plan.position[parent["step"]]].child
            return ChildEnded(
                signal_id=uuid.UUID(int=self.decided),
                step=parent["step"],
                attempt=1,
                child=child,
                outcome="completed",
            )
        sleeping = next((key for key in self.timers if self._kind(key) == "sleep"), None)
        if sleeping is not None:
            self.now = max(self.now, self.timers[sleeping])
            return TimerFired(key=sleeping)
        position = next(reversed(dict.keys(self.state.gates)))
        plan = self.state.plan.plan.steps[position]
        if plan.kind == "input":
            return ProvideInput(**commanded, step=plan.key, answer={"take": 1})
        return SendEvent(**commanded, name=str(plan.event), payload={})

    def _kind(self, timer: str) -> str:
        return self.state.plan.plan.steps[self.state.plan.position[timer.removeprefix("step:")]].kind


def cost(build: Callable[[int], Plan], size: int) -> tuple[float, float]:
    """Operations a step of a whole run: (lines executed, elements read)."""
    played = Played(build(size))
    lines, reads = work(played.to_the_end)
    assert played.state.ended == ("failed" if build is undone else "completed"), played.state.ended
    assert len(played.state.plan.plan.steps) == size
    return lines / size, reads / size


@pytest.mark.timeout(600)
@promise("H23")
@pytest.mark.parametrize(
    ("build", "size"),
    [
        (fan_out, LARGE), (chain, LARGE), (gates, LARGE), (inputs, LONG), (mixed_joins, LONG), (contained, LONG),
        (pay_as_you_go, LONG), (undone, LONG),
    ],
)  # fmt: skip
def test_a_run_of_ten_thousand_steps_costs_no_more_a_step_than_one_of_ten(build, size, capsys) -> None:
    small, large = cost(build, SMALL), cost(build, size)
    with capsys.disabled():
        print(
            f"\n{build.__name__:14} a step: {small[0]:.0f} lines {small[1]:.0f} reads of {SMALL} steps,"
            f" {large[0]:.0f} lines {large[1]:.0f} reads of {size}: {sum(large) / sum(small):.2f}x"
        )

    assert sum(large) <= sum(small) * RATIO_MAX


def test_the_count_sees_a_run_that_looks_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken variant: a handler that sums over all steps costs more a step the longer the run is."""
    handlers = state_module.HANDLERS
    event = next(item for item in handlers if item.TYPE == "step_succeeded")
    honest = handlers[event]

    def summing(state: RunState, event: Any, at: Any) -> None:
        honest(state, event, at)
        state.succeeded = sum(step.status == "succeeded" for step in state.steps)

    monkeypatch.setitem(handlers, event, summing)

    assert sum(cost(chain, 1000)) > sum(cost(chain, 10)) * RATIO_MAX


def test_the_count_sees_a_commit_that_walks_over_all_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken variant of a projection: the first gate is searched among all."""
    from longtake.engine import deciding

    honest = deciding.run_row

    def searching(state: RunState) -> Any:
        min(state.gates, default=0)
        return honest(state)

    monkeypatch.setattr(deciding, "run_row", searching)

    assert sum(cost(gates, 1000)) > sum(cost(gates, 10)) * RATIO_MAX
