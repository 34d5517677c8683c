"""The guard of the streams: one that was made anew has forgotten its messages (F10), one that is behind some of them (F04).

The store remembers when each stream was created. Another time means that every pointer in it may be lost: the
transport epoch rises, and the relay publishes all open effects again.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import structlog

from longtake.engine.relay import COMMAND_STREAM
from longtake.engine.waking import DOORBELL_RELAY
from longtake.ports import Doorbell
from longtake.store import SweepStore

KEPT_SECONDS = 7 * 24 * 3600.0
"""How long LT_COMMAND keeps commands, to be read again after a restore (P2); it has no other source than the store."""
UNSYNCED_SECONDS = 3600.0
"""Far longer than a server may wait until it syncs its files: what it can have lost with its power."""

log = structlog.get_logger("longtake.engine.streams")


class SeenStream(Protocol):
    """A stream as the transport found it."""

    @property
    def name(self) -> str: ...
    @property
    def created(self) -> datetime: ...


class StreamGuard:
    """Compares streams with those the store remembers."""

    def __init__(self, store: SweepStore) -> None:
        self._store = store
        self.doorbell: Doorbell | None = None

    async def seen(self, streams: Sequence[SeenStream]) -> None:
        """Take note of the streams; raise the epoch when one of them is new under an old name.

        Raises AuthorityUnavailable; the transport tells again at its next look.
        """
        created = {stream.name: stream.created.isoformat() for stream in streams}
        known = await self._store.stream_identities()
        if all(known.get(name) == birth for name, birth in created.items()):
            return
        remade = [name for name, birth in created.items() if name in known and known[name] != birth]
        if remade:
            # First the epoch: when the second write is lost, the next look raises it once more, which is harmless.
            await self._raise_epoch(remade)
        if COMMAND_STREAM in remade:
            await self._store.copy_again(KEPT_SECONDS)
        await self._store.save_stream_identities(created)
        if remade:
            self._ring()

    async def behind(self, streams: Sequence[str]) -> None:
        """Raise the epoch, for these streams came back without the end of what they had acknowledged (F04).

        Each process that notices raises it; what is published once more than needed is found settled or claimed.
        """
        await self._raise_epoch(streams)
        if COMMAND_STREAM in streams:
            await self._store.copy_again(UNSYNCED_SECONDS)
        self._ring()

    async def _raise_epoch(self, streams: Sequence[str]) -> None:
        epoch = await self._store.raise_transport_epoch()
        log.warning("longtake.transport_epoch_raised", epoch=epoch, streams=streams)

    def _ring(self) -> None:
        if self.doorbell is not None:
            self.doorbell.ring(DOORBELL_RELAY)
