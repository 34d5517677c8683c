"""Judging a plan before anything of it is saved: every broken rule is listed with its place and remedy (design.md 6).

Leaves to others: what the rules protect (reducer.py walks only plans that passed here).
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from longtake.contracts.codec import canonical, escape_pointer
from longtake.contracts.problems import ProblemError
from longtake.errors import InvalidPlan, UncanonicalValue
from longtake.workflow.dependency_rules import cycle_faults, dependency_faults, find_cycle
from longtake.workflow.kind_rules import condition_faults, join_faults, kind_faults, plan_kind_faults

if TYPE_CHECKING:
    from longtake.workflow.plan import Plan
    from longtake.workflow.step import Step

__all__ = ["ActivityFacts", "find_cycle", "validate"]

STEPS_MAX = 20_000
KEY_LENGTH_MAX = 128
DOCUMENT_BYTES_MAX = 16 * 1024 * 1024
SCOPES_MAX = 256
PARALLEL_MAX = 1000
ATTEMPTS_MAX = 100
DELAY_MS_MAX = 24 * 3600 * 1000
SECONDS_MAX = 30 * 24 * 3600
CREDITS_MAX = 10**12
PROBLEMS_MAX = 50
"""A plan with more faults than this has one cause; the rest would drown it."""

KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*\Z")
ACTIVITY = re.compile(r"[a-z][a-z0-9_.-]*@[1-9][0-9]*\Z")
LATEST = re.compile(r"(^|[-_.:@/])latest\Z", re.IGNORECASE)


class ActivityFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a registered activity without running it."""

    name: str
    version: int
    paid: bool = False
    """The outside charges for a call."""
    pool: str = "default"
    external: bool = False
    """It submits work and is polled, or called back."""
    cancellable: bool = False
    lookup: bool = False
    """It can find out whether a request was taken."""
    free_of_charge: bool = False
    """Paid outside, and yet the user pays nothing for it."""


def validate(plan: "Plan", activities: Mapping[str, ActivityFacts], *, policy: Any = None) -> None:
    """Raise InvalidPlan with every rule the plan (and, when given, its policy) breaks."""
    found: list[ProblemError] = []
    for error in _faults(plan, activities, policy):
        found.append(error)
        if len(found) == PROBLEMS_MAX:
            break
    if found:
        raise InvalidPlan(tuple(found))


def _faults(plan: "Plan", activities: Mapping[str, ActivityFacts], policy: Any) -> Iterator[ProblemError]:
    if not plan.steps:
        yield ProblemError("/steps", "the plan has no steps", "give the plan at least one step")
        return
    if len(plan.steps) > STEPS_MAX:
        yield ProblemError(
            "/steps",
            f"the plan has {len(plan.steps)} steps, at most {STEPS_MAX} are taken",
            "split it into runs",
        )
        return
    yield from _plan_faults(plan)
    positions: dict[str, int] = {}
    for index, step in enumerate(plan.steps):
        if step.key in positions:
            yield ProblemError(
                f"/steps/{index}/key",
                f"the key {step.key!r} is also that of step {positions[step.key]}",
                "give each step a key of its own",
            )
        positions.setdefault(step.key, index)
    groups = {*plan.groups, *(name for step in plan.steps for name in (step.group, step.fills) if name)}
    pools = {"default", *(facts.pool for facts in activities.values())}
    sound = True
    for index, step in enumerate(plan.steps):
        at = f"/steps/{index}"
        yield from _name_faults(step, at)
        yield from _number_faults(step, at)
        if step.is_worked:
            yield from _activity_faults(step, at, activities, pools)
        yield from kind_faults(step, at, activities)
        yield from join_faults(step, at, plan)
        yield from condition_faults(step, at)
        yield from _input_faults(step, at)
        for error in dependency_faults(step, at, positions, groups):
            sound = False
            yield error
    if sound and len(positions) == len(plan.steps):
        yield from cycle_faults(plan, positions)
    yield from _latest_faults(policy, "/policy", named_model=False)


def _plan_faults(plan: "Plan") -> Iterator[ProblemError]:
    size = _document_size(plan)
    if size > DOCUMENT_BYTES_MAX:
        yield ProblemError(
            "",
            f"the plan is {size} bytes long, at most {DOCUMENT_BYTES_MAX} are taken",
            "refer to large inputs by key",
        )
    quoted = sum(step.price for step in plan.steps)
    if plan.cost_cap is not None and plan.cost_cap < quoted:
        yield ProblemError(
            "/cost_cap",
            f"the cap of {plan.cost_cap} credits is below the quote of {quoted}",
            f"raise the cap to at least {quoted}, or make the plan cheaper",
        )
    yield from plan_kind_faults(plan, CREDITS_MAX)
    if not 1 <= plan.max_parallel <= PARALLEL_MAX:
        yield ProblemError(
            "/max_parallel", f"{plan.max_parallel} steps at once cannot be", f"choose 1 to {PARALLEL_MAX}"
        )
    if plan.deadline_seconds is not None and not 1 <= plan.deadline_seconds <= SECONDS_MAX:
        yield ProblemError(
            "/deadline_seconds",
            f"a deadline of {plan.deadline_seconds} seconds cannot be kept",
            f"choose 1 to {SECONDS_MAX}, or none",
        )
    if plan.delivers is not None and all(step.key != plan.delivers for step in plan.steps):
        yield ProblemError("/delivers", f"there is no step {plan.delivers!r}", "name the step that delivers")
    if len(plan.scopes) > SCOPES_MAX:
        yield ProblemError("/scopes", f"{len(plan.scopes)} scopes are too many", f"name at most {SCOPES_MAX}")
    for index, scope in enumerate(plan.scopes):
        if not _is_key(scope) or scope in plan.scopes[:index]:
            yield ProblemError(
                f"/scopes/{index}",
                f"{scope!r} is no scope, or named twice",
                f"use a name of {_KEY_WORDS}, once",
            )


def _document_size(plan: "Plan") -> int:
    try:
        return len(msgspec.json.encode(plan))
    except TypeError:
        return 0  # an input that is not JSON is reported at its own place


_KEY_WORDS = f"letters, digits and . _ : - (at most {KEY_LENGTH_MAX}, a letter or digit first)"


def _is_key(text: str) -> bool:
    return len(text) <= KEY_LENGTH_MAX and KEY.match(text) is not None


def _name_faults(step: "Step", at: str) -> Iterator[ProblemError]:
    for name, text in (("key", step.key), ("phase", step.phase), ("group", step.group), ("pool", step.pool)):
        if text is not None and not _is_key(text):
            shown = text if len(text) <= KEY_LENGTH_MAX else text[:32] + "..."
            yield ProblemError(f"{at}/{name}", f"{shown!r} cannot be a {name}", f"use {_KEY_WORDS}")
    names: set[str] = set()
    for number, artifact in enumerate(step.artifacts):
        if not artifact.kind:
            yield ProblemError(
                f"{at}/artifacts/{number}",
                f"the artifact {artifact.name!r} has no kind",
                f'say what it is, as in "{artifact.name}:video"',
            )
        if not _is_key(artifact.name) or artifact.name in names:
            yield ProblemError(
                f"{at}/artifacts/{number}",
                f"the artifact name {artifact.name!r} is empty, odd or used twice",
                f"use {_KEY_WORDS}, once a step",
            )
        names.add(artifact.name)


def _number_faults(step: "Step", at: str) -> Iterator[ProblemError]:
    retry = step.retry
    ranges = (
        ("price", step.price, 0, CREDITS_MAX),
        ("priority", step.priority, -100, 100),
        ("timeout_seconds", step.timeout_seconds, 1, SECONDS_MAX),
        ("deadline_seconds", step.deadline_seconds, 1, SECONDS_MAX),
        ("seconds", step.seconds, 1, SECONDS_MAX),
        ("external_seconds_max", step.external_seconds_max, 1, SECONDS_MAX),
        ("retry/max_attempts", retry.max_attempts, 1, ATTEMPTS_MAX),
        ("retry/first_delay_ms", retry.first_delay_ms, 0, DELAY_MS_MAX),
        ("retry/factor", retry.factor, 1, 10),
        ("retry/delay_ms_max", retry.delay_ms_max, retry.first_delay_ms, DELAY_MS_MAX),
    )
    for name, value, low, high in ranges:
        if value is None:
            continue
        # A float would have no canonical form, and a bool is no number here.
        if type(value) is not int or not low <= value <= high:
            yield ProblemError(
                f"{at}/{name}", f"{value!r} is out of bounds", f"choose a whole number from {low} to {high}"
            )


def _activity_faults(
    step: "Step", at: str, activities: Mapping[str, ActivityFacts], pools: set[str]
) -> Iterator[ProblemError]:
    if step.pool not in pools:
        yield ProblemError(
            f"{at}/pool",
            f"nobody works in the pool {step.pool!r}",
            f"choose one of {', '.join(sorted(pools))}",
        )
    if ACTIVITY.match(step.activity) is None:
        yield ProblemError(
            f"{at}/activity", f"{step.activity!r} names no activity and version", 'write it as "name@1"'
        )
        return
    facts = activities.get(step.activity)
    if facts is None:
        name = step.activity.partition("@")[0]
        versions = sorted(item.version for item in activities.values() if item.name == name)
        known = (
            f"use one of its versions {', '.join(map(str, versions))}"
            if versions
            else "register it, or mend the name"
        )
        what = "version" if versions else "activity"
        yield ProblemError(f"{at}/activity", f"the {what} {step.activity!r} is not registered", known)
        return
    if facts.paid and not facts.free_of_charge and step.price == 0:
        yield ProblemError(
            f"{at}/price",
            f"{step.activity} costs money outside and the step has no price",
            "give the step a price, or register the activity as free of charge",
        )


def _input_faults(step: "Step", at: str) -> Iterator[ProblemError]:
    try:
        canonical(step.input)
    except UncanonicalValue as error:
        yield ProblemError(f"{at}/input{error.pointer}", error.message, error.remedy)
    except (TypeError, RecursionError) as error:
        yield ProblemError(f"{at}/input", f"the input is not JSON: {error}", "use plain JSON values")
    yield from _latest_faults(step.input, f"{at}/input", named_model=False)


def _latest_faults(value: Any, at: str, *, named_model: bool, depth: int = 0) -> Iterator[ProblemError]:
    """A model field that says `latest` makes two runs of one plan differ."""
    if depth > 64:
        return
    if isinstance(value, msgspec.Struct):
        value = msgspec.to_builtins(value, str_keys=True)
    match value:
        case str() if named_model and LATEST.search(value):
            yield ProblemError(at, f"the model {value!r} is another one tomorrow", "name a fixed version")
        case dict():
            for key, item in value.items():
                model = str(key).lower().endswith(("model", "model_version", "version"))
                yield from _latest_faults(
                    item, f"{at}/{escape_pointer(str(key))}", named_model=model, depth=depth + 1
                )
        case list() | tuple():
            for index, item in enumerate(value):
                yield from _latest_faults(item, f"{at}/{index}", named_model=named_model, depth=depth + 1)
        case _:
            return
