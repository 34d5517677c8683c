"""Workers that are told to stop at random moments: `make sigterm [N=200 SEED=1]`. Fails when anything waits, is lost or doubled."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import structlog

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "service"), str(ROOT / "tests")]

from kit.bench.stopping import stopping


async def _tell(times: int, seed: int) -> bool:
    with tempfile.TemporaryDirectory(prefix="longtake-sigterm-") as folder:
        report = await stopping(Path(folder) / "bench", times=times, seed=seed)
    print(report.text(), flush=True)
    if report.verdict is not None and not report.verdict.ok:
        print(report.verdict.text())
    return report.passed


def main() -> int:
    """All stops on one bench."""
    parser = argparse.ArgumentParser(prog="make sigterm", description="Stops workers in good order.")
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.times < 1:
        parser.error("--times is at least 1")
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    return 0 if asyncio.run(_tell(options.times, options.seed)) else 1


if __name__ == "__main__":
    sys.exit(main())
