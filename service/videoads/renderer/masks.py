"""Masks that are drawn once and kept: letters, rounded plates, discs, a gleam, and the smear of a whip."""

from __future__ import annotations

from functools import lru_cache

from PIL import Image, ImageDraw

from videoads.renderer.lettering.coverage import Face
from videoads.renderer.lettering.metrics import ascent, font, runs

__all__ = ["dimmed", "disc", "gleam", "lettered", "rounded", "whipped"]


def whipped(picture: Image.Image, shift: int, smear: int) -> Image.Image:
    """Move a picture sideways and smear it; beyond its edge its mirror image goes on."""
    width, height = picture.size
    moved = Image.new("RGB", picture.size)
    moved.paste(picture, (shift, 0))
    mirror = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    moved.paste(mirror, (shift - width if shift > 0 else shift + width, 0))
    if smear > 1:
        narrow = moved.resize((max(2, width // smear), height), Image.Resampling.BOX)
        moved = narrow.resize((width, height), Image.Resampling.BICUBIC)
    return moved


def dimmed(mask: Image.Image, opacity: int) -> Image.Image:
    """Return a mask at an opacity of 0 to 255."""
    if opacity >= 255:
        return mask
    return mask.point(_ramp(max(0, opacity)))


@lru_cache(maxsize=256)
def _ramp(opacity: int) -> list[int]:
    return [value * opacity // 255 for value in range(256)]


@lru_cache(maxsize=512)
def lettered(text: str, face: Face, size: int, weight: int) -> tuple[Image.Image, int, int]:
    """Draw a text once: its mask, and where the mask lies from the pen's start on the baseline."""
    pad = size // 3 + 2
    above = ascent(size) + size // 4
    width = sum(font(name, size, weight).getlength(part) for name, part in runs(text, face))
    mask = Image.new("L", (int(width) + 2 * pad + 2, above + size))
    draw = ImageDraw.Draw(mask)
    x = float(pad)
    for name, part in runs(text, face):
        opened = font(name, size, weight)
        draw.text((x, above), part, font=opened, fill=255, anchor="ls")
        x += opened.getlength(part)
    box = mask.getbbox() or (0, 0, 1, 1)
    return mask.crop(box), box[0] - pad, box[1] - above


@lru_cache(maxsize=64)
def rounded(width: int, height: int, radius: int) -> Image.Image:
    """Return the mask of a rounded rectangle."""
    mask = Image.new("L", (width * 3, height * 3))
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, width * 3 - 1, height * 3 - 1), radius * 3, fill=255)
    return mask.reduce(3)


@lru_cache(maxsize=48)
def disc(radius_quarters: int) -> Image.Image:
    """Return the mask of a circle whose radius is given in quarter pixels."""
    side = 2 * (radius_quarters // 4 + 2)
    mask = Image.new("L", (side * 4, side * 4))
    middle = side * 2
    ImageDraw.Draw(mask).ellipse(
        (
            middle - radius_quarters,
            middle - radius_quarters,
            middle + radius_quarters,
            middle + radius_quarters,
        ),
        fill=255,
    )
    return mask.reduce(4)


@lru_cache(maxsize=16)
def gleam(height: int) -> Image.Image:
    """Return a leaning band of light, as high as the button it passes over."""
    width = height
    band = Image.new("L", (width * 2, height))
    draw = ImageDraw.Draw(band)
    lean = height // 3
    reach = max(1, width // 2)
    for step in range(reach):
        strength = round(80 * (1 - abs(2 * step / reach - 1)))
        draw.line((lean + step + lean, 0, step + lean, height), fill=strength, width=2)
    return band
