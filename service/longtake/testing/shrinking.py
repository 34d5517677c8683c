"""Making a failing seed small: faults are left out one by one while the same promise still breaks.

Leaves to others: playing (simulation.py), keeping what was found (seeds.py).
"""

from collections.abc import Callable

import msgspec

from longtake.testing.faults import Profile
from longtake.testing.simulation import Result

PLAYS_MAX = 150
TRACE_LINES = 30

Player = Callable[[Profile], Result]


def shrink(failing: Result, play: Player, *, plays_max: int = PLAYS_MAX) -> Result:
    """The same failure with as few faults as a bounded search finds."""
    best, left = failing, plays_max
    invariant = failing.violations[0].invariant

    def try_without(names: list[str]) -> bool:
        nonlocal best, left
        if left <= 0 or not names:
            return False
        left -= 1
        profile = msgspec.structs.replace(best.profile, without=(*best.profile.without, *names))
        again = play(profile)
        if again.failed and again.violations[0].invariant == invariant:
            best = again
            return True
        return False

    for name in sorted({*best.profile.rates, *(storm for _, storm in best.profile.storms)}):
        if name not in best.profile.without:
            try_without([name])
    for number in range(len(best.profile.storms)):
        try_without([f"storm#{number}"])
    size = max(1, len(best.happened) // 2)
    while left > 0 and best.happened:
        marks = list(best.happened)
        removed = False
        for start in range(0, len(marks), size):
            removed |= try_without(marks[start : start + size])
        if size == 1 and not removed:
            break
        size = max(1, size // 2) if not removed else min(size, max(1, len(best.happened)))
    return best


def explain(result: Result) -> str:
    """A failing seed in words: what broke, what went wrong before, the last calls, and how to see it again."""
    storms = [
        f"{name} at {at:.0f} s"
        for number, (at, name) in enumerate(result.profile.storms)
        if name not in result.profile.without and f"storm#{number}" not in result.profile.without
    ]
    lines = [f"seed {result.seed} breaks {len(result.violations)} promise(s):"]
    lines += [f"  {violation}" for violation in result.violations[:5]]
    lines.append(f"faults that matter: {', '.join(result.happened[:40]) or 'none'}")
    lines.append(f"storms: {', '.join(storms) or 'none'}")
    lines.append(f"the last of {len(result.trace)} calls:")
    lines += [
        f"  {at / 1e6:10.4f}  {who:28} {place} {fault}"
        for at, who, place, fault in result.trace[-TRACE_LINES:]
    ]
    lines.append(f"again: make simulate SEEDS=1 FROM={result.seed}")
    return "\n".join(lines)
