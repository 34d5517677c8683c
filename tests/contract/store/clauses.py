"""What a clause is: a promise of the authority, and a fake that breaks it."""

import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import msgspec

from contract.store.bench import Bench, MemoryBench
from longtake.memory import Defences

Body = Callable[[Bench], Awaitable[None]]
Wrong = Callable[[], Any]
"""Opens a bench over a fake that breaks one rule."""


class Clause(msgspec.Struct, frozen=True):
    """One promise, named by its function."""

    name: str
    body: Body
    wrong: Wrong


CLAUSES: list[Clause] = []


def clause(wrong: Wrong) -> Callable[[Body], Body]:
    """Add a clause; `wrong` opens the fake that it must find out."""

    def add(body: Body) -> Body:
        CLAUSES.append(Clause(re.sub("_+", " ", body.__name__), body, wrong))
        return body

    return add


def without(*defences: str) -> Wrong:
    """The fake with these defences off."""

    @contextmanager
    def opened() -> Iterator[MemoryBench]:
        yield MemoryBench(Defences(**dict.fromkeys(defences, False)))

    return opened


def instead(**stores: type) -> Wrong:
    """The fake with a wrong store in the place of a right one."""

    @contextmanager
    def opened() -> Iterator[MemoryBench]:
        yield MemoryBench(None, **stores)

    return opened


def patched(place: str, replacement: Any) -> Wrong:
    """The fake with one function of `longtake.memory` replaced."""

    @contextmanager
    def opened() -> Iterator[MemoryBench]:
        with patch(f"longtake.memory.{place}", replacement):
            yield MemoryBench()

    return opened
