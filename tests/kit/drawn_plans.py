"""Plans drawn at random over every kind of step, every join and both ways of billing; each of them is valid.

Leaves to others: playing them (drawn_worlds.py).
"""

from typing import Any

import msgspec
from hypothesis import strategies as st

from longtake.workflow.plan import (
    ActivityFacts,
    Plan,
    Retry,
    Step,
    at_least,
    bind,
    condition,
    group,
    not_,
    ref,
    validate,
)

ACTIVITIES = {
    "free@1": ActivityFacts(name="free", version=1),
    "paid@1": ActivityFacts(name="paid", version=1, paid=True, external=True, cancellable=True, lookup=True),
    "stubborn@1": ActivityFacts(name="stubborn", version=1, paid=True, external=True),
    "undo@1": ActivityFacts(name="undo", version=1),
}
ASK = {"type": "object", "properties": {"take": {"type": "integer"}}, "required": ["take"]}
KINDS = ["activity"] * 4 + ["input", "sleep", "wait", "run", "expand"]
EVENTS = ["go", "stop"]


@st.composite
def plans(draw: Any) -> Plan:
    """A valid plan of one to seven steps."""
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 7))):
        steps.append(_step(draw, number, steps))
    billing = draw(st.sampled_from(["prepaid", "pay_as_you_go"]))
    quoted = sum(step.price for step in steps)
    plan = Plan(
        steps=tuple(steps),
        groups=("g",),
        billing=billing,
        cost_cap=quoted + draw(st.integers(0, 12)),
        hold=draw(st.sampled_from(["cap", "quote"])),
        prices={"scene": draw(st.integers(0, 7))},
        max_parallel=draw(st.sampled_from([1, 2, 32])),
        deadline_seconds=draw(st.sampled_from([None, None, None, 500])),
        delivers=draw(st.sampled_from([None, None, *(step.key for step in steps)])),
        scopes=draw(st.sampled_from([(), ("render",)])),
    )
    validate(plan, ACTIVITIES)
    return bind(plan, ACTIVITIES)


def cheaper(draw: Any, plan: Plan) -> int | None:
    """A cap that a pay-as-you-go run may be accepted with although it is quoted higher; None: what the plan says."""
    if plan.billing == "prepaid" or plan.hold == "quote":
        return None
    return draw(st.sampled_from([None, None, plan.cap // 2]))


def fragment(draw: Any, key: str) -> tuple[dict[str, Any], ...] | None:
    """What the expander of a step makes of its result: good, empty, faulty or nothing at all."""
    sort = draw(st.sampled_from(["good"] * 5 + ["empty", "faulty", "none"]))
    if sort == "none":
        return None
    if sort == "faulty":
        return ({"key": "elsewhere", "activity": "free@1"},)
    steps = [
        Step(f"{key}:{number}", activity="paid@1", price_key="scene", retry=Retry(max_attempts=2))
        if draw(st.booleans())
        else Step(f"{key}:{number}", kind="sleep", seconds=20)
        for number in range(draw(st.integers(1, 3)) if sort == "good" else 0)
    ]
    return tuple(msgspec.to_builtins(step) for step in steps)


def _step(draw: Any, number: int, before: list[Step]) -> Step:
    kind = draw(st.sampled_from(KINDS))
    key = f"s{number}"
    depends_on: list[Any] = draw(
        st.lists(st.sampled_from([step.key for step in before]), unique=True, max_size=3)
        if before
        else st.just([])
    )
    made: dict[str, Any] = {}
    if before and draw(st.integers(0, 3)) == 0 and any(step.group == "g" for step in before):
        depends_on.append(group("g"))
    fillers = [step.fills for step in before if step.fills is not None]
    if fillers and draw(st.booleans()):
        depends_on.append(group(draw(st.sampled_from(fillers))))
    grouped = kind == "activity" and not depends_on and draw(st.integers(0, 2)) == 0
    join: Any = draw(st.sampled_from(["all_succeeded", "all_succeeded", "all_terminal", "at_least"]))
    if join == "at_least":
        join = at_least(draw(st.integers(1, len(depends_on)))) if depends_on else "all_succeeded"
    readable = [step.key for step in before if step.key in depends_on and step.is_worked]
    if readable and draw(st.booleans()):
        source = draw(st.sampled_from(readable))
        made["input"] = {"url": ref(source, "/result/url"), "n": number}
    asked = [step.key for step in before if step.key in depends_on and step.kind != "sleep"]
    if asked and draw(st.integers(0, 3)) == 0:
        score = condition("gt", ref(draw(st.sampled_from(asked)), "/result/score"), 3)
        made["when"] = draw(st.sampled_from([score, not_(score)]))
    return Step(
        key,
        kind=kind,
        depends_on=tuple(depends_on),
        join=join,
        group="g" if grouped else None,
        optional=draw(st.integers(0, 3)) == 0,
        phase=f"p{number % 2}",
        **{**made, **_own(draw, kind, key)},
    )


def _own(draw: Any, kind: str, key: str) -> dict[str, Any]:
    if kind in ("input", "wait", "run"):
        seconds = draw(st.sampled_from([None, 40, 300]))
        made: dict[str, Any] = {
            "timeout_seconds": seconds,
            "on_timeout": draw(st.sampled_from(["block", "fail"])),
        }
        if kind == "input":
            made["answer"] = ASK
            if seconds is not None and draw(st.booleans()):
                made["default"] = {"take": 9}
        elif kind == "wait":
            made["event"] = draw(st.sampled_from(EVENTS))
        else:
            made |= {"workflow": "child@1", "input": {"of": key}}
            made["on_parent_close"] = draw(st.sampled_from(["cancel", "abandon"]))
            made["on_exhausted"] = draw(st.sampled_from([None, "block"]))
        return made
    if kind == "sleep":
        return {"seconds": draw(st.sampled_from([10, 60, 900]))}
    activity = draw(st.sampled_from(["free@1", "paid@1", "stubborn@1"]))
    made = {
        "activity": activity,
        "price": 0 if activity == "free@1" else draw(st.integers(1, 9)),
        "refund": draw(st.sampled_from(["full", "full", "none"])),
        "retry": Retry(max_attempts=draw(st.integers(1, 3))),
        "on_exhausted": draw(st.sampled_from([None, None, "block", "fail"])),
        "on_ambiguous": draw(st.sampled_from([None, None, "block", "retry"])),
        "compensate": draw(st.sampled_from([None, None, "undo@1"])),
        "timeout_seconds": draw(st.sampled_from([None, 60])),
        "deadline_seconds": draw(st.sampled_from([None, None, 90])),
    }
    if kind == "expand":
        made |= {"fills": f"of-{key}", "expands_to": ("free@1", "paid@1")}
    return made
