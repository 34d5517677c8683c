"""The heartbeat: leases are renewed from a thread, loop and connection of its own (P18).

An activity that blocks the worker's loop, or a pool that is exhausted, does not let a healthy lease expire.
"""

import asyncio
import threading
import uuid
from collections.abc import Callable

import structlog

from longtake.errors import AuthorityUnavailable
from longtake.store import LeaseKeeper

log = structlog.get_logger("longtake.worker.heartbeat")

OnLost = Callable[[], None]


class Heartbeat:
    """Renews the leases that are held, every `every_seconds`; tells their holders when they are gone."""

    def __init__(self, keeper: LeaseKeeper, *, every_seconds: float) -> None:
        self._keeper = keeper
        self._every_seconds = every_seconds
        self._held: dict[uuid.UUID, tuple[int, OnLost, Callable[[], int | None]]] = {}
        self._lock = threading.Lock()
        self._home: asyncio.AbstractEventLoop | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()

    def hold(
        self, effect_id: uuid.UUID, fence: int, on_lost: OnLost, progress: Callable[[], int | None]
    ) -> None:
        """Renew this lease from now on. `on_lost` is called in the loop that started the heartbeat."""
        with self._lock:
            self._held[effect_id] = (fence, on_lost, progress)

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
        if not held:
            return
        progress = {id_: percent for id_, (_, _, read) in held.items() if (percent := read()) is not None}
        try:
            ours = await self._keeper.renew([(id_, fence) for id_, (fence, _, _) in held.items()], progress)
        except AuthorityUnavailable as error:
            # No lease expires before the authority has been up for one lease again, so nothing is lost yet.
            log.warning("longtake.heartbeat_delayed", leases=len(held), reason=str(error))
            return
        for id_ in held.keys() - ours:
            self.let_go(id_)
            if self._home is not None and not self._home.is_closed():
                self._home.call_soon_threadsafe(held[id_][1])
