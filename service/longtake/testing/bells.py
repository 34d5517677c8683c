"""Doorbells of a simulated world: they ring in every process at once, and some of them are not heard (P24)."""

from datetime import datetime

from longtake.testing.faults import Faults
from longtake.testing.world import World


class WorldDoorbell:
    """Implements `Doorbell` over the sounds of a world."""

    def __init__(self, world: World, faults: Faults) -> None:
        self._world = world
        self._faults = faults

    def ring(self, name: str, *, due_at: datetime | None = None) -> None:
        """Wake whoever waits for `name`, at once or when something is due."""
        if self._faults.happens("bell_lost", "doorbell"):
            return
        world, sound = self._world, f"bell.{name}"
        if due_at is None:
            world.sound(sound)
            return
        world.later(max(0.0, (due_at - world.now()).total_seconds()), lambda: world.sound(sound))

    async def wait(self, name: str, *, timeout_seconds: float) -> bool:
        """True when rung, False after the timeout."""
        return await self._world.listen(f"bell.{name}", seconds=timeout_seconds)
