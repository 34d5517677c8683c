"""Presence: a process says that it lives, so that what it published or leased can be told from what a dead one did."""

import asyncio

import structlog

from longtake.errors import AuthorityUnavailable, StoreRewound
from longtake.lifecycle import LoopService
from longtake.store import SweepStore

ANNOUNCE_SECONDS = 5.0

log = structlog.get_logger("longtake.engine.presence")


class Presence(LoopService):
    """Announces one process until it stops in good order; a killed one is missed after its last announcement."""

    def __init__(
        self,
        store: SweepStore,
        *,
        roles: tuple[str, ...],
        pools: tuple[str, ...],
        activities: tuple[str, ...],
        slots: tuple[int, ...] = (),
        store_epoch: int,
    ) -> None:
        """`slots`: what it works on at once, by its pools; nothing for a process that does not work."""
        super().__init__("presence", self._work)
        self._store = store
        self._roles = roles
        self._pools = pools
        self._activities = activities
        self._slots = slots
        self._store_epoch = store_epoch

    async def announce(self) -> None:
        """Say it once. Raises AuthorityUnavailable; StoreRewound when the store was restored under this process."""
        epoch = await self._store.announce(
            roles=self._roles, pools=self._pools, activities=self._activities, slots=self._slots
        )
        if epoch != self._store_epoch:
            raise StoreRewound(
                f"the store has epoch {epoch} now, and this process began under {self._store_epoch}: it was restored. "
                "Start the process again"
            )

    async def _work(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            try:
                await self.announce()
            except AuthorityUnavailable as error:
                log.warning("longtake.announcement_delayed", reason=str(error))
            try:
                await asyncio.wait_for(stopping.wait(), ANNOUNCE_SECONDS)
            except TimeoutError:
                continue
        try:
            await self._store.retire()
        except AuthorityUnavailable:
            log.warning("longtake.retirement_unsaid")
