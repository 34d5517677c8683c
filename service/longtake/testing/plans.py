"""Random valid plans over everything the plan language has: kinds, joins, conditions, fan-outs, money and policies.

A kind or join is drawn by an entry of a registry; a new one joins by adding its entry.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from longtake.testing.catalogue import CHILD, EXPAND, FREE, PAID, UNDO
from longtake.workflow.plan import Plan, quote
from longtake.workflow.refs import group, ref
from longtake.workflow.step import Retry, Step

Fields = dict[str, Any]

SCOPES = ("scene:1", "scene:2", "voice", "render")
EVENTS = ("approved", "delivered")
_SUPPORTED = frozenset(field.name for field in msgspec.structs.fields(Step))


def _activity(chance: Random, key: str) -> Fields:
    if chance.random() < 0.6:
        name = chance.choice(PAID)
        return {
            "activity": name,
            "price": chance.randint(1, 9),
            "artifacts": ("clip",) if chance.random() < 0.3 else (),
            **_policies(chance),
        }
    fields = {"activity": chance.choice(FREE), **_policies(chance)}
    if fields["activity"] == "free.call@1" and chance.random() < 0.25:
        # Given up while it is still at work: its answer comes when another attempt is under way.
        fields["timeout_seconds"] = 3
    return fields


def _policies(chance: Random) -> Fields:
    fields: Fields = {
        "retry": Retry(
            max_attempts=chance.choice((1, 2, 3)),
            first_delay_ms=chance.choice((0, 500, 3000)),
            delay_ms_max=8000,
        )
    }
    if chance.random() < 0.25:
        fields["on_exhausted"] = chance.choice(("block", "fail"))
    if chance.random() < 0.25:
        fields["on_ambiguous"] = chance.choice(("block", "retry"))
    if chance.random() < 0.3:
        fields["timeout_seconds"] = chance.choice((20, 60, 200))
    if chance.random() < 0.3:
        fields["external_seconds_max"] = chance.choice((5, 30, 120))
    if chance.random() < 0.1:
        fields["priority"] = chance.choice((-5, 5))
    return fields


def _input(chance: Random, key: str) -> Fields:
    schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    fields: Fields = {"kind": "input", "answer": schema}
    if chance.random() < 0.5:
        fields["timeout_seconds"] = chance.choice((20, 60))
        if chance.random() < 0.5:
            fields["default"] = {"word": "as usual"}
    return fields


def _sleep(chance: Random, key: str) -> Fields:
    return {"kind": "sleep", "seconds": chance.choice((1, 5, 30))}


def _wait(chance: Random, key: str) -> Fields:
    fields: Fields = {"kind": "wait", "event": chance.choice(EVENTS)}
    if chance.random() < 0.6:
        fields |= {"timeout_seconds": chance.choice((20, 60)), "on_timeout": chance.choice(("block", "fail"))}
    return fields


def _run(chance: Random, key: str) -> Fields:
    child = _plan(
        Random(chance.random()), steps=chance.randint(1, 2), kinds=("activity", "sleep"), child=True
    )
    # References of the child's plan would be taken for those of the step whose input it is.
    bare = tuple(msgspec.structs.replace(step, input={}, when=None) for step in child.steps)
    child = msgspec.structs.replace(child, steps=bare)
    if chance.random() < 0.08:
        # Nobody can plan that: its parent is told so.
        child = Plan(steps=(Step("lost", activity="nobody.knows@1"),))
    return {
        "kind": "run",
        "workflow": CHILD,
        "input": {"plan": msgspec.to_builtins(child)},
        "on_parent_close": chance.choice(("cancel", "abandon")),
    }


def _expand(chance: Random, key: str) -> Fields:
    return {
        "kind": "expand",
        "activity": EXPAND,
        "fills": f"{key}.made",
        "expands_to": ("free.quick@1", "paid.job@1"),
    }


KINDS: dict[str, tuple[float, Callable[[Random, str], Fields]]] = {
    "activity": (8.0, _activity),
    "input": (0.7, _input),
    "sleep": (0.8, _sleep),
    "wait": (0.7, _wait),
    "run": (0.7, _run),
    "expand": (0.7, _expand),
}
"""How often a kind is drawn, and its fields."""

JOINS = ("all_succeeded", "all_terminal", "at_least")

ENABLED: tuple[str, ...] = ("activity", "input", "sleep", "wait", "run", "expand")
"""Kinds that random plans may use."""

EXTRAS: frozenset[str] = frozenset(
    {"joins", "optional", "when", "compensate", "payg", "conflicts", "deadlines"}
)
"""Parts of the language beyond kinds that random plans may use: joins, optional, when, compensate, payg, conflicts."""


def random_plan(seed: int | str, *, kinds: tuple[str, ...] | None = None, paid: bool = True) -> Plan:
    """The plan of a seed; always valid. Without `paid` it costs nobody anything."""
    chance = Random(f"plan|{seed}")
    plan = _plan(chance, steps=chance.randint(4, 9), kinds=kinds or ENABLED, child=False)
    if paid:
        return plan
    free = tuple(
        msgspec.structs.replace(step, activity="free.call@1", price=0) if step.price else step
        for step in plan.steps
    )
    return msgspec.structs.replace(plan, steps=free, cost_cap=None)


def _plan(chance: Random, *, steps: int, kinds: tuple[str, ...], child: bool) -> Plan:
    fields: Fields = {}
    if chance.random() < 0.4:
        fields["max_parallel"] = chance.choice((1, 2, 3))
    if chance.random() < 0.15:
        fields["deadline_seconds"] = chance.choice((40, 150))
    if not child and chance.random() < 0.6:
        fields["scopes"] = tuple(chance.sample(SCOPES, chance.choice((1, 1, 2))))
    if not child and "conflicts" in EXTRAS and chance.random() < 0.6:
        fields["on_conflict"] = chance.choice(("queue", "supersede"))
    if "payg" in EXTRAS and chance.random() < 0.4:
        fields["billing"] = "pay_as_you_go"
    plan = Plan(**fields)
    made: list[Step] = []
    names = list(kinds)
    weights = [KINDS[name][0] for name in names]
    while len(made) < steps:
        number = len(made) + 1
        if chance.random() < 0.12 and steps - len(made) >= 2:
            name = f"group{number}"
            count = chance.randint(0, 3)
            part = [_step(chance, f"{name}:{i}", _activity(chance, ""), made, plan) for i in range(count)]
            plan = plan.fan_out(name, part, lambda step, _: step)
            made += [msgspec.structs.replace(step, group=name) for step in part]
            barrier = _step(chance, f"after{number}", _activity(chance, ""), [], plan)
            barrier = msgspec.structs.replace(
                barrier, depends_on=(group(name),), input={"all": ref(group(name), "/result/made")}
            )
            plan, made = plan.with_steps([barrier]), [*made, barrier]
            continue
        kind = chance.choices(names, weights)[0]
        key = f"{kind}{number}"
        step = _step(chance, key, KINDS[kind][1](chance, key), made, plan)
        made.append(step)
        if kind == "expand":
            plan = msgspec.structs.replace(
                plan,
                steps=(*plan.steps, step),
                groups=(*plan.groups, str(step.fills)),
                prices={**plan.prices, "made": 2},
            )
        else:
            plan = plan.with_steps([step])
    if "payg" in EXTRAS and plan.billing == "pay_as_you_go" and chance.random() < 0.6:
        # What an expansion adds may not fit any more.
        plan = msgspec.structs.replace(plan, cost_cap=quote(plan) + chance.randint(0, 1))
    return plan


def _step(chance: Random, key: str, fields: Fields, earlier: list[Step], plan: Plan) -> Step:
    wanted = [step for step in earlier if chance.random() < 0.35][-3:]
    fields = dict(fields)
    if wanted:
        fields["depends_on"] = tuple(step.key for step in wanted)
    source = next((step for step in reversed(wanted) if step.activity), None)
    if source is not None and "input" not in fields and chance.random() < 0.5:
        fields["input"] = {"from": ref(source.key, "/result/made"), "n": chance.randint(1, 9)}
    if wanted and "joins" in EXTRAS and "input" not in fields:
        join = chance.choices(JOINS, (6, 2, 2))[0]
        if join != "all_succeeded":
            fields["join"] = join
        if join == "at_least":
            fields["need"] = chance.randint(1, len(wanted))
    if "optional" in EXTRAS and chance.random() < 0.12:
        fields["optional"] = True
    if "when" in EXTRAS and wanted and chance.random() < 0.15:
        value = chance.choice((wanted[0].key, "other"))
        fields["when"] = {"op": "eq", "ref": ref(wanted[0].key, "/result/made"), "value": value}
    if "compensate" in EXTRAS and fields.get("kind", "activity") == "activity" and chance.random() < 0.15:
        fields["compensate"] = UNDO
    if "deadlines" in EXTRAS and fields.get("kind", "activity") == "activity" and chance.random() < 0.1:
        fields["deadline_seconds"] = chance.choice((30, 120))
    return Step(key, **{name: value for name, value in fields.items() if name in _SUPPORTED})
