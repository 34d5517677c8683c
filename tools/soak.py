"""A soak of a service of separate processes: `make soak MINUTES=10 [SEED=1]`.

Faults every 5 to 40 seconds, drawn from all that fit one node. Prints a line a minute and, at the end, what was measured;
fails when a promise was broken, too many calls outside of fault windows were not answered, memory grew, or work was left.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import structlog

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "service"), str(ROOT / "tests")]

from kit.bench.soaking import soak


def main() -> int:
    """One soak; 0 when everything held."""
    parser = argparse.ArgumentParser(prog="make soak", description="Load and faults for a while.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", default="", help="names, separated by commas; none: all")
    parser.add_argument("--keep", type=Path, help="put everything here instead of throwing it away")
    options = parser.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    faults = [name for name in options.faults.split(",") if name]
    with tempfile.TemporaryDirectory(prefix="longtake-soak-") as folder:
        report = asyncio.run(
            soak(
                options.keep or Path(folder) / "bench",
                minutes=options.minutes,
                seed=options.seed,
                faults=faults,
                say=lambda line: print(line, flush=True),
            )
        )
    counted = report.verdict.counters
    struck = ", ".join(f"{name} {count}" for name, count in report.faults.items() if count)
    print(f"struck: {struck}")
    print(
        f"{counted['runs']} runs, {counted['effects']} effects, {counted['ops']} ops: {counted['ok']} ok, "
        f"{counted['fail']} refused, {counted['info']} unknown; {100 * report.ok_share:.2f} % answered outside of "
        "fault windows"
    )
    grown = ", ".join(f"{name} {slope / 1024:+.0f}" for name, slope in sorted(report.slopes.items()))
    print(f"memory over the second half, KiB a minute: {grown or 'no role lived through it'}")
    rest = report.backlog_seconds
    print("backlog 0 " + (f"{rest:.1f} s after the last fault" if rest is not None else "was not reached"))
    failures = report.failures()
    print("no violations" if report.verdict.ok else "VIOLATIONS")
    for failure in failures:
        print(f"FAILED  {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
