"""The heartbeat: leases are renewed from a thread, loop and connection of its own (P18).

An activity that blocks the worker's loop, or a pool that is exhausted, does not let a healthy lease expire.
"""

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Mapping

import msgspec
import structlog

from longtake.errors import AuthorityUnavailable
from longtake.store import LeaseKeeper
from longtake.worker.leases import Lease, Trust

log = structlog.get_logger("longtake.worker.heartbeat")


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """One lease that must not end while its holder lives."""

    effect_id: uuid.UUID
    fence: int
    lease: Lease
    on_lost: Callable[[], None]
    """Called in the loop that started the heartbeat."""
    progress: Callable[[], int | None]
    trust: Trust | None = None
    """Moved on by each renewal."""


class Heartbeat:
    """Renews the leases that are held, each at its own pace; tells their holders when they are gone.

    It looks every `every_seconds` at what is due; a new lease is due at once.
    """

    def __init__(self, keeper: LeaseKeeper, *, every_seconds: float) -> None:
        self._keeper = keeper
        self._every_seconds = every_seconds
        self._held: dict[uuid.UUID, Held] = {}
        self._renewed: dict[tuple[uuid.UUID, int], tuple[float, int | None]] = {}
        """By effect and fence, when it was renewed last on the monotonic clock, and with what progress."""
        self._lock = threading.Lock()
        self._home: asyncio.AbstractEventLoop | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()

    def hold(self, held: Held) -> None:
        """Renew this lease from now on."""
        with self._lock:
            self._held[held.effect_id] = held

    def let_go(self, effect_id: uuid.UUID) -> None:
        """Renew it no more."""
        with self._lock:
            self._held.pop(effect_id, None)

    async def start(self) -> None:
        """Begin; nothing happens the second time."""
        if self._thread is not None:
            return
        self._home = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._main, name="heartbeat", daemon=True)
        self._thread.start()
        await asyncio.to_thread(self._ready.wait)

    async def started(self) -> None:
        """Return once the thread runs."""
        await asyncio.to_thread(self._ready.wait)

    async def stop(self) -> None:
        """End the thread; nothing happens the second time."""
        thread, self._thread = self._thread, None
        if thread is None or self._loop is None or self._stopping is None:
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        await asyncio.to_thread(thread.join, 10.0)
        self._ready.clear()

    def _main(self) -> None:
        asyncio.run(self._beat())

    async def _beat(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._ready.set()
        try:
            while not self._stopping.is_set():
                await self._renew()
                try:
                    await asyncio.wait_for(self._stopping.wait(), self._every_seconds)
                except TimeoutError:
                    continue
        finally:
            await self._keeper.close()

    async def _renew(self) -> None:
        with self._lock:
            held = dict(self._held)
        now = time.monotonic()
        progress = {id_: percent for id_, one in held.items() if (percent := one.progress()) is not None}
        due = {id_: one for id_, one in held.items() if self._is_due(one, now, progress.get(id_))}
        known = {(id_, one.fence) for id_, one in held.items()}
        self._renewed = {key: last for key, last in self._renewed.items() if key in known}
        if not due:
            return
        try:
            ours = await self._keeper.renew(
                [(id_, one.fence, one.lease.seconds) for id_, one in due.items()], progress
            )
        except AuthorityUnavailable as error:
            # No lease expires before the authority has been up for one lease again, so nothing is lost yet; all of it
            # stays due, and is renewed by the first look that reaches the authority.
            log.warning("longtake.heartbeat_delayed", leases=len(due), reason=str(error))
            return
        self._renewed.update({(id_, due[id_].fence): (now, progress.get(id_)) for id_ in ours})
        for id_ in ours:
            if (trust := due[id_].trust) is not None:
                trust.renew(due[id_].lease.seconds, since=now)
        self._tell(due, due.keys() - ours)

    def _is_due(self, held: Held, now: float, progress: int | None) -> bool:
        """Whether there is progress to tell, or this look is the last one before the beat."""
        last = self._renewed.get((held.effect_id, held.fence))
        if last is None or last[1] != progress:
            return True
        return now + self._every_seconds > last[0] + held.lease.beat_seconds

    def _tell(self, held: Mapping[uuid.UUID, Held], lost: set[uuid.UUID]) -> None:
        for id_ in lost:
            self.let_go(id_)
            if self._home is not None and not self._home.is_closed():
                self._home.call_soon_threadsafe(held[id_].on_lost)
