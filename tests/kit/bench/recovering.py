"""How long the service is away: from a blow to the next committed decision, with one process of each role.

async for figure in recoveries(folder, seed=1): print(figure.text())
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import asyncpg
import msgspec

from kit.bench.cluster import ROLES, SETTINGS, Bench
from kit.bench.soaking import Stream
from kit.probe import eventually

TIMES = 3
WAIT_SECONDS = 90.0
CAUSED = "select count(*) from longtake.events where recorded_at > $1 and meta->>'causation' like "
AFTER_CLAIM = """
select count(*) from longtake.events e
join longtake.effect_claims c on e.meta->>'causation' = 'effect:' || c.effect_id
where e.recorded_at > $1 and c.claimed_at > $1
"""
NEEDS = {
    "api": (
        "next accepted run",
        "select count(*) from longtake.events where recorded_at > $1 and type = 'run_accepted'",
    ),
    "dispatcher": ("next decision on a receipt", CAUSED + "'effect:%'"),
    "relay": ("next decision on a poll that it published", AFTER_CLAIM + " and c.kind = 'poll'"),
    "sweeper": ("next timer that fires", CAUSED + "'timer:%'"),
    "worker": ("next decision on work claimed since", AFTER_CLAIM),
}
"""By role, the next committed decision that cannot come without it."""
ANY = ("next decision on work claimed since", AFTER_CLAIM)
CLAIMED = "select count(*) from longtake.effect_claims where run_id = $1"


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of blow, and how long after it the next decision stood."""

    blow: str
    until: str
    seconds: list[float]

    def text(self) -> str:
        """One line for people."""
        ordered = sorted(self.seconds)
        shown = ", ".join(f"{value:.2f}" for value in ordered)
        return f"{self.blow:<34} to {self.until:<42} {ordered[len(ordered) // 2]:6.2f} s  ({shown})"


async def recoveries(folder: Path, *, seed: int, times: int = TIMES) -> AsyncIterator[Figure]:
    """All figures, one after the other, on one bench."""
    async with Bench.open(folder, seed=seed, roles=[f"{role}-1" for role in ROLES]) as bench:
        stream = Stream(bench)
        playing = asyncio.create_task(stream.play())
        try:
            for role in ROLES:
                process = bench.roles[f"{role}-1"]
                blow = f"kill -9 {role}"
                yield await _figure(bench, blow, process.kill, times, NEEDS[role])
            for number in (signal.SIGKILL, signal.SIGQUIT):
                name = "kill -9 postmaster" if number is signal.SIGKILL else "immediate restart of Postgres"

                async def hit(number: signal.Signals = number) -> None:
                    pid = bench.servers.pids.postgres
                    assert pid is not None, "it runs before it is hit"
                    os.kill(pid, number)

                yield await _figure(bench, name, hit, times, ANY)

            async def hit_broker() -> None:
                pid = bench.servers.pids.nats
                assert pid is not None, "it runs before it is hit"
                os.kill(pid, signal.SIGKILL)

            yield await _figure(bench, "kill -9 nats-server", hit_broker, times, ANY)
        finally:
            stream.ending = True
            with suppress(TimeoutError):
                async with asyncio.timeout(WAIT_SECONDS):
                    await playing
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
        yield await _lost_hints(bench, times)


async def _figure(
    bench: Bench, blow: str, hit: Callable[[], Awaitable[None]], times: int, wanted: tuple[str, str]
) -> Figure:
    until, query = wanted
    seconds = []
    for _ in range(times):
        await _decision_after(bench, await _clock(bench), query)
        began = time.monotonic()
        await hit()
        # What was under way when it was hit may still be committed: only what comes after its death counts.
        await _decision_after(bench, await _clock(bench), query)
        seconds.append(time.monotonic() - began)
        await asyncio.gather(*(role.ready() for role in bench.roles.values()))
    return Figure(blow=blow, until=until, seconds=seconds)


async def _lost_hints(bench: Bench, times: int) -> Figure:
    """A run is accepted while nothing reaches NATS; then the way is free, and nobody says a word about the run."""
    seconds = []
    for number in range(times):
        session = Stream(bench).sessions[0]
        bench.nats_proxy.refuse()
        await session.begin(Stream(bench), f"unheard-{number}")
        (run_id,) = session.runs
        bench.nats_proxy.heal()
        began = time.monotonic()
        connection = await bench.connect()
        try:
            await eventually(
                lambda connection=connection, run_id=run_id: connection.fetchval(CLAIMED, run_id),
                "somebody to work on a run whose hints were lost",
                WAIT_SECONDS,
            )
        finally:
            await connection.close()
            await session.close()
        seconds.append(time.monotonic() - began)
    cap = SETTINGS["idle_seconds"]
    return Figure(
        blow=f"hints lost (idle cap {cap:.0f} s, P24)", until="somebody works on it", seconds=seconds
    )


async def _clock(bench: Bench) -> object:
    async with bench.connected() as connection:
        return await connection.fetchval("select clock_timestamp()")


async def _decision_after(bench: Bench, at: object, query: str) -> None:
    async def decided() -> bool:
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            async with bench.connected() as connection:
                return bool(await connection.fetchval(query, at))
        return False

    await eventually(decided, "a decision", WAIT_SECONDS)
