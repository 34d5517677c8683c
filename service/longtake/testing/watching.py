"""Stores that look at their own answers: what a claim or an ended lease may not be, told the moment it happens (I16, P18)."""

import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta

from longtake.contracts.effects import ClaimedEffect
from longtake.memory import MemoryDatabase, MemoryEffectStore, MemorySweepStore
from longtake.store import EndedLease

Broken = Callable[[str, str], None]
"""(invariant, message)."""

Leases = dict[tuple[uuid.UUID, int], uuid.UUID]
"""By effect and fence, the claim that got it; a restore of the store does not take that back."""


class WatchedEffects(MemoryEffectStore):
    """No two leases of one effect share a fence."""

    def __init__(self, database: MemoryDatabase, *, store_epoch: int, leases: Leases, broken: Broken) -> None:
        super().__init__(database, store_epoch=store_epoch)
        self._leases = leases
        self._broken = broken

    async def claim(
        self,
        *,
        claim_id: uuid.UUID,
        effects: Sequence[tuple[uuid.UUID, int]],
        limit: int,
        owner: str,
        lease_seconds: int,
    ) -> list[ClaimedEffect]:
        """Claim, and compare with every claim there ever was."""
        claimed = await super().claim(
            claim_id=claim_id, effects=effects, limit=limit, owner=owner, lease_seconds=lease_seconds
        )
        for effect in claimed:
            if self._leases.setdefault((effect.id, effect.fence), claim_id) != claim_id:
                self._broken(
                    "I16", f"two leases of {effect.step}/{effect.attempt} have the fence {effect.fence}"
                )
        return claimed


class WatchedSweeps(MemorySweepStore):
    """No lease ends before the authority has been there for as long as a lease lasts."""

    def __init__(
        self, database: MemoryDatabase, *, incarnation: uuid.UUID, owner: str, broken: Broken
    ) -> None:
        super().__init__(database, incarnation=incarnation, owner=owner)
        self._looked_at = database
        self._broken = broken

    async def expire_leases(
        self, *, leases_max: int, authority_up_seconds: float, connected: bool
    ) -> list[EndedLease]:
        """End leases, and look since when the authority is there."""
        ended = await super().expire_leases(
            leases_max=leases_max, authority_up_seconds=authority_up_seconds, connected=connected
        )
        up = self._looked_at.clock.now() - self._looked_at.started_at
        if ended and up < timedelta(seconds=authority_up_seconds):
            self._broken("P18", f"{len(ended)} leases were ended {up} after the authority came back")
        return ended
