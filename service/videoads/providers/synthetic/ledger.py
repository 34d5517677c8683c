"""Writes the witness file: a line for each request, synced to disk before the request is answered.

Lines that arrive together share one sync. Reading and judging are `videoads.providers.witness`.
"""

import asyncio
import os
from collections import defaultdict
from pathlib import Path

import msgspec

from videoads.providers.witness import WitnessLine, read_witness


class Tally(msgspec.Struct, kw_only=True):
    """The running totals of one provider."""

    requests: int = 0
    creates: int = 0
    accepted: int = 0
    cost: int = 0
    open_jobs_max: int = 0


class WitnessFile:
    """The open witness file. Lines left half-written by a kill are cut off: nobody was answered on them."""

    def __init__(self, path: Path) -> None:
        self.tallies: defaultdict[str, Tally] = defaultdict(Tally)
        self.jobs: set[str] = set()
        lines = read_witness(path)
        for line in lines:
            self._count(line)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        os.ftruncate(self._descriptor, _whole_length(path))
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._syncing: asyncio.Task[None] | None = None

    async def record(self, line: WitnessLine) -> None:
        """Return when the line is on disk."""
        self._count(line)
        synced: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((msgspec.json.encode(line) + b"\n", synced))
        if self._syncing is None or self._syncing.done():
            self._syncing = asyncio.create_task(self._sync())
        # Shielded: a client that hangs up must not take another request's line with it.
        await asyncio.shield(synced)

    async def close(self) -> None:
        """Finish what is being written, then close."""
        if self._syncing is not None:
            await self._syncing
        os.close(self._descriptor)

    async def _sync(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            await asyncio.to_thread(self._write, b"".join(raw for raw, _ in batch))
            for _, synced in batch:
                if not synced.done():
                    synced.set_result(None)

    def _write(self, raw: bytes) -> None:
        while raw:
            raw = raw[os.write(self._descriptor, raw) :]
        os.fsync(self._descriptor)

    def _count(self, line: WitnessLine) -> None:
        tally = self.tallies[line.provider]
        tally.requests += 1
        tally.open_jobs_max = max(tally.open_jobs_max, line.open_jobs)
        if line.request == "create":
            tally.creates += 1
            if line.accepted:
                tally.accepted += 1
                tally.cost += line.cost
                self.jobs.add(line.job or "")


def _whole_length(path: Path) -> int:
    raw = path.read_bytes()
    return raw.rfind(b"\n") + 1
