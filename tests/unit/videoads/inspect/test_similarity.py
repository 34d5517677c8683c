"""Two pictures are called the same only when an eye would."""

import numpy as np
import pytest

from kit.footage import moving_gradient
from videoads.renderer.inspect.similarity import SIMILARITY_MIN, ssim, still_frames

PICTURE = moving_gradient(90, 160, tint=(120, 100, 90))(0)


def test_a_picture_is_the_same_as_itself():
    assert ssim(PICTURE, PICTURE) == pytest.approx(1.0)


def test_a_small_blot_a_shift_and_noise_are_each_below_the_limit():
    blot, noise = PICTURE.copy(), PICTURE.astype(np.int16)
    blot[70:80, 40:50] = 255
    noise += np.random.default_rng(1).integers(-12, 13, noise.shape, dtype=np.int16)

    for other in (blot, np.roll(PICTURE, 2, axis=1), noise.clip(0, 255).astype(np.uint8)):
        assert ssim(PICTURE, other) < SIMILARITY_MIN


def test_rounding_of_single_pixels_is_not_a_difference():
    other = PICTURE.copy()
    other[::40, ::40] += 1

    assert ssim(PICTURE, other) >= SIMILARITY_MIN


def test_pictures_of_different_size_cannot_be_compared():
    with pytest.raises(ValueError, match="different size"):
        ssim(PICTURE, PICTURE[:-1])


def test_the_twelve_stills_are_spread_over_the_film():
    stills = still_frames(432)

    assert (len(stills), stills[0], stills[-1]) == (12, 18, 414)
    assert still_frames(5) == (0, 1, 2, 3, 4)
