"""Processes that die or stand still: N01 to N06."""

import asyncio
from collections.abc import Sequence

from kit.bench.cluster import LEASE_SECONDS, Bench, RoleProcess

STILL_SECONDS = 2.0 * LEASE_SECONDS


class Kill:
    """SIGKILL to one process of each of some roles."""

    def __init__(self, name: str, roles: Sequence[str]) -> None:
        self.name = name
        self.what = f"kill -9 {' and '.join(roles)}"
        self.struck = 0
        self._roles = roles

    async def strike(self, bench: Bench) -> None:
        """Kill one that works, of each role."""
        for role in self._roles:
            process = bench.chance.choice(bench.of(role))
            await process.ready()
            before = process.deaths
            await process.kill()
            while process.deaths == before:
                await asyncio.sleep(0.01)  # its keeper has to notice
            self.struck += 1

    async def heal(self, bench: Bench) -> None:
        """The keeper begins another."""


class StandStill:
    """SIGSTOP to one process of a role for longer than a lease, then SIGCONT: a zombie that goes on."""

    def __init__(self, name: str, role: str) -> None:
        self.name = name
        self.what = f"SIGSTOP {role} for two leases"
        self.struck = 0
        self._role = role
        self._stopped: list[RoleProcess] = []

    async def strike(self, bench: Bench) -> None:
        """Stop one that works, and let time pass for the others."""
        process = bench.chance.choice(bench.of(self._role))
        await process.ready()
        process.stop()
        self._stopped.append(process)
        await asyncio.sleep(STILL_SECONDS)
        self.struck += process.alive

    async def heal(self, bench: Bench) -> None:
        """Let it go on as if nothing had happened."""
        while self._stopped:
            self._stopped.pop().cont()


def faults() -> list[Kill | StandStill]:
    """New ones of this module."""
    return [
        Kill("N01", ("api",)),
        Kill("N02", ("worker",)),
        Kill("N03", ("relay",)),
        Kill("N04", ("dispatcher", "sweeper")),
        StandStill("N05", "worker"),
        StandStill("N06", "relay"),
    ]
