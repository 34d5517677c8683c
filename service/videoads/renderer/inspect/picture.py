"""What the moving picture does, seen on small frames: where shots change, where it stands still, where it is black.

Only thumbnails are looked at, so that the answers do not depend on grain, on the encoder or on lettering.
"""

import numpy as np
from numpy.typing import NDArray

Thumbnails = NDArray[np.uint8]

CUT_NEIGHBOURS = 6
CUT_DIFFERENCE_MIN = 7.0
"""Mean change of a channel, in levels of 255, below which nothing is called a change of shot."""
CUT_PROMINENCE_MIN = 3.0
"""How many times a change must exceed what is usual around it."""

STILL_LEVELS = 3
"""A pixel of a thumbnail that stays within this many levels has not moved."""
MOVING_SHARE_MIN = 0.01
"""The share of the picture that has to move within each second."""

BLACK_LEVEL = 20
BLACK_RUN_FRAMES_MAX = 2


def frame_changes(thumbnails: Thumbnails) -> NDArray[np.float64]:
    """Mean change from the frame before, in levels of 255; the first frame's is 0."""
    changes = np.zeros(len(thumbnails))
    for index in range(1, len(thumbnails)):
        changes[index] = np.abs(
            thumbnails[index].astype(np.int16) - thumbnails[index - 1].astype(np.int16)
        ).mean()
    return changes


def shot_changes(thumbnails: Thumbnails) -> tuple[int, ...]:
    """Frames at which the picture changes at once and far more than around them: the hard cuts.

    A pan, a zoom or a wipe changes every frame by a like amount and is therefore not one. Of neighbouring candidates
    the strongest counts.
    """
    changes = frame_changes(thumbnails)
    found: list[int] = []
    for index in range(1, len(changes)):
        if changes[index] < CUT_DIFFERENCE_MIN:
            continue
        before = changes[max(1, index - CUT_NEIGHBOURS) : index]
        after = changes[index + 1 : index + 1 + CUT_NEIGHBOURS]
        around = np.concatenate((before, after))
        usual = float(np.percentile(around, 75)) if len(around) else 0.0
        if changes[index] < CUT_PROMINENCE_MIN * max(usual, 1.0):
            continue
        if found and index - found[-1] <= 2:
            if changes[index] > changes[found[-1]]:
                found[-1] = index
            continue
        found.append(index)
    return tuple(found)


def difference_across(thumbnails: Thumbnails, first: int, second: int) -> float:
    """Mean change of a channel between two frames, in levels of 255."""
    return float(np.abs(thumbnails[second].astype(np.int16) - thumbnails[first].astype(np.int16)).mean())


def layout_distance(thumbnails: Thumbnails, first: int, second: int) -> float:
    """How differently two frames are built, from 0 to 1, forgiving movement of a few pixels.

    Both are cut into coarse cells; each cell's colour is compared with the best of the other frame's cells around it.
    """
    a, b = _cells(thumbnails[first]), _cells(thumbnails[second])
    rows, columns = a.shape[:2]
    best = np.full((rows, columns), np.inf)
    padded = np.pad(b, ((1, 1), (1, 1), (0, 0)), mode="edge")
    for dy in range(3):
        for dx in range(3):
            distance = np.abs(a - padded[dy : dy + rows, dx : dx + columns]).mean(axis=2)
            best = np.minimum(best, distance)
    return float(best.mean() / 255.0)


def still_second(thumbnails: Thumbnails, fps: int) -> tuple[int, float] | None:
    """The first frame of a second in which the picture does not change, with the share that moved; None if none.

    Every window of one second is looked at, not only those which begin on a full second.
    """
    if len(thumbnails) < 2:
        return 0, 0.0
    window = min(fps, len(thumbnails))
    step = max(1, fps // 6)
    starts = [*range(0, len(thumbnails) - window + 1, step)]
    if starts[-1] != len(thumbnails) - window:
        starts.append(len(thumbnails) - window)
    for start in starts:
        share = moving_share(thumbnails[start : start + window])
        if share < MOVING_SHARE_MIN:
            return start, share
    return None


def least_moving_share(thumbnails: Thumbnails, fps: int) -> float:
    """The smallest share of the picture that moves in any full second."""
    window = min(fps, len(thumbnails))
    starts = range(0, len(thumbnails) - window + 1, window)
    return min(moving_share(thumbnails[start : start + window]) for start in starts)


def moving_share(thumbnails: Thumbnails) -> float:
    """The share of the picture that changes visibly within the given frames."""
    spread = thumbnails.max(axis=0).astype(np.int16) - thumbnails.min(axis=0).astype(np.int16)
    return float((spread.max(axis=2) > STILL_LEVELS).mean())


def black_run(thumbnails: Thumbnails) -> tuple[int, int] | None:
    """The first run of black frames longer than a blink: its first frame and length; None if there is none."""
    start = None
    for index in range(len(thumbnails) + 1):
        black = index < len(thumbnails) and np.percentile(thumbnails[index], 99.5) < BLACK_LEVEL
        if black and start is None:
            start = index
        if not black and start is not None:
            if index - start > BLACK_RUN_FRAMES_MAX:
                return start, index - start
            start = None
    return None


def _cells(thumbnail: NDArray[np.uint8], *, across: int = 9) -> NDArray[np.float64]:
    height, width = thumbnail.shape[:2]
    side = max(1, width // across)
    rows, columns = height // side, width // side
    cropped = thumbnail[: rows * side, : columns * side].astype(np.float64)
    cells: NDArray[np.float64] = cropped.reshape(rows, side, columns, side, 3).mean(axis=(1, 3))
    return cells
