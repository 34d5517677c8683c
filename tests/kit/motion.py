"""How much pictures differ: the measure behind every promise that a shot moves."""

from itertools import pairwise

import numpy as np
from PIL import Image, ImageFilter


def difference(first: Image.Image, second: Image.Image) -> float:
    """Mean difference of two pictures, in grey levels of 255, after a slight blur (grain does not count)."""
    a, b = (np.asarray(one.filter(ImageFilter.GaussianBlur(1)), np.float32) for one in (first, second))
    return float(np.abs(a - b).mean())


def longest_freeze(pictures: list[Image.Image], least: float) -> int:
    """The longest run of neighbouring pictures that differ by less than `least`."""
    longest = run = 0
    for first, second in pairwise(pictures):
        run = run + 1 if difference(first, second) < least else 0
        longest = max(longest, run)
    return longest
