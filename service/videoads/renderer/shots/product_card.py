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
SLICES = 24


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
        self.dark = stage.colour("dark")

    def paint(self, canvas: Canvas, x: float, y: float, angle: float, *, depth: float = 1.0) -> None:
        """The picture's foot is at (x, y); at angle 0 it faces the eye. Its nearer side is drawn taller."""
        sprite, cosine, sine = self.sprite, math.cos(angle), math.sin(angle)
        mask = sprite.mask or Image.new("L", sprite.fill.size, 255)  # type: ignore[union-attr]  # no mask: a picture
        step = mask.width / SLICES
        face = max(0.06, abs(cosine))
        for number in range(SLICES):
            place = (number + 0.5) / SLICES - 0.5
            box = (
                round(number * step),
                0,
                max(round(number * step) + 1, round((number + 1) * step)),
                mask.height,
            )
            fill = sprite.fill.crop(box) if isinstance(sprite.fill, Image.Image) else sprite.fill
            tall = 1 + 0.22 * place * sine
            wide = sprite.width / SLICES
            slice_ = Sprite(fill, mask.crop(box), wide + 1.6 / face, sprite.height)
            at = x + place * sprite.width * face * math.copysign(1.0, cosine)
            canvas.draw(slice_, at, y - sprite.height * 0.02, anchor=(0.5, 1), size=(face, tall), depth=depth)
            shadow = Sprite(self.dark, mask.crop(box), wide + 1.6 / face, sprite.height)
            canvas.draw(shadow, at, y - sprite.height * 0.02, anchor=(0.5, 1), size=(face, tall), depth=depth,
                        opacity=0.5 * (1 - face))  # fmt: skip
