"""What a worker may ask of the authority: claim, renew, open a call, report. Never a run (P6)."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from longtake.contracts.effects import ClaimedEffect, Report


class EffectStore(Protocol):
    """What a worker may do: claim, renew, open a call, report. It never touches the event store (P6)."""

    async def claim(
        self,
        *,
        claim_id: uuid.UUID,
        effects: Sequence[tuple[uuid.UUID, int]],
        limit: int,
        owner: str,
        lease_seconds: int,
    ) -> list[ClaimedEffect]: ...
    async def open_call(self, *, effect_id: uuid.UUID, fence: int) -> bool: ...
    async def report(self, reports: Sequence[Report]) -> list[tuple[uuid.UUID, uuid.UUID]]:
        """Store receipts; (effect id, run id) of those that the dispatcher must look at."""
        ...

    async def put_back(
        self, *, effect_id: uuid.UUID, fence: int, delay_seconds: float, progress: int | None
    ) -> datetime | None: ...
    async def release(self, *, leases: Sequence[tuple[uuid.UUID, int]], owner: str) -> None: ...


class LeaseKeeper(Protocol):
    """Renews leases, in a thread and connection of its own (P18)."""

    async def renew(
        self, leases: Sequence[tuple[uuid.UUID, int, int]], progress: Mapping[uuid.UUID, int]
    ) -> set[uuid.UUID]:
        """Renew each of (effect, fence, seconds); returns the ids that are still ours."""
        ...

    async def close(self) -> None: ...
