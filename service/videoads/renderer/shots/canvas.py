"""The canvas: one frame being painted, seen by a camera that moves near layers more than far ones.

It places sprites, lights and shapes given in design units; what is painted is the pieces' affair.
"""

from dataclasses import dataclass
from math import ceil, floor
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageChops, ImageDraw

from videoads.renderer.shots.colour import Rgb
from videoads.renderer.shots.sprite import Floats, Sprite
from videoads.renderer.shots.stage import BOX_HEIGHT, BOX_WIDTH, MARGIN, Point, Stage

SEAM = 2.0
LIGHT_COARSE = 4
INVISIBLE, SOLID = 0.004, 0.996
Stops = list[tuple[float, Rgb]]


@dataclass(frozen=True)
class Camera:
    """Where the eye is: a shift in units from the middle of the box, and a zoom."""

    x: float = 0.0
    y: float = 0.0
    zoom: float = 1.0


class Ray(NamedTuple):
    """One light for `Canvas.lights`."""

    mask: Image.Image
    colour: Rgb
    x: float
    y: float
    width: float
    height: float
    depth: float = 1.0
    strength: float = 1.0


class Canvas:
    """One frame being painted."""

    def __init__(self, stage: Stage, camera: Camera, *, coarse: int = 1) -> None:
        self.stage = stage
        self.camera = camera
        self.scale = stage.scale / coarse
        size = max(1, -(-stage.request.width // coarse)), max(1, -(-stage.request.height // coarse))
        self.picture = Image.new("RGB", size)

    def project(self, x: float, y: float, depth: float = 1.0) -> Point:
        """Units to pixels for a layer at `depth`."""
        zoom, stage = self.zoom(depth), self.stage
        across = (x - BOX_WIDTH / 2 - self.camera.x * depth) * zoom + BOX_WIDTH / 2 + stage.left
        down = (y - BOX_HEIGHT / 2 - self.camera.y * depth) * zoom + BOX_HEIGHT / 2 + stage.top
        return across * self.scale, down * self.scale

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
        self.picture = picture.crop((left, top, left + width, top + height))

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
        left, top, right, bottom = sprite.inner
        across, down = right - left, bottom - top
        anchor = (anchor[0] - left) / across, (anchor[1] - top) / down
        target = self._target(x, y, sprite.width * wide * across, sprite.height * high * down, anchor, depth)
        if target is None or opacity <= INVISIBLE:
            return
        box, share = target
        span = box[2] - box[0], box[3] - box[1]
        fill = sprite.fill
        fill = _resample(fill, span, share) if isinstance(fill, Image.Image) else Image.new("RGB", span, fill)
        if sprite.mask is None and opacity >= SOLID:
            self.picture.paste(fill, box[:2])
            return
        mask = _resample(sprite.mask, span, share) if sprite.mask else Image.new("L", span, 255)
        if opacity < SOLID:
            mask = Image.blend(Image.new("L", span), mask, opacity)
        self.picture.paste(fill, box, mask)

    def strip(
        self, tile: Sprite, base: float, *, depth: float = 1.0, start: float = 0.0, opacity: float = 1.0,
        size: float = 1.0, overlap: float = SEAM,
    ) -> None:  # fmt: skip
        """Repeat a tile from side to side, standing on `base`; `start` scrolls it, tiles overlap a little."""
        step = tile.width * size - overlap
        reach = (BOX_WIDTH / 2 + self.stage.left) / self.zoom(depth)
        middle = BOX_WIDTH / 2 + self.camera.x * depth
        first = floor((middle - reach - start) / step)
        last = floor((middle + reach - start) / step)
        for number in range(first, last + 1):
            self.draw(
                tile, start + number * step, base, anchor=(0, 1), depth=depth, opacity=opacity, size=size
            )

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
        if target is None or strength <= INVISIBLE:
            return
        box, share = target
        span = box[2] - box[0], box[3] - box[1]
        ray = Image.new("RGB", span)
        ray.paste(_scaled(colour, strength), (0, 0, *span), _resample(mask, span, share))
        self.picture.paste(ImageChops.screen(self.picture.crop(box), ray), box[:2])

    def lights(self, *rays: Ray) -> None:
        """Several large soft lights at once: gathered on a coarse picture, then added in one go."""
        coarse = Canvas(self.stage, self.camera, coarse=LIGHT_COARSE)
        for ray in rays:
            coarse.light(
                ray.mask,
                ray.colour,
                ray.x,
                ray.y,
                ray.width,
                ray.height,
                depth=ray.depth,
                strength=ray.strength,
            )
        box = coarse.picture.getbbox()
        if box is None:
            return
        left, top = box[0] * LIGHT_COARSE, box[1] * LIGHT_COARSE
        right = min(self.picture.width, box[2] * LIGHT_COARSE)
        bottom = min(self.picture.height, box[3] * LIGHT_COARSE)
        share = left / LIGHT_COARSE, top / LIGHT_COARSE, right / LIGHT_COARSE, bottom / LIGHT_COARSE
        glare = coarse.picture.resize((right - left, bottom - top), Image.Resampling.BILINEAR, box=share)
        region = self.picture.crop((left, top, right, bottom))
        self.picture.paste(ImageChops.screen(region, glare), (left, top))

    def glow(
        self, colour: Rgb, x: float, y: float, diameter: float, disc: Image.Image, *, depth: float = 1.0,
        strength: float = 1.0,
    ) -> None:  # fmt: skip
        """Round light."""
        self.light(disc, colour, x, y, diameter, diameter, depth=depth, strength=strength)

    def ground(self, fill: Sprite, line: float, *, depth: float = 1.0) -> None:
        """Fill what is below a level line; the line moves by parts of a pixel, so it never steps."""
        left, _, right, _ = self.stage.span()
        self.below([(left, line), (right, line)], fill, depth=depth)

    def polygon(
        self, points: list[Point], colour: Rgb | Stops, *, depth: float = 1.0, opacity: float = 1.0
    ) -> None:  # fmt: skip
        """A shape with smooth edges (drawn twice as large and reduced), in one colour or a gradient downwards."""
        pixels = [self.project(x, y, depth) for x, y in points]
        width, height = self.picture.size
        left = max(0, floor(min(x for x, _ in pixels)) - 1)
        top = max(0, floor(min(y for _, y in pixels)) - 1)
        right = min(width, ceil(max(x for x, _ in pixels)) + 1)
        bottom = min(height, ceil(max(y for _, y in pixels)) + 1)
        if right <= left or bottom <= top or opacity <= INVISIBLE:
            return
        mask = Image.new("L", ((right - left) * 2, (bottom - top) * 2))
        inside = [((x - left) * 2, (y - top) * 2) for x, y in pixels]
        ImageDraw.Draw(mask).polygon(inside, fill=round(255 * opacity))
        box = left, top, right, bottom
        if isinstance(colour, list):
            high = max(1.0, max(y for _, y in pixels) - min(y for _, y in pixels))
            rows = (np.arange(top, bottom, dtype=np.float32) + 0.5 - min(y for _, y in pixels)) / high
            self.picture.paste(
                _column(rows, colour).resize((right - left, bottom - top)), box, mask.reduce(2)
            )
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
            colour = colour.crop((0, 0, width, min(colour.height, height - top)))
            if colour.height < height - top:
                colour = colour.resize((width, height - top), Image.Resampling.BILINEAR)
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
        zoom = self.zoom(depth) * self.scale
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


def _column(rows: Floats, stops: Stops) -> Image.Image:
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


def _scaled(colour: Rgb, strength: float) -> Rgb:
    red, green, blue = (min(255, round(band * strength)) for band in colour)
    return red, green, blue
