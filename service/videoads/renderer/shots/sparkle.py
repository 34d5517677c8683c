"""Sparkles: four-pointed glints that open and close, for glass that is clean."""

from functools import cache

import numpy as np
from PIL import Image

from videoads.renderer.shots.canvas import Canvas
from videoads.renderer.shots.sprite import grey, soft_disc


@cache
def glint(side: int = 128) -> Image.Image:
    """A grey four-pointed star with soft arms."""
    axis = np.linspace(-1, 1, side, dtype=np.float32)
    across, down = np.abs(axis)[None, :], np.abs(axis)[:, None]
    arms = np.clip(1 - across, 0, 1) ** 2 * np.exp(-((down / (0.015 + 0.075 * (1 - across) ** 3)) ** 2))
    other = np.clip(1 - down, 0, 1) ** 2 * np.exp(-((across / (0.015 + 0.075 * (1 - down) ** 3)) ** 2))
    heart = np.exp(-((across**2 + down**2) / 0.006))
    return grey((arms + other + heart).astype(np.float32))


def paint_sparkle(
    canvas: Canvas, x: float, y: float, size: float, open_: float, *, depth: float = 1.0
) -> None:
    """A glint at (x, y); `open_` from 0 (closed) to 1."""
    if open_ <= 0.01:
        return
    wide = size * (0.4 + 0.6 * open_)
    canvas.light(
        soft_disc(2.2), (255, 255, 255), x, y, wide * 1.2, wide * 1.2, depth=depth, strength=0.6 * open_
    )
    canvas.shade(glint(), (255, 255, 255), x, y, wide, wide, depth=depth, opacity=min(1.0, open_ * 1.2))
