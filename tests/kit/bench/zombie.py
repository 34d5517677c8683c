"""A worker that stands still between its claim and its look at the provider, for longer than its lease (F49).

polls = await zombie(folder)

Another worker looks in its place and the run ends; then the first goes on. Returns how often the provider was asked about
the job: once, unless the zombie asked as well.
"""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from kit.bench.app import PATIENT, Shoot
from kit.bench.cluster import Bench, RoleProcess
from kit.bench.provider import PRICE
from kit.bench.workload import Session
from kit.probe import eventually
from longtake import App, Plan, Submitted
from longtake.crash_points import Passed
from longtake.testing.checking import read_witness

ENVIRONMENT = "test-zombie"
POINT = "acked.before_provider"
LOOK = 2
"""The pass of the point that is the poll: the first is the request itself."""
SECONDS = 60.0
LEFT = "select count(*) from longtake.effects where kind = 'poll' and state <> 'leased' and leases > 0"
ENDED = "select count(*) from longtake.runs where status = 'completed'"


class Quiet(Shoot):
    """A paid call that never calls back: the provider has to be asked."""

    name = "quiet@1"

    def callback(self, call: Any) -> str | None:
        return None

    def taken(self, job: str) -> Any:
        return Submitted(external_ref=job, poll_after_seconds=1)


def reel(input: Any, policy: Any) -> Plan:
    """One such call."""
    return Plan(billing=input["billing"]).step("shot", activity="quiet@1", price=PRICE, retry=PATIENT)


app = App("zombie", price_list="2026-12")
app.workflow("reel", version=1)(reel)
app.add(Quiet())


class _Asked:
    def __init__(self) -> None:
        self.input: dict[str, int] = {}
        self.released = asyncio.Event()


async def zombie(folder: Path, *, app: str = "kit.bench.zombie:app") -> int:
    """Play it; returns how often the provider was asked about the first job."""
    roles = ("api-1", "dispatcher-1", "relay-1", "sweeper-1")
    async with Bench.open(folder, seed=1, app=app, roles=roles) as bench:
        session = Session(bench, 1)
        stands = asyncio.Event()

        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                if msgspec.json.decode(line, type=Passed).acts:
                    writer.write(b"!")
                    await writer.drain()
                    stands.set()
            writer.close()

        server = await asyncio.start_unix_server(listen, folder / "harness")
        async with bench.connected() as connection, server:

            async def begun(name: str) -> RoleProcess:
                bench.roles[name] = RoleProcess(bench, name)
                await bench.roles[name].start()
                return bench.roles[name]

            async def ended(runs: int) -> None:
                async def done() -> bool:
                    return int(await connection.fetchval(ENDED)) == runs

                await eventually(done, f"the end of run {runs}", SECONDS)

            await connection.execute("update longtake.store set environment = $1", ENVIRONMENT)
            bench.settings |= {
                "environment": ENVIRONMENT,
                "crash_point": f"{POINT}:stop:{LOOK}:{folder / 'harness'}",
            }
            first = await begun("worker-1")
            del bench.settings["crash_point"]
            await session.begin(_Asked(), "first")
            await asyncio.wait_for(stands.wait(), SECONDS)
            await eventually(lambda: connection.fetchval(LEFT), "the end of its lease", SECONDS)
            second = await begun("worker-2")
            await ended(1)
            await second.end()
            first.cont()
            # It lives: nobody else is there to work on this one.
            await session.begin(_Asked(), "second")
            await ended(2)
            assert first.deaths == 0
            await session.close()
    lines = [line for line in read_witness(bench.provider.witness) if line.kind in ("submit", "poll")]
    return sum(line.kind == "poll" and line.key == lines[0].key for line in lines)
