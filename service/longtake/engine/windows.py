"""Windows: how much unclaimed work a pool may have in the transport, so that one tenant cannot fill it (P12).

Whoever commits publishes directly what fits; the rest stays unpublished and the relay takes it in fair order. Read at
most a few times a second, and only while something is committed. Leaves to others: the fair order (the relay's
statement), and the size of a window (store/sweeping.py).
"""

import time
from collections.abc import Callable, Iterable

import structlog

from longtake.errors import AuthorityUnavailable
from longtake.store import WINDOW_MIN, RunCommit, SweepStore

STALE_SECONDS = 1.0
"""How old a reading may be while there is room by it."""
FULL_SECONDS = 0.1
"""How old it may be when there is none."""

log = structlog.get_logger("longtake.engine.windows")


class Windows:
    """The room of each pool, as one process knows it."""

    def __init__(self, store: SweepStore, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._room: dict[str, int] = {}
        self._most: dict[str, int] = {}
        """The largest room a pool was seen to have: its window, when nothing of it waited."""
        self._read_at = float("-inf")

    async def hold_back(self, commits: Iterable[RunCommit]) -> int:
        """Mark what does not fit, as work that the relay publishes; returns how much that is."""
        batch = list(commits)
        wanted = [
            (commit, effect.id, effect.pool)
            for commit in batch
            for effect, _ in commit.effects
            if effect.not_before is None
        ]
        if not wanted:
            return 0
        await self._read(full=any(self._room.get(pool, WINDOW_MIN) <= 0 for _, _, pool in wanted))
        for commit in batch:
            for pool in commit.answered:
                # What is answered was taken: a full pool drains between two readings.
                self._room[pool] = min(self._room.get(pool, WINDOW_MIN) + 1, self._most.get(pool, WINDOW_MIN))
        held = 0
        for commit, id_, pool in wanted:
            room = self._room.get(pool, WINDOW_MIN)
            self._room[pool] = room - 1
            if room <= 0:
                commit.held_back.add(id_)
                held += 1
        return held

    async def _read(self, *, full: bool) -> None:
        now = self._monotonic()
        if now - self._read_at < (FULL_SECONDS if full else STALE_SECONDS):
            return
        self._read_at = now
        try:
            self._room = await self._store.room()
            for pool, room in self._room.items():
                self._most[pool] = max(self._most.get(pool, WINDOW_MIN), room)
        except AuthorityUnavailable as error:
            # The commit will say so itself.
            log.debug("longtake.windows_unread", reason=str(error))
