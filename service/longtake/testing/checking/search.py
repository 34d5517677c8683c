"""Linearizability: is there an order of calls, each between its beginning and its end, that a model allows?

Wing and Gong's search with Lowe's memory: a set of calls that were placed, with the state it leads to, is tried once.
Calls whose end nobody knows may be placed at any time after they began, or never. Knows nothing of runs.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import msgspec

from longtake.testing.checking.history import Call

S = TypeVar("S", bound=Hashable)

Step = Callable[[S, Call], S | None]
"""The state after a call, None when the model does not allow the call there."""

VISITS_MAX = 200_000


class Search(msgspec.Struct, kw_only=True):
    """What was found."""

    order: list[Call] | None
    """An order that explains everything, None when there is none."""
    furthest: list[Call]
    """The longest beginning of an order."""
    stuck: list[Call]
    """Calls that had ended and could not be placed after it."""
    given_up: bool = False
    """Too many ways to try: nothing is said."""


def linearize(calls: Sequence[Call], initial: S, step: "Step[S]", *, visits_max: int = VISITS_MAX) -> Search:
    """Search for an order of the calls."""
    order = sorted(calls, key=lambda call: call.begun)
    required = sum(1 << index for index, call in enumerate(order) if not math.isinf(call.ended))
    seen: set[tuple[int, Any]] = set()
    furthest: tuple[int, list[Call]] = (-1, [])
    # Each frame: placed calls as bits, the state, the way here, and what may come next.
    stack: list[tuple[int, S, list[Call]]] = [(0, initial, [])]
    visits = 0
    while stack:
        placed, state, way = stack.pop()
        if placed & required == required:
            return Search(order=way, furthest=way, stuck=[])
        if (placed, state) in seen:
            continue
        seen.add((placed, state))
        visits += 1
        if visits > visits_max:
            return Search(order=None, furthest=furthest[1], stuck=[], given_up=True)
        count = (placed & required).bit_count()
        if count > furthest[0]:
            furthest = (count, way)
        # What begins after the first end of an unplaced call cannot come before it.
        bound = min(call.ended for index, call in enumerate(order) if not placed >> index & 1)
        following = []
        for index, call in enumerate(order):
            if call.begun > bound:
                break
            if placed >> index & 1:
                continue
            after = step(state, call)
            if after is not None:
                following.append((placed | 1 << index, after, [*way, call]))
        # Calls that ended first are tried first; those without an end last.
        following.sort(key=lambda frame: frame[2][-1].ended, reverse=True)
        stack += following
    placed_ids = {call.id for call in furthest[1]}
    left = [call for call in order if call.id not in placed_ids and not math.isinf(call.ended)]
    bound = min((call.ended for call in left), default=math.inf)
    return Search(order=None, furthest=furthest[1], stuck=[call for call in left if call.begun <= bound])
