"""The stage: design units on one side, pixels on the other, and the sprites in the brand's colours.

Every piece is drawn for a box of 720 x 1280 units; a frame of another shape shows more around that box, never
less of it.
"""

from math import ceil

import numpy as np

from videoads.renderer.shots.colour import Rgb, mix, named_colours, recolour
from videoads.renderer.shots.request import ShotRequest
from videoads.renderer.shots.sprite import Sprite, drawing_source, gradient, sprite_from_svg

BOX_WIDTH, BOX_HEIGHT = 720, 1280
OVERSAMPLE = 1.05
MARGIN = 70
Point = tuple[float, float]


class Stage:
    """Measures, colours and sprites of one request."""

    def __init__(self, request: ShotRequest) -> None:
        self.request = request
        self.scale = min(request.width / BOX_WIDTH, request.height / BOX_HEIGHT)
        self.left = (request.width / self.scale - BOX_WIDTH) / 2
        self.top = (request.height / self.scale - BOX_HEIGHT) / 2
        self.colours = named_colours(request.palette)

    def random(self, salt: int) -> np.random.Generator:
        """A generator of its own for one use, derived from the request's seed."""
        return np.random.default_rng((self.request.seed & 0xFFFFFFFF, salt))

    def colour(self, name: str, other: str | None = None, share: float = 0.0) -> Rgb:
        """A palette colour, mixed with `share` of another when asked."""
        return mix(self.colours[name], self.colours[other], share) if other else self.colours[name]

    def svg(
        self,
        name: str,
        *,
        size: float = 1.0,
        stretch: Point | None = None,
        extra: dict[str, Rgb] | None = None,
    ) -> Sprite:
        """The drawing `art/NAME.svg` in the brand's colours, sharp enough to be shown at `size` times its units."""
        coloured = recolour(drawing_source(name), self.colours | (extra or {}))
        return sprite_from_svg(coloured, self.scale * OVERSAMPLE * size, stretch=stretch)

    def span(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom of what can be seen, in units, with the margin the camera needs."""
        return (
            -self.left - MARGIN,
            -self.top - MARGIN,
            BOX_WIDTH + self.left + MARGIN,
            BOX_HEIGHT + self.top + MARGIN,
        )

    def ground(self, line: float, stops: list[tuple[float, Rgb]], seed: int) -> Sprite:
        """A gradient as wide as the frame, deep enough to lie below the height `line` (see `Canvas.ground`)."""
        deep = BOX_HEIGHT + self.top + 2 * MARGIN - line
        picture = gradient(self.request.width, max(1, ceil(deep * self.scale)), stops, seed=seed)
        return Sprite(picture, None, BOX_WIDTH, deep)

    def backdrop_pixels(self) -> tuple[int, int]:
        """Size of a picture that fills the span."""
        left, top, right, bottom = self.span()
        return ceil((right - left) * self.scale) + 2, ceil((bottom - top) * self.scale) + 2

    def frame_pixels(self) -> tuple[int, int]:
        """The frame's own size."""
        return self.request.width, self.request.height

    def place_in_backdrop(self, x: float, y: float) -> Point:
        """A point in units as shares of the backdrop's size."""
        left, top, right, bottom = self.span()
        return (x - left) / (right - left), (y - top) / (bottom - top)
