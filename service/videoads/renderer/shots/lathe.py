"""The lathe: a faceted body of revolution that really turns, painted from a table of light in about 3 ms.

A column of the body at share u of its radius looks away from the eye by asin(u). The table gives that direction
a brightness for the body's present angle; the picture is the table read through a map made once.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from videoads.renderer.shots.colour import Rgb
from videoads.renderer.shots.sprite import Floats, Sprite

TABLE = 1024
SOFTEN = 3


class Section(NamedTuple):
    """A part of the body between two heights: its radii, its facets (0 = round), its tone and its gloss."""

    top: float
    bottom: float
    radius_top: float
    radius_bottom: float
    facets: int
    tone: float
    gloss: float
    bulge: float = 0.0


class Lathe:
    """A body made of sections, coloured from `shadow` through `metal` to `shine`."""

    def __init__(
        self,
        sections: list[Section],
        *,
        density: float,
        colours: tuple[Rgb, Rgb, Rgb],
        bounce: tuple[Rgb, Rgb],
    ) -> None:
        self.sections = sections
        self.radius = max(max(s.radius_top, s.radius_bottom) + s.bulge for s in sections) + 3
        self.height = max(s.bottom for s in sections) + 2
        self._size = max(4, round(2 * self.radius * density)), max(4, round(self.height * density))
        self._ramp = [np.array(colour, np.float32) for colour in colours]
        self._bounce = [np.array(colour, np.float32) for colour in bounce]
        self._map, self._falloff, self.mask = self._measure(density)
        self._sine = np.linspace(-1, 1, TABLE, dtype=np.float32)
        self._angle = np.arcsin(self._sine).astype(np.float32)

    def turned(self, angle: float) -> Sprite:
        """The body turned by `angle` (radians)."""
        table = np.concatenate([self._table(section, angle) for section in self.sections])
        picture = table[self._map] * self._falloff
        fill = Image.fromarray(picture.clip(0, 255).astype(np.uint8))
        return Sprite(fill, self.mask, 2 * self.radius, self.height)

    def _table(self, section: Section, angle: float) -> Floats:
        """TABLE colours across one section."""
        facing = self._angle
        seam = np.zeros(TABLE, np.float32)
        if section.facets:
            step = math.tau / section.facets
            offset = (self._angle - angle) / step
            facing = (angle + np.round(offset) * step) * 0.86 + self._angle * 0.14
            facing = facing.astype(np.float32)
            edge = np.abs(offset - np.floor(offset) - 0.5) * np.cos(self._angle)
            seam = np.exp(-((edge / 0.022) ** 2)).astype(np.float32)
        key = np.exp(-(((facing + 0.55) / 0.34) ** 2))
        strip = np.exp(-(((facing - 0.72) / 0.17) ** 2))
        rim = np.clip(np.abs(facing) / 1.35, 0, 1) ** 5
        floor = 0.1 + 0.22 * np.cos(facing + 0.3)
        bright = floor + section.gloss * (0.72 * key + 0.5 * strip) + 0.2 * seam
        bright = np.clip(bright * section.tone - 0.2 * rim, 0, 1)[:, None]
        shadow, metal, shine = self._ramp
        low, high = np.clip(bright * 2, 0, 1), np.clip(bright * 2 - 1, 0, 1)
        colour = shadow + (metal - shadow) * low + (shine - metal) * high
        warm = (np.clip((facing - 0.62) / 0.6, 0, 1) ** 1.2)[:, None] * 0.7 * section.gloss
        cool = (np.clip((-facing - 0.95) / 0.4, 0, 1) ** 1.2)[:, None] * 0.6 * section.gloss
        lit = colour + (self._bounce[0] - colour) * warm + (self._bounce[1] - colour) * cool
        # A table entry is a fraction of a pixel: the mean of neighbours keeps facet edges smooth.
        padded = np.pad(lit, ((SOFTEN, SOFTEN), (0, 0)), mode="edge")
        sums = np.cumsum(np.vstack([np.zeros((1, 3)), padded]), axis=0)
        width = 2 * SOFTEN + 1
        return np.asarray((sums[width:] - sums[:-width]) / width, np.float32)

    def _measure(self, density: float) -> tuple[NDArray[np.int32], Floats, Image.Image]:
        """The map into the table, the light's falling off down each section, and the silhouette."""
        width, height = self._size
        where = np.zeros((height, width), np.int32)
        falloff = np.ones((height, 1, 1), np.float32)
        across = (np.arange(width, dtype=np.float32) + 0.5) / density - self.radius
        outline: list[tuple[float, float]] = []
        for number, section in enumerate(self.sections):
            first, last = round(section.top * density), min(height, round(section.bottom * density) + 1)
            for row in range(first, last):
                share = min(1.0, (row - first) / max(1, last - first - 1))
                radius = _radius(section, share)
                place = np.clip((across / radius + 1) / 2 * (TABLE - 1), 0, TABLE - 1)
                where[row] = place.astype(np.int32) + number * TABLE
                falloff[row] = 1.1 - 0.3 * share + (0.25 if row - first < 1.6 * density else 0.0)
                outline.append((radius, row))
            if last < height:
                where[last:], falloff[last:] = where[last - 1], falloff[last - 1]
        mask = Image.new("L", (width * 2, height * 2))
        middle = self.radius * density * 2
        right = [(middle + radius * density * 2, row * 2) for radius, row in outline]
        left = [(middle - radius * density * 2, row * 2) for radius, row in reversed(outline)]
        ImageDraw.Draw(mask).polygon(right + left, fill=255)
        return where, falloff, mask.reduce(2).filter(ImageFilter.GaussianBlur(0.4))


def _radius(section: Section, share: float) -> float:
    straight = section.radius_top + (section.radius_bottom - section.radius_top) * share
    return straight + section.bulge * math.sin(math.pi * share)
