"""Ten-step runs of free activities through all roles, beside the limit of the same machine in the same run.

    python bench/steps.py [--in-flight 64,256,1000,2000] [--steps N] [--profile FILE]

Every run waits at a gate inside its first step until all of them do, so the number in flight is what it says; nine
steps of each are timed. Prints steps/s, admissions/s, CPU seconds by process (admissions included), p50/p99 of a step (from its effect's row to its end), and the ratio to
bench/limit.py: a bare loop that pulls, writes the same rows in one statement, publishes and acks.
"""

import argparse
import asyncio
import cProfile
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import uvloop

sys.path.insert(0, str(Path(__file__).parent))

from limit import measure_limit

from longtake import App, Plan, resources
from longtake.bootstrap import Addresses, Runtime
from longtake.contracts.commands import Command
from longtake.contracts.principal import Principal
from longtake.embedded import DURABLE, EmbeddedServers
from longtake.postgres.migrator import migrate
from longtake.settings import Settings

STEPS = 10
PRINCIPAL = Principal(tenant="bench", actor="bench")
ADMITTING = 32
LOOK_SECONDS = 0.1


LEASED = "select count(*) from longtake.effects where closed_at is null and state = 'leased'"
ACTIVE = "select count(*) from longtake.runs where ended_at is null"
LATENCY = """
select percentile_cont(0.5) within group (order by extract(epoch from closed_at - created_at)) as p50,
    percentile_cont(0.99) within group (order by extract(epoch from closed_at - created_at)) as p99
from longtake.effects where created_at > now() - make_interval(secs => $1) and closed_at is not null
"""


@dataclass(frozen=True)
class Wave:
    """What one wave of runs showed."""

    steps: int
    seconds: float
    admissions_per_second: float
    p50_ms: float
    p99_ms: float


def noop_app(gate: asyncio.Event) -> App:
    """A chain of ten steps that do nothing, in a pool declared short; the first waits at the gate."""
    app = App("bench")

    @app.workflow("noop", version=1)
    def build(input, policy):
        plan = Plan()
        for index in range(STEPS):
            plan = plan.step(
                f"noop:{index}",
                activity="noop@1",
                pool="short",
                depends_on=[f"noop:{index - 1}"] if index else [],
            )
        return plan

    @app.activity("noop@1", pool="short")
    async def noop(call):
        if call.step == "noop:0":
            await gate.wait()

    return app


def cpu_seconds(pid: int, *, children: bool) -> float:
    """CPU a process (and its living children) has used."""
    pids = [pid]
    if children:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                if int(fields[1]) == pid:
                    pids.append(int(entry.name))
    total = 0.0
    for one in pids:
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


async def measure(
    process: Runtime, pool: asyncpg.Pool, gate: asyncio.Event, *, in_flight: int, name: str
) -> Wave:
    """Admit runs until all of them wait at the gate, open it, and time them to their end."""
    gate.clear()
    began = time.perf_counter()

    async def admit(number: int) -> None:
        command = Command(
            kind="generation",
            project="bench",
            payload={"workflow": "noop@1", "input": {}},
            client_command_id=f"{name}-{number}",
        )
        await process.admission.admit(PRINCIPAL, command, channel="local", traceparent=None)

    for first in range(0, in_flight, ADMITTING):
        await asyncio.gather(*(admit(number) for number in range(first, min(in_flight, first + ADMITTING))))
    admitting = time.perf_counter() - began
    while await pool.fetchval(LEASED) < in_flight:
        await asyncio.sleep(LOOK_SECONDS)
    gate.set()
    began = time.perf_counter()
    while await pool.fetchval(ACTIVE):
        await asyncio.sleep(LOOK_SECONDS)
    seconds = time.perf_counter() - began
    row = await pool.fetchrow(LATENCY, seconds)
    return Wave(
        steps=(STEPS - 1) * in_flight,
        seconds=seconds,
        admissions_per_second=in_flight / admitting,
        p50_ms=row["p50"] * 1000,
        p99_ms=row["p99"] * 1000,
    )


async def main(options: argparse.Namespace) -> None:
    """Measure in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="longtake-bench-", ignore_cleanup_errors=True) as name:
        await measure_all(options, Path(name))


async def measure_all(options: argparse.Namespace, directory: Path) -> None:
    """Measure every size, the limit first and last."""
    async with EmbeddedServers(directory, profile=DURABLE) as servers:
        connection = await asyncpg.connect(**servers.postgres_connect_kwargs())
        await migrate(connection, resources.directory("migrations"))
        await connection.close()
        pool = await asyncpg.create_pool(**servers.postgres_connect_kwargs(), min_size=1, max_size=2)
        limit = await measure_limit(servers, seconds=options.limit_seconds)
        print(f"limit: {limit:,.0f} steps/s (pull -> one statement with a step's rows -> publish -> ack)")
        gate = asyncio.Event()
        process = Runtime(
            Settings(data_dir=directory, slots=64, port=0),
            Addresses(servers.postgres_connect_kwargs(), servers.nats_url, servers.nats_token),
            app=noop_app(gate),
        )
        await process.start()
        await measure(process, pool, gate, in_flight=64, name="warm")
        ratios: dict[int, float] = {}
        for size in options.in_flight:
            pids = {"python": os.getpid(), "postgres": servers.pids.postgres, "nats": servers.pids.nats}
            before = {
                name: cpu_seconds(pid, children=name == "postgres") for name, pid in pids.items() if pid
            }
            profiler = cProfile.Profile() if options.profile else None
            if profiler:
                profiler.enable()
            waves: list[Wave] = []
            while sum(wave.steps for wave in waves) < options.steps:
                waves.append(await measure(process, pool, gate, in_flight=size, name=f"s{size}-{len(waves)}"))
            if profiler:
                profiler.disable()
                profiler.dump_stats(f"{options.profile}.{size}")
            cpu = {
                name: cpu_seconds(pid, children=name == "postgres") - before[name]
                for name, pid in pids.items()
                if pid
            }
            speed = sum(wave.steps for wave in waves) / sum(wave.seconds for wave in waves)
            ratios[size] = speed / limit
            used = ", ".join(f"{name} {value:.1f}" for name, value in cpu.items())
            print(
                f"{size:>5} in flight: {speed:7,.0f} steps/s  ratio {speed / limit:.2f}  "
                f"p50 {max(w.p50_ms for w in waves):.0f} ms  p99 {max(w.p99_ms for w in waves):.0f} ms  "
                f"admissions/s {min(w.admissions_per_second for w in waves):.0f}  CPU s: {used}"
            )
        await process.stop()
        await pool.close()
        if 256 in ratios:
            print(f"floor at 256 in flight: 0.30, measured {ratios[256]:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--in-flight", default="64,256,1000,2000", type=lambda text: [int(n) for n in text.split(",")]
    )
    parser.add_argument(
        "--steps", type=int, default=4000, help="least number of steps to measure at each size"
    )
    parser.add_argument("--limit-seconds", type=float, default=6.0)
    parser.add_argument("--profile", default="", help="write cProfile statistics to FILE.<in flight>")
    uvloop.run(main(parser.parse_args()))
