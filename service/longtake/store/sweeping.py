"""What relay and sweeper ask of the authority: what is due, what was lost, who lives."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from longtake.contracts.signals import Outgoing

WINDOW_FACTOR = 4
"""Unclaimed pointers that may stand published for each announced slot of a pool (P12)."""
WINDOW_MIN = 64
"""Those that may stand whatever is announced."""


class StoreIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Which store this is; epochs are in every id and pointer (P2)."""

    environment: str
    store_epoch: int
    transport_epoch: int
    application: str | None
    restoring: bool = False
    """A restore has begun and is not finished: nobody may work."""


FORGOTTEN = (
    "the store knows less of this process than it had confirmed: it was restored to an earlier moment. "
    "Stop every process and run `longtake doctor restore`"
)


class EffectPointer(msgspec.Struct, frozen=True, kw_only=True):
    """What a relay or dispatcher publishes of an effect."""

    id: uuid.UUID
    attempt: int
    generation: int
    pool: str
    traceparent: str | None = None


class LostDoorbell(msgspec.Struct, frozen=True, kw_only=True):
    """Something that has waited for the dispatcher too long."""

    what: Literal["effect", "inbox", "run"]
    id: uuid.UUID
    run_id: uuid.UUID
    traceparent: str | None = None


class EndedLease(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that ran out: its effect is queued again, or the reducer is asked."""

    id: uuid.UUID
    run_id: uuid.UUID
    state: Literal["queued", "expired"]
    traceparent: str | None = None


class StalledWork(msgspec.Struct, frozen=True, kw_only=True):
    """Work that is due for long and that nobody can take, or such work that somebody can take after all (G42)."""

    id: uuid.UUID
    tenant: str
    run_id: uuid.UUID
    step: str
    attempt: int
    activity: str
    leases: int
    stalled: bool


class SweepStore(Protocol):
    """What relay and sweeper need."""

    async def identity(self) -> StoreIdentity: ...
    async def due_pointers(
        self, *, limit: int, grace_seconds: float, oldest: Mapping[str, datetime | None], all_lost: bool
    ) -> list[EffectPointer]:
        """Mark what is published now: by priority, then in turn by tenant, and no more than a pool's window (P12)."""
        ...

    async def room(self) -> dict[str, int]:
        """By pool, how many pointers may be published more; WINDOW_MIN for a pool that is not in it."""
        ...

    async def stalled_work(self, *, stall_seconds: float, limit: int) -> list[StalledWork]: ...
    async def tell(self, tenant: str, fact: Outgoing) -> None:
        """Write a fact for a run; one of that id stands once."""
        ...

    async def expire_leases(
        self, *, leases_max: int, authority_up_seconds: float, connected: bool
    ) -> list[EndedLease]: ...

    async def lost_doorbells(
        self, *, grace_seconds: float, limit: int, oldest: Sequence[datetime | None]
    ) -> list[LostDoorbell]:
        """`oldest`: by part, the oldest message that is still in the stream."""
        ...

    async def next_due_seconds(self, *, grace_seconds: float) -> float | None: ...
    async def announce(
        self,
        *,
        roles: Sequence[str],
        pools: Sequence[str],
        activities: Sequence[str],
        slots: Sequence[int] = (),
    ) -> int:
        """The store's epoch. `slots`: what it can work on at once, by its pools.

        Raises StoreRewound when the store has forgotten what it had confirmed of this process (F70).
        """
        ...

    async def has_command(self, tenant: str, actor: str, client_command_id: str) -> bool: ...

    async def retire(self) -> None: ...
    async def bury_others(self) -> list[str]: ...
    async def uncopied_commands(self, limit: int) -> list[tuple[str, str, str, str, bytes, str | None]]: ...
    async def mark_copied(self, commands: Sequence[tuple[str, str, str]]) -> None: ...
    async def copy_again(self, seconds: float) -> int:
        """LT_COMMAND has lost the commands of the last seconds; how many are to be copied once more."""
        ...

    async def dead_letter(
        self,
        *,
        tenant: str | None,
        source: str,
        subject: str,
        reason: str,
        body: bytes,
        headers: Mapping[str, str],
    ) -> None: ...
    async def take_suspects(self, digests: Sequence[bytes]) -> dict[bytes, int]:
        """Take messages in hand; how many processes died with each of them in theirs (F16)."""
        ...

    async def stream_identities(self) -> dict[str, str]: ...
    async def save_stream_identities(self, created: Mapping[str, str]) -> None: ...
    async def raise_transport_epoch(self) -> int: ...
