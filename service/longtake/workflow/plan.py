"""Plans: immutable data that says everything a run will do, and the compiled form the reducer walks (design.md 6).

A builder is a chain of calls, each of which returns a new plan. The document of a plan is its msgspec JSON.
Leaves to others: judging a plan (validation.py), its fingerprint (fingerprint.py), its picture (mermaid.py).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from longtake.contracts.problems import ProblemError
from longtake.errors import InvalidPlan
from longtake.workflow.refs import GroupName, Reference, find_references, group, ref
from longtake.workflow.step import (
    DEFAULT_RETRY,
    EXTERNAL_SECONDS_MAX,
    ExpectedArtifact,
    OnAmbiguous,
    OnExhausted,
    Retry,
    Step,
    expected,
)
from longtake.workflow.validation import ActivityFacts, validate

__all__ = [
    "ActivityFacts", "CompiledPlan", "ExpectedArtifact", "GroupName", "Plan", "Retry", "Step", "bind", "compile_document",
    "compile_plan", "group", "plan_document", "quote", "read_plan", "ref", "validate",
]  # fmt: skip

T = TypeVar("T")

PLANS_CACHED_MAX = 256
"""Compiled plans kept, by document."""

_encoder = msgspec.json.Encoder()


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a run will do. Every method returns a new plan."""

    scopes: tuple[str, ...] = ()
    """Named resources the run owns while it is active."""
    cost_cap: int | None = None
    """What the run may cost at most; None: what it is quoted at."""
    max_parallel: int = 32
    """Steps that may be under way at once."""
    deadline_seconds: int | None = None
    """When the whole run has failed, counted from its acceptance."""
    delivers: str | None = None
    """The step whose artifacts are the delivery."""
    steps: tuple[Step, ...] = ()
    groups: tuple[str, ...] = ()
    """Fan-outs by name, empty ones too."""

    def __post_init__(self) -> None:
        """Take lists where the plan keeps tuples."""
        for name in ("scopes", "steps", "groups"):
            msgspec.structs.force_setattr(self, name, tuple(getattr(self, name)))

    def step(
        self,
        key: str,
        *,
        activity: str,
        phase: str = "main",
        label: str = "",
        input: Mapping[str, Any] | None = None,
        depends_on: Iterable[str | GroupName] = (),
        price: int = 0,
        retry: Retry = DEFAULT_RETRY,
        timeout_seconds: int | None = None,
        external_seconds_max: int = EXTERNAL_SECONDS_MAX,
        artifacts: Iterable[str | ExpectedArtifact] = (),
        on_exhausted: OnExhausted | None = None,
        on_ambiguous: OnAmbiguous | None = None,
        pool: str = "default",
        priority: int = 0,
        group: str | None = None,
    ) -> "Plan":
        """Return this plan with one more step."""
        made = Step(
            key, activity=activity, phase=phase, label=label, input=dict(input or {}), depends_on=tuple(depends_on),
            price=price, retry=retry, timeout_seconds=timeout_seconds, external_seconds_max=external_seconds_max,
            artifacts=expected(artifacts), on_exhausted=on_exhausted, on_ambiguous=on_ambiguous, pool=pool,
            priority=priority, group=group,
        )  # fmt: skip
        return self.with_steps([made])

    def fan_out(self, group_name: str, items: Sequence[T], build: Callable[[T, int], Step]) -> "Plan":
        """Return this plan with one step per item, all of one group; `build` gets the item and its number from 1."""
        made = [
            msgspec.structs.replace(build(item, number), group=group_name)
            for number, item in enumerate(items, start=1)
        ]
        named = self.groups if group_name in self.groups else (*self.groups, group_name)
        return msgspec.structs.replace(self, steps=(*self.steps, *made), groups=named)

    def with_steps(self, steps: Iterable[Step]) -> "Plan":
        """Return this plan with more steps."""
        return msgspec.structs.replace(self, steps=(*self.steps, *steps))

    @property
    def cap(self) -> int:
        """What the run may cost at most."""
        return self.cost_cap if self.cost_cap is not None else quote(self)


def plan_document(plan: Plan) -> bytes:
    """The stored form of a plan."""
    return _encoder.encode(plan)


def read_plan(document: bytes | str) -> Plan:
    """Read a stored plan; InvalidPlan when it is none."""
    try:
        return msgspec.json.decode(document, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidPlan(
            (
                ProblemError(
                    "", f"this is not a plan document: {error}", "store what plan_document() returned"
                ),
            )
        ) from error


def quote(plan: Plan) -> int:
    """What the whole plan costs its user, in whole credits."""
    return sum(step.price for step in plan.steps)


def bind(plan: Plan, activities: Mapping[str, ActivityFacts]) -> Plan:
    """Freeze into the plan what the reducer must know of its activities: pool, paid, cancellable (P15)."""
    return msgspec.structs.replace(plan, steps=tuple(_bound(step, activities) for step in plan.steps))


class CompiledPlan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A plan made ready to walk: positions for keys, edges both ways, groups as barriers with a count."""

    plan: Plan
    steps: tuple[Step, ...]
    position: dict[str, int]
    unmet: tuple[int, ...]
    """By position: how many steps and groups the step waits for."""
    dependents: tuple[tuple[int, ...], ...]
    """By position: the steps that wait for it by name."""
    groups: dict[str, tuple[int, ...]]
    """Group name to the positions of its steps, in plan order."""
    group_dependents: dict[str, tuple[int, ...]]
    """Group name to the steps that wait for all of it."""
    references: tuple[tuple[Reference, ...], ...]
    """By position: the references of the step's input."""
    sources: tuple[tuple[int, ...], ...]
    """By position: the steps whose results it refers to."""
    readers: tuple[int, ...]
    """By position: how many steps refer to its result."""
    wanted: tuple[tuple[str, ...], ...]
    """By position: the pointers that others want of its result."""
    phases: tuple[str, ...]
    order: tuple[int, ...]
    """Positions so that every step stands after what it waits for; shorter than the plan when there is a cycle."""
    quoted: int


def compile_plan(plan: Plan) -> CompiledPlan:
    """Make a valid plan ready to walk; the same document is compiled once."""
    return compile_document(plan_document(plan))


@lru_cache(maxsize=PLANS_CACHED_MAX)
def compile_document(document: bytes) -> CompiledPlan:
    """Make a stored plan ready to walk; the same document is compiled once."""
    plan = read_plan(document)
    steps = plan.steps
    position = {step.key: index for index, step in enumerate(steps)}
    members: dict[str, list[int]] = {name: [] for name in plan.groups}
    for index, step in enumerate(steps):
        if step.group is not None:
            members.setdefault(step.group, []).append(index)

    dependents: list[list[int]] = [[] for _ in steps]
    group_dependents: dict[str, list[int]] = {name: [] for name in members}
    unmet = [0] * len(steps)
    references: list[tuple[Reference, ...]] = []
    sources: list[tuple[int, ...]] = []
    readers = [0] * len(steps)
    wanted: list[dict[str, None]] = [{} for _ in steps]
    for index, step in enumerate(steps):
        found = tuple(item for item in find_references(step.input) if isinstance(item, Reference))
        references.append(found)
        read: dict[int, None] = {}
        waits: dict[str | GroupName, None] = dict.fromkeys(step.depends_on)
        for reference in found:
            waits[GroupName(reference.group) if reference.group is not None else str(reference.step)] = None
            for source in _named(reference, position, members):
                read[source] = None
                wanted[source][reference.pointer] = None
        for source in read:
            readers[source] += 1
        sources.append(tuple(read))
        for wait in waits:
            if isinstance(wait, GroupName):
                group_dependents[wait.group].append(index)
                # An empty group holds nobody up.
                unmet[index] += bool(members[wait.group])
            else:
                dependents[position[wait]].append(index)
                unmet[index] += 1

    return CompiledPlan(
        plan=plan,
        steps=steps,
        position=position,
        unmet=tuple(unmet),
        dependents=tuple(map(tuple, dependents)),
        groups={name: tuple(where) for name, where in members.items()},
        group_dependents={name: tuple(where) for name, where in group_dependents.items()},
        references=tuple(references),
        sources=tuple(sources),
        readers=tuple(readers),
        wanted=tuple(map(tuple, wanted)),
        phases=tuple(dict.fromkeys(step.phase for step in steps)),
        order=_order(steps, unmet, dependents, members, group_dependents),
        quoted=quote(plan),
    )


def _named(reference: Reference, position: dict[str, int], members: dict[str, list[int]]) -> Sequence[int]:
    if reference.group is not None:
        return members[reference.group]
    return (position[str(reference.step)],)


def _order(
    steps: tuple[Step, ...],
    unmet: list[int],
    dependents: list[list[int]],
    members: dict[str, list[int]],
    group_dependents: dict[str, list[int]],
) -> tuple[int, ...]:
    left = list(unmet)
    left_in_group = {name: len(where) for name, where in members.items()}
    order = [index for index, count in enumerate(left) if count == 0]
    for index in order:  # grows while it is walked; each step enters once
        freed = list(dependents[index])
        name = steps[index].group
        if name is not None:
            left_in_group[name] -= 1
            if left_in_group[name] == 0:
                freed.extend(group_dependents[name])
        for other in freed:
            left[other] -= 1
            if left[other] == 0:
                order.append(other)
    return tuple(order)


def _bound(step: Step, activities: Mapping[str, ActivityFacts]) -> Step:
    facts = activities[step.activity]
    return msgspec.structs.replace(
        step,
        pool=facts.pool if step.pool == "default" else step.pool,
        paid=facts.paid,
        cancellable=facts.cancellable,
    )
