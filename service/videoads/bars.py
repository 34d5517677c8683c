"""The grid of an ad: 100 beats a minute at 30 frames a second, so that a bar is 72 frames and every cut on one."""

from __future__ import annotations

__all__ = ["BPM", "FPS", "FRAMES_PER_BAR", "bars_for", "bars_needed", "card_bars", "scene_bars"]

BPM = 100
FPS = 30
FRAMES_PER_BAR = 72


def bars_for(seconds: float) -> int:
    """Return the whole number of bars nearest to `seconds`, never fewer than two."""
    return max(2, int(seconds * FPS / FRAMES_PER_BAR + 0.5))


def card_bars(bars: int) -> int:
    """Return how many of the bars the closing card takes: two, or one in a very short ad."""
    return 2 if bars >= 4 else 1


def bars_needed(scenes: int) -> int:
    """Return the fewest bars in which so many scenes and their card fit."""
    return scenes + (2 if scenes >= 3 else 1)


def scene_bars(scenes: int, bars: int) -> tuple[int, ...]:
    """Share the bars before the card among the scenes; earlier scenes get what does not divide evenly."""
    room = bars - card_bars(bars)
    each, left = divmod(room, scenes)
    return tuple(each + (1 if index < left else 0) for index in range(scenes))
