"""`make crash`: many runs of the ad, each killed at moments that its seed places, and a verdict on what is left.

Prints, for each seed, what was killed when, what was in flight, how long the service was away, and the verdict. Fails when
a promise is broken, when fewer kills hit an open paid request than half the number of runs, or when a phase was never hit.
With --ablate a safeguard is taken out (by a test's application): then the runs must fail, which shows that they notice.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "service"), str(ROOT / "tests")]

from longtake.cli.demo_crash import CrashBench, CrashReport, crash_bench
from longtake.cli.showcase import Showcase, showcase_of

APP = "videoads:app"
ABLATED = "kit.ablated_app"
RUNS_FOR_COVERAGE = 8
"""So many seeds in a row walk through every phase; fewer are judged by their promises alone."""


def main() -> int:
    """Run the seeds; 0 when all promises were kept and the kills hit what they should."""
    parser = argparse.ArgumentParser(prog="make crash", description="Kill, start again, judge.")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="the first seed; each run takes the next one")
    parser.add_argument(
        "--ablate", choices=("reconcile", "receipt"), help="take a safeguard out: it must be noticed"
    )
    parser.add_argument("--data-dir", type=Path, help="keep the data here instead of throwing it away")
    parser.add_argument("--stop-at-first", action="store_true", help="end at the first broken promise")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error(f"--runs is {options.runs}; give at least 1")
    # The service is a child process: it imports what we import.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "service"), str(ROOT / "tests")])
    with tempfile.TemporaryDirectory(prefix="longtake-crash-") as folder:
        return asyncio.run(crash(options, options.data_dir or Path(folder)))


async def crash(options: argparse.Namespace, data_dir: Path) -> int:
    """All seeds through one bench."""
    begun = time.monotonic()
    showcase = showcase_of(APP)
    app = f"{ABLATED}:{options.ablate}" if options.ablate else APP
    reports: list[CrashReport] = []
    async with crash_bench(showcase, app, data_dir.absolute()) as bench:
        for seed in range(options.seed, options.seed + options.runs):
            report = await one(bench, seed)
            reports.append(report)
            # Without a safeguard one broken promise is the whole answer.
            if (options.stop_at_first or options.ablate) and not report.kept:
                break
    print(f"\nall {time.monotonic() - begun:.0f} s", flush=True)
    faults = [f"seed {report.seed} broke a promise" for report in reports if not report.kept]
    faults += coverage(reports, showcase)
    for fault in faults:
        print(f"FAILED  {fault}")
    return 1 if faults else 0


async def one(bench: CrashBench, seed: int) -> CrashReport:
    """One seed, told as it goes."""
    print(f"\nseed {seed}", flush=True)
    report = await bench.run(seed, say=lambda line: print(f"  {line}", flush=True))
    for check in report.checks:
        if not check.kept:
            print(f"  BROKEN  {check.name}: {check.found}")
    kept = sum(check.kept for check in report.checks)
    verdict = f"all {kept} promises kept" if report.kept else "PROMISES BROKEN"
    print(f"  run {report.run_id}: {verdict} in {report.seconds:.1f} s", flush=True)
    return report


def coverage(reports: list[CrashReport], showcase: Showcase) -> list[str]:
    """What the kills hit, and what they should have hit."""
    kills = [kill for report in reports for kill in report.kills]
    paid = sum(1 for kill in kills if kill.open_requests)
    phases = Counter(phase for kill in kills for phase in kill.phases)
    away = sorted(kill.recovery_seconds for kill in kills) or [0.0]
    hit = ", ".join(f"{phase} {phases[phase]}" for phase in showcase.phases)
    print(f"{len(kills)} kills in {len(reports)} runs; phases hit: {hit}; {paid} hit an open paid request")
    print(f"back after {away[len(away) // 2]:.1f} s (median), {away[-1]:.1f} s (longest)")
    if len(reports) < RUNS_FOR_COVERAGE:
        return []
    faults = [f"no kill hit the phase {phase}" for phase in showcase.phases if not phases[phase]]
    if paid < len(reports) / 2:
        faults.append(f"only {paid} kills hit an open paid request, {len(reports) // 2} are needed")
    return faults


if __name__ == "__main__":
    sys.exit(main())
