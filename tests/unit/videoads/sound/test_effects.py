"""The effects: stereo, seeded, of the asked length, and each of its own kind."""

import numpy as np
import pytest
from sound_kit import RATE

from videoads.renderer.sound.effects import impact, pour, riser, whoosh

EFFECTS = [whoosh, pour, impact, riser]


def centroid(signal: np.ndarray, below: float = 24000.0) -> float:
    """The middle of the energy below a frequency, in Hz."""
    hertz = np.fft.rfftfreq(signal.shape[1], 1 / RATE)
    spectrum = np.abs(np.fft.rfft(signal.mean(axis=0))) ** 2 * (hertz < below)
    return float((spectrum * hertz).sum() / spectrum.sum())


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.8, 2.4])
def test_length_level_and_seed(effect, seconds):
    sound = effect(seconds, 4)
    assert sound.shape == (2, max(64, int(seconds * RATE)))
    assert np.max(np.abs(sound)) == pytest.approx(1.0)
    assert np.array_equal(sound, effect(seconds, 4))
    assert not np.array_equal(sound, effect(seconds, 5))


@pytest.mark.parametrize("effect", EFFECTS)
def test_no_click_at_the_end(effect):
    sound = effect(1.2, 4)
    assert np.max(np.abs(sound[:, -8:])) < 0.05


def test_a_riser_rises_and_stops_at_its_loudest():
    sound = riser(2.4, 1)
    third = sound.shape[1] // 3
    assert (
        centroid(sound[:, :third]) < centroid(sound[:, third : 2 * third]) < centroid(sound[:, 2 * third :])
    )
    assert np.mean(sound[:, -RATE // 4 :] ** 2) > 10 * np.mean(sound[:, : RATE // 2] ** 2)


def test_a_whoosh_crosses_from_one_side_to_the_other():
    sound = whoosh(1.0, 3)
    early, late = sound[:, : RATE // 3], sound[:, -RATE // 3 :]
    balance = [np.mean(part[0] ** 2) - np.mean(part[1] ** 2) for part in (early, late)]
    assert balance[0] * balance[1] < 0


def test_a_pour_goes_on_and_its_cup_note_rises():
    sound = pour(2.4, 2)
    blocks = np.sqrt(np.mean(sound[:, RATE // 4 : 2 * RATE].reshape(2, -1, RATE // 20) ** 2, axis=(0, 2)))
    assert blocks.min() > 0.1 * blocks.max(), "a stream has no gaps"
    half = sound.shape[1] // 2
    assert centroid(sound[:, :half], 1150.0) < 0.85 * centroid(sound[:, half:], 1150.0)


def test_an_impact_is_deep_and_dies_away():
    sound = impact(1.6, 1)
    assert centroid(sound) < 400
    assert np.mean(sound[:, -RATE // 4 :] ** 2) < 0.05 * np.mean(sound[:, : RATE // 4] ** 2)
