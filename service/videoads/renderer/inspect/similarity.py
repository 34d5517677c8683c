"""Structural similarity of two pictures (SSIM), so that two renders of one brief can be compared by eye, not by bytes.

SSIM as defined by Wang and others in 2004, on luma, with a square window computed from running sums.
"""

import numpy as np
from numpy.typing import NDArray

WINDOW = 8
STILLS = 12
SIMILARITY_MIN = 0.999

_LUMA = np.array([0.2126, 0.7152, 0.0722])
_C1 = (0.01 * 255) ** 2
_C2 = (0.03 * 255) ** 2


def ssim(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> float:
    """Mean structural similarity of two equally large RGB or grey pictures: 1.0 means the same picture."""
    if first.shape != second.shape:
        raise ValueError(f"pictures of different size cannot be compared: {first.shape} and {second.shape}")
    a, b = _grey(first), _grey(second)
    if min(a.shape) < WINDOW:
        raise ValueError(f"a picture of {a.shape} is smaller than the window of {WINDOW} pixels")
    mean_a, mean_b = _window_mean(a), _window_mean(b)
    variance_a = np.maximum(_window_mean(a * a) - mean_a**2, 0.0)
    variance_b = np.maximum(_window_mean(b * b) - mean_b**2, 0.0)
    covariance = _window_mean(a * b) - mean_a * mean_b
    likeness = ((2 * mean_a * mean_b + _C1) * (2 * covariance + _C2)) / (
        (mean_a**2 + mean_b**2 + _C1) * (variance_a + variance_b + _C2)
    )
    return float(likeness.mean())


def still_frames(frames: int, *, count: int = STILLS) -> tuple[int, ...]:
    """Evenly spread frame numbers, the same for every film of that length, away from both ends."""
    return tuple(sorted({min(frames - 1, (2 * k + 1) * frames // (2 * count)) for k in range(count)}))


def _grey(picture: NDArray[np.uint8]) -> NDArray[np.float64]:
    wide = picture.astype(np.float64)
    return wide @ _LUMA if wide.ndim == 3 else wide


def _window_mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    sums = np.zeros((values.shape[0] + 1, values.shape[1] + 1))
    sums[1:, 1:] = values.cumsum(0).cumsum(1)
    window = (
        sums[WINDOW:, WINDOW:] - sums[:-WINDOW, WINDOW:] - sums[WINDOW:, :-WINDOW] + sums[:-WINDOW, :-WINDOW]
    )
    mean: NDArray[np.float64] = window / WINDOW**2
    return mean
