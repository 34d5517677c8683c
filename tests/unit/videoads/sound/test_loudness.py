"""The meters: they agree with an independent one, and tell right from wrong."""

import numpy as np
import pytest
from sound_kit import RATE, MixedAd, meter

from videoads.renderer.sound import integrated_lufs, rms_per_window, true_peak_dbtp
from videoads.renderer.sound.wav import as_pcm


@pytest.mark.parametrize("level", [-6.0, -18.0, -23.0, -40.0])
@pytest.mark.parametrize("hz", [60.0, 997.0, 6000.0])
def test_integrated_loudness_agrees_with_an_independent_meter(tone, hz, level):
    pcm = tone(hz, level)
    assert integrated_lufs(pcm, RATE) == pytest.approx(meter(pcm)[0], abs=0.1)


def test_a_full_scale_997_hz_sine_in_one_channel_reads_minus_3_01(tone):
    """The calibration point of BS.1770."""
    assert integrated_lufs(tone(997.0, 0.0, channels=1), RATE) == pytest.approx(-3.01, abs=0.02)


def test_another_rate_weighs_alike(tone):
    pcm = tone(2500.0, -20.0, rate=44100)
    assert integrated_lufs(pcm, 44100) == pytest.approx(meter(pcm, 44100)[0], abs=0.1)


def test_the_gate_leaves_silence_and_faint_parts_out(tone):
    loud = tone(997.0, -20.0, 4.0)
    gapped = np.concatenate([loud, np.zeros((RATE * 6, 2), np.int16), tone(997.0, -50.0, 4.0)])
    assert integrated_lufs(gapped, RATE) == pytest.approx(meter(gapped)[0], abs=0.2)
    ungated = -0.691 + 10 * np.log10(np.sum(np.mean((gapped / 32768.0) ** 2, axis=0)))
    assert integrated_lufs(gapped, RATE) > ungated + 4.0, "a meter without gates would read much softer"


def test_silence_reads_minus_70_and_nothing_fails_on_an_empty_sound():
    assert integrated_lufs(np.zeros((RATE, 2), np.int16), RATE) == -70.0
    assert integrated_lufs(np.zeros((0, 2), np.int16), RATE) == -70.0
    assert true_peak_dbtp(np.zeros((0, 2), np.int16)) == pytest.approx(-120.0)


def test_true_peak_sees_what_lies_between_the_samples(tone):
    """A sine at a quarter of the rate, 45 degrees off: its samples all lie 3 dB below its peak."""
    ramp = np.minimum(1.0, np.arange(RATE // 2) / 4800)
    pcm = np.rint(tone(12000.0, -0.5, 0.5, phase=45.0) * (ramp * ramp[::-1])[:, None]).astype(np.int16)
    samples_only = 20 * np.log10(np.max(np.abs(pcm)) / 32768.0)
    assert samples_only < -3.0, "the sample peak, our broken variant, does not see it"
    assert true_peak_dbtp(pcm) == pytest.approx(-0.5, abs=0.25)
    assert true_peak_dbtp(pcm) == pytest.approx(meter(pcm)[1], abs=0.25)


def test_both_meters_agree_on_a_whole_ad(ad: MixedAd):
    loudness, peak = meter(ad.report.pcm)
    assert integrated_lufs(ad.report.pcm, RATE) == pytest.approx(loudness, abs=0.2)
    assert true_peak_dbtp(ad.report.pcm) == pytest.approx(peak, abs=0.2)


def test_levels_are_given_for_each_window_even_the_last_short_one(tone):
    levels = rms_per_window(np.concatenate([tone(440.0, -6.0, 0.1), np.zeros((1000, 2), np.int16)]), RATE)
    assert len(levels) == 3
    assert levels[0] == pytest.approx(-9.0, abs=0.1)
    assert levels[2] == pytest.approx(-120.0)


def test_noise_between_two_meters():
    pcm = as_pcm(0.1 * np.random.default_rng(1).standard_normal((2, RATE * 3)))
    assert integrated_lufs(pcm, RATE) == pytest.approx(meter(pcm)[0], abs=0.1)
