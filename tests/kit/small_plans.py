"""All plans of up to three steps across every kind and join, in the few shapes that three steps can have."""

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from typing import Any

from longtake.workflow.plan import Plan, Retry
from longtake.workflow.step import Step, at_least

ONCE = Retry(max_attempts=1)
CHOICE = {"type": "object", "required": ["take"], "properties": {"take": {"type": "integer"}}}
ANSWER = {"take": 1}
EVENT = "go"

KINDS: dict[str, dict[str, Any]] = {
    "free": {"activity": "a@1", "retry": ONCE},
    "paid": {"activity": "b@1", "price": 5, "retry": ONCE, "compensate": "u@1"},
    "input": {"kind": "input", "answer": CHOICE, "timeout_seconds": 60},
    "sleep": {"kind": "sleep", "seconds": 10},
    "wait": {"kind": "wait", "event": EVENT, "timeout_seconds": 60},
    "run": {"kind": "run", "workflow": "child@1"},
    "expand": {"kind": "expand", "activity": "e@1", "fills": "more", "expands_to": ("a@1",), "retry": ONCE},
}
JOINS = ("all_succeeded", "all_terminal", at_least(1))


def small_plans() -> Iterator[tuple[str, Plan]]:
    """Name and plan: one step, two in a row or side by side, three in a row and two that meet."""
    for kind, optional in product(KINDS, (False, True)):
        yield f"{kind}{'?' * optional}", _plan(_step("a", kind, optional=optional))
    for first, second, join, optional in product(KINDS, KINDS, JOINS, (False, True)):
        steps = (_step("a", first, optional=optional), _step("b", second, join=join, after=("a",)))
        yield f"{first}{'?' * optional}>{second} {join}", _plan(*steps)
    for first, second in combinations_with_replacement(KINDS, 2):
        yield f"{first}|{second}", _plan(_step("a", first), _step("b", second, optional=True))
        for last, join in product(KINDS, JOINS):
            steps = (_step("a", first), _step("b", second), _step("c", last, join=join, after=("a", "b")))
            yield f"{first}|{second}>{last} {join}", _plan(*steps)
    for first, second, third in product(KINDS, repeat=3):
        steps = (_step("a", first), _step("b", second, after=("a",)), _step("c", third, after=("b",)))
        yield f"{first}>{second}>{third}", _plan(*steps)


def _step(
    key: str, kind: str, *, optional: bool = False, join: Any = "all_succeeded", after: tuple[str, ...] = ()
) -> Step:
    return Step(key, **KINDS[kind], optional=optional, join=join, depends_on=after)


def _plan(*steps: Step) -> Plan:
    groups = ("more",) if any(step.fills for step in steps) else ()
    prices = sum(step.price for step in steps)
    # One paid step fits under the cap, the next asks for a larger one.
    return Plan(
        steps=steps, groups=groups, billing="pay_as_you_go", cost_cap=min(prices, 5), deadline_seconds=600
    )
