"""Plans: immutable data that says everything a run will do, and the compiled form the reducer walks (design.md 6).

A builder is a chain of calls, each of which returns a new plan. The document of a plan is its msgspec JSON.
Leaves to others: judging a plan (validation.py), its fingerprint (fingerprint.py), its picture (mermaid.py).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, TypeVar

import msgspec

from longtake.contracts.events import Billing
from longtake.contracts.problems import ProblemError
from longtake.errors import InvalidPlan
from longtake.workflow.conditions import all_of, any_of, condition, not_, references_of
from longtake.workflow.refs import GroupName, Reference, find_references, group, ref
from longtake.workflow.step import (
    AtLeast,
    ExpectedArtifact,
    Retry,
    Step,
    at_least,
    expected,
)
from longtake.workflow.validation import ActivityFacts, validate

__all__ = [
    "ActivityFacts", "AtLeast", "CompiledPlan", "ExpectedArtifact", "GroupName", "Plan", "Retry", "Step", "StepFacts",
    "all_of", "any_of", "at_least", "bind", "compile_document", "compile_plan", "compile_steps", "condition", "group",
    "not_", "plan_document", "quote", "read_plan", "ref", "validate",
]  # fmt: skip

T = TypeVar("T")

PLANS_CACHED_MAX = 256
"""Compiled plans kept, by document."""

_encoder = msgspec.json.Encoder()


class StepFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the reducer must know of an activity that an expansion may use."""

    pool: str = "default"
    paid: bool = False
    cancellable: bool = False


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a run will do. Every method returns a new plan."""

    scopes: tuple[str, ...] = ()
    """Named resources the run owns while it is active."""
    cost_cap: int | None = None
    """What the run may cost at most; None: what it is quoted at."""
    billing: Billing = "prepaid"
    """prepaid: the quote is charged at admission. pay_as_you_go: each paid step is charged when it begins (H50, H51)."""
    hold: Literal["cap", "quote"] = "cap"
    """What the account must promise at admission (P8)."""
    prices: dict[str, int] = {}
    """Frozen price list for steps that an expansion adds, by price key (P15)."""
    facts: dict[str, StepFacts] = {}
    """What is frozen of the activities that an expansion may use; set by `bind`."""
    on_conflict: Literal["reject", "queue", "supersede"] = "reject"
    """What happens at admission when another active run holds one of the scopes."""
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

    def step(self, key: str, *, artifacts: Iterable[str | ExpectedArtifact] = (), **fields: Any) -> "Plan":
        """Return this plan with one more step; `fields` are those of `Step`. TypeError for one that it has not."""
        return self.with_steps([Step(key, artifacts=expected(artifacts), **fields)])

    def input(self, key: str, *, answer: Mapping[str, Any], **fields: Any) -> "Plan":
        """Return this plan with a human gate: somebody answers an object of the given JSON Schema."""
        return self.with_steps([Step(key, kind="input", answer=dict(answer), **fields)])

    def sleep(self, key: str, *, seconds: int, **fields: Any) -> "Plan":
        """Return this plan with a step that lets a time pass."""
        return self.with_steps([Step(key, kind="sleep", seconds=seconds, **fields)])

    def wait(self, key: str, *, event: str, **fields: Any) -> "Plan":
        """Return this plan with a step that waits for a named event; one that came early counts."""
        return self.with_steps([Step(key, kind="wait", event=event, **fields)])

    def run(self, key: str, *, workflow: str, **fields: Any) -> "Plan":
        """Return this plan with a step that another run does."""
        return self.with_steps([Step(key, kind="run", workflow=workflow, **fields)])

    def expand(
        self, key: str, *, activity: str, fills: str, expands_to: Iterable[str], **fields: Any
    ) -> "Plan":
        """Return this plan with an activity whose result is turned into the steps of a group (P15)."""
        made = Step(
            key, kind="expand", activity=activity, fills=fills, expands_to=tuple(expands_to), **fields
        )
        named = self.groups if fills in self.groups else (*self.groups, fills)
        return msgspec.structs.replace(self, steps=(*self.steps, made), groups=named)

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
    later = {name for step in plan.steps for name in step.expands_to}
    facts = {
        name: StepFacts(
            pool=activities[name].pool, paid=activities[name].paid, cancellable=activities[name].cancellable
        )
        for name in sorted(later)
    }
    return msgspec.structs.replace(
        plan, steps=tuple(_bound(step, activities) for step in plan.steps), facts=facts
    )


class CompiledPlan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A plan made ready to walk: positions for keys, edges both ways, groups as barriers with a count."""

    plan: Plan
    steps: tuple[Step, ...]
    position: dict[str, int]
    needs: tuple[tuple[int, ...], ...]
    """By position: the steps that the step waits for by name."""
    step_deps: tuple[int, ...]
    """By position: how many those are."""
    group_deps: tuple[tuple[str, ...], ...]
    """By position: the groups that the step waits for."""
    dependents: tuple[tuple[int, ...], ...]
    """By position: the steps that wait for it by name."""
    groups: dict[str, tuple[int, ...]]
    """Group name to the positions of its steps, in plan order."""
    fillers: dict[str, tuple[int, ...]]
    """Group name to the expand steps whose fragments belong to it: the group is open until they have ended."""
    group_dependents: dict[str, tuple[int, ...]]
    """Group name to the steps that wait for all of it."""
    counting: dict[str, tuple[int, ...]]
    """Group name to those of them that count single successes (at_least)."""
    references: tuple[tuple[Reference, ...], ...]
    """By position: the references of the step's input."""
    sources: tuple[tuple[int, ...], ...]
    """By position: the steps whose results it refers to, in its input or its condition."""
    readers: tuple[int, ...]
    """By position: how many steps refer to its result."""
    wanted: tuple[tuple[str, ...], ...]
    """By position: the pointers that inputs of others want of its result; a success without them is none."""
    asked: tuple[tuple[str, ...], ...]
    """By position: the pointers that conditions ask for; one that names nothing is false."""
    listeners: tuple[int, ...]
    """Positions of the steps that named events are for: waits, and expansions, which may bring waits."""
    awaiting: dict[str, tuple[int, ...]]
    """Name of an event to the positions of the steps that wait for it."""
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
    return compile_steps(read_plan(document))


def compile_steps(plan: Plan) -> CompiledPlan:
    """Make a plan ready to walk."""
    steps = plan.steps
    position = {step.key: index for index, step in enumerate(steps)}
    members: dict[str, list[int]] = {name: [] for name in plan.groups}
    fillers: dict[str, list[int]] = {}
    awaiting: dict[str, list[int]] = {}
    for index, step in enumerate(steps):
        if step.event is not None:
            awaiting.setdefault(step.event, []).append(index)
        if step.group is not None:
            members.setdefault(step.group, []).append(index)
        if step.fills is not None:
            members.setdefault(step.fills, [])
            fillers.setdefault(step.fills, []).append(index)

    dependents: list[list[int]] = [[] for _ in steps]
    group_dependents: dict[str, list[int]] = {name: [] for name in members}
    needs: list[tuple[int, ...]] = []
    group_deps: list[tuple[str, ...]] = []
    references: list[tuple[Reference, ...]] = []
    sources: list[tuple[int, ...]] = []
    readers = [0] * len(steps)
    wanted: list[dict[str, None]] = [{} for _ in steps]
    asked: list[dict[str, None]] = [{} for _ in steps]
    for index, step in enumerate(steps):
        found = tuple(item for item in find_references(step.input) if isinstance(item, Reference))
        references.append(found)
        read: dict[int, None] = {}
        waits: dict[str | GroupName, None] = dict.fromkeys(step.depends_on)
        for reference, pointers in [
            *((item, wanted) for item in found),
            *((item, asked) for item in references_of(step.when)),
        ]:
            waits[GroupName(reference.group) if reference.group is not None else str(reference.step)] = None
            for source in _named(reference, position, members):
                read[source] = None
                pointers[source][reference.pointer] = None
        for source in read:
            readers[source] += 1
        sources.append(tuple(read))
        named: list[int] = []
        grouped: list[str] = []
        for wait in waits:
            if isinstance(wait, GroupName):
                group_dependents[wait.group].append(index)
                grouped.append(wait.group)
            else:
                dependents[position[wait]].append(index)
                named.append(position[wait])
        needs.append(tuple(named))
        group_deps.append(tuple(grouped))

    return CompiledPlan(
        plan=plan,
        steps=steps,
        position=position,
        needs=tuple(needs),
        step_deps=tuple(map(len, needs)),
        group_deps=tuple(group_deps),
        dependents=tuple(map(tuple, dependents)),
        groups={name: tuple(where) for name, where in members.items()},
        fillers={name: tuple(where) for name, where in fillers.items()},
        group_dependents={name: tuple(where) for name, where in group_dependents.items()},
        counting={
            name: tuple(index for index in where if steps[index].join == "at_least")
            for name, where in group_dependents.items()
        },
        references=tuple(references),
        sources=tuple(sources),
        readers=tuple(readers),
        wanted=tuple(map(tuple, wanted)),
        asked=tuple(map(tuple, asked)),
        listeners=tuple(index for index, step in enumerate(steps) if step.kind in ("wait", "expand")),
        awaiting={name: tuple(where) for name, where in awaiting.items()},
        phases=tuple(dict.fromkeys(step.phase for step in steps)),
        order=_order(steps, needs, group_deps, dependents, members, fillers, group_dependents),
        quoted=quote(plan),
    )


def _named(reference: Reference, position: dict[str, int], members: dict[str, list[int]]) -> Sequence[int]:
    if reference.group is not None:
        return members[reference.group]
    return (position[str(reference.step)],)


def _order(
    steps: tuple[Step, ...],
    needs: list[tuple[int, ...]],
    group_deps: list[tuple[str, ...]],
    dependents: list[list[int]],
    members: dict[str, list[int]],
    fillers: dict[str, list[int]],
    group_dependents: dict[str, list[int]],
) -> tuple[int, ...]:
    left_in_group = {name: len(where) + len(fillers.get(name, ())) for name, where in members.items()}
    left = [
        len(named) + sum(1 for name in grouped if left_in_group[name])
        for named, grouped in zip(needs, group_deps, strict=True)
    ]
    order = [index for index, count in enumerate(left) if count == 0]
    for index in order:  # grows while it is walked; each step enters once
        freed = list(dependents[index])
        for name in (steps[index].group, steps[index].fills):
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
    if step.compensate is not None:
        step = msgspec.structs.replace(step, compensate_pool=activities[step.compensate].pool)
    if not step.is_worked:
        return step
    facts = activities[step.activity]
    return msgspec.structs.replace(
        step,
        pool=facts.pool if step.pool == "default" else step.pool,
        paid=facts.paid,
        cancellable=facts.cancellable,
    )
