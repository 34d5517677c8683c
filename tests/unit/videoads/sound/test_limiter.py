"""The ceiling holds between the samples too, and loudness meets its target."""

import numpy as np
import pytest

from videoads.renderer.sound.limiter import level_to, limit
from videoads.renderer.sound.loudness import loudness, peak_envelope

RATE = 48000


def peaky(seconds: float = 3.0) -> np.ndarray:
    """Noise with clicks and a tone whose peaks lie between samples: everything a limiter gets wrong."""
    random = np.random.default_rng(3)
    t = np.arange(int(seconds * RATE)) / RATE
    signal = 0.12 * random.standard_normal((2, len(t)))
    signal += 0.9 * np.sin(2 * np.pi * 12000 * t + np.pi / 4) * (np.sin(2 * np.pi * 1.5 * t) > 0.6)
    signal[:, ::9000] += 1.4
    return signal


def true_peak(signal: np.ndarray) -> float:
    return float(20 * np.log10(np.max(peak_envelope(signal))))


def test_no_true_peak_passes_the_ceiling():
    assert true_peak(peaky()) > 0.0
    limited = limit(peaky(), RATE, ceiling_dbtp=-2.0)
    assert true_peak(limited.signal) <= -1.95
    assert limited.reduction_db > 2.0


def test_a_limiter_that_looks_at_samples_only_would_let_peaks_through():
    """The broken variant: clipping samples at the ceiling leaves the peaks between them."""
    clipped = np.clip(peaky(), -(10 ** (-2 / 20)), 10 ** (-2 / 20))
    assert true_peak(clipped) > -1.9


def test_what_is_under_the_ceiling_is_not_touched():
    quiet = 0.1 * peaky()
    assert limit(quiet, RATE, ceiling_dbtp=-1.0).signal is quiet


def test_the_gain_moves_smoothly():
    signal = np.full((2, RATE), 0.3)
    signal[:, RATE // 2] = 1.5
    gain = limit(signal, RATE, ceiling_dbtp=-3.0).signal[0] / signal[0]
    assert np.max(np.abs(np.diff(gain))) < 0.02
    assert gain[0] == pytest.approx(1.0) and gain[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("target", [-23.0, -16.0, -14.0])
def test_loudness_meets_its_target_under_the_ceiling(target):
    result = level_to(peaky(), RATE, target_lufs=target, ceiling_dbtp=-1.0)
    assert loudness(result.signal, RATE) == pytest.approx(target, abs=0.3)
    assert true_peak(result.signal) <= -0.95


def test_silence_stays_silence():
    assert not np.any(level_to(np.zeros((2, RATE)), RATE, target_lufs=-16.0, ceiling_dbtp=-1.0).signal)
