"""A soak: a steady stream of runs, faults every few seconds drawn from all that fit one node, and measurements by the minute.

report = await soak(folder, minutes=10, seed=1, say=print)
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kit.bench import Fault
from kit.bench.campaign import FUNDED, strike
from kit.bench.catalogue import all_faults
from kit.bench.cluster import Bench
from kit.bench.workload import Session
from longtake.contracts.summary import TERMINAL
from longtake.testing.checking import Op, Verdict, judge, read_history, read_witness
from longtake.testing.checking.kept import keep_store

BETWEEN_SECONDS = (5.0, 40.0)
SESSIONS = 6
RUNS_OPEN_MAX = 6
"""Of one session at a time."""
AFTER_SECONDS = 2.0
"""A fault window goes on for so long after the fault: what broke has to connect again."""
BACKLOG_SECONDS = 60.0
RSS_SLOPE_MAX = 1 << 20
"""Bytes a minute, over the second half."""
OK_MIN = 0.95
MINUTE = 60.0
MEASURED_MINUTES_MIN = 3.0
"""A shorter soak says nothing of memory."""


class SoakReport(msgspec.Struct, kw_only=True):
    """What a soak showed."""

    faults: dict[str, int]
    ok_share: float
    """Of the calls of clients that lay outside of fault windows."""
    slopes: dict[str, float]
    """Bytes a minute of each role that lived through the second half, by name."""
    minutes: float
    backlog_seconds: float | None
    """From the last fault to nothing open; None: not within BACKLOG_SECONDS."""
    verdict: Verdict

    def failures(self) -> list[str]:
        """Which of the promises of a soak were not kept."""
        found = []
        if self.ok_share < OK_MIN:
            found.append(
                f"{100 * self.ok_share:.1f} % ok outside of fault windows, {100 * OK_MIN:.0f} % are wanted"
            )
        found += [
            f"{name} grows by {slope / 1024:.0f} KiB a minute"
            for name, slope in self.slopes.items()
            if slope > RSS_SLOPE_MAX
        ]
        if not self.slopes and self.minutes >= MEASURED_MINUTES_MIN:
            found.append("no role lived through the second half: of memory nothing is known")
        if self.backlog_seconds is None:
            found.append(f"work was open {BACKLOG_SECONDS:.0f} s after the last fault")
        if not self.verdict.ok:
            found.append(self.verdict.text())
        if not any(self.faults.values()):
            found.append("no fault struck")
        return found


class Stream:
    """Clients that always have some runs open."""

    def __init__(self, bench: Bench) -> None:
        self.input = {"shots": 2, "cuts": 5}
        self.released = asyncio.Event()
        self.released.set()
        self.ending = False
        self.sessions = [Session(bench, number) for number in range(1, SESSIONS + 1)]
        self.ended = 0

    async def play(self) -> None:
        """Until it is told to end and its last run has ended."""
        try:
            async with asyncio.TaskGroup() as group:
                for session in self.sessions:
                    group.create_task(self._play(session))
        finally:
            await asyncio.gather(*(session.close() for session in self.sessions))

    async def _play(self, session: Session) -> None:
        number = 0
        while session.runs or not self.ending:
            if not self.ending and len(session.runs) < RUNS_OPEN_MAX:
                number += 1
                await session.begin(self, f"{session.name}-run-{number}")
            for run_id, summary in list(session.runs.items()):
                if summary is not None and summary.status in TERMINAL:
                    del session.runs[run_id]
                    self.ended += 1
                else:
                    await session.look(self, run_id)
            await asyncio.sleep(0.3)


async def soak(
    folder: Path,
    *,
    minutes: float,
    seed: int,
    say: Callable[[str], None],
    faults: Sequence[str] = (),
    between: tuple[float, float] = BETWEEN_SECONDS,
) -> SoakReport:
    """Load and faults for so long, then rest, then the verdict."""
    known = all_faults()
    drawn = [known[name] for name in faults or known]
    async with Bench.open(folder, seed=seed) as bench:
        stream = Stream(bench)
        playing = asyncio.create_task(stream.play())
        memory: list[tuple[float, dict[str, tuple[int, int]]]] = []
        watching = asyncio.create_task(_watch(bench, stream, memory, say))
        windows = await _hurt(bench, drawn, seconds=minutes * MINUTE, between=between, say=say)
        stream.ending = True
        began = time.monotonic()
        rest: float | None = None
        try:
            async with asyncio.timeout(BACKLOG_SECONDS):
                await playing
            await bench.settled(BACKLOG_SECONDS - (time.monotonic() - began))
            rest = time.monotonic() - began
        except TimeoutError as late:
            say(f"not at rest: {late}")
        finally:
            for task in (playing, watching):
                task.cancel()
            await asyncio.gather(playing, watching, return_exceptions=True)
        store = await bench.dump()
    keep_store(bench.history_dir, store)
    history = read_history(bench.history_dir)
    verdict = judge(
        history, store, read_witness(bench.provider.witness), funded=FUNDED, settled=rest is not None
    )
    return SoakReport(
        faults={fault.name: fault.struck for fault in drawn},
        ok_share=ok_share(history, windows),
        minutes=minutes,
        slopes=slopes(memory) if minutes >= MEASURED_MINUTES_MIN else {},
        backlog_seconds=rest,
        verdict=verdict,
    )


async def _hurt(
    bench: Bench,
    faults: Sequence[Fault],
    *,
    seconds: float,
    between: tuple[float, float],
    say: Callable[[str], None],
) -> list[tuple[float, float]]:
    """Strike until the time is over; returns the windows, in seconds of the machine's monotonic clock."""
    ends = time.monotonic() + seconds
    windows = []
    while (left := ends - time.monotonic()) > 0:
        await asyncio.sleep(min(left, bench.chance.uniform(*between)))
        if time.monotonic() >= ends:
            break
        fault = bench.chance.choice(faults)
        began = time.monotonic()
        await strike(bench, fault)
        windows.append((began, time.monotonic() + AFTER_SECONDS))
        say(f"  {fault.name} {fault.what} ({windows[-1][1] - began - AFTER_SECONDS:.1f} s)")
    return windows


async def _watch(
    bench: Bench,
    stream: Stream,
    memory: list[tuple[float, dict[str, tuple[int, int]]]],
    say: Callable[[str], None],
) -> None:
    """Once a sixth of a minute the memory of every role, once a minute a line."""
    for number in range(1, 1_000_000):
        await asyncio.sleep(MINUTE / 6)
        memory.append(
            (
                time.monotonic(),
                {role.name: (role.pid, role.rss_bytes()) for role in bench.roles.values() if role.alive},
            )
        )
        if number % 6 == 0:
            total = sum(rss for _, rss in memory[-1][1].values())
            say(f"minute {number // 6}: {stream.ended} runs ended, roles hold {total >> 20} MiB")


def ok_share(history: Sequence[Op], windows: Sequence[tuple[float, float]]) -> float:
    """The share of calls of clients outside of the windows that were answered ok."""
    begun = {(op.proc, op.id): op for op in history if op.type == "invoke"}
    good = all_ = 0
    for op in history:
        if op.type == "invoke" or not op.proc.startswith("client"):
            continue
        start = begun[op.proc, op.id].t
        if any(start <= end and op.t >= began for began, end in windows):
            continue
        all_ += 1
        good += op.type == "ok"
    return good / all_ if all_ else 0.0


def slopes(memory: Sequence[tuple[float, dict[str, tuple[int, int]]]]) -> dict[str, float]:
    """Bytes a minute by least squares over the second half, for roles that were one process all that time."""
    half = memory[len(memory) // 2 :]
    found = {}
    for name in half[0][1] if half else ():
        points = [(at, rss[name]) for at, rss in half if name in rss]
        if len(points) < 3 or len({pid for _, (pid, _) in points}) > 1:
            continue
        mean_t = sum(at for at, _ in points) / len(points)
        mean_m = sum(rss for _, (_, rss) in points) / len(points)
        spread = sum((at - mean_t) ** 2 for at, _ in points)
        found[name] = MINUTE * sum((at - mean_t) * (rss - mean_m) for at, (_, rss) in points) / spread
    return found
