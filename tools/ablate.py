"""Take the defences away one by one and see that a promise breaks: `make ablate [SEEDS=1000]`.

Ends with an error when fewer than 22 of the 24 are caught by the simulated world, or one has no test at all.
"""

import argparse
import multiprocessing
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "service"))

from longtake.testing.ablations import ABLATIONS, MORE, hunt

CAUGHT_MIN = 22


def _hunt(job: tuple[int, int]) -> tuple[int, str, bool]:
    number, seeds = job
    caught = hunt((*ABLATIONS, *MORE)[number], range(seeds))
    return number, caught.line, caught.result is not None


def main() -> int:
    """Hunt, print the table, judge."""
    parser = argparse.ArgumentParser(description="take the defences away one by one")
    parser.add_argument("--seeds", type=int, default=1000, help="how many are played at most for each")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="also the defences beyond the list")
    options = parser.parse_args()
    names = (*ABLATIONS, *(MORE if options.all else ()))
    began = time.perf_counter()
    with multiprocessing.get_context("fork").Pool(options.processes) as pool:
        found = sorted(pool.imap_unordered(_hunt, [(number, options.seeds) for number in range(len(names))]))
    for _, line, _ in found:
        print(line)
    caught = sum(hit for _, _, hit in found[: len(ABLATIONS)])
    print(f"{caught} of {len(ABLATIONS)} caught, in {time.perf_counter() - began:.0f} s")
    bare = [names[number].name for number, _, hit in found if not hit and not names[number].elsewhere]
    if bare:
        print(f"neither caught nor tested elsewhere: {', '.join(bare)}")
    return (
        0
        if caught >= CAUGHT_MIN and not [name for name in bare if name in {a.name for a in ABLATIONS}]
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())
