"""Pace: how long an idle role sleeps (P24). All idle roles share one question and one cap; doorbells cut it short."""

import asyncio

import msgspec

from longtake.ports import Doorbell
from longtake.store import SweepStore


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """The times of relay and sweeper, in seconds."""

    cap_seconds: float = 30.0
    """Longest sleep: a lost doorbell is found after this at the latest."""
    floor_seconds: float = 0.5
    grace_seconds: float = 2.0
    """How long a hint may take before it counts as lost."""
    away_seconds: float = 0.5
    """Between tries while the authority is away."""

    async def seconds(self, store: SweepStore) -> float:
        """Until something is due. Raises AuthorityUnavailable."""
        due = await store.next_due_seconds(grace_seconds=self.grace_seconds)
        return self.cap_seconds if due is None else max(self.floor_seconds, min(due, self.cap_seconds))

    async def sleep(self, doorbell: Doorbell, name: str, seconds: float, stopping: asyncio.Event) -> None:
        """Sleep until rung, told to stop, or the time is over."""
        rung = asyncio.create_task(doorbell.wait(name, timeout_seconds=seconds))
        stop = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait({rung, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            rung.cancel()
            stop.cancel()
            await asyncio.gather(rung, stop, return_exceptions=True)
