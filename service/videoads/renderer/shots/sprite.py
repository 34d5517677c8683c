"""Sprites: what is pasted into a frame, and where they come from (a drawing, a picture, a formula).

A sprite knows its size in design units and how many pixels it has for each. Colours are bled under the edge,
so that resampling at part pixels makes no dark fringe. Where and when sprites appear is the pieces' affair.
"""

import io
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import resvg_py
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from videoads.renderer.shots.colour import Rgb

Floats = NDArray[np.float32]
_OPAQUE_ENOUGH = 24


Box = tuple[float, float, float, float]
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True)
class Sprite:
    """A picture (or one flat colour) and its mask; `width` and `height` in design units.

    `inner` says which part of that size the picture covers (shares): empty borders are not kept.
    """

    fill: Image.Image | Rgb
    mask: Image.Image | None
    width: float
    height: float
    inner: Box = WHOLE


def trimmed(sprite: Sprite) -> Sprite:
    """The sprite without its empty border."""
    assert sprite.mask is not None and sprite.inner == WHOLE
    wide, high = sprite.mask.size
    left, top, right, bottom = sprite.mask.getbbox() or (0, 0, 1, 1)
    # Two empty pixels stay: an edge at a part of a pixel fades into them instead of jumping.
    box = max(0, left - 2), max(0, top - 2), min(wide, right + 2), min(high, bottom + 2)
    return cut(sprite, box)


def cut(sprite: Sprite, box: tuple[int, int, int, int]) -> Sprite:
    """A part of the sprite that stays where it was; `box` in the sprite's own pixels."""
    mask = _whole_mask(sprite)
    wide, high = mask.size
    fill = sprite.fill.crop(box) if isinstance(sprite.fill, Image.Image) else sprite.fill
    inner = box[0] / wide, box[1] / high, box[2] / wide, box[3] / high
    return Sprite(fill, mask.crop(box), sprite.width, sprite.height, inner)


def untrimmed(sprite: Sprite) -> Sprite:
    """The sprite with its empty border again, for what works on whole pictures (blur, rotation)."""
    if sprite.inner == WHOLE or sprite.mask is None:
        return sprite
    left, top, right, bottom = sprite.inner
    wide = round(sprite.mask.width / (right - left))
    high = round(sprite.mask.height / (bottom - top))
    at = round(left * wide), round(top * high)
    mask = Image.new("L", (wide, high))
    mask.paste(sprite.mask, at)
    fill = sprite.fill
    if isinstance(fill, Image.Image):
        whole = fill.resize((wide, high), Image.Resampling.BILINEAR)
        whole.paste(fill, at)
        fill = whole
    return Sprite(fill, mask, sprite.width, sprite.height)


@cache
def drawing_source(name: str) -> str:
    """The text of `art/NAME.svg`."""
    return files("videoads.renderer.shots").joinpath("art", f"{name}.svg").read_text("utf-8")


def drawing_size(svg: str) -> tuple[float, float]:
    """Width and height of a drawing's viewBox: its size in design units."""
    numbers = svg.split('viewBox="', 1)[1].split('"', 1)[0].split()
    return float(numbers[2]), float(numbers[3])


def sprite_from_svg(svg: str, density: float, *, stretch: tuple[float, float] | None = None) -> Sprite:
    """Draw a coloured SVG at `density` pixels a unit; `stretch` gives it another size in units."""
    width, height = stretch or drawing_size(svg)
    pixels = max(1, round(width * density)), max(1, round(height * density))
    if stretch:
        svg = svg.replace("<svg ", '<svg preserveAspectRatio="none" ', 1)
    png = bytes(
        resvg_py.svg_to_bytes(svg_string=svg, width=pixels[0], height=pixels[1], skip_system_fonts=True)
    )
    picture = Image.open(io.BytesIO(png)).convert("RGBA")
    if picture.size != pixels:
        picture = picture.resize(pixels, Image.Resampling.BILINEAR)
    return sprite_from_picture(picture, width, height)


def sprite_from_picture(picture: Image.Image, width: float, height: float) -> Sprite:
    """A sprite from an RGBA picture; a picture of one colour keeps only its mask."""
    picture = picture.convert("RGBA")
    mask = picture.getchannel("A")
    solid = mask.point([255 if value >= _OPAQUE_ENOUGH else 0 for value in range(256)])
    extrema = [
        band.getextrema()
        for band in Image.composite(picture, Image.new("RGBA", picture.size), solid).split()[:3]
    ]
    if mask.getextrema()[0] == 255:
        return Sprite(picture.convert("RGB"), None, width, height)
    flat = _flat_colour(picture, solid) if all(low == 0 for low, _ in extrema) else None
    if flat is not None:
        return trimmed(Sprite(flat, mask, width, height))
    spread = max(1.0, min(picture.size) / 160)
    bled = picture.convert("RGBa").filter(ImageFilter.GaussianBlur(spread)).convert("RGBA")
    mean = np.asarray(picture)[np.asarray(solid) > 0][:, :3].mean(axis=0)
    around = Image.new("RGB", picture.size, (int(mean[0]), int(mean[1]), int(mean[2])))
    near = bled.getchannel("A").point([255 if value >= _OPAQUE_ENOUGH else 0 for value in range(256)])
    fill = Image.composite(picture.convert("RGB"), Image.composite(bled.convert("RGB"), around, near), solid)
    return trimmed(Sprite(fill, mask, width, height))


def blurred(sprite: Sprite, radius: float) -> Sprite:
    """The sprite out of focus; `radius` in its own pixels. It grows by a margin for its soft edge."""
    sprite = untrimmed(sprite)
    whole = _whole_mask(sprite)
    pad = max(1, round(radius * 2.6))
    wide, high = whole.size
    mask = Image.new("L", (wide + 2 * pad, high + 2 * pad))
    mask.paste(whole, (pad, pad))
    fill = sprite.fill
    if isinstance(fill, Image.Image):
        # The fill's own border is stretched outwards, so the soft edge has the colour of what it is the edge of.
        larger = fill.resize(mask.size, Image.Resampling.BILINEAR)
        larger.paste(fill, (pad, pad))
        fill = larger.filter(ImageFilter.GaussianBlur(radius))
    mask = mask.filter(ImageFilter.GaussianBlur(radius))
    wider = sprite.width * mask.width / wide, sprite.height * mask.height / high
    return trimmed(Sprite(fill, mask, *wider))


class Turned:
    """The sprite in `steps` rotations of a full turn, each drawn when it is first asked for."""

    def __init__(self, sprite: Sprite, steps: int) -> None:
        sprite = untrimmed(sprite)
        mask = _whole_mask(sprite)
        self.steps = steps
        self._side = math.hypot(sprite.width, sprite.height)
        pixels = max(1, round(self._side * mask.width / sprite.width))
        place = ((pixels - mask.width) // 2, (pixels - mask.height) // 2)
        self._mask = Image.new("L", (pixels, pixels))
        self._mask.paste(mask, place)
        self._fill = sprite.fill
        if isinstance(sprite.fill, Image.Image):
            self._fill = sprite.fill.resize((pixels, pixels), Image.Resampling.BILINEAR)
            self._fill.paste(sprite.fill, place)
        self._drawn: dict[int, Sprite] = {}

    def at(self, turn: float) -> Sprite:
        """The rotation nearest to `turn` (1 is a full turn, against the clock)."""
        step = round(turn * self.steps) % self.steps
        if step not in self._drawn:
            bilinear, angle = Image.Resampling.BILINEAR, 360 * step / self.steps
            fill = self._fill.rotate(angle, bilinear) if isinstance(self._fill, Image.Image) else self._fill
            whole = Sprite(fill, self._mask.rotate(angle, bilinear), self._side, self._side)
            self._drawn[step] = trimmed(whole)
        return self._drawn[step]


def grey(values: Floats) -> Image.Image:
    """Numbers from 0 to 1 as an 8-bit grey picture."""
    return Image.fromarray((np.clip(values, 0, 1) * 255 + 0.5).astype(np.uint8))


@cache
def soft_disc(power: float = 2.0, side: int = 160) -> Image.Image:
    """A grey disc of light falling off to nothing at its rim; a larger `power` has a smaller heart."""
    axis = np.linspace(-1, 1, side, dtype=np.float32)
    distance = np.sqrt(axis[:, None] ** 2 + axis[None, :] ** 2)
    return grey((np.clip(1 - distance, 0, 1) ** power).astype(np.float32))


@cache
def crisp_disc(side: int = 160, ring: float = 0.0, feather: float = 0.04) -> Image.Image:
    """A grey disc with a clean edge; `ring` (0 to 1) makes its rim brighter than its heart, as a lens does."""
    axis = np.linspace(-1.04, 1.04, side, dtype=np.float32)
    distance = np.sqrt(axis[:, None] ** 2 + axis[None, :] ** 2)
    inside = np.clip((1 - distance) / feather, 0, 1)
    heart = (1 - ring) + ring * np.clip(distance, 0, 1) ** 6
    return grey((inside * heart).astype(np.float32))


def gradient(
    width: int, height: int, stops: list[tuple[float, Rgb]], *, slant: float = 0.0, seed: int = 1
) -> Image.Image:
    """A vertical gradient (leaning by `slant`) through `stops` of (place, colour), dithered against banding."""
    place = np.linspace(0, 1, height, dtype=np.float32)[:, None]
    if slant:
        place = np.clip(place + np.linspace(-slant, slant, width, dtype=np.float32)[None, :], 0, 1)
    return _through(np.broadcast_to(place, (height, width if slant else 1)), width, stops, seed)


def radial(
    width: int,
    height: int,
    stops: list[tuple[float, Rgb]],
    *,
    centre: tuple[float, float],
    reach: float,
    squash: float = 1.0,
    seed: int = 1,
) -> Image.Image:
    """A gradient from `centre` (shares of the size) outwards; `reach` is in shares of the height."""
    across = (np.arange(width, dtype=np.float32)[None, :] - centre[0] * width) / (reach * height)
    down = (np.arange(height, dtype=np.float32)[:, None] - centre[1] * height) / (reach * height * squash)
    return _through(np.clip(np.sqrt(across**2 + down**2), 0, 1), width, stops, seed)


def _through(place: Floats, width: int, stops: list[tuple[float, Rgb]], seed: int) -> Image.Image:
    at = np.array([stop for stop, _ in stops], dtype=np.float32)
    height = place.shape[0]
    noise = np.random.default_rng(seed).random((height, width), dtype=np.float32)
    bands = [np.interp(place, at, np.array([c[band] for _, c in stops], np.float32)) for band in range(3)]
    return Image.fromarray(
        np.stack([(band + noise).clip(0, 255).astype(np.uint8) for band in bands], axis=-1)
    )


def _flat_colour(picture: Image.Image, solid: Image.Image) -> Rgb | None:
    pixels = np.asarray(picture)[np.asarray(solid) > 0][:, :3]
    if not len(pixels):
        return (0, 0, 0)
    if int(pixels.max(axis=0).astype(int).__sub__(pixels.min(axis=0)).max()) > 12:
        return None
    red, green, blue = (int(value) for value in np.median(pixels, axis=0))
    return red, green, blue


def _whole_mask(sprite: Sprite) -> Image.Image:
    """The sprite's mask, or a full one when its picture has no hole."""
    if sprite.mask is not None:
        return sprite.mask
    assert isinstance(sprite.fill, Image.Image)
    return Image.new("L", sprite.fill.size, 255)
