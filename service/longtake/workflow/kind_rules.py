"""Rules of a plan that depend on a step's kind, its join and its condition (design.md 6).

Leaves to others: rules that hold for every step (validation.py).
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from longtake.contracts.problems import ProblemError
from longtake.workflow.answers import default_faults, schema_faults
from longtake.workflow.conditions import faults_of
from longtake.workflow.refs import GroupName, Reference, find_references

if TYPE_CHECKING:
    from longtake.workflow.plan import Plan
    from longtake.workflow.step import Step

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\Z")
WORKFLOW = re.compile(r"[a-z][a-z0-9_.-]*@[1-9][0-9]*\Z")

OWN: dict[str, frozenset[str]] = {
    "activity": frozenset({"activity", "artifacts", "price", "compensate", "deadline_seconds"}),
    "expand": frozenset(
        {"activity", "artifacts", "price", "compensate", "deadline_seconds", "fills", "expands_to"}
    ),
    "input": frozenset({"answer", "default"}),
    "sleep": frozenset({"seconds"}),
    "wait": frozenset({"event"}),
    "run": frozenset({"workflow", "policy"}),
}
"""Fields that only these kinds have."""

NEEDED: dict[str, tuple[tuple[str, str], ...]] = {
    "input": (("answer", "give the JSON Schema of the answer"),),
    "sleep": (("seconds", "say how long it sleeps"),),
    "wait": (("event", "name the event"),),
    "run": (("workflow", 'name the workflow, as "name@1"'),),
    "expand": (
        ("fills", "name the group of the new steps"),
        ("expands_to", "list the activities of the new steps"),
    ),
}

_EMPTY: dict[str, Any] = {
    "activity": "", "artifacts": (), "price": 0, "compensate": None, "deadline_seconds": None, "fills": None,
    "expands_to": (), "answer": None, "default": None, "seconds": None, "event": None, "workflow": None, "policy": {},
}  # fmt: skip


def kind_faults(step: "Step", at: str, activities: Mapping[str, Any]) -> Iterator[ProblemError]:
    """What a step of its kind lacks, and what it has that its kind knows nothing of."""
    own = OWN.get(step.kind)
    if own is None:
        yield ProblemError(f"{at}/kind", f"{step.kind!r} is no kind of step", f"use one of {', '.join(OWN)}")
        return
    for name, empty in _EMPTY.items():
        if name not in own and getattr(step, name) != empty:
            owners = " or ".join(kind for kind, fields in OWN.items() if name in fields)
            yield ProblemError(
                f"{at}/{name}",
                f"a step of kind {step.kind} has no {name}",
                f"leave it out, or use the kind {owners}",
            )
    for name, remedy in NEEDED.get(step.kind, ()):
        if getattr(step, name) == _EMPTY[name]:
            yield ProblemError(f"{at}/{name}", f"a step of kind {step.kind} needs {name}", remedy)
    yield from _value_faults(step, at)
    for name, activity in (
        ("compensate", step.compensate),
        *((f"expands_to/{n}", a) for n, a in enumerate(step.expands_to)),
    ):
        if activity is not None and activity not in activities:
            yield ProblemError(
                f"{at}/{name}",
                f"the activity {activity!r} is not registered",
                "register it, or mend the name",
            )
    if step.price_key is not None:
        yield ProblemError(
            f"{at}/price_key", "only the steps of an expansion name their price", "give the step its price"
        )


def _value_faults(step: "Step", at: str) -> Iterator[ProblemError]:
    if step.answer is not None:
        faults = list(schema_faults(step.answer, f"{at}/answer"))
        yield from faults
        if step.default is not None and not faults:
            yield from default_faults(step.answer, step.default, f"{at}/default")
    if step.default is not None and step.timeout_seconds is None:
        yield ProblemError(
            f"{at}/timeout_seconds", "a default is taken when the time is over, and there is none",
            "say how long an answer is waited for",
        )  # fmt: skip
    if step.event is not None and NAME.match(step.event) is None:
        yield ProblemError(
            f"{at}/event",
            f"{step.event!r} cannot name an event",
            "use letters, digits and . _ : - (at most 128)",
        )
    if step.workflow is not None and WORKFLOW.match(step.workflow) is None:
        yield ProblemError(
            f"{at}/workflow", f"{step.workflow!r} names no workflow and version", 'write it as "name@1"'
        )
    if step.fills is not None and NAME.match(step.fills) is None:
        yield ProblemError(
            f"{at}/fills",
            f"{step.fills!r} cannot name a group",
            "use letters, digits and . _ : - (at most 128)",
        )
    if step.kind == "sleep" and step.timeout_seconds is not None:
        yield ProblemError(
            f"{at}/timeout_seconds", "a sleep ends by itself", "say with seconds how long it sleeps"
        )


def join_faults(step: "Step", at: str, plan: "Plan") -> Iterator[ProblemError]:
    """A join that can never be met, or that counts nothing."""
    if step.join != "at_least":
        if step.need is not None:
            yield ProblemError(f"{at}/need", f"the join {step.join} counts nothing", "use join=at_least(k)")
        return
    if type(step.need) is not int or step.need < 1:
        yield ProblemError(f"{at}/need", f"{step.need!r} successes cannot be waited for", "choose 1 or more")
        return
    waits = _waits(step)
    groups = {wait.group for wait in waits if isinstance(wait, GroupName)}
    if any(other.fills in groups for other in plan.steps if other.fills is not None):
        return  # how many there will be is known when the expansion is
    count = sum(1 for wait in waits if isinstance(wait, str))
    count += sum(1 for other in plan.steps if other.group in groups)
    if step.need > count:
        yield ProblemError(
            f"{at}/need",
            f"{step.need} successes of {count} dependencies can never come about",
            f"choose 1 to {count}" if count else "name what the step waits for in depends_on",
        )


def condition_faults(step: "Step", at: str) -> Iterator[ProblemError]:
    """What is wrong with the step's condition."""
    if step.when is not None:
        yield from faults_of(step.when, f"{at}/when")


def plan_kind_faults(plan: "Plan", credits_max: int) -> Iterator[ProblemError]:
    """What is wrong with the plan's price list for expansions."""
    for name, price in plan.prices.items():
        if type(price) is not int or not 0 <= price <= credits_max:
            yield ProblemError(
                f"/prices/{name}", f"{price!r} is no price", f"choose a whole number from 0 to {credits_max}"
            )


def _waits(step: "Step") -> set[str | GroupName]:
    waits: set[str | GroupName] = set(step.depends_on)
    for item in (*find_references(step.input), *find_references(step.when or {})):
        if isinstance(item, Reference):
            waits.add(GroupName(item.group) if item.group is not None else str(item.step))
    return waits
