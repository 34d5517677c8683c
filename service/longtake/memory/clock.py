"""Time for everything in memory: a clock that is given, never read from the system.

Leaves to others: who moves it (the simulator, a test).
"""

from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Tells the time of the authority, always in UTC."""

    def now(self) -> datetime: ...


class ManualClock:
    """A clock that stands still until it is moved; it can be stepped backwards, as real ones are."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)) -> None:
        self._now = start

    def now(self) -> datetime:
        """The time it was set to."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move by so many seconds; a negative number is a step back."""
        self._now += timedelta(seconds=seconds)

    def set(self, moment: datetime) -> None:
        """Jump."""
        self._now = moment
