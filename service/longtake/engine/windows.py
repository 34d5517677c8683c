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
        self._read_at = float("-inf")

    async def hold_back(self, commits: Iterable[RunCommit]) -> int:
        """Mark what does not fit, as work that the relay publishes; returns how much that is."""
        wanted = [
            (commit, effect.id, effect.pool)
            for commit in commits
            for effect, _ in commit.effects
            if effect.not_before is None
        ]
        if not wanted:
            return 0
        await self._read(full=any(self._room.get(pool, WINDOW_MIN) <= 0 for _, _, pool in wanted))
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
        except AuthorityUnavailable as error:
            # The commit will say so itself.
            log.debug("longtake.windows_unread", reason=str(error))
