"""The fault bench: one service of separate processes on servers of its own, under load, with faults, and judged.

    async with Bench.open(folder, seed=1) as bench:
        report = await campaign(bench, fault, runs=220)

A fault is an object with a name of `reliability.md` 4.4. It counts itself only when it has really hit.
"""

from typing import Protocol

from kit.bench.cluster import Bench


class Fault(Protocol):
    """Something that goes wrong, at will."""

    name: str
    """As in the list of named faults: N07."""
    what: str
    """What it does, in a few words."""
    struck: int
    """How often it really hit, as observed."""

    async def strike(self, bench: Bench) -> None:
        """Begin once; returns when it has hit."""
        ...

    async def heal(self, bench: Bench) -> None:
        """Undo what lasts; may be called at any time, and again."""
        ...


__all__ = ["Bench", "Fault"]
