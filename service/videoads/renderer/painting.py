"""Painting: the items of `layout` onto a picture.

Whatever does not change between frames is made once and kept; a frame only pastes small rectangles. Nothing
here decides where or when something is seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import assert_never

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from videoads.renderer.clips import ClipReader
from videoads.renderer.colours import Rgb, luminance, readable_on, rgb
from videoads.renderer.composition import Box, Composition
from videoads.renderer.drawn_logo import DrawnLogo, picture_fitted
from videoads.renderer.ground import CardGround
from videoads.renderer.items import Band, Button, Clip, Disc, Ground, Mark, Plate, Rule, Words
from videoads.renderer.layout import layout
from videoads.renderer.lettering.metrics import baselines
from videoads.renderer.masks import dimmed, disc, gleam, lettered, rounded, whipped
from videoads.renderer.shading import Shading, measure_shading

__all__ = ["Painter"]

Media = Callable[[str], Path]

BUTTON_STILL_PIXELS = 6
"""How far around light words on a button no gleam falls, besides a share of their size."""


class Painter:
    """Paints any frame of one composition; forwards is fastest."""

    def __init__(self, composition: Composition, media: Media) -> None:
        self.composition = composition
        self.media = media
        self.shadings: dict[str, Shading] = {}
        self._measured: set[int] = set()
        self._clips: dict[int, ClipReader] = {}
        self._contents: dict[str, bytes] = {}
        self._logos: dict[tuple[str, Box], DrawnLogo] = {}
        self._products: dict[tuple[str, Box], tuple[Image.Image, tuple[int, int, int, int]]] = {}
        self._bands: dict[str, Image.Image] = {}
        self._buttons: dict[int, tuple[Image.Image, Image.Image]] = {}
        self._ground: CardGround | None = None
        palette = composition.palette
        surface, ink, accent = rgb(palette.surface), rgb(palette.ink), rgb(palette.accent)
        self._ink = readable_on(surface, (ink,))
        self._colours: dict[str, Rgb] = {
            "ink": self._ink,
            "surface": surface,
            "bright": max(surface, ink, key=luminance),
            "accent": accent,
            "on_accent": readable_on(accent, (surface, ink)),
        }

    def measure(self) -> None:
        """Measure the shades of the whole film at once; otherwise each shot is measured when first painted."""
        for index in range(len(self.composition.shots)):
            self._measure(index)

    def paint(self, frame: int) -> Image.Image:
        """Return the finished picture of a frame, as RGB."""
        self._measure_at(frame)
        canvas = Image.new("RGB", (0, 0))
        for item in layout(self.composition, frame):
            match item:
                case Clip():
                    canvas = self._clip(canvas, item)
                case Ground():
                    canvas = self._card_ground(canvas, item)
                case Band():
                    self._band(canvas, item)
                case Plate():
                    self._plate(canvas, item)
                case Words():
                    self._words(canvas, item)
                case Rule():
                    self._rule(canvas, item)
                case Disc():
                    self._disc(canvas, item)
                case Mark():
                    self._mark(canvas, item)
                case Button():
                    self._button(canvas, item)
                case _:
                    assert_never(item)
        return canvas

    def close(self) -> None:
        """Let the clips go."""
        for clip in self._clips.values():
            clip.close()

    def _measure_at(self, frame: int) -> None:
        for index, shot in enumerate(self.composition.shots):
            if shot.start_frame <= frame < shot.start_frame + shot.frames:
                self._measure(index)

    def _measure(self, index: int) -> None:
        if index in self._measured:
            return
        if not self._measured and self.composition.captions:
            # Captions share one strength over the whole film, so all shots are measured together.
            self._measured.update(range(len(self.composition.shots)))
            self.shadings = measure_shading(self.composition, self._picture)
            return
        self._measured.add(index)
        shot = self.composition.shots[index]
        only = range(shot.start_frame, shot.start_frame + shot.frames)
        self.shadings.update(measure_shading(self.composition, self._picture, only=only))

    def _picture(self, shot: int, frame: int) -> Image.Image:
        if shot not in self._clips:
            output = self.composition.output
            path = self.media(self.composition.shots[shot].media)
            self._clips[shot] = ClipReader(path, width=output.width, height=output.height, fps=output.fps)
            for other, clip in self._clips.items():
                if other < shot - 1:
                    clip.close()
        return self._clips[shot].frame(frame)

    def _content(self, key: str) -> bytes:
        if key not in self._contents:
            self._contents[key] = self.media(key).read_bytes()
        return self._contents[key]

    def _clip(self, canvas: Image.Image, item: Clip) -> Image.Image:
        picture = self._picture(item.shot, item.frame)
        if item.shift or item.smear > 1:
            picture = whipped(picture, item.shift, item.smear)
        if item.left:
            width, height = picture.size
            canvas.paste(picture.crop((item.left, 0, width, height)), (item.left, 0))
            canvas.paste(
                self._colours["surface"], (item.left, 0, min(width, item.left + width // 90), height)
            )
            return canvas
        if canvas.width:
            canvas.paste(picture, (item.shift, 0))
            return canvas
        return picture.copy()

    def _card_ground(self, canvas: Image.Image, item: Ground) -> Image.Image:
        output, card = self.composition.output, self.composition.card
        assert card is not None
        if self._ground is None:
            self._ground = CardGround(
                self.composition.palette,
                self.composition.style,
                output.width,
                output.height,
                card.frames,
                self.composition.audio.seed,
            )
        shown = self._ground.frame(item.frame)
        if not item.top or not canvas.width:
            return shown
        # What leaves is pushed up half as fast as the card arrives.
        lift = (output.height - item.top) // 3
        moved = Image.new("RGB", canvas.size)
        moved.paste(canvas, (0, -lift))
        moved.paste(shown.crop((0, 0, output.width, output.height - item.top)), (0, item.top))
        edge = max(2, output.height // 160)
        moved.paste(self._colours["accent"], (0, item.top - edge, output.width, item.top))
        return moved

    def _shade(self, group: str) -> Shading:
        return self.shadings.get(group, Shading((255, 255, 255), (0, 0, 0), 160, 0.0))

    def _colour(self, role: str, group: str) -> Rgb:
        if role == "over":
            return self._shade(group).over
        if role == "under":
            return self._shade(group).under
        return self._colours[role]

    def _band(self, canvas: Image.Image, item: Band) -> None:
        shading = self._shade(item.group)
        if not shading.strength:
            return
        if item.group not in self._bands:
            # From the picture's upper edge to the words, then fading out slowly: a shadow, not a stripe.
            feather = max(2, canvas.height // 6)
            core = item.box.bottom + canvas.height // 160
            mask = Image.new("L", (1, core + feather), 255)
            for row in range(core + feather):
                if row >= core:
                    share = 1 - (row - core + 1) / (feather + 1)
                    mask.putpixel((0, row), round(255 * share * share * (3 - 2 * share)))
                elif row < item.box.y:
                    mask.putpixel((0, row), 205 + 50 * row // item.box.y)
            mask = mask.point([value * shading.strength // 255 for value in range(256)])
            mask = mask.resize((item.box.width, mask.height))
            if shading.dims:
                dark = shading.under
                mask = Image.merge(
                    "RGB", [mask.point([255 - v * (255 - part) // 255 for v in range(256)]) for part in dark]
                )
            self._bands[item.group] = mask
        band = self._bands[item.group]
        if not shading.dims:
            canvas.paste(shading.under, (item.box.x, 0), dimmed(band, item.opacity))
            return
        lit = canvas.crop((item.box.x, 0, item.box.right, band.height))
        dim = ImageChops.multiply(lit, band)
        canvas.paste(
            dim if item.opacity >= 255 else Image.blend(lit, dim, item.opacity / 255), (item.box.x, 0)
        )

    def _plate(self, canvas: Image.Image, item: Plate) -> None:
        opacity = item.opacity
        if item.group:
            opacity = opacity * self._shade(item.group).strength // 255
        if opacity > 0:
            mask = rounded(item.box.width, item.box.height, item.radius)
            colour = self._colour(item.colour, item.group)
            canvas.paste(colour, (item.box.x, item.box.y), dimmed(mask, opacity))

    def _words(self, canvas: Image.Image, item: Words) -> None:
        mask, left, top = lettered(item.text, item.face, item.size, item.weight)
        x, y = item.x + left, item.baseline + top
        low = item.rows[1]
        if y + mask.height > low:
            if y >= low:
                return
            mask = mask.crop((0, 0, mask.width, low - y))
        canvas.paste(self._colour(item.colour, item.group), (x, y), dimmed(mask, item.opacity))

    def _rule(self, canvas: Image.Image, item: Rule) -> None:
        pad = item.width + 1
        left, top = min(item.from_x, item.to_x) - pad, min(item.from_y, item.to_y) - pad
        width = abs(item.from_x - item.to_x) + 2 * pad
        height = abs(item.from_y - item.to_y) + 2 * pad
        mask = Image.new("L", (width * 3, height * 3))
        ends = [
            ((x - left) * 3, (y - top) * 3) for x, y in ((item.from_x, item.from_y), (item.to_x, item.to_y))
        ]
        ImageDraw.Draw(mask).line(ends, fill=255, width=item.width * 3)
        canvas.paste(self._colour(item.colour, item.group), (left, top), dimmed(mask.reduce(3), item.opacity))

    def _disc(self, canvas: Image.Image, item: Disc) -> None:
        mask = disc(item.radius_quarters)
        place = (item.x - mask.width // 2, item.y - mask.height // 2)
        canvas.paste(self._colours[item.colour], place, dimmed(mask, item.opacity))

    def _mark(self, canvas: Image.Image, item: Mark) -> None:
        if item.box.width < 1 or item.box.height < 1:
            return
        if item.kind == "logo":
            key = (item.media, item.box)
            if key not in self._logos:
                self._logos[key] = DrawnLogo(self._content(item.media), item.box.width, item.box.height)
            picture = self._logos[key].at(item.drawn_permille)
            canvas.paste(picture, (item.box.x, item.box.y), dimmed(picture.getchannel("A"), item.opacity))
            return
        width, height = item.box.width, item.box.height
        key = (item.media, item.box)
        if key not in self._products:
            fitted = picture_fitted(self._content(item.media), width, height)
            ink = fitted.getbbox() or (0, 0, width, height)
            self._products[key] = (fitted.crop(ink).convert("RGBa"), ink)
        source, (left, top, right, bottom) = self._products[key]
        # Around the middle of the box, in quarter pixels; only where the picture has ink.
        zoom, lift = item.zoom_permille / 1000, item.lift_quarters / 4
        new_left = width / 2 + (left - width / 2) * zoom
        new_top = height / 2 + (top - height / 2) * zoom + lift
        x, y = math.floor(new_left), math.floor(new_top)
        size = (
            math.ceil((right - left) * zoom) + 2,
            math.ceil((bottom - top) * zoom) + 2,
        )
        matrix = (1 / zoom, 0, (x - new_left) / zoom, 0, 1 / zoom, (y - new_top) / zoom)
        moved = source.transform(size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR).convert(
            "RGBA"
        )
        canvas.paste(moved, (item.box.x + x, item.box.y + y), dimmed(moved.getchannel("A"), item.opacity))

    def _button(self, canvas: Image.Image, item: Button) -> None:
        if item.zoom_permille not in self._buttons:
            self._buttons[item.zoom_permille] = self._button_drawn(item)
        face, shiny = self._buttons[item.zoom_permille]
        x = item.box.x + (item.box.width - face.width) // 2
        y = item.box.y + (item.box.height - face.height) // 2
        alpha = face.getchannel("A")
        canvas.paste(face, (x, y), dimmed(alpha, item.opacity))
        if item.gleam_permille < 1000:
            shine = gleam(face.height)
            shown = Image.new("L", face.size)
            travel = face.width + shine.width
            shown.paste(shine, (travel * item.gleam_permille // 1000 - shine.width, 0))
            canvas.paste((255, 255, 255), (x, y), ImageChops.multiply(shown, shiny))

    def _button_drawn(self, item: Button) -> tuple[Image.Image, Image.Image]:
        """Draw the button, and where on it a gleam may fall: never where it would make the words harder to read."""
        scale = 2 * item.zoom_permille / 1000
        width, height = round(item.box.width * scale), round(item.box.height * scale)
        shape = rounded(width, height, height // 2)
        pill = Image.new("RGBA", (width, height), (*self._colours["accent"], 0))
        pill.putalpha(shape)
        written = Image.new("L", (width, height))
        size = max(1, round(item.block.size * scale))
        for line, _, baseline in baselines(item.block):
            mask, _, top = lettered(line, item.block.face, size, item.block.weight)
            place = ((width - mask.width) // 2, round((baseline - item.box.y) * scale) + top)
            words = Image.new("RGBA", mask.size, (*self._colours["on_accent"], 255))
            words.putalpha(mask)
            pill.alpha_composite(words, place)
            written.paste(mask, place)
        written = written.reduce(2)
        if luminance(self._colours["on_accent"]) > luminance(self._colours["accent"]):
            # Light behind light words would drown them: it passes around them, at the ends and along the rim.
            reach = BUTTON_STILL_PIXELS + item.block.size // 8
            written = written.filter(ImageFilter.BoxBlur(reach)).point([0] + [255] * 255)
            written = written.filter(ImageFilter.GaussianBlur(reach / 4))
        return pill.reduce(2), ImageChops.subtract(shape.reduce(2), written)
