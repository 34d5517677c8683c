"""Ten-step runs of free activities through all roles, beside the limit of the same machine in the same run.

    python bench/steps.py [--in-flight 64,256,1000,2000] [--runs N] [--profile FILE]

Prints steps/s, CPU seconds by process, p50/p99 of a step (from its effect's row to its end), and the ratio to
bench/limit.py: a bare loop that pulls, writes the same rows in one statement, publishes and acks.
"""

import argparse
import asyncio
import cProfile
import os
import sys
import tempfile
import time
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
LOOK_SECONDS = 0.02


def noop_app() -> App:
    """A chain of ten steps that do nothing, in a pool declared short."""
    app = App("bench")

    @app.workflow("noop", version=1)
    def build(input, policy):  # noqa: ANN001, ANN202
        plan = Plan()
        for index in range(STEPS):
            plan = plan.step(
                f"noop:{index}", activity="noop@1", pool="short", depends_on=[f"noop:{index - 1}"] if index else []
            )
        return plan

    @app.activity("noop@1", pool="short")
    async def noop(call):  # noqa: ANN001, ANN202
        return None

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


async def measure(process: Runtime, pool: asyncpg.Pool, *, in_flight: int, runs: int, name: str) -> tuple[float, dict]:
    """Keep `in_flight` runs going until `runs` have ended; returns steps/s and latencies."""
    started = 0
    began = time.perf_counter()
    baseline = await pool.fetchval("select count(*) from longtake.runs where ended_at is not null")

    async def admit(number: int) -> None:
        command = Command(
            kind="generation", project="bench", payload={"workflow": "noop@1", "input": {}},
            client_command_id=f"{name}-{number}",
        )
        await process.admission.admit(PRINCIPAL, command, channel="local", traceparent=None)

    while True:
        active = await pool.fetchval("select count(*) from longtake.runs where ended_at is null")
        ended = await pool.fetchval("select count(*) from longtake.runs where ended_at is not null") - baseline
        if ended >= runs:
            break
        want = min(in_flight - active, runs - started)
        for first in range(0, want, ADMITTING):
            batch = range(started, started + min(ADMITTING, want - first))
            await asyncio.gather(*(admit(number) for number in batch))
            started += len(batch)
        await asyncio.sleep(LOOK_SECONDS)
    seconds = time.perf_counter() - began
    row = await pool.fetchrow(
        "select percentile_cont(0.5) within group (order by extract(epoch from closed_at - created_at)) as p50, "
        "percentile_cont(0.99) within group (order by extract(epoch from closed_at - created_at)) as p99 "
        "from longtake.effects where closed_at > now() - make_interval(secs => $1)",
        seconds,
    )
    return runs * STEPS / seconds, dict(row)


async def main(options: argparse.Namespace) -> None:
    """Measure every size, the limit first and last."""
    directory = Path(tempfile.mkdtemp(prefix="longtake-bench-"))
    async with EmbeddedServers(directory, profile=DURABLE) as servers:
        connection = await asyncpg.connect(**servers.postgres_connect_kwargs())
        await migrate(connection, resources.directory("migrations"))
        await connection.close()
        pool = await asyncpg.create_pool(**servers.postgres_connect_kwargs(), min_size=1, max_size=2)
        limit = await measure_limit(servers, seconds=options.limit_seconds)
        print(f"limit: {limit:,.0f} steps/s (pull -> one statement with a step's rows -> publish -> ack)")
        process = Runtime(
            Settings(data_dir=directory, slots=8),
            Addresses(servers.postgres_connect_kwargs(), servers.nats_url, servers.nats_token),
            app=noop_app(),
        )
        await process.start()
        await process.keys.fund(tenant="bench", account="main", credits=1_000_000)
        await measure(process, pool, in_flight=32, runs=64, name="warm")
        ratios: dict[int, float] = {}
        for size in options.in_flight:
            pids = {"python": os.getpid(), "postgres": servers.pids.postgres, "nats": servers.pids.nats}
            before = {name: cpu_seconds(pid, children=name == "postgres") for name, pid in pids.items() if pid}
            profiler = cProfile.Profile() if options.profile else None
            if profiler:
                profiler.enable()
            speed, latency = await measure(
                process, pool, in_flight=size, runs=options.runs or max(300, size), name=f"s{size}"
            )
            if profiler:
                profiler.disable()
                profiler.dump_stats(f"{options.profile}.{size}")
            cpu = {
                name: cpu_seconds(pid, children=name == "postgres") - before[name] for name, pid in pids.items() if pid
            }
            ratios[size] = speed / limit
            used = ", ".join(f"{name} {value:.1f}" for name, value in cpu.items())
            print(
                f"{size:>5} in flight: {speed:8,.0f} steps/s  ratio {speed / limit:.2f}  "
                f"p50 {latency['p50'] * 1000:.0f} ms  p99 {latency['p99'] * 1000:.0f} ms  CPU s: {used}"
            )
        await process.stop()
        await pool.close()
        if 256 in ratios:
            print(f"floor at 256 in flight: 0.30, measured {ratios[256]:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-flight", default="64,256,1000,2000", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--runs", type=int, default=0, help="runs per size; 0: as many as in flight, 300 at least")
    parser.add_argument("--limit-seconds", type=float, default=6.0)
    parser.add_argument("--profile", default="", help="write cProfile statistics to FILE.<in flight>")
    uvloop.run(main(parser.parse_args()))
