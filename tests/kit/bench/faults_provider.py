"""An outsider that is silent, wrong, early, late and double: N28."""

import asyncio
from contextlib import suppress

from kit.bench.cluster import Bench
from kit.bench.provider import HABITS

RATES = {name: 0.25 for name in HABITS} | {"refused_500": 0.15, "taken_then_silent": 0.08}

SHOWS_SECONDS = 5.0


class Provider:
    """All its habits at once, until healed."""

    def __init__(self) -> None:
        self.name = "N28"
        self.what = "a provider that times out after success, fails, throttles, and calls back early, late, twice and wrong"
        self.struck = 0

    async def strike(self, bench: Bench) -> None:
        """Switch them on; requests to come meet them. There may be none any more: then another strike has to count."""
        await bench.provider.set_rates(RATES)
        with suppress(TimeoutError):
            async with asyncio.timeout(SHOWS_SECONDS):
                while not await bench.provider.struck():
                    await asyncio.sleep(0.05)  # what another process does has no event here

    async def heal(self, bench: Bench) -> None:
        """Switch them off, and count what showed."""
        await bench.provider.set_rates({})
        self.struck = sum((await bench.provider.struck()).values())


def faults() -> list[Provider]:
    """New ones of this module."""
    return [Provider()]
