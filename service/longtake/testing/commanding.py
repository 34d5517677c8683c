"""What clients ask for: a registry of command kinds, and the sessions that draw from it.

A kind joins by an entry in CONTROLS (about a run) or STARTS (makes a run).
"""

import uuid
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from longtake.contracts.commands import Command
from longtake.testing.catalogue import WORKFLOW
from longtake.testing.plans import EVENTS, random_plan
from longtake.testing.sessions import Session

Summary = dict[str, Any]
Payload = dict[str, Any]

PROJECTS = ("p1", "p2")
IDLE_WEIGHT = 2.0
"""How much a person who has looked is inclined to do nothing."""


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """A kind that is about a run."""

    action: str
    """The name under which a summary offers it."""
    payload: Callable[[Random, Summary], Payload | None]
    """What to send; None: nothing sensible to say now."""
    weight: float = 1.0
    needs_revision: bool = True
    starts_run: bool = False


def _retry(chance: Random, summary: Summary) -> Payload | None:
    steps = [blocker["step"] for blocker in summary["blockers"] if blocker.get("step")]
    if steps and chance.random() < 0.4:
        return {"step": chance.choice(steps), "accept_double_cost": chance.random() < 0.3}
    return {}


def _answer(chance: Random, summary: Summary) -> Payload | None:
    for blocker in summary["blockers"]:
        if blocker["type"] == "input_required":
            return {"step": blocker["step"], "answer": {"word": chance.choice(("yes", "no"))}}
        if blocker["type"] == "spend_cap":
            return {"step": blocker["step"], "cap": summary["cost"]["quoted_credits"] + chance.randint(0, 40)}
    return None


def _fork(chance: Random, summary: Summary) -> Payload | None:
    return {"step": summary.get("_step") or "activity1"}


CONTROLS: dict[str, Control] = {
    "cancel": Control(
        action="cancel_generation", payload=lambda chance, summary: {"reason": "enough"}, weight=0.12
    ),
    "retry": Control(action="retry_generation", payload=_retry, weight=2.0),
    "pause": Control(action="pause_generation", payload=lambda chance, summary: {}),
    "resume": Control(action="resume_generation", payload=lambda chance, summary: {}, weight=3.0),
    "provide_input": Control(action="provide_generation_input", payload=_answer, weight=3.0),
    "send_event": Control(
        action="send_generation_event",
        payload=lambda chance, summary: {
            "name": chance.choice(summary.get("_events") or EVENTS),
            "payload": {"ok": True},
        },
        weight=1.5,
    ),
    "steer": Control(
        action="steer_generation", payload=lambda chance, summary: {}, weight=0.25, starts_run=True
    ),
    "follow_up": Control(
        action="follow_up_generation",
        payload=lambda chance, summary: {},
        weight=0.12,
        needs_revision=False,
        starts_run=True,
    ),
    "fork": Control(
        action="fork_generation", payload=_fork, weight=0.3, needs_revision=False, starts_run=True
    ),
}

STARTS: dict[str, float] = {"generation": 6.0, "new_turn": 1.0, "utility": 0.6, "export": 0.8}

RUNS_MAX = 5
"""Runs of one world that clients start; children come on top."""
CLOSING = ("retry", "resume", "provide_input", "send_event", "cancel", "pause")
"""Kinds that a person uses to bring what waits to an end."""

UNTARGETED = frozenset({"cancel", "retry", "pause", "resume", "steer"})
"""Kinds that are about the whole run: what they ask for cannot be wrong when the run offers them."""

ENABLED_CONTROLS: tuple[str, ...] = tuple(CONTROLS)
ENABLED_STARTS: tuple[str, ...] = tuple(STARTS)


async def start_runs(session: Session, *, runs: int, seed: int | str) -> None:
    """Start so many runs, a while between them, and send some of the commands again."""
    chance = session.chance
    for number in range(runs):
        await session.world.sleep(chance.random() * 12)
        kind = chance.choices(ENABLED_STARTS, [STARTS[name] for name in ENABLED_STARTS])[0]
        plan = random_plan(f"{seed}|{session.name}|{number}", paid=kind != "utility")
        await start(session, kind, plan, channel="nats" if chance.random() < 0.25 else "http")
        if chance.random() < 0.4:
            await session.repeat()


async def start(session: Session, kind: str, plan: Any, *, channel: Any = "http") -> None:
    """Start one run of a plan."""
    command = Command(
        kind=kind,  # type: ignore[arg-type]  # the registry holds kinds only
        project=session.chance.choice(PROJECTS),
        payload={"workflow": WORKFLOW, "input": {"plan": msgspec.to_builtins(plan)}},
        client_command_id=session.new_id(),
    )
    told = await session.send(command, channel=channel)
    if (
        told is not None
        and told.receipt is not None
        and told.receipt.run_id is not None
        and told.receipt.problem is None
    ):
        session.runs.append(uuid.UUID(told.receipt.run_id))


async def meddle(session: Session, others: list[Session], *, until: float, busy: float) -> None:
    """Act on runs now and then: on what is offered, on what is not, on old revisions."""
    chance = session.chance
    while session.world.monotonic() < until:
        await session.world.sleep(1 + chance.expovariate(1 / busy))
        runs = [
            run_id
            for other in others
            for run_id in other.runs
            if other.principal.tenant == session.principal.tenant
        ]
        if not runs:
            continue
        if chance.random() < 0.15:
            await session.repeat()
        await control(session, chance.choice(runs), careful=False)


async def control(session: Session, run_id: uuid.UUID, *, careful: bool, kinds: tuple[str, ...] = ()) -> bool:
    """Read a run and do something to it; whether anything was sent."""
    chance = session.chance
    summary = await session.read(run_id)
    if summary is None:
        return False
    offered = summary["available_actions"]
    many = len(session.database.tables.runs) >= RUNS_MAX
    names = [
        name
        for name in (kinds or ENABLED_CONTROLS)
        if CONTROLS[name].action in offered and not (many and CONTROLS[name].starts_run)
    ]
    if not careful and chance.random() < 0.15:
        names = list(ENABLED_CONTROLS)
    if not names:
        return False
    weights = [CONTROLS[name].weight for name in names]
    if summary["status"] == "accepted" and "cancel" in names:
        weights[names.index("cancel")] = 2.0  # people lose patience in a line
    if not careful and chance.random() < IDLE_WEIGHT / (IDLE_WEIGHT + sum(weights)):
        return False
    kind = chance.choices(names, weights)[0]
    row = session.database.tables.runs.get(run_id)
    if row is None:
        return False
    rule = CONTROLS[kind]
    payload = rule.payload(
        chance, {**summary, "_step": _some_step(session, run_id), "_events": _events(session, run_id)}
    )
    if payload is None:
        return False
    if rule.starts_run and kind == "follow_up":
        payload = {
            "workflow": WORKFLOW,
            "input": {"plan": msgspec.to_builtins(random_plan(session.new_id()))},
        }
    revision: int = summary["revision"]
    read_in = session.database.store_epoch
    expected = revision
    if not careful and chance.random() < 0.2:
        expected = max(0, revision + chance.choice((-6, -3, -1, 1, 5)))
    if not careful:
        # Between reading and acting a person takes a while.
        await session.world.sleep(chance.random() * 4)
    command = Command(
        kind=kind,  # type: ignore[arg-type]  # the registry holds kinds only
        project=row.project,
        targets=(str(run_id),),
        payload=payload,
        client_command_id=session.new_id(),
        expected_revision=expected if rule.needs_revision else None,
    )
    told = await session.send(command, read_revision=revision, offered=rule.action in offered)
    if told is None or told.receipt is None:
        return True
    receipt = told.receipt
    if receipt.problem is None and rule.starts_run and receipt.run_id is not None:
        session.runs.append(uuid.UUID(receipt.run_id))
    refused = receipt.problem.slug if receipt.problem is not None else None
    if (
        refused in ("action-not-available", "stale-revision")
        and rule.action in offered
        and expected == revision == receipt.revision
        # A revision read before a restore names another state than the same number after it (P2).
        and told.epoch == read_in == session.database.store_epoch
        and kind in UNTARGETED
        and (
            kind != "retry" or _is_blocked(summary)
        )  # with nothing blocked it is offered for a step that was spared
        and not payload.get("step")
    ):
        session.observer.broken(
            "P3",
            f"{kind} was offered at revision {revision} of {run_id} and refused there: {receipt.problem}",
        )
    return True


async def give_up(session: Session, run_id: uuid.UUID) -> None:
    """Cancel a run without looking long."""
    row = session.database.tables.runs.get(run_id)
    if row is None:
        return
    command = Command(
        kind="cancel",
        project=row.project,
        targets=(str(run_id),),
        payload={"reason": "no patience left"},
        client_command_id=session.new_id(),
        expected_revision=row.revision,
    )
    await session.send(command, read_revision=row.revision)


def _events(session: Session, run_id: uuid.UUID) -> list[str]:
    seen = session.observer.runs.get(run_id)
    return [] if seen is None else [step.event for step in seen.plan.steps if step.event]


def _is_blocked(summary: Summary) -> bool:
    return any(blocker["type"] not in ("input_required", "spend_cap") for blocker in summary["blockers"])


def _some_step(session: Session, run_id: uuid.UUID) -> str | None:
    keys = [key for run, key in session.database.tables.steps if run == run_id]
    return session.chance.choice(keys) if keys else None
