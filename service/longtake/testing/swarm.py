"""Many seeds, in several processes: how many held, what occurred in how many of them, and how fast it went.

A fault, command, step kind, join or port call that occurs in fewer than one seed of a hundred proves nothing, so the report
says which those are.
"""

import multiprocessing
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from longtake.testing import plans
from longtake.testing.commanding import CONTROLS, ENABLED_CONTROLS, ENABLED_STARTS
from longtake.testing.faults import (
    CALL_FAULTS,
    OTHER_FAULTS,
    PROVIDER_FAULTS,
    STORMS,
    TRANSPORT_FAULTS,
    Profile,
)
from longtake.testing.simulation import Result, play

SHARE_MIN = 0.01
EVENTS_MIN = 60.0
TWICE_EVERY = 100
"""One seed of so many is played twice: both must be the same to the last call."""


class Tally(msgspec.Struct, kw_only=True):
    """What many seeds add up to."""

    seeds: int = 0
    at_rest: int = 0
    events: int = 0
    steps: int = 0
    seconds: float = 0.0
    twice: int = 0
    occurred: dict[str, dict[str, int]] = {}
    """By dimension and value: in how many seeds."""
    statuses: dict[str, int] = {}
    failing: list[Result] = []

    def add(self, result: Result) -> None:
        """Count one seed."""
        self.seeds += 1
        self.at_rest += result.at_rest
        self.events += result.events
        self.steps += result.steps
        for dimension, counts in result.counts.items():
            seen = self.occurred.setdefault(dimension, {})
            for name, count in counts.items():
                if count:
                    seen[name] = seen.get(name, 0) + 1
        for status, count in result.statuses.items():
            self.statuses[status] = self.statuses.get(status, 0) + count
        if result.failed:
            self.failing.append(result)

    def rare(self) -> list[str]:
        """What should occur and hardly does."""
        expected: dict[str, Sequence[str]] = {
            "fault": EXPECTED_FAULTS,
            "command": (*ENABLED_STARTS, *ENABLED_CONTROLS),
            "kind": plans.ENABLED,
            "join": plans.JOINS if "joins" in plans.EXTRAS else ("all_succeeded",),
        }
        found = []
        for dimension, names in expected.items():
            seen = self.occurred.get(dimension, {})
            for name in dict.fromkeys((*names, *(seen if dimension != "fault" else ()))):
                if seen.get(name, 0) < self.seeds * SHARE_MIN:
                    found.append(f"{dimension} {name}: {seen.get(name, 0)} of {self.seeds}")
        for name, count in self.occurred.get("place", {}).items():
            if count < self.seeds * SHARE_MIN:
                found.append(f"port call {name}: {count} of {self.seeds}")
        return found

    def report(self) -> str:
        """The whole of it, as a table."""
        lines = [
            f"{self.seeds} seeds in {self.seconds:.1f} s: {self.seeds / max(self.seconds, 1e-9):.1f} schedules/s",
            f"{self.steps / max(self.seeds, 1):.0f} steps and {self.events / max(self.seeds, 1):.1f} events a seed",
            f"reached the end of the liveness phase: {self.at_rest} ({100 * self.at_rest / max(self.seeds, 1):.2f} %)",
            f"played twice and equal: {self.twice}",
            f"violations: {len(self.failing)}",
            f"runs by status: {_shown(self.statuses, sum(self.statuses.values()))}",
        ]
        for dimension in ("fault", "command", "kind", "join", "place", "answer", "event"):
            lines.append(
                f"{dimension}, in % of seeds: {_shown(self.occurred.get(dimension, {}), self.seeds)}"
            )
        return "\n".join(lines)


EXPECTED_FAULTS = (*CALL_FAULTS, *TRANSPORT_FAULTS, *STORMS, *PROVIDER_FAULTS, *OTHER_FAULTS)


def _shown(counts: dict[str, int], total: int) -> str:
    return ", ".join(f"{name} {100 * count / max(total, 1):.1f}" for name, count in sorted(counts.items()))


def play_many(
    seeds: Iterable[int], *, processes: int = 1, profile: Profile | None = None, stop_after: int = 5
) -> Tally:
    """Play seeds; ends early after so many failing ones."""
    tally = Tally()
    began = time.perf_counter()
    for result, twice in _results(list(seeds), processes):
        tally.add(result)
        tally.twice += twice
        if len(tally.failing) >= stop_after:
            break
    tally.seconds = time.perf_counter() - began
    return tally


def _results(seeds: list[int], processes: int) -> Iterator[tuple[Result, bool]]:
    if processes <= 1:
        yield from map(_one, seeds)
        return
    context = multiprocessing.get_context("fork")
    with context.Pool(processes) as pool:
        yield from pool.imap_unordered(_one, seeds, chunksize=4)


def _one(seed: int) -> tuple[Result, bool]:
    result = play(seed)
    twice = seed % TWICE_EVERY == 0
    if twice:
        again = play(seed)
        if digest_of(again) != digest_of(result):
            result = msgspec.structs.replace(result, violations=(*result.violations, _unequal()))
    if not result.failed:
        result = msgspec.structs.replace(result, trace=(), happened=())
    return result, twice


def digest_of(result: Result) -> Any:
    """Everything that must be the same when a seed is played again."""
    return hash((result.trace, result.events, result.steps, result.happened))


def _unequal() -> Any:
    from longtake.testing.seen import Violation

    return Violation(invariant="I5", message="the seed did not give the same trace twice", at=0.0)


__all__ = ["CONTROLS", "Tally", "digest_of", "play_many"]
