"""The guard of the store: no process works on a store that is older than what the transport knows of it (F70).

Somebody may restore a backup and forget the rest. Two things give it away: the transport has noted a higher epoch than the store has,
or the newest command that the relay copied from the store is unknown to it. (A process that ran through the restore
is found by its own announcement, presence.py.)
"""

import asyncio

import structlog

from longtake.errors import StoreRewound, TransportUnavailable
from longtake.lifecycle import LoopService, Service
from longtake.store import SweepStore, TransportMemory

AGAIN_SECONDS = 1.0
REMEDY = "Stop every process and run `longtake doctor restore`"

log = structlog.get_logger("longtake.engine.store_guard")


class StoreGuard(LoopService):
    """Stands between the streams and the roles; while NATS is away it looks as soon as that is back."""

    def __init__(self, ready: Service, memory: TransportMemory, store: SweepStore) -> None:
        """`ready`: waits for the streams, for as long as it thinks right."""
        super().__init__("store-guard", self._work)
        self._ready = ready
        self._memory = memory
        self._store = store
        self._is_checked = False

    async def start(self) -> None:
        """Check, and begin. Raises StoreRewound."""
        await self._ready.start()
        await self._try()
        await super().start()

    async def _work(self, stopping: asyncio.Event) -> None:
        while not (self._is_checked or stopping.is_set()):
            try:
                await asyncio.wait_for(stopping.wait(), AGAIN_SECONDS)
            except TimeoutError:
                await self._try()

    async def _try(self) -> None:
        try:
            await check_store(self._memory, self._store)
            self._is_checked = True
        except TransportUnavailable as error:
            log.warning("longtake.store_unchecked", reason=str(error))


async def check_store(memory: TransportMemory, store: SweepStore) -> None:
    """Raise StoreRewound when the store was restored and nobody went through the restore; else note its epoch."""
    identity = await store.identity()
    if identity.restoring:
        raise StoreRewound(f"a restore of this store has begun and did not come to its end. {REMEDY}")
    known = await memory.epoch() or 0
    if known > identity.store_epoch:
        raise StoreRewound(
            f"this store has epoch {identity.store_epoch} and the transport has seen {known}: it was restored. {REMEDY}"
        )
    last = await memory.last_copied_command()
    if last is not None and not await store.has_command(*last):
        raise StoreRewound(
            f"LT_COMMAND holds command {last[2]} of {last[0]}, which this store had accepted and does not know any more: "
            f"it was restored. {REMEDY}"
        )
    await memory.note_epoch(identity.store_epoch)
