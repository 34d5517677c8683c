"""The stage: design units on one side, pixels on the other, and a camera with depth between them.

Every piece is drawn for a box of 720 x 1280 units; a frame of another shape shows more around that box, never
less of it. A layer's `depth` says how strongly the camera moves it (0 far away, 1 the subject, above 1 near).
"""

from dataclasses import dataclass
from functools import cache
from math import ceil, floor

import numpy as np
from PIL import Image, ImageChops, ImageDraw

from videoads.renderer.shots.colour import Rgb, mix, named_colours, recolour
from videoads.renderer.shots.request import ShotRequest
from videoads.renderer.shots.sprite import Sprite, drawing_source, sprite_from_svg

BOX_WIDTH, BOX_HEIGHT = 720, 1280
OVERSAMPLE = 1.12
MARGIN = 70
SEAM = 2.0
Point = tuple[float, float]
Stops = list[tuple[float, Rgb]]


@dataclass(frozen=True)
class Camera:
    """Where the eye is: a shift in units from the middle of the box, and a zoom."""

    x: float = 0.0
    y: float = 0.0
    zoom: float = 1.0


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

    def canvas(self, camera: Camera) -> "Canvas":
        """An empty frame seen by `camera`."""
        return Canvas(self, camera)


class Canvas:
    """One frame being painted."""

    def __init__(self, stage: Stage, camera: Camera) -> None:
        self.stage = stage
        self.camera = camera
        self.picture = Image.new("RGB", (stage.request.width, stage.request.height))

    def project(self, x: float, y: float, depth: float = 1.0) -> Point:
        """Units to pixels for a layer at `depth`."""
        zoom, stage = self.zoom(depth), self.stage
        across = (x - BOX_WIDTH / 2 - self.camera.x * depth) * zoom + BOX_WIDTH / 2 + stage.left
        down = (y - BOX_HEIGHT / 2 - self.camera.y * depth) * zoom + BOX_HEIGHT / 2 + stage.top
        return across * stage.scale, down * stage.scale

    def zoom(self, depth: float) -> float:
        """How much larger the camera makes a layer at `depth`."""
        return max(0.05, 1 + (self.camera.zoom - 1) * depth)

    def backdrop(self, picture: Image.Image, depth: float = 0.1) -> None:
        """Fill the frame from a picture of `Stage.backdrop_pixels`; it shifts by whole pixels, so keep it soft."""
        scale = self.stage.scale
        width, height = self.picture.size
        left = round((MARGIN + max(-MARGIN, min(MARGIN, self.camera.x * depth))) * scale)
        top = round((MARGIN + max(-MARGIN, min(MARGIN, self.camera.y * depth))) * scale)
        left = max(0, min(left, picture.width - width))
        top = max(0, min(top, picture.height - height))
        self.picture.paste(picture.crop((left, top, left + width, top + height)))

    def draw(
        self,
        sprite: Sprite,
        x: float,
        y: float,
        *,
        anchor: Point = (0.5, 0.5),
        size: float | Point = 1.0,
        depth: float = 1.0,
        opacity: float = 1.0,
    ) -> None:
        """Paste a sprite with its `anchor` (shares of its size) at the point (x, y)."""
        wide, high = size if isinstance(size, tuple) else (size, size)
        target = self._target(x, y, sprite.width * wide, sprite.height * high, anchor, depth)
        if target is None or opacity <= 0.004:
            return
        box, share = target
        span = box[2] - box[0], box[3] - box[1]
        fill = sprite.fill
        if isinstance(fill, Image.Image):
            fill = _resample(fill, span, share)
        if sprite.mask is None and opacity >= 0.996:
            assert isinstance(fill, Image.Image)
            self.picture.paste(fill, box[:2])
            return
        mask = _resample(sprite.mask, span, share) if sprite.mask else Image.new("L", span, 255)
        if opacity < 0.996:
            mask = mask.point(_scaled(opacity))
        self.picture.paste(fill, box, mask)

    def strip(
        self, tile: Sprite, base: float, *, depth: float = 1.0, start: float = 0.0, opacity: float = 1.0,
        size: float = 1.0,
    ) -> None:  # fmt: skip
        """Repeat a tile from side to side, standing on `base`; `start` scrolls it."""
        step = tile.width * size - SEAM
        reach = (BOX_WIDTH / 2 + self.stage.left) / self.zoom(depth)
        middle = BOX_WIDTH / 2 + self.camera.x * depth
        first = floor((middle - reach - start) / step)
        last = floor((middle + reach - start) / step)
        for number in range(first, last + 1):
            self.draw(tile, start + number * step, base, anchor=(0, 1), depth=depth, opacity=opacity, size=size)

    def shade(
        self,
        mask: Image.Image,
        colour: Rgb,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        depth: float = 1.0,
        opacity: float = 1.0,
        anchor: Point = (0.5, 0.5),
    ) -> None:
        """Paint a colour through a grey mask: shadows, mist, smoke."""
        self.draw(Sprite(colour, mask, width, height), x, y, depth=depth, opacity=opacity, anchor=anchor)

    def light(
        self,
        mask: Image.Image,
        colour: Rgb,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        depth: float = 1.0,
        strength: float = 1.0,
        anchor: Point = (0.5, 0.5),
    ) -> None:
        """Add light of a colour through a grey mask; light never darkens and never clips hard."""
        target = self._target(x, y, width, height, anchor, depth)
        if target is None or strength <= 0.004:
            return
        box, share = target
        grey = _resample(mask, (box[2] - box[0], box[3] - box[1]), share)
        bands = [grey.point(_scaled(strength * band / 255)) for band in colour]
        region = self.picture.crop(box)
        self.picture.paste(ImageChops.screen(region, Image.merge("RGB", bands)), box[:2])

    def glow(
        self, colour: Rgb, x: float, y: float, diameter: float, disc: Image.Image, *, depth: float = 1.0,
        strength: float = 1.0,
    ) -> None:  # fmt: skip
        """Round light."""
        self.light(disc, colour, x, y, diameter, diameter, depth=depth, strength=strength)

    def polygon(self, points: list[Point], colour: Rgb, *, depth: float = 1.0, opacity: float = 1.0) -> None:
        """A filled shape with smooth edges (drawn twice as large and reduced)."""
        pixels = [self.project(x, y, depth) for x, y in points]
        width, height = self.picture.size
        left = max(0, floor(min(x for x, _ in pixels)) - 1)
        top = max(0, floor(min(y for _, y in pixels)) - 1)
        right = min(width, ceil(max(x for x, _ in pixels)) + 1)
        bottom = min(height, ceil(max(y for _, y in pixels)) + 1)
        if right <= left or bottom <= top or opacity <= 0.004:
            return
        mask = Image.new("L", ((right - left) * 2, (bottom - top) * 2))
        inside = [((x - left) * 2, (y - top) * 2) for x, y in pixels]
        ImageDraw.Draw(mask).polygon(inside, fill=round(255 * opacity))
        box = left, top, right, bottom
        if isinstance(colour, list):
            high = max(1.0, max(y for _, y in pixels) - min(y for _, y in pixels))
            rows = (np.arange(top, bottom, dtype=np.float32) + 0.5 - min(y for _, y in pixels)) / high
            self.picture.paste(_column(rows, colour).resize((right - left, bottom - top)), box, mask.reduce(2))
        else:
            self.picture.paste(colour, box, mask.reduce(2))

    def below(
        self,
        edge: list[Point],
        fill: Sprite,
        *,
        depth: float = 1.0,
        opacity: float = 1.0,
        thickness: float = 0.0,
    ) -> None:
        """Fill what is under a curve (points from left to right) with a colour, or a picture as large as the frame
        hung from the curve's top; with a `thickness` only so much below the curve's lowest point."""
        pixels = np.array([self.project(x, y, depth) for x, y in edge], np.float32)
        width, height = self.picture.size
        line = np.interp(np.arange(width, dtype=np.float32) + 0.5, pixels[:, 0], pixels[:, 1])
        top, low = max(0, floor(float(line.min()))), min(height, ceil(float(line.max())) + 1)
        if thickness:
            height = min(height, low + round(thickness * self.stage.scale))
        if top >= height:
            return
        colour = fill.fill
        if isinstance(colour, Image.Image):
            colour = colour.crop((0, 0, width, height - top))
        else:
            colour = Image.new("RGB", (width, height - top), colour)
        mask = Image.new("L", (width, height - top), round(255 * opacity))
        if low > top:
            rows = np.arange(top, low, dtype=np.float32)[:, None]
            cover = np.clip(rows - line[None, :] + 0.5, 0, 1) * (255 * opacity)
            mask.paste(Image.fromarray(cover.astype(np.uint8)), (0, 0))
        self.picture.paste(colour, (0, top), mask)

    def _target(
        self, x: float, y: float, width: float, height: float, anchor: Point, depth: float
    ) -> tuple[tuple[int, int, int, int], tuple[float, float, float, float]] | None:
        """The whole pixels a layer covers, and which share of the layer (0 to 1) belongs to them."""
        zoom = self.zoom(depth) * self.stage.scale
        wide, high = width * zoom, height * zoom
        if wide < 0.8 or high < 0.8:
            return None
        at_x, at_y = self.project(x, y, depth)
        left, top = at_x - anchor[0] * wide, at_y - anchor[1] * high
        x0, y0 = max(0, ceil(left - 1e-6)), max(0, ceil(top - 1e-6))
        x1 = min(self.picture.width, floor(left + wide + 1e-6))
        y1 = min(self.picture.height, floor(top + high + 1e-6))
        if x1 <= x0 or y1 <= y0:
            return None
        share = (x0 - left) / wide, (y0 - top) / high, (x1 - left) / wide, (y1 - top) / high
        return (x0, y0, x1, y1), (
            max(0.0, share[0]),
            max(0.0, share[1]),
            min(1.0, share[2]),
            min(1.0, share[3]),
        )


def _column(rows: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]", stops: Stops) -> Image.Image:
    at = [place for place, _ in stops]
    bands = [np.interp(rows, at, [colour[band] for _, colour in stops]) for band in range(3)]
    return Image.fromarray(np.stack(bands, axis=-1).astype(np.uint8)[:, None, :])


def _resample(
    picture: Image.Image, size: tuple[int, int], share: tuple[float, float, float, float]
) -> Image.Image:
    box = (
        share[0] * picture.width,
        share[1] * picture.height,
        share[2] * picture.width,
        share[3] * picture.height,
    )
    return picture.resize(size, Image.Resampling.BILINEAR, box=box)


def _scaled(share: float) -> list[int]:
    return _scaled_by(round(share * 255))


@cache
def _scaled_by(part: int) -> list[int]:
    return [min(255, value * part // 255) for value in range(256)]
