"""The broker goes wrong: N16, N17, N22, N23, N24, N26, N29, F71. None of it may cost more than time.

The faults of a cluster (N18 to N21, N25) have no place on one server.
"""

import asyncio
import os
import random
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import nats
from nats.aio.client import Client
from nats.errors import Error as NatsError

from kit.bench.cluster import Bench
from kit.broker_ruin import (
    Ruin,
    delete_consumers,
    delete_streams,
    narrow_consumers,
    pause_consumers,
    purge_streams,
    recreate_streams,
    reset_consumers,
)
from kit.echo import Echo
from kit.left_out import NEEDS
from kit.probe import eventually

HALF_OPEN_SECONDS: Final = 15.0
"""Longer than the watchdog of a role is patient, so that its client is given up."""
DISK_BYTES: Final = 16 << 20
DISK_PIECE: Final = b"\0" * 65_536
ECHOES_MIN: Final = 50
MESSAGES_LOST_MIN: Final = 20
OWN_STREAM: Final = "BALLAST"
SUBJECTS: Final = ("longtake.v1.effect.*", "longtake.v1.callback.*", "longtake.v1.command.*.*")


class KillBroker:
    """SIGKILL to the server; somebody starts it again, as the service's own keeper or systemd would."""

    def __init__(self, name: str, *, links: bool) -> None:
        self.name = name
        self.what = "kill -9 nats" + (" and every link to it" if links else "")
        self.struck = 0
        self._links = links

    async def strike(self, bench: Bench) -> None:
        """Kill it; with its links, nobody reaches it again before `heal`."""
        if self._links:
            bench.nats_proxy.refuse()
        await killed(bench)
        self.struck += 1

    async def heal(self, bench: Bench) -> None:
        """Let links be made again."""
        bench.nats_proxy.heal()


class RuinTopology:
    """Streams or consumers are ruined past the proxy, by one way after the other."""

    def __init__(self, name: str, what: str, ways: Sequence[Ruin]) -> None:
        self.name = name
        self.what = what
        self.struck = 0
        self._ways = ways
        self._turn = 0

    async def strike(self, bench: Bench) -> None:
        """Ruin, by the next way; it has struck when something was there to be ruined."""
        async with past_the_proxy(bench) as client:
            self.struck += await self._ways[self._turn % len(self._ways)](client) > 0
        self._turn += 1

    async def heal(self, bench: Bench) -> None:
        """The service heals it."""


class FullDisk:
    """No space left under the streams; space comes back with `heal`, and the server is started again, as it must be."""

    def __init__(self) -> None:
        self.name = "N24"
        self.what = "ENOSPC under the streams"
        self.struck = 0

    async def strike(self, bench: Bench) -> None:
        """Move the streams to a disk of their own, start the server on it, and fill the disk."""
        place = store_of(bench)
        moved = place.with_name("moved")
        os.kill(pid_of(bench), signal.SIGSTOP)
        await asyncio.to_thread(shutil.copytree, place, moved)
        await asyncio.to_thread(mount, "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(place))
        await asyncio.to_thread(shutil.copytree, moved, place, dirs_exist_ok=True)
        await asyncio.to_thread(shutil.rmtree, moved)
        await killed(bench)
        (place / "ballast").touch()
        await asyncio.to_thread(fill, place / "ballast")
        self.struck += await refuses(bench)

    async def heal(self, bench: Bench) -> None:
        """The streams go back to the large disk with what the small one could hold."""
        place = store_of(bench)
        if not os.path.ismount(place):
            return
        (place / "ballast").unlink(missing_ok=True)
        moved = place.with_name("moved")
        os.kill(pid_of(bench), signal.SIGSTOP)
        await asyncio.to_thread(shutil.copytree, place, moved)
        await asyncio.to_thread(subprocess.run, ["umount", "-l", str(place)], check=True, capture_output=True)
        await asyncio.to_thread(shutil.rmtree, place)
        moved.rename(place)
        await killed(bench)
        async with past_the_proxy(bench) as client:
            with suppress(NatsError):
                await client.jetstream().delete_stream(OWN_STREAM)


class StoreLost:
    """The server's files are those of a moment ago, or gone: what it acknowledged since is not there (F04, F71)."""

    def __init__(self) -> None:
        self.name = "F71"
        self.what = "the broker's files are older, or gone"
        self.struck = 0
        self._turn = 0

    async def strike(self, bench: Bench) -> None:
        """Older at first, then gone, in turn; it counts when the last sequences did go back."""
        place = store_of(bench)
        kept = place.with_name("kept")
        older = self._turn % 2 == 0
        self._turn += 1
        if older:
            os.kill(pid_of(bench), signal.SIGSTOP)
            await asyncio.to_thread(shutil.copytree, place, kept)
            os.kill(pid_of(bench), signal.SIGCONT)
            copied = await reached(bench)

            async def later() -> bool:
                return await reached(bench) > copied + MESSAGES_LOST_MIN

            with suppress(AssertionError):
                await eventually(later, "messages after the copy", 10)
        before = await reached(bench)
        os.kill(pid_of(bench), signal.SIGSTOP)
        await asyncio.to_thread(shutil.rmtree, place)
        if older:
            kept.rename(place)
        await killed(bench)
        self.struck += await reached(bench) < before

    async def heal(self, bench: Bench) -> None:
        """The roles declare what is not there, and say everything open again."""


class HalfOpen:
    """Every link to the broker stands and carries nothing, until the roles give it up."""

    def __init__(self) -> None:
        self.name = "N26"
        self.what = f"blackhole to nats for {HALF_OPEN_SECONDS:.0f} s"
        self.struck = 0

    async def strike(self, bench: Bench) -> None:
        """It has struck when somebody noticed and tried to connect anew."""
        before = bench.nats_proxy.accepted
        bench.nats_proxy.blackhole()
        await asyncio.sleep(HALF_OPEN_SECONDS)
        self.struck += bench.nats_proxy.accepted > before

    async def heal(self, bench: Bench) -> None:
        """What was held goes through now."""
        bench.nats_proxy.heal()


class MadPublisher:
    """Whatever is published comes again three times out of a window of fifty, until `heal`."""

    def __init__(self) -> None:
        self.name = "N29"
        self.what = "a publisher that doubles and shuffles"
        self.struck = 0
        self._client: Client | None = None
        self._echo: Echo | None = None

    async def strike(self, bench: Bench) -> None:
        """Begin, and return after the first copies; later ones are counted by `heal`."""
        self._client = await nats.connect(**bench.servers.nats_connect_kwargs(), error_cb=_unsaid)
        chance = random.Random(bench.chance.random())
        self._echo = await Echo(self._client, chance, subjects=SUBJECTS).__aenter__()
        with suppress(AssertionError):
            await eventually(lambda: self._echo and self._echo.copies >= ECHOES_MIN, "echoes", 10)
        self.struck += self._echo.copies

    async def heal(self, bench: Bench) -> None:
        """Be silent."""
        echo, self._echo = self._echo, None
        client, self._client = self._client, None
        if echo is not None:
            await echo.stop()
        if client is not None:
            await client.close()


def faults() -> list[KillBroker | RuinTopology | FullDisk | StoreLost | HalfOpen | MadPublisher]:
    """New ones of this module; a full disk only where a small one can be mounted."""
    found: list[KillBroker | RuinTopology | FullDisk | StoreLost | HalfOpen | MadPublisher] = [
        KillBroker("N16", links=False),
        KillBroker("N17", links=True),
        RuinTopology(
            "N22", "streams purged, deleted, made anew", (delete_streams, purge_streams, recreate_streams)
        ),
        RuinTopology(
            "N23",
            "consumers deleted, paused, reset, narrowed",
            (delete_consumers, pause_consumers, reset_consumers, narrow_consumers),
        ),
        StoreLost(),
        HalfOpen(),
        MadPublisher(),
    ]
    can_mount, _ = NEEDS["small_disk"]
    return [*found, FullDisk()] if can_mount() else found


# --- tools ------------------------------------------------------------------------------------------------------------


def store_of(bench: Bench) -> Path:
    """Where the server keeps its streams."""
    return bench.folder / "servers" / "nats" / "jetstream"


def pid_of(bench: Bench) -> int:
    """The server's process."""
    pid = bench.servers.pids.nats
    assert pid is not None, "the server runs"
    return pid


async def killed(bench: Bench) -> None:
    """SIGKILL; returns when another one answers."""
    dead = pid_of(bench)
    os.kill(dead, signal.SIGKILL)
    await eventually(lambda: bench.servers.pids.nats not in (None, dead), "another nats-server", 60)
    async with past_the_proxy(bench) as client:
        await client.flush()


async def _unsaid(error: Exception) -> None:
    """The server is killed under this client as well; nats-py would print a traceback."""


async def reached(bench: Bench) -> int:
    """The last sequences of all streams, together."""
    async with past_the_proxy(bench) as client:
        return sum(stream.state.last_seq for stream in await client.jetstream().streams_info())


@asynccontextmanager
async def past_the_proxy(bench: Bench) -> AsyncIterator[Client]:
    """A client of the harness, as soon as the server answers."""

    async def there() -> Client | None:
        with suppress(NatsError, OSError, TimeoutError):
            return await nats.connect(
                **bench.servers.nats_connect_kwargs(),
                allow_reconnect=False,
                connect_timeout=2,
                error_cb=_unsaid,
            )
        return None

    client = await eventually(there, "an answer of nats", 60)
    try:
        yield client
    finally:
        await client.close()


async def refuses(bench: Bench) -> bool:
    """Whether a publication into a stream of our own is answered by nothing, or by an error."""
    async with past_the_proxy(bench) as client:
        js = client.jetstream(timeout=1)
        try:
            await js.add_stream(name=OWN_STREAM, subjects=[OWN_STREAM])
            for _ in range(DISK_BYTES // len(DISK_PIECE)):
                await js.publish(OWN_STREAM, DISK_PIECE)
        except (NatsError, TimeoutError):
            return True
    return False


def mount(*options: str) -> None:
    """Mount, or say why not."""
    subprocess.run(["mount", *options], check=True, capture_output=True)


def fill(path: Path) -> None:
    """Write until nothing more goes in."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(DISK_PIECE)
