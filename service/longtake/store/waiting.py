"""What roles ask of the authority when there is no broker: what waits for them (G54, P24)."""

from collections.abc import Sequence
from typing import Protocol

from longtake.store.sweeping import EffectPointer, LostDoorbell


class WaitingStore(Protocol):
    """Reads alone; whoever takes something up does so as always, by claim and by revision."""

    async def waiting_effects(self, pool: str, *, limit: int) -> Sequence[EffectPointer]:
        """Due effects of a pool that the relay has let through and nobody has leased, the longest waiting first."""
        ...

    async def waiting_facts(self, part: int, *, parts: int, limit: int) -> Sequence[LostDoorbell]:
        """Receipts, ended leases, deadlines, callbacks, due timers and signals of one part of the runs."""
        ...
