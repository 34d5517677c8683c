"""Doorbells within one process: lossy wake-ups between its roles (P24, floor 2).

Whoever makes work rings; whoever sleeps until the next due time wakes early. A ring for a later moment wakes then: waking
everybody now for work that is due in twenty seconds would cost a query each. Leaves to others: telling other processes.
"""

import asyncio
import re
from datetime import UTC, datetime
from typing import Final

HORIZON_SECONDS: Final = 30.0
"""Sleepers wake by themselves within this time (P24), so a ring for later than that tells them nothing."""
NAMES_MAX: Final = 4096

_NAME = re.compile(r"^[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64}){0,3}$")


class LocalDoorbell:
    """The port `Doorbell` for one process."""

    def __init__(self) -> None:
        self._bells: dict[str, asyncio.Event] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def ring(self, name: str, *, due_at: datetime | None = None) -> None:
        """Wake whoever waits for `name`, now or when it is due. ValueError for what cannot be a name."""
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"a doorbell cannot be called {name!r}; use 1 to 4 tokens of letters, digits, '_', '-', with dots between"
            )
        self.ring_here(name, due_at)

    async def wait(self, name: str, *, timeout_seconds: float) -> bool:
        """Return True when rung since the last wait, False after the timeout."""
        bell = self._bell(name)
        if bell is None:
            raise ValueError(
                f"more than {NAMES_MAX} doorbells; names must come from a small set, not from ids"
            )
        try:
            async with asyncio.timeout(timeout_seconds):
                await bell.wait()
        except TimeoutError:
            return False
        bell.clear()
        return True

    def _bell(self, name: str) -> asyncio.Event | None:
        bell = self._bells.get(name)
        if bell is None and len(self._bells) < NAMES_MAX:
            bell = self._bells[name] = asyncio.Event()
        return bell

    def ring_here(self, name: str, due_at: datetime | None) -> None:
        """The same for a name that somebody else has checked."""
        bell = self._bell(name)
        if bell is None:
            return
        seconds = 0.0 if due_at is None else (due_at - datetime.now(UTC)).total_seconds()
        if seconds <= 0:
            bell.set()
        elif seconds <= HORIZON_SECONDS:
            self._ring_later(name, bell, seconds)

    def _ring_later(self, name: str, bell: asyncio.Event, seconds: float) -> None:
        # Only the earliest time of a name is kept: whoever wakes then asks the store for the next one.
        loop = asyncio.get_running_loop()
        timer = self._timers.get(name)
        if (
            timer is not None
            and not timer.cancelled()
            and loop.time() < timer.when() <= loop.time() + seconds
        ):
            return
        if timer is not None:
            timer.cancel()
        self._timers[name] = loop.call_later(seconds, bell.set)

    def forget_timers(self) -> None:
        """Ring for nothing that was to be rung later."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
