"""Expanding: the result of an `expand` step becomes a frozen part of the plan (P15).

The worker ran the author's builder; here its fragment is data, judged by the rules of any plan, priced from the frozen
price list and bound to the frozen facts of its activities. Leaves to others: charging for it (charging.py), and the barrier of the
group that it fills (joins.py).
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from longtake.contracts.codec import to_json
from longtake.contracts.events import PlanExpanded
from longtake.contracts.outcomes import Succeeded
from longtake.errors import InvalidPlan
from longtake.workflow.charging import charge_fragment
from longtake.workflow.conditions import references_of
from longtake.workflow.draft import Draft
from longtake.workflow.plan import CompiledPlan, Plan, compile_steps
from longtake.workflow.refs import GroupName, Reference, find_references
from longtake.workflow.run_state import RunState
from longtake.workflow.step import Step
from longtake.workflow.validation import ActivityFacts, validate

PLAN_STEPS_MAX = 20_000
"""Steps of a plan with all that was added to it (P17)."""

FRAGMENT_BYTES_MAX = 64 * 1024
"""Longest fragment as an event keeps it (P17)."""

FAULTS_TOLD_MAX = 5
"""Faults of one fragment that its failure names."""

FRAGMENT_KINDS = ("activity", "input", "sleep", "wait")
"""What a fragment may hold. A fan-out inside a fan-out, or a run, belongs into the plan or into a child run."""


def expand(draft: Draft, key: str, outcome: Succeeded) -> str | None:
    """Freeze the fragment into the plan; returns what is wrong with it instead, if anything is."""
    state = draft.state
    if outcome.fragment is None:
        return "the worker sent no fragment: its application has no expander for this activity"
    plan = state.plan_of(key)
    if len(state.steps) + len(outcome.fragment) > PLAN_STEPS_MAX:
        return f"the plan would have {len(state.steps) + len(outcome.fragment)} steps, at most {PLAN_STEPS_MAX} are taken"
    try:
        given = tuple(msgspec.convert(item, Step) for item in outcome.fragment)
    except (msgspec.ValidationError, TypeError) as error:
        return f"the fragment is no list of steps: {error}"
    faults = list(_own_faults(state, plan, given))
    if not faults:
        fragment = tuple(_bound(state.plan, plan, step) for step in given)
        faults = list(_plan_faults(state, plan, fragment))
    if faults:
        told = "; ".join(faults[:FAULTS_TOLD_MAX])
        more = len(faults) - FAULTS_TOLD_MAX
        return f"the fragment is not valid: {told}" + (f"; and {more} more" if more > 0 else "")
    documents = tuple(msgspec.to_builtins(step) for step in fragment)
    size = len(to_json(documents))
    if size > FRAGMENT_BYTES_MAX:
        return f"the fragment is {size} bytes long, at most {FRAGMENT_BYTES_MAX} are taken: refer to large inputs by key"
    price = sum(step.price for step in fragment)
    # Steps that do not fit under the cap stand in the plan all the same, and wait for a larger one when they would begin.
    charge_fragment(draft, key, price)
    draft.record(PlanExpanded(step=key, steps=documents, quoted=state.quoted + price))
    return None


def _own_faults(state: RunState, plan: Step, given: tuple[Step, ...]) -> Iterator[str]:
    """What the rules for fragments forbid, whatever a plan may say."""
    position = state.plan.position
    inside = {step.key for step in given}
    prices, facts = state.plan.plan.prices, state.plan.plan.facts
    for step in given:
        at = f"step {step.key!r}"
        if not step.key.startswith(f"{plan.key}:"):
            yield f"{at}: its key must begin with '{plan.key}:', so that it is the same whatever else the plan has"
        if step.key in position:
            yield f"{at}: the plan has a step of that key"
        if step.kind not in FRAGMENT_KINDS:
            yield f"{at}: a fragment may hold {', '.join(FRAGMENT_KINDS)}, not {step.kind}"
        if step.group not in (None, plan.fills):
            yield f"{at}: it belongs to the group {plan.fills!r}, not to {step.group!r}"
        for activity in filter(None, (step.activity, step.compensate)):
            if activity not in plan.expands_to or activity not in facts:
                yield f"{at}: the activity {activity!r} is not among those that {plan.key!r} expands to"
        if step.price:
            yield f"{at}: a fragment names no price; give it a price_key of the plan's price list"
        if step.price_key is None and step.activity in facts and facts[step.activity].paid:
            yield f"{at}: {step.activity} costs money outside; give it a price_key of the plan's price list"
        if step.price_key is not None and step.price_key not in prices:
            known = ", ".join(sorted(prices)) or "none"
            yield f"{at}: the price list has no {step.price_key!r}; it has {known}"
        for wait in step.depends_on:
            if isinstance(wait, GroupName):
                yield f"{at}: a fragment waits for steps by name, not for the group {wait.group!r}"
            elif wait not in inside:
                yield from _outside_faults(state, plan, at, wait)
        for item in (*find_references(step.input), *references_of(step.when)):
            if isinstance(item, Reference) and item.group is not None:
                yield f"{at}: a fragment refers to steps by name, not to the group {item.group!r}"
            elif isinstance(item, Reference) and item.step not in inside:
                yield from _outside_faults(state, plan, at, str(item.step))


def _outside_faults(state: RunState, plan: Step, at: str, key: str) -> Iterator[str]:
    position = state.plan.position.get(key)
    if position is None:
        yield f"{at}: there is no step {key!r}"
    elif key != plan.key and state.steps[position].ended:
        yield f"{at}: {key!r} has ended; put what is needed of it into the input of {plan.key!r}"


def _bound(compiled: CompiledPlan, plan: Step, step: Step) -> Step:
    """The step as the plan keeps it: its price, its group, and what is frozen of its activity."""
    prices, facts = compiled.plan.prices, compiled.plan.facts
    changes: dict[str, Any] = {"group": plan.fills}
    if step.price_key is not None:
        changes["price"] = prices[step.price_key]
    if not step.depends_on:
        changes["depends_on"] = (plan.key,)
    if step.activity:
        of = facts[step.activity]
        changes |= {
            "pool": of.pool if step.pool == "default" else step.pool,
            "paid": of.paid,
            "cancellable": of.cancellable,
        }
    if step.compensate is not None:
        changes["compensate_pool"] = facts[step.compensate].pool
    return msgspec.structs.replace(step, **changes)


def _plan_faults(state: RunState, plan: Step, fragment: tuple[Step, ...]) -> Iterator[str]:
    """What the rules for every plan forbid. The fragment is judged with a stand-in for each step outside that it names."""
    inside = {step.key for step in fragment}
    outside = dict.fromkeys(
        name
        for step in fragment
        for name in _names(step)
        if name not in inside and name in state.plan.position
    )
    stand_ins = tuple(Step(name, kind="sleep", seconds=1) for name in outside)
    free = tuple(msgspec.structs.replace(step, group=None, price_key=None) for step in fragment)
    if free:
        try:
            validate(
                Plan(steps=(*stand_ins, *free), max_parallel=state.plan.plan.max_parallel), _facts(state)
            )
        except InvalidPlan as error:
            for place in error.errors:
                yield f"{place.pointer} {place.message}: {place.remedy}"
            return
    whole = compile_steps(state.plan.plan.with_steps(fragment))
    if len(whole.order) < len(whole.steps):
        yield "the steps wait for something that waits for them: break the circle"


def _names(step: Step) -> Iterator[str]:
    for wait in step.depends_on:
        if isinstance(wait, str):
            yield wait
    for item in (*find_references(step.input), *references_of(step.when)):
        if isinstance(item, Reference) and item.step is not None:
            yield item.step


def _facts(state: RunState) -> dict[str, ActivityFacts]:
    """The frozen facts in the shape that validation takes; that a paid step has a price is judged by its price key."""
    return {
        name: ActivityFacts(
            name=name.partition("@")[0],
            version=int(name.partition("@")[2] or 0),
            pool=facts.pool,
            paid=facts.paid,
            cancellable=facts.cancellable,
            free_of_charge=True,
        )
        for name, facts in state.plan.plan.facts.items()
    }
