"""What a restore asks of the authority and of the transport's memory (F70)."""

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

import msgspec


class OtherConnection(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody else in the database."""

    pid: int
    name: str
    as_user: str


class RestoreFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a restored store knows of itself."""

    environment: str
    store_epoch: int
    restoring: bool
    """An earlier restore has begun and did not come to its end."""
    timeline: int
    remembered_until: datetime | None
    """The last moment that the store remembers; None for an empty one."""


class KeptMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that stands in a stream."""

    seq: int
    stored_at: datetime
    subject: str
    headers: dict[str, str]
    body: bytes


class RestoreStore(Protocol):
    """What a restore does to the authority."""

    async def others(self) -> list[OtherConnection]: ...
    async def facts(self) -> RestoreFacts: ...
    async def begin(self, epoch: int, *, restored_to: datetime | None, ask_hours: int) -> int | None:
        """Raise the epochs and bury every process; how many were buried, None when the epoch is not above the store's."""
        ...

    async def unknown(
        self, *, effects: Sequence[uuid.UUID], runs: Sequence[uuid.UUID], inbox: Sequence[uuid.UUID]
    ) -> dict[uuid.UUID, str]:
        """The pointers that name nothing here, each with what it should name."""
        ...

    async def revision(self, tenant: str, run_id: uuid.UUID) -> int | None:
        """Where a run stands; None when there is none."""
        ...

    async def calls_in_doubt(self) -> int: ...
    async def finish(self, epoch: int, report: Mapping[str, object]) -> None: ...


class TransportMemory(Protocol):
    """What the transport remembers of the store. All raise TransportUnavailable."""

    async def epoch(self) -> int | None:
        """The highest store epoch that was noted; None when nothing is."""
        ...

    async def note_epoch(self, epoch: int) -> None: ...
    async def note_replayed(self, seq: int) -> None:
        """A restore has gone through the commands up to there, whatever became of them."""
        ...

    async def last_copied_command(self) -> tuple[str, str, str] | None:
        """(tenant, actor, client command id) when the newest message is a copy of a command that the store had accepted, and
        that no restore has gone through."""
        ...

    def commands(self, since: datetime | None) -> AsyncIterator[KeptMessage]: ...
    def pointers(self) -> AsyncIterator[KeptMessage]: ...
    async def remove(self, message: KeptMessage) -> None: ...
