"""Counting operations: lines of our code that are executed, and elements of a run's containers that are read.

A line inside a loop counts each time. What a built-in reads of a container in one go (min, sorted, a slice, a copy) is
no line, so the containers of a state and of its compiled plan count their elements themselves.
"""

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import msgspec

from longtake.workflow.run_state import RunState

_reads = 0


def _count(number: int) -> None:
    global _reads
    _reads += number


class CountedList(list[Any]):
    """A list that counts every element it is asked for."""

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        _count(len(found) if isinstance(index, slice) else 1)
        return found

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            _count(1)
            yield item

    def remove(self, item: Any) -> None:
        _count(self.index(item) + 1)
        super().remove(item)


class CountedTuple(tuple[Any, ...]):
    """A tuple that counts every element it is asked for."""

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        _count(len(found) if isinstance(index, slice) else 1)
        return found

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            _count(1)
            yield item


class CountedDict(dict[Any, Any]):
    """A dict that counts every element of a walk; looking one up is free."""

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            _count(1)
            yield item

    def keys(self) -> Any:
        return iter(self)

    def values(self) -> Any:
        return (self[key] for key in self)

    def items(self) -> Any:
        return ((key, self[key]) for key in self)


def watch(state: RunState) -> RunState:
    """Let every list and dict of the state, and of the plan it walks, count what is read of it."""
    for name in state.__struct_fields__:
        value = getattr(state, name)
        # Heaps stay plain lists, which is what heapq takes; it reads no more of one than its depth.
        if type(value) is list and name not in ("ready", "ready_gates", "wakes", "fails"):
            setattr(state, name, CountedList(value))
        elif type(value) is dict:
            setattr(state, name, CountedDict(value))
    plan = state.plan
    state.plan = msgspec.structs.replace(
        plan,
        steps=CountedTuple(plan.steps),
        needs=CountedTuple(map(CountedTuple, plan.needs)),
        dependents=CountedTuple(map(CountedTuple, plan.dependents)),
        sources=CountedTuple(map(CountedTuple, plan.sources)),
        listeners=CountedTuple(plan.listeners),
        order=CountedTuple(plan.order),
        groups=CountedDict({name: CountedTuple(where) for name, where in plan.groups.items()}),
        group_dependents=CountedDict(
            {name: CountedTuple(where) for name, where in plan.group_dependents.items()}
        ),
        counting=CountedDict({name: CountedTuple(where) for name, where in plan.counting.items()}),
    )
    return state


def work(action: Callable[[], object]) -> tuple[int, int]:
    """(lines executed, elements read) of an action."""
    lines = 0

    def trace_lines(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        if event == "line":
            lines += 1
        return trace_lines

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        if "longtake" not in frame.f_code.co_filename:
            return None
        lines += 1
        return trace_lines

    before, read_before = sys.gettrace(), _reads
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return lines, _reads - read_before
