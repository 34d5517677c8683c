"""Steam: wisps that rise, widen, curl and thin out. A formula of time, so any frame can be painted alone."""

import math

from PIL import Image, ImageDraw, ImageFilter

from videoads.renderer.shots.canvas import Canvas
from videoads.renderer.shots.colour import Rgb

_WIDE, _HIGH, _BEADS = 84, 150, 34


def paint_steam(
    canvas: Canvas,
    x: float,
    y: float,
    *,
    width: float,
    height: float,
    seconds: float,
    colour: Rgb,
    strength: float = 0.6,
    depth: float = 1.0,
    wisps: int = 3,
    phase: float = 0.0,
) -> None:
    """Steam standing on the point (x, y)."""
    cloud = Image.new("L", (_WIDE, _HIGH))
    pen = ImageDraw.Draw(cloud)
    for wisp in range(wisps):
        own = phase + wisp * 2.1
        start = _WIDE * (0.5 + 0.16 * (wisp - (wisps - 1) / 2))
        for bead in range(_BEADS):
            up = bead / (_BEADS - 1)
            curl = (
                math.sin(up * 5.2 - seconds * 1.9 + own) * 0.7
                + math.sin(up * 9.5 - seconds * 2.7 + own * 1.7) * 0.3
            )
            across = start + curl * (2.5 + 22 * up) + 5 * up * math.sin(own)
            down = _HIGH * (0.97 - 0.93 * up)
            thick = 2.2 + 7.5 * up
            puff = 0.62 + 0.38 * math.sin(up * 13 - seconds * 5.0 + own * 3)
            bright = round(235 * min(1.0, up * 6) * (1 - up) ** 1.15 * puff)
            pen.ellipse((across - thick, down - thick, across + thick, down + thick), fill=bright)
    cloud = cloud.filter(ImageFilter.GaussianBlur(3.4))
    canvas.shade(cloud, colour, x, y, width, height, depth=depth, opacity=strength, anchor=(0.5, 0.97))
