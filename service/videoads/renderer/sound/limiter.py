"""The ceiling: a look-ahead limiter on true peaks, and the gain that brings a mix to its loudness.

It only turns down, smoothly, and never lets a peak between two samples through.
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

from .filters import db
from .loudness import loudness, peak_envelope

__all__ = ["Levelled", "level_to", "limit"]

LOOKAHEAD_SECONDS = 0.004
ROUNDS_MAX = 6
LOUDNESS_TOLERANCE_LU = 0.05


class Levelled(msgspec.Struct, frozen=True):
    """A signal at its loudness, and the most that the limiter had to take away."""

    signal: NDArray[np.float64]
    reduction_db: float


def limit(signal: NDArray[np.float64], rate: int, *, ceiling_dbtp: float) -> Levelled:
    """Hold the true peak of (channels, samples) at or under the ceiling."""
    ceiling = db(ceiling_dbtp - 0.05)
    peaks = peak_envelope(signal)
    needed = np.minimum(1.0, ceiling / np.maximum(peaks, 1e-9))
    if np.all(needed >= 1.0):
        return Levelled(signal, 0.0)
    reach = max(2, int(LOOKAHEAD_SECONDS * rate))
    lowest = _sliding_minimum(needed, 2 * reach + 1)
    # Averaging over no more than the reach keeps the gain at or below what each peak needs.
    kernel = np.hanning(reach + 2)[1:-1]
    padded = np.pad(lowest, (reach, reach), mode="edge")
    gain = np.convolve(padded, kernel / np.sum(kernel), mode="same")[reach : reach + len(lowest)]
    return Levelled(signal * gain, float(-20.0 * np.log10(np.min(gain))))


def level_to(signal: NDArray[np.float64], rate: int, *, target_lufs: float, ceiling_dbtp: float) -> Levelled:
    """Gain and limit until the loudness is on target; limiting makes softer, so the gain is corrected."""
    measured = loudness(signal, rate)
    if measured <= -69.0:
        return Levelled(signal, 0.0)
    gain_db = target_lufs - measured
    result = Levelled(signal, 0.0)
    for _ in range(ROUNDS_MAX):
        result = limit(signal * db(gain_db), rate, ceiling_dbtp=ceiling_dbtp)
        missing = target_lufs - loudness(result.signal, rate)
        if abs(missing) <= LOUDNESS_TOLERANCE_LU:
            break
        gain_db += missing
    return result


def _sliding_minimum(values: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """The minimum over `width` values centred on each, in two passes over blocks of that width."""
    half = width // 2
    padded = np.pad(values, (half, half + (-(len(values) + 2 * half)) % width), constant_values=1.0)
    blocks = padded.reshape(-1, width)
    forward = np.minimum.accumulate(blocks, axis=1).ravel()
    backward = np.minimum.accumulate(blocks[:, ::-1], axis=1)[:, ::-1].ravel()
    return np.minimum(backward[: len(values)], forward[width - 1 : width - 1 + len(values)])
