"""What clients do on the bench: start runs, answer gates, try again, now and then cancel or pause; all of it recorded.

Every run stands at a gate until `released` is set, so that all of them are in flight at once.
"""

import asyncio
import random
import time
from collections import Counter
from typing import Protocol

from kit.bench.cluster import Bench
from kit.recorded_client import RecordedClient
from longtake.client import Client
from longtake.contracts.summary import TERMINAL, Summary
from longtake.testing.checking import Recorder

SESSIONS = 8
PATIENCE_SECONDS = 2.0
"""How long a request is repeated by the client itself; then nobody knows, and the session goes on."""
LOOK_SECONDS = 0.4
CANCELLED_SHARE = 0.06
PAUSED_SHARE = 0.06
METERED_SHARE = 0.3


class Asked(Protocol):
    """What runs are asked for, and whether their gates are answered."""

    input: dict[str, int]
    released: asyncio.Event


class Session:
    """One person with some runs."""

    def __init__(self, bench: Bench, number: int) -> None:
        self._bench = bench
        self.name = f"client-{number}"
        self._chance = random.Random(f"{self.name}|{bench.seed}")
        self._number = number
        self._clients = [Client(url, bench.key, patience_seconds=PATIENCE_SECONDS) for url in bench.api_urls]
        self._hands = RecordedClient(
            self._clients[number % len(self._clients)],
            Recorder(bench.history_dir / f"{self.name}.jsonl", self.name),
        )
        self._commands = 0
        self.runs: dict[str, Summary | None] = {}
        """What was started, by run, with what was read of it last."""
        self.to_start: list[str] = []

    async def close(self) -> None:
        """Let go of connections."""
        for client in self._clients:
            await client.close()

    def _turn(self) -> None:
        # Whoever is not answered asks the other door.
        self._number += 1
        self._hands.client = self._clients[self._number % len(self._clients)]

    async def begin(self, workload: Asked, command: str) -> None:
        """Start a run, under the same id until it is answered."""
        metered = self._chance.random() < METERED_SHARE
        input_ = {"billing": "pay_as_you_go" if metered else "prepaid", **workload.input}
        while True:
            told = await self._hands.start(command, "reel@1", input_)
            if told is not None and told.run_id is not None:
                self.runs[told.run_id] = None
                return
            self._turn()
            await asyncio.sleep(self._chance.uniform(0.05, 0.3))

    async def look(self, workload: Asked, run_id: str) -> None:
        """Read a run and do what it asks for."""
        summary = await self._hands.read(run_id)
        if summary is None:
            self._turn()
            return
        self.runs[run_id] = summary
        if summary.status in TERMINAL:
            return
        offered, draw = summary.available_actions, random.Random(f"{run_id}|{self._bench.seed}").random()
        if draw < CANCELLED_SHARE and workload.released.is_set() and "cancel_generation" in offered:
            await self._do("cancel", run_id, summary)
        elif summary.status == "paused":
            await self._do("resume", run_id, summary)
        elif draw > 1 - PAUSED_SHARE and self._chance.random() < 0.3 and "pause_generation" in offered:
            await self._do("pause", run_id, summary)
        elif summary.status == "blocked" and "retry_generation" in offered:
            await self._do("retry", run_id, summary)
        elif summary.status == "needs_input" and workload.released.is_set():
            await self._do("provide_input", run_id, summary, step="look", answer={"ok": True})

    async def _do(self, kind: str, run_id: str, summary: Summary, **payload: object) -> None:
        self._commands += 1
        command = f"{self.name}-{kind}-{self._commands}"
        told = await self._hands.command(kind, run_id, command, summary.revision, **payload)
        if told is None:
            self._turn()

    @property
    def is_done(self) -> bool:
        """Whether all its runs have ended."""
        ended = [summary for summary in self.runs.values() if summary and summary.status in TERMINAL]
        return not self.to_start and len(ended) == len(self.runs)


class Workload:
    """All sessions together."""

    def __init__(self, bench: Bench, *, runs: int, shots: int = 2, cuts: int = 5) -> None:
        self.runs = runs
        self.input = {"shots": shots, "cuts": cuts}
        self.released = asyncio.Event()
        """Set: gates are answered from now on."""
        self.accepted_all = asyncio.Event()
        self.sessions = [Session(bench, number) for number in range(1, SESSIONS + 1)]
        for number in range(runs):
            self.sessions[number % SESSIONS].to_start.append(f"run-{number}")

    async def play(self) -> None:
        """Until every run has ended and its client has seen it."""
        try:
            async with asyncio.TaskGroup() as group:
                for session in self.sessions:
                    group.create_task(self._play(session))
        finally:
            await asyncio.gather(*(session.close() for session in self.sessions))

    async def _play(self, session: Session) -> None:
        while session.to_start:
            await session.begin(self, session.to_start[0])
            session.to_start.pop(0)
            if self.accepted >= self.runs:
                self.accepted_all.set()
        while not session.is_done:
            began = time.monotonic()
            for run_id, summary in list(session.runs.items()):
                if summary is None or summary.status not in TERMINAL:
                    await session.look(self, run_id)
            await asyncio.sleep(max(0.0, LOOK_SECONDS - (time.monotonic() - began)))

    @property
    def accepted(self) -> int:
        """How many runs have been started."""
        return sum(len(session.runs) for session in self.sessions)

    def statuses(self) -> Counter[str]:
        """How the runs stand, as last read."""
        return Counter(
            summary.status if summary else "unread"
            for session in self.sessions
            for summary in session.runs.values()
        )
