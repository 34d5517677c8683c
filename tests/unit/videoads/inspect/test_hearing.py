"""The sound is judged rightly: loudness, peak and silence."""

import numpy as np
import pytest

from kit.footage import RATE, tone
from videoads.renderer.inspect import hearing


def test_a_tone_of_known_level_has_the_known_loudness():
    """EBU Tech 3341: 1 kHz at -23 dBFS in both channels measures -23 LUFS."""
    measured = hearing.measure_loudness(
        tone(4, frequency=1000, amplitude=10 ** (-23 / 20)).astype(np.float32)
    )

    assert measured.integrated_lufs == pytest.approx(-23.0, abs=0.1)
    assert measured.true_peak_dbtp == pytest.approx(-23.0, abs=0.5)


def test_a_peak_between_the_samples_is_seen():
    """A sine at a quarter of the rate, sampled 45 degrees off its crests, hides 3 dB from a sample meter."""
    n = np.arange(RATE)
    wave = 0.9 * np.sin(np.pi / 2 * n + np.pi / 4)
    sound = np.stack([wave, wave]).astype(np.float32)

    assert hearing.peak_of(sound) == pytest.approx(-3.9, abs=0.1)
    assert hearing.measure_loudness(sound).true_peak_dbtp > -1.2


def test_a_second_of_silence_is_found_and_a_short_rest_is_not():
    sound = tone(4).astype(np.float32)
    rest, silence = sound.copy(), sound.copy()
    rest[:, RATE : RATE + RATE // 2] = 0
    silence[:, RATE : 2 * RATE + RATE // 5] = 0

    assert hearing.silent_second(sound) is None
    assert hearing.silent_second(rest) is None
    assert hearing.silent_second(silence) == pytest.approx(1.0, abs=0.11)
    assert hearing.silent_second(np.zeros((2, 0), np.float32)) == 0.0
