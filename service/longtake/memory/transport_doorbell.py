"""The port Doorbell in memory: lossy wake-ups between the processes of one world (P24).

A ring in the same process is always heard; in the others only with a link, and unless the faults of the day lose it. Waiting is the hook's:
it is called once, and what rang meanwhile is found. Leaves to others: the polling that is the truth.
"""

import re
from datetime import datetime, timedelta
from typing import Final

from longtake.memory.clock import Clock
from longtake.memory.faults import Hooks, LoopHooks
from longtake.memory.transport import MemoryTransport

HORIZON: Final = timedelta(seconds=30)
"""Sleepers wake by themselves within this time, so a ring for later than that tells them nothing."""
NAMES_MAX: Final = 4096

_NAME = re.compile(r"^[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64}){0,3}$")


class Belfry:
    """Where the doorbells of several processes hang."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.bells: list[MemoryDoorbell] = []


class MemoryDoorbell:
    """The port `Doorbell` of one process."""

    def __init__(
        self, belfry: Belfry, transport: MemoryTransport | None = None, *, hooks: Hooks | None = None
    ) -> None:
        """Without a transport it rings in this process alone."""
        self._belfry = belfry
        self._transport = transport
        self._hooks: Hooks = hooks or LoopHooks()
        self._rung_at: dict[str, datetime] = {}
        belfry.bells.append(self)

    def ring(self, name: str, *, due_at: datetime | None = None) -> None:
        """Wake whoever waits for `name`, now or when it is due, in this process and others."""
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"a doorbell cannot be called {name!r}; use 1 to 4 tokens of letters, digits, '_', '-', with dots between"
            )
        self._hear(name, due_at)
        if self._transport is None or not self._transport.is_linked:
            return
        for other in self._belfry.bells:
            if other is self or other._transport is None or not other._transport.is_linked:
                continue
            if not self._transport.broker.faults.loses_ring(name):
                other._hear(name, due_at)

    async def wait(self, name: str, *, timeout_seconds: float) -> bool:
        """Return True when rung since the last wait, False when the hook came back without."""
        if self._answer(name):
            return True
        await self._hooks.wait(f"doorbell {name} {timeout_seconds:g}")
        return self._answer(name)

    def next_due(self) -> datetime | None:
        """When a ring that was made for later becomes one."""
        return min(self._rung_at.values(), default=None)

    def stop(self) -> None:
        """Hear nothing any more."""
        if self in self._belfry.bells:
            self._belfry.bells.remove(self)

    def _hear(self, name: str, due_at: datetime | None) -> None:
        now = self._belfry.clock.now()
        moment = max(due_at or now, now)
        if moment - now > HORIZON:
            return
        if name not in self._rung_at and len(self._rung_at) >= NAMES_MAX:
            return
        # Only the earliest time is kept: whoever wakes then asks the store for the next one.
        self._rung_at[name] = min(self._rung_at.get(name, moment), moment)

    def _answer(self, name: str) -> bool:
        moment = self._rung_at.get(name)
        if moment is None or moment > self._belfry.clock.now():
            return False
        del self._rung_at[name]
        return True
