"""Falling things: seeded bodies under gravity that bounce once and come to rest. A formula of time."""

import math
from typing import NamedTuple

import numpy as np

GRAVITY = 2600.0
BOUNCE = 0.3


class Body(NamedTuple):
    """One falling thing: where and when it starts, its speeds, its spin, its size and its depth."""

    x: float
    y: float
    start: float
    across: float
    down: float
    spin: float
    turn: float
    size: float
    depth: float


class Pose(NamedTuple):
    """Where a body is: place, turn (shares of a full turn), and whether it has come to rest."""

    x: float
    y: float
    turn: float
    at_rest: bool


def scatter(
    random: np.random.Generator, count: int, *, spread: tuple[float, float], top: float, seconds: float,
    depths: tuple[float, float],
) -> list[Body]:  # fmt: skip
    """`count` bodies between two x, starting at height `top` over `seconds`, far ones first in the list."""
    draws = random.random((count, 8))
    bodies = [
        Body(
            x=spread[0] + (spread[1] - spread[0]) * float(d[0]),
            y=top - 160 * float(d[1]),
            start=seconds * (number + float(d[2])) / count,
            across=(float(d[3]) - 0.5) * 220,
            down=120 + 260 * float(d[4]),
            spin=(float(d[5]) - 0.5) * 3.2,
            turn=float(d[6]),
            size=0.8 + 0.35 * float(d[1]),
            depth=depths[0] + (depths[1] - depths[0]) * float(d[7]),
        )
        for number, d in enumerate(draws)
    ]
    return sorted(bodies, key=lambda body: body.depth)


def pose(body: Body, seconds: float, floor: float | None = None) -> Pose | None:
    """Where the body is after `seconds`, or None before it starts; without a `floor` it falls on."""
    age = seconds - body.start
    if age < 0:
        return None
    if floor is None:
        return Pose(
            body.x + body.across * age,
            body.y + body.down * age + GRAVITY / 2 * age * age,
            body.turn + body.spin * age,
            False,
        )
    drop = floor - body.y
    landing = (-body.down + math.sqrt(body.down**2 + 2 * GRAVITY * drop)) / GRAVITY
    if age < landing:
        return pose(body, seconds)
    rebound = BOUNCE * (body.down + GRAVITY * landing)
    hop = 2 * rebound / GRAVITY
    after = min(age - landing, hop)
    up = rebound * after - GRAVITY / 2 * after * after
    spin = body.turn + body.spin * landing + body.spin * 0.6 * after
    return Pose(body.x + body.across * (landing + 0.6 * after), floor - up, spin, age - landing >= hop)
