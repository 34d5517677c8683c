"""Workers that are told to stop at random moments, with work under way and work that has not begun (F74).

report = await stopping(folder, times=12, seed=1)

Leases last 300 s and no sweeper runs until the last stop: whatever comes back meanwhile was given back by its holder.
"""

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from kit.bench.app import PATIENT, Speak
from kit.bench.campaign import FUNDED
from kit.bench.cluster import Bench, RoleProcess
from kit.bench.provider import PRICE
from kit.bench.workload import Session
from kit.probe import eventually
from longtake import App, Plan
from longtake.testing.checking import Verdict, judge, read_history, read_witness

LEASE_SECONDS = 300
GRACE_SECONDS = 1.0
ANSWER_SECONDS = 0.3
"""How long a paid call lasts, at least: less than the grace."""
RUNS_PER_STOP = 2
WAIT_SECONDS = 90.0
ROLES = ("api-1", "dispatcher-1", "relay-1", "worker-1", "worker-2")
HELD = """
select e.id, e.fence, e.call_opened_at is not null as opened, e.activity from longtake.effects e
where e.state = 'leased' and e.closed_at is null and e.receipt is null and e.lease_owner ~ ('-' || $1 || '-[0-9a-f]{8}$')
"""
RECEIVED = "select count(*) from longtake.effects where id = any($1::uuid[]) and (receipt is not null or closed_at is not null)"
CLAIMED_AGAIN = """
select count(*) from unnest($1::uuid[], $2::bigint[]) as h (id, fence)
where exists (select from longtake.effect_claims c where c.effect_id = h.id and c.fence > h.fence)
"""


class Say(Speak):
    """A paid call that takes its time."""

    name = "say@1"

    async def execute(self, call: Any) -> Any:
        outcome = await super().execute(call)
        await asyncio.sleep(ANSWER_SECONDS)
        return outcome


async def dwell(call: Any) -> None:
    """Free work that ends when there is a file, which is after the last stop: never within a grace."""
    while not Path(call.input["until"]).exists():
        await asyncio.sleep(0.05)  # a file of another process has no event


def reel(input: Any, policy: Any) -> Plan:
    """Free work that lasts, beside paid calls one after the other."""
    plan = Plan(billing=input["billing"]).step("dwell", activity="dwell@1", input={"until": input["until"]})
    before: list[str] = []
    for number in range(4):
        plan = plan.step(f"say:{number}", activity="say@1", price=PRICE, retry=PATIENT, depends_on=before)
        before = [f"say:{number}"]
    return plan


app = App("stopping", price_list="2026-12")
app.workflow("reel", version=1)(reel)
app.add(Say())
app.activity("dwell@1", pool="patient")(dwell)


class StoppingReport(msgspec.Struct, kw_only=True):
    """What the stops showed."""

    stops: int = 0
    held: int = 0
    """Leases, of work whose call was not opened, that could not end within the grace."""
    kept: int = 0
    """Of those, the ones that the dead still held."""
    running: int = 0
    """Calls that were open when the worker was told to stop."""
    reported: int = 0
    """Of those, the ones whose receipt stood when it had ended."""
    again: int = 0
    """Leases given back that somebody claimed again, without any sweeper."""
    runs: int = 0
    verdict: Verdict | None = None
    statuses: dict[str, int] = {}
    seconds: float = 0.0

    def text(self) -> str:
        """One line for people."""
        ended = ", ".join(f"{count} {status}" for status, count in sorted(self.statuses.items()))
        charged = self.verdict.counters["charged"] if self.verdict else 0
        return (
            f"{self.stops} SIGTERMs under leases of {LEASE_SECONDS} s: {self.held} leases not begun, {self.kept} kept by "
            f"the dead, {self.again} claimed again without a sweeper; {self.running} open calls, {self.reported} reported "
            f"in their grace; {self.runs} runs ({ended}), {charged} charges; {self.seconds:.0f} s"
        )

    @property
    def passed(self) -> bool:
        """Whether everything not begun was given back at once, and nothing was lost or doubled."""
        return (
            self.kept == 0
            and 0 < self.held == self.again
            and self.verdict is not None
            and self.verdict.ok
            and self.statuses == {"completed": self.runs}
        )


class _Asked:
    def __init__(self, until: Path) -> None:
        self.input: Any = {"until": str(until)}
        self.released = asyncio.Event()


class _Stops:
    def __init__(self, bench: Bench, folder: Path, report: StoppingReport) -> None:
        self.bench = bench
        self.report = report
        self.asked = _Asked(folder / "end")
        self.session = Session(bench, 1)
        self.leases: list[tuple[Any, int]] = []
        self._turn = asyncio.Lock()

    async def stop(self, worker: RoleProcess, connection: asyncpg.Connection) -> None:
        """Begin some runs; once the worker holds work, tell it to stop at some moment; look what it left."""
        async with self._turn:
            for _ in range(RUNS_PER_STOP):
                self.report.runs += 1
                await self.session.begin(self.asked, f"run-{self.report.runs}")
        pid = str(worker.pid)

        async def works() -> bool:
            return any(row["activity"] == "dwell@1" for row in await connection.fetch(HELD, pid))

        await eventually(works, f"work of {worker.name}", WAIT_SECONDS)
        await asyncio.sleep(self.bench.chance.uniform(0.0, 0.6))
        before = await connection.fetch(HELD, pid)
        await worker.restart()
        waiting = [row for row in before if row["activity"] == "dwell@1"]
        left = {row["id"] for row in await connection.fetch(HELD, pid) if not row["opened"]}
        opened = [row["id"] for row in before if row["opened"]]
        self.report.stops += 1
        self.report.held += len(waiting)
        self.report.kept += len(left)
        self.report.running += len(opened)
        self.report.reported += await connection.fetchval(RECEIVED, opened)
        self.leases += [(row["id"], row["fence"]) for row in waiting]

    async def come_back(self, connection: asyncpg.Connection) -> None:
        """Wait until what was given back is claimed again, as far as it is not kept by the dead."""
        ids, fences = [id_ for id_, _ in self.leases], [fence for _, fence in self.leases]

        async def claimed() -> bool:
            self.report.again = await connection.fetchval(CLAIMED_AGAIN, ids, fences)
            return self.report.again + self.report.kept >= len(ids)

        await eventually(claimed, "the work that was given back", WAIT_SECONDS)


async def stopping(
    folder: Path, *, times: int, seed: int, app: str = "kit.bench.stopping:app"
) -> StoppingReport:
    """Stop two workers in turn, `times` times, and judge what is left."""
    began = time.monotonic()
    report = StoppingReport()
    settings = {
        "lease_seconds": LEASE_SECONDS,
        "heartbeat_seconds": 1.0,
        "stop_seconds": GRACE_SECONDS,
        "slots": times * RUNS_PER_STOP,
    }
    async with Bench.open(folder, seed=seed, app=app, roles=ROLES, **settings) as bench:
        stops = _Stops(bench, folder, report)

        async def strike(worker: RoleProcess, count: int) -> None:
            async with bench.connected() as connection:
                for _ in range(count):
                    await stops.stop(worker, connection)

        try:
            async with asyncio.TaskGroup() as group:
                for number, worker in enumerate(bench.of("worker")):
                    group.create_task(strike(worker, (times + 1 - number) // 2))
            async with bench.connected() as connection:
                await stops.come_back(connection)
            stops.asked.released.set()
            (folder / "end").touch()
            # Calls that were open past the grace are an open truth, which a sweeper finds.
            bench.roles["sweeper-1"] = RoleProcess(bench, "sweeper-1")
            await bench.roles["sweeper-1"].start()
            await bench.settled(WAIT_SECONDS)
        finally:
            await stops.session.close()
        store = await bench.dump()
        async with bench.connected() as connection:
            rows = await connection.fetch("select status from longtake.runs")
    report.statuses = dict(Counter(row["status"] for row in rows))
    report.verdict = judge(
        read_history(bench.history_dir),
        store,
        read_witness(bench.provider.witness),
        funded=FUNDED,
        settled=True,
    )
    report.seconds = time.monotonic() - began
    return report
