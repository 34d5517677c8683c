"""Walk through every state of the small worlds: `make exhaust [STATES=60000] [ARGS="--round crash"]`.

STATES bounds one walk; a world that is smaller is walked to its last state. Ends with an error when a promise is broken, or
when fewer states were met than the goal although nothing bounded the walks further than that.
"""

import argparse
import logging
import multiprocessing
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "service"))

import structlog

from longtake.testing.exhaustive import Report, explore
from longtake.testing.exhaustive_worlds import ROUNDS, Setting, settings_of

GOAL = 200_000
"""States in all worlds together, each distinct from the others of its world."""
STATES = 60_000


def _walk(job: tuple[Setting, int]) -> Report:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    setting, states = job
    return explore(setting, states_max=states)


def main() -> int:
    """Walk, print the table, judge."""
    parser = argparse.ArgumentParser(description="walk through every state of the small worlds")
    parser.add_argument("--states", type=int, default=STATES, help="at most so many states a walk")
    parser.add_argument(
        "--round", choices=tuple(ROUNDS), action="append", help="only walks in which this goes wrong"
    )
    parser.add_argument("--world", default="", help="only worlds whose name begins so")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    began = time.perf_counter()
    jobs = [
        (setting, options.states)
        for name in options.round or ROUNDS
        for setting in settings_of(name)
        if setting.name.startswith(options.world)
    ]
    reports: list[Report] = []
    with multiprocessing.get_context("fork").Pool(options.processes, maxtasksperchild=1) as pool:
        for report in pool.imap_unordered(_walk, jobs, chunksize=1):
            reports.append(report)
            print(report.line, flush=True)
            for fault in report.faults:
                print(fault, flush=True)
    states = sum(report.states for report in reports)
    faults = sum(len(report.faults) for report in reports)
    whole = sum(report.complete for report in reports)
    seconds = time.perf_counter() - began
    print(
        f"{states:,} states, {sum(report.transitions for report in reports):,} transitions, "
        f"{sum(report.histories for report in reports):,} histories in {seconds:.0f} s, {states / seconds:,.0f} states/s; "
        f"{whole} of {len(reports)} worlds to their last state; {faults} violations"
    )
    is_narrowed = bool(options.round or options.world) or options.states < STATES
    if states < GOAL and not is_narrowed:
        print(f"too few: the goal is {GOAL:,} states")
        return 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
