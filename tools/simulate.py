"""Play many seeds of the simulated world: `make simulate SEEDS=20000 [FROM=0]`.

Ends with an error when a promise was broken, when something hardly ever occurred, or when the worlds were too small. A
failing seed is made small, explained, and kept under tests/seeds/.
"""

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "service"))

from longtake.testing import seeds as kept_seeds
from longtake.testing.shrinking import explain, shrink
from longtake.testing.simulation import play
from longtake.testing.swarm import EVENTS_MIN, play_many

SEEDS_FOR_SHARES = 500
"""With fewer seeds the shares are told but not judged."""


def main() -> int:
    """Play, report, judge."""
    parser = argparse.ArgumentParser(description="play seeds of the simulated world")
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--keep", action="store_true", help="write failing seeds into tests/seeds/")
    options = parser.parse_args()
    tally = play_many(range(options.first, options.first + options.seeds), processes=options.processes)
    print(tally.report())
    bad = False
    for failing in tally.failing:
        bad = True
        small = shrink(failing, lambda profile, seed=failing.seed: play(seed, profile=profile))
        print()
        print(explain(small))
        if options.keep:
            print(f"kept as {kept_seeds.keep(small, ROOT / 'tests' / 'seeds').relative_to(ROOT)}")
    if tally.seeds >= SEEDS_FOR_SHARES and not tally.failing:
        for what in tally.rare():
            bad = True
            print(f"hardly ever occurred: {what}")
        if tally.events / tally.seeds < EVENTS_MIN:
            bad = True
            print(
                f"the worlds are too small: {tally.events / tally.seeds:.1f} events a seed, {EVENTS_MIN:.0f} are wanted"
            )
        if tally.at_rest != tally.seeds:
            bad = True
            print(f"{tally.seeds - tally.at_rest} seeds did not reach the end of their liveness phase")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
