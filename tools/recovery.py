"""How long the service is away after a blow: `make recovery [SEED=1]`. Prints durations and judges none of them.

One process of each role, under a steady stream of runs. What must come back does, or this ends with an error.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import structlog

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "service"), str(ROOT / "tests")]

from kit.bench.recovering import TIMES, recoveries


async def _tell(seed: int, times: int) -> None:
    with tempfile.TemporaryDirectory(prefix="longtake-recovery-") as folder:
        async for figure in recoveries(Path(folder) / "bench", seed=seed, times=times):
            print(figure.text(), flush=True)


def main() -> int:
    """All figures."""
    parser = argparse.ArgumentParser(prog="make recovery", description="From a blow to the next decision.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--times", type=int, default=TIMES)
    options = parser.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(_tell(options.seed, options.times))
    return 0


if __name__ == "__main__":
    sys.exit(main())
