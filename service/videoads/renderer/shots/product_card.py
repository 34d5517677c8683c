"""A brief's own product picture, turning in: the picture narrows and shades as its angle says."""

import math
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from videoads.renderer.shots.canvas import Canvas
from videoads.renderer.shots.request import ShotError
from videoads.renderer.shots.sprite import Sprite, sprite_from_picture, untrimmed
from videoads.renderer.shots.stage import Stage

WIDTH_MAX, HEIGHT_MAX = 430.0, 560.0
PIXELS_MAX = 40_000_000
SLICES = 28
PERSPECTIVE = 0.24


class ProductCard:
    """The picture as a standing thing that can be turned about its upright axis."""

    def __init__(self, stage: Stage) -> None:
        path = Path(stage.request.product_picture or "")
        try:
            with Image.open(path) as picture:
                if picture.width * picture.height > PIXELS_MAX:
                    raise ShotError("/product_picture", f"has more than {PIXELS_MAX} pixels; make it smaller")
                whole = picture.convert("RGBA")
        except (OSError, UnidentifiedImageError) as error:
            raise ShotError(
                "/product_picture", f"{path.name} cannot be read ({error}); use PNG, JPEG or WebP"
            ) from error
        share = min(WIDTH_MAX / whole.width, HEIGHT_MAX / whole.height)
        width, height = whole.width * share, whole.height * share
        pixels = max(1, round(width * stage.scale * 1.1)), max(1, round(height * stage.scale * 1.1))
        sharp = whole.resize(pixels, Image.Resampling.LANCZOS, reducing_gap=2.0)
        self.sprite = untrimmed(sprite_from_picture(sharp, width, height))
        self.size = pixels
        self.dark = stage.colour("dark")

    def paint(
        self, canvas: Canvas, x: float, y: float, angle: float, *, sweep: float = 0.0, depth: float = 1.0
    ) -> None:
        """The picture's foot is at (x, y); at angle 0 it faces the eye, and its nearer side is the taller one.

        `sweep` (0 to 1) moves a band of light over it, only where the picture is not transparent.
        """
        sprite, cosine, sine = self.sprite, math.cos(angle), math.sin(angle)
        face = max(0.06, abs(cosine))
        mask = sprite.mask or Image.new("L", self.size, 255)
        step, wide = mask.width / SLICES, sprite.width / SLICES
        for number in range(SLICES):
            place = (number + 0.5) / SLICES - 0.5
            left = round(number * step)
            box = left, 0, max(left + 1, round((number + 1) * step)), mask.height
            part = mask.crop(box)
            fill = sprite.fill.crop(box) if isinstance(sprite.fill, Image.Image) else sprite.fill
            at = x + place * sprite.width * face * math.copysign(1.0, cosine)
            size = face, 1 + PERSPECTIVE * place * sine
            glint = math.exp(-(((place + 0.9 - 1.8 * sweep) / 0.11) ** 2))
            layers = (fill, 1.0), (self.dark, 0.5 * (1 - face)), ((255, 255, 255), 0.5 * glint)
            for paint, opacity in layers:
                slice_ = Sprite(paint, part, wide + 1.6 / face, sprite.height)
                canvas.draw(slice_, at, y, anchor=(0.5, 0.985), size=size, depth=depth, opacity=opacity)
