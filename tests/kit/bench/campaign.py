"""A campaign: load, a fault at seeded moments, rest, and the verdict.

report = await campaign(folder, fault, seed=1, runs=220)
print(report.text())
"""

import asyncio
import time
from pathlib import Path

import msgspec

from kit.bench import Fault
from kit.bench.cluster import Bench
from kit.bench.workload import Workload
from kit.probe import eventually
from kit.runtimes import FUNDS, PRINCIPAL
from longtake.testing.checking import Verdict, judge, read_history, read_witness
from longtake.testing.checking.kept import keep_store

RUNS = 220
STRIKES = 3
REST_SECONDS = 120.0
FUNDED = {(PRINCIPAL.tenant, "main"): FUNDS}


class CampaignReport(msgspec.Struct, kw_only=True):
    """What a campaign showed."""

    fault: str
    what: str
    seed: int
    struck: int
    in_flight: int
    """Runs that had been accepted and had not ended when the fault struck in their middle."""
    deaths: int
    verdict: Verdict
    statuses: dict[str, int]
    seconds: float
    trouble: str = ""
    """Why the service did not come to rest; empty when it did."""

    @property
    def passed(self) -> bool:
        """Whether the fault struck and nothing was broken."""
        return self.verdict.ok and self.struck > 0 and not self.trouble

    def text(self) -> str:
        """One block for people."""
        counted = self.verdict.counters
        ended = ", ".join(f"{count} {status}" for status, count in sorted(self.statuses.items()))
        head = (
            f"{self.fault} {self.what}, seed {self.seed}: struck {self.struck} times, {self.deaths} deaths of roles; "
            f"{counted['runs']} runs ({ended}), {self.in_flight} in flight; {counted['effects']} effects, "
            f"{counted['ops']} ops: {counted['ok']} ok, {counted['fail']} fail, {counted['info']} unknown; "
            f"{counted['charged']} charges at the provider; {self.seconds:.0f} s"
        )
        if self.passed:
            return f"{head}\n  no violations"
        why = [self.trouble] if self.trouble else []
        why += ["it never struck: this shows nothing"] if not self.struck else []
        return "\n".join([head, *(f"  FAILED  {reason}" for reason in why), self.verdict.text()])


async def campaign(
    folder: Path,
    fault: Fault,
    *,
    seed: int,
    runs: int = RUNS,
    strikes: int = STRIKES,
    app: str = "kit.bench.app:app",
) -> CampaignReport:
    """One fault against one service under load."""
    began = time.monotonic()
    async with Bench.open(folder, seed=seed, app=app) as bench:
        workload = Workload(bench, runs=runs)
        playing = asyncio.create_task(workload.play())
        trouble, in_flight = "", 0
        try:
            for number in range(strikes):
                await _moment(bench, workload, number, strikes)
                if number == strikes // 2:
                    in_flight = (await bench.backlog())["runs"]
                await strike(bench, fault)
            workload.released.set()
            async with asyncio.timeout(REST_SECONDS):
                await playing
            await bench.settled(REST_SECONDS)
        except TimeoutError as late:
            trouble = f"not at rest: {late}; runs as last read: {dict(workload.statuses())}"
        finally:
            await fault.heal(bench)
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
        store = await bench.dump()
        deaths = sum(role.deaths for role in bench.roles.values())
    keep_store(bench.history_dir, store)
    # The roles have ended: nobody writes history any more.
    verdict = judge(
        read_history(bench.history_dir),
        store,
        read_witness(bench.provider.witness),
        funded=FUNDED,
        settled=not trouble,
    )
    return CampaignReport(
        fault=fault.name,
        what=fault.what,
        seed=seed,
        struck=fault.struck,
        in_flight=in_flight,
        deaths=deaths,
        verdict=verdict,
        statuses=dict(workload.statuses()),
        seconds=time.monotonic() - began,
        trouble=trouble,
    )


async def strike(bench: Bench, fault: Fault) -> None:
    """Let the fault hit, last for a while that the seed says, and be over; the history tells when."""
    op = bench.nemesis.invoke("fault", fault.name)
    try:
        await fault.strike(bench)
        await asyncio.sleep(bench.chance.uniform(0.5, 2.0))
    finally:
        await fault.heal(bench)
        bench.nemesis.ok(op)


async def _moment(bench: Bench, workload: Workload, number: int, strikes: int) -> None:
    """First while runs are being started, then when all are in flight, then while their gates are answered."""
    if number < strikes // 2:
        share = bench.chance.uniform(0.05, 0.5)
        await eventually(
            lambda: workload.accepted >= share * workload.runs, "runs to be started", REST_SECONDS
        )
        return
    await workload.accepted_all.wait()
    if number > strikes // 2:
        workload.released.set()
    await asyncio.sleep(bench.chance.uniform(0.1, 1.0))
