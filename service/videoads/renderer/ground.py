"""The closing card's ground: the brand's surface with large, quiet, slowly moving shapes.

It stays near the surface colour everywhere, so that the card's words, in the ink colour, always read.
"""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from videoads.renderer.colours import Rgb, mixed, rgb
from videoads.renderer.composition import Palette

__all__ = ["CardGround"]

ROOM = 1.14
"""The painted ground is this much larger than the picture, which wanders over it."""

MOTES = 14


class CardGround:
    """Paints the ground once and shows a moving part of it."""

    def __init__(self, palette: Palette, style: str, width: int, height: int, frames: int, seed: int) -> None:
        self.size = (width, height)
        self.frames = max(1, frames)
        self._random = np.random.default_rng([seed, 5])
        self._surface = rgb(palette.surface)
        self._accent = rgb(palette.accent)
        self._light = rgb(palette.light)
        self._background = rgb(palette.background)
        self._painted = self._paint(style, round(width * ROOM), round(height * ROOM))
        short = min(width, height)
        sizes = self._random.integers(short // 90 + 1, short // 26 + 3, MOTES)
        self._motes = [(_mote(int(size)), int(size)) for size in sizes]
        self._places = self._random.random((MOTES, 3))

    def frame(self, at: int) -> Image.Image:
        """Return the ground `at` frames after the card began."""
        width, height = self.size
        share = at / self.frames
        # Whole pixels are enough: nothing on the ground has a hard edge that could be seen to step.
        left = round((self._painted.width - width) * (0.5 + 0.45 * math.sin(share * 2.2)))
        top = round((self._painted.height - height) * (1 - share))
        shown = self._painted.crop((left, top, left + width, top + height))
        for (mask, size), (x, y, pace) in zip(self._motes, self._places, strict=True):
            rise = (y - (0.25 + 0.5 * pace) * share * 1.6) % 1.0
            sway = math.sin(share * 5 + x * 20) * 0.02
            place = (int((x + sway) * width) - size, int(rise * (height + 4 * size)) - 2 * size)
            shown.paste(self._accent if pace < 0.4 else self._light, place, mask)
        return shown

    def _paint(self, style: str, width: int, height: int) -> Image.Image:
        down = np.linspace(0, 1, height, dtype=np.float32)[:, None]
        across = np.linspace(0, 1, width, dtype=np.float32)[None, :]
        other = {"bold-dark": mixed(self._surface, self._background, 0.8)}.get(
            style, mixed(self._surface, self._light, 0.16)
        )
        share = np.clip(down * 0.8 + across * 0.2, 0, 1)[:, :, None]
        base = np.asarray(self._surface, np.float32) * (1 - share) + np.asarray(other, np.float32) * share
        base += self._random.normal(0, 1.6, (height, width, 1)).astype(np.float32)
        image = Image.fromarray(np.clip(base, 0, 255).astype(np.uint8), "RGB")
        match style:
            case "bold-dark":
                self._beams(image)
            case "clean-service":
                self._panes(image)
            case _:
                self._suns(image)
        return image

    def _suns(self, image: Image.Image) -> None:
        """Wide rings, like a sun behind a hill or the mark of a cup on paper."""
        width, height = image.size
        centre = (width * 0.78, height * 0.90)
        for number, share in enumerate((0.10, 0.13, 0.16, 0.20)):
            radius = width * (0.86 - 0.2 * number)
            self._blend(image, mixed(self._surface, self._light, 0.9), share * 1.4, _circle(centre, radius))

    def _beams(self, image: Image.Image) -> None:
        """Beams of light leaving one corner, and a glow of the accent."""
        width, height = image.size
        for number in range(5):
            angle = 0.5 + number * 0.23
            spread = 0.05
            far = 2.2 * height
            start = (-0.1 * width, -0.04 * height)
            points = [
                start,
                (start[0] + far * math.cos(angle - spread), start[1] + far * math.sin(angle - spread)),
                (start[0] + far * math.cos(angle + spread), start[1] + far * math.sin(angle + spread)),
            ]
            mask = Image.new("L", image.size)
            ImageDraw.Draw(mask).polygon(points, fill=255)
            self._soft(image, self._light, 0.05, mask, width // 60)
        mask = _circle((width * 0.9, height * 0.95), width * 0.5)(image.size)
        self._soft(image, self._accent, 0.16, mask, width // 6)

    def _panes(self, image: Image.Image) -> None:
        """Window panes of clear sky, leaning."""
        width, height = image.size
        for number, (x, y, size) in enumerate(
            ((0.06, 0.66, 0.46), (0.66, 0.06, 0.44), (0.68, 0.78, 0.40), (-0.12, 0.12, 0.34))
        ):
            side = size * width
            left, top = x * width, y * height
            lean = 0.16 * side
            points = [
                (left + lean, top), (left + side + lean, top), (left + side - lean, top + side * 1.2),
                (left - lean, top + side * 1.2),
            ]  # fmt: skip
            mask = Image.new("L", image.size)
            ImageDraw.Draw(mask).polygon(points, fill=255)
            colour = self._light if number == 1 else self._accent
            self._soft(image, colour, 0.16 if number == 1 else 0.07, mask, 2)

    def _blend(self, image: Image.Image, colour: Rgb, share: float, shape: _Shape) -> None:
        self._soft(image, colour, share, shape(image.size), 1)

    def _soft(self, image: Image.Image, colour: Rgb, share: float, mask: Image.Image, blur: int) -> None:
        if blur > 1:
            mask = mask.filter(ImageFilter.GaussianBlur(blur))
        image.paste(colour, (0, 0), mask.point([round(value * share) for value in range(256)]))


class _Shape:
    """A circle as a mask of any size, drawn large and reduced so that its edge is smooth."""

    def __init__(self, centre: tuple[float, float], radius: float) -> None:
        self.centre, self.radius = centre, radius

    def __call__(self, size: tuple[int, int]) -> Image.Image:
        x, y = self.centre
        mask = Image.new("L", (size[0] * 2, size[1] * 2))
        box = [(x - self.radius) * 2, (y - self.radius) * 2, (x + self.radius) * 2, (y + self.radius) * 2]
        ImageDraw.Draw(mask).ellipse(box, fill=255)
        return mask.reduce(2)


def _circle(centre: tuple[float, float], radius: float) -> _Shape:
    return _Shape(centre, radius)


def _mote(radius: int) -> Image.Image:
    side = 2 * radius + 1
    grid = np.hypot(*np.mgrid[-radius : radius + 1, -radius : radius + 1]) / max(1, radius)
    soft = np.clip(1 - grid, 0, 1) ** 1.4 * 64
    return Image.fromarray(soft.astype(np.uint8).reshape(side, side), "L")
