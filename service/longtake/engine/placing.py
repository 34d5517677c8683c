"""Placing a new run among the active ones of its project: it begins, gets in line, or is refused (H54 to H57).

lock the project -> who holds, who is in line -> the verdict of the rules. Leaves to others: the rules (queueing.py), laying
the run down (starting.py), letting those in line begin (starter.py).
"""

import uuid
from collections.abc import Sequence
from datetime import datetime

import msgspec

from longtake.contracts.command_table import OnConflict
from longtake.contracts.events import RunQueued
from longtake.contracts.problems import Problem, ProblemError, problem
from longtake.engine.receipts import scope_conflict
from longtake.store import AdmissionTransaction, HeldScope
from longtake.workflow.queueing import LINE_MAX, Obstacle, Waiting, obstacles, verdict


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a new run asks for."""

    run_id: uuid.UUID
    project: str
    scopes: tuple[str, ...]
    policy: OnConflict
    start_at: datetime | None = None
    supersedes: tuple[uuid.UUID, ...] = ()
    """Runs that give way to it in this very transaction (steer)."""
    family: tuple[uuid.UUID, ...] = ()
    """The runs above it: they wait for it, so it can wait for none of them."""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where a new run stands."""

    queued: RunQueued | None = None
    waiting: Waiting | None = None
    """Its place in the line, if it waits for more than its time."""
    tells: tuple[uuid.UUID, ...] = ()
    """Runs that are told to make room."""
    now: datetime
    """The time under the lock, if one was taken: what begins then has not begun before others ended (P22)."""


async def place(transaction: AdmissionTransaction, wish: Wish, *, now: datetime) -> Placement | Problem:
    """Find a new run's place, under the lock of its project when it wants scopes."""
    start_at = wish.start_at if wish.start_at is not None and wish.start_at > now else None
    if not wish.scopes and not wish.supersedes:
        return Placement(queued=None if start_at is None else RunQueued(start_at=start_at), now=now)
    await transaction.lock_project(wish.project)
    line, now = await transaction.line(wish.project)
    if len(line) > LINE_MAX:
        return _line_is_full(wish.project)
    held = {item.scope: item for item in await transaction.held_scopes(wish.project, wish.scopes)}
    found = obstacles(
        wish.scopes, {scope: item.run_id for scope, item in held.items()}, () if wish.family else line, now
    )
    own = [item for item in found if item.run_id in wish.family]
    if own:
        return _conflict(own, held)
    others = [item for item in found if item.run_id not in wish.supersedes]
    if wish.supersedes and not others:
        return _queued(wish, start_at, found, now)
    match verdict(wish.policy, others, start_at=start_at, now=now):
        case "reject":
            return _conflict(others, held)
        case "queue":
            return _queued(wish, start_at, () if start_at is not None else found, now)
        case _:
            return Placement(now=now)


def _queued(wish: Wish, start_at: datetime | None, found: Sequence[Obstacle], now: datetime) -> Placement:
    in_the_way = tuple(dict.fromkeys([*wish.supersedes, *(item.run_id for item in found)]))
    # Steered runs give way in this transaction; those that the policy supersedes are told by a fact.
    tells = (
        tuple(run_id for run_id in in_the_way if run_id not in wish.supersedes)
        if wish.policy == "supersede"
        else ()
    )
    return Placement(
        queued=RunQueued(
            start_at=start_at, holders=in_the_way, scopes=tuple(dict.fromkeys(item.scope for item in found))
        ),
        waiting=Waiting(
            run_id=wish.run_id,
            scopes=wish.scopes,
            waits_for=(*wish.supersedes, *tells),
            start_at=start_at,
            supersedes=wish.policy == "supersede" and start_at is not None,
            overtakes=bool(wish.family),
        ),
        tells=tells,
        now=now,
    )


def _conflict(found: Sequence[Obstacle], held: dict[str, HeldScope]) -> Problem:
    return scope_conflict(
        [
            held[item.scope]
            if item.holds
            else HeldScope(scope=item.scope, run_id=item.run_id, phase=None, holds=False)
            for item in found
        ]
    )


def _line_is_full(project: str) -> Problem:
    return problem(
        "scope-conflict",
        f"{LINE_MAX} runs are in line in the project {project!r}; no more are taken.",
        ProblemError("/project", "has a full line", "wait until some have begun, or cancel some"),
    )
