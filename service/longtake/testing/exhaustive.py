"""The exhaustive search: every state of a small world, breadth first, so that the first trace to a fault is a shortest one.

A state is judged when it is first met. A state in which no fair act is possible must be an end or wait for a person; in a
world that was walked to its last state, such an end must be reachable from everywhere by fair acts alone.
Leaves to others: worlds (exhaustive_worlds.py), states, acts and laws (exhaustive_*.py).
"""

import time
from array import array
from collections import deque

import msgspec

from longtake.engine.deciding import commit_of
from longtake.memory import Defences
from longtake.testing.exhaustive_laws import Laws, stuck
from longtake.testing.exhaustive_machine import Broken, Decide, Machine
from longtake.testing.exhaustive_moves import Moves
from longtake.testing.exhaustive_state import Canon, Node
from longtake.testing.exhaustive_worlds import Setting


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A promise that does not hold, and the shortest way there."""

    invariant: str
    message: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        steps = "\n".join(f"  {number:3} {label}" for number, label in enumerate(self.trace, 1))
        return f"{self.invariant}: {self.message}\n{steps}"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a walk through one world has met."""

    world: str
    states: int
    transitions: int
    histories: int
    ends: int
    """States in which nothing goes on by itself."""
    depth: int
    seconds: float
    complete: bool
    """Every state that can be reached was met."""
    faults: tuple[Fault, ...]

    @property
    def line(self) -> str:
        """A line of the table."""
        return (
            f"{self.world:22} {self.states:9,} states {self.transitions:10,} transitions {self.histories:7,} histories "
            f"{self.ends:7,} ends  depth {self.depth:3}  {self.seconds:6.1f} s {self.states / max(self.seconds, 1e-9):7,.0f} "
            f"states/s  {'to the last state' if self.complete else 'to the limit'}, {len(self.faults)} violations"
        )


class _Walk:
    """The bookkeeping of one search: what was met, whence, and what fair acts lead where."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.parents = array("l", [-1])
        self.labels: list[str] = [""]
        self.fair_from = array("l")
        self.fair_to = array("l")
        self.ends: list[int] = []

    def meet(self, key: int, parent: int, label: str) -> int | None:
        """The number of a state that was not met before; None for one that was."""
        if key in self.numbers:
            return None
        number = self.numbers[key] = len(self.numbers)
        if parent >= 0:
            self.parents.append(parent)
            self.labels.append(label)
        return number

    def trace(self, number: int, *last: str) -> tuple[str, ...]:
        """The acts that lead to a state."""
        labels: list[str] = []
        while number > 0:
            labels.append(self.labels[number])
            number = self.parents[number]
        return (*reversed(labels), *last)

    def astray(self) -> int | None:
        """A state from which fair acts lead to no end; None when there is none."""
        back: dict[int, list[int]] = {}
        for source, target in zip(self.fair_from, self.fair_to, strict=True):
            back.setdefault(target, []).append(source)
        reached = bytearray(len(self.numbers))
        waiting = list(self.ends)
        for number in waiting:
            reached[number] = 1
        while waiting:
            for source in back.get(waiting.pop(), ()):
                if not reached[source]:
                    reached[source] = 1
                    waiting.append(source)
        return next((number for number, seen in enumerate(reached) if not seen), None)


def explore(
    setting: Setting,
    *,
    states_max: int,
    defences: Defences | None = None,
    decide: Decide = commit_of,
    faults_max: int = 1,
) -> Report:
    """Walk through one world until `states_max` states were met, or all of them, or `faults_max` faults were found."""
    began = time.perf_counter()
    machine = Machine(setting, defences=defences, decide=decide)
    laws, moves = Laws(machine), Moves(machine)
    canon = Canon(laws.run_form)
    walk = _Walk()
    faults: list[Fault] = []
    first = machine.genesis()
    frontier: deque[tuple[int, int, Node]] = deque()
    try:
        laws.judge(first, None)
        walk.meet(canon.key(first), -1, "")
        frontier.append((0, 0, first))
    except Broken as broken:
        faults.append(Fault(invariant=broken.invariant, message=broken.message, trace=()))
    transitions = depth = 0
    while frontier and len(walk.numbers) < states_max and len(faults) < faults_max:
        number, depth, node = frontier.popleft()
        goes_on = False
        label = ""
        try:
            for move in moves.of(node):
                transitions += 1
                label = move.label
                laws.judge(move.node, node)
                key = canon.key(move.node)
                child = walk.meet(key, number, label)
                if child is not None:
                    frontier.append((child, depth + 1, move.node))
                if move.fair:
                    there = walk.numbers[key]
                    goes_on |= there != number
                    walk.fair_from.append(number)
                    walk.fair_to.append(there)
                label = ""
        except Broken as broken:
            where = (label,) if label else ("and then",)
            faults.append(
                Fault(invariant=broken.invariant, message=broken.message, trace=walk.trace(number, *where))
            )
            continue
        if not goes_on:
            walk.ends.append(number)
            faults += [
                Fault(invariant=invariant, message=message, trace=walk.trace(number))
                for invariant, message in stuck(node, machine)
            ]
    complete = not frontier and not faults
    if complete and (lost := walk.astray()) is not None:
        message = "no fair acts lead from here to an end"
        faults.append(Fault(invariant="I35", message=message, trace=walk.trace(lost)))
    return Report(
        world=setting.name,
        states=len(walk.numbers),
        transitions=transitions,
        histories=laws.histories,
        ends=len(walk.ends),
        depth=depth,
        seconds=time.perf_counter() - began,
        complete=complete,
        faults=tuple(faults),
    )
