"""What the disk may not have got yet: changes of the last seconds, each with the way to take it back.

A real server acknowledges before it syncs. Leaves to others: what taking back means for each change (broker_server.py,
broker_consumer.py), and when the power goes (broker.py).
"""

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from longtake.memory.clock import Clock

SYNC_SECONDS: Final = 120.0
"""How far a power loss can reach back: the default `sync_interval` of nats-server."""
_HORIZON: Final = timedelta(seconds=SYNC_SECONDS)


class Journal:
    """Changes in the order in which they were made."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changes: deque[tuple[datetime, Callable[[], None]]] = deque()

    def note(self, take_back: Callable[[], None]) -> None:
        """Remember how to take back what was just changed."""
        now, changes = self._clock.now(), self._changes
        changes.append((now, take_back))
        while now - changes[0][0] > _HORIZON:
            changes.popleft()

    def take_back(self, seconds: float) -> int:
        """Undo the changes of the last seconds, the youngest first; how many there were."""
        since = self._clock.now() - min(timedelta(seconds=seconds), _HORIZON)
        number = 0
        while self._changes and self._changes[-1][0] > since:
            self._changes.pop()[1]()
            number += 1
        return number
