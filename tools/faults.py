"""Campaigns of named faults against a service of separate processes: `make faults FAULTS=N07,N11 SEEDS=3`.

Each keeps at least 200 runs in flight, prints how often its fault really struck, and is judged by the history checker
(docs/checking.md). Ends with an error when a promise was broken, a fault never struck, or too few runs were in flight.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

import structlog

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "service"), str(ROOT / "tests")]

from kit.bench.campaign import RUNS, CampaignReport, campaign
from kit.bench.catalogue import all_faults

IN_FLIGHT_MIN = 200


def main() -> int:
    """Run them one after the other; 0 when everything held."""
    parser = argparse.ArgumentParser(prog="make faults", description="Hurt a service and judge what is left.")
    parser.add_argument("--faults", default="", help="names, separated by commas; none: all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--from", dest="first", type=int, default=1, help="the first seed")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--keep", type=Path, help="keep the evidence of campaigns that fail here")
    options = parser.parse_args()
    known = list(all_faults())
    names = [name for name in options.faults.split(",") if name] or known
    strange = [name for name in names if name not in known]
    if strange:
        parser.error(f"there is no fault {', '.join(strange)}; there are {', '.join(known)}")
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    failed = []
    for name in names:
        for seed in range(options.first, options.first + options.seeds):
            report = asyncio.run(_one(name, seed, options.runs, options.keep))
            print(report.text(), flush=True)
            if not report.passed or report.in_flight < min(IN_FLIGHT_MIN, options.runs * 0.9):
                failed.append(f"{name} seed {seed}")
    print(f"{len(names) * options.seeds - len(failed)} of {len(names) * options.seeds} campaigns held")
    for which in failed:
        print(f"FAILED  {which}")
    return 1 if failed else 0


async def _one(name: str, seed: int, runs: int, keep: Path | None) -> CampaignReport:
    with tempfile.TemporaryDirectory(prefix="longtake-faults-") as folder:
        home = Path(folder) / "bench"
        report = await campaign(home, all_faults()[name], seed=seed, runs=runs)
        if keep is not None and not report.passed:
            shutil.copytree(home, keep / f"{name}-{seed}", ignore=shutil.ignore_patterns("servers", "*.sock"))
    return report


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "service"), str(ROOT / "tests")])
    sys.exit(main())
