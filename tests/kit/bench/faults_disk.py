"""The disk under Postgres: it takes its time to sync (N13), or says that it could not (F43)."""

import asyncio
import signal
from pathlib import Path
from typing import Final

from kit.bench.cluster import Bench
from kit.left_out import NEEDS
from kit.probe import eventually

SLOW_SECONDS: Final = 4.0
DELAY_MICROSECONDS: Final = 250_000
SYNCS: Final = "fsync,fdatasync"


class Syncs:
    """strace holds every process of one Postgres, and what it forks, and does something to their syncs."""

    def __init__(self, trace: Path, injection: str) -> None:
        self.trace = trace
        self._injection = injection
        self._tracer: asyncio.subprocess.Process | None = None

    async def take(self, postmaster: int) -> None:
        """Attach to all of them. Raises AssertionError when strace cannot."""
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        self.trace.touch()
        self._tracer = await asyncio.create_subprocess_exec(
            *("strace", "-q", "-f", "-e", f"trace={SYNCS}", "-e", f"inject={SYNCS}:{self._injection}"),
            *("-o", str(self.trace)),
            *(word for pid in (str(postmaster), *children) for word in ("-p", pid)),
            stderr=asyncio.subprocess.DEVNULL,
        )

    def delayed(self) -> int:
        """How many syncs strace has held up, by its own account."""
        return self.trace.read_text().count("(DELAYED)")

    async def let_go(self) -> None:
        """Detach; the processes go on as before."""
        if self._tracer is not None and self._tracer.returncode is None:
            self._tracer.send_signal(signal.SIGINT)
            await self._tracer.wait()
        self._tracer = None


class SlowSync:
    """Each sync of Postgres takes a quarter of a second longer."""

    name = "N13-sync"
    what = "slow syncs under Postgres"

    def __init__(self) -> None:
        self.struck = 0
        self._syncs: Syncs | None = None

    async def strike(self, bench: Bench) -> None:
        """Slow for a while; the syncs that strace says it delayed count."""
        self._syncs = await taken(bench, f"slow-{self.struck}", f"delay_enter={DELAY_MICROSECONDS}")
        await asyncio.sleep(SLOW_SECONDS)
        await self.heal(bench)

    async def heal(self, bench: Bench) -> None:
        """As fast as the disk is."""
        if self._syncs is not None:
            await self._syncs.let_go()
            self.struck += self._syncs.delayed()
            self._syncs = None


class FailedSync:
    """A sync says EIO: Postgres believes nothing that it has in memory any more, stops and recovers (F43)."""

    name = "F43"
    what = "EIO of a sync under Postgres"

    def __init__(self) -> None:
        self.struck = 0
        self._syncs: Syncs | None = None

    async def strike(self, bench: Bench) -> None:
        """Until Postgres says why it stops; it counts when it did, and somebody answers again."""
        log = bench.folder / "servers" / "log" / "postgres.log"
        before = log.read_text().count("PANIC")
        self._syncs = await taken(bench, f"eio-{self.struck}", "error=EIO")
        await eventually(lambda: log.read_text().count("PANIC") > before, "a panic of Postgres")
        self.struck += 1
        await self.heal(bench)
        await (await bench.connect()).close()

    async def heal(self, bench: Bench) -> None:
        """Syncs succeed again."""
        if self._syncs is not None:
            await self._syncs.let_go()
            self._syncs = None


async def taken(bench: Bench, name: str, injection: str) -> Syncs:
    """The syncs of the bench's Postgres, in the hands of strace."""
    postmaster = bench.servers.pids.postgres
    assert postmaster is not None, "it runs when it is struck"
    syncs = Syncs(bench.folder / f"syncs-{name}.trace", injection)
    await syncs.take(postmaster)
    return syncs


def faults() -> list[object]:
    """New ones of this module; none where there is no strace."""
    has_strace, _ = NEEDS["strace"]
    return [SlowSync(), FailedSync()] if has_strace() else []
