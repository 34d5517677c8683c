"""A logo that is drawn stroke by stroke.

Each outline of an SVG is dashed with one dash that grows, one outline after the other; what has no stroke gets
a thin one while it is drawn and its fill at the end. Outline lengths are not computed: a dash is long enough
when a longer one changes nothing. A bitmap logo is uncovered from left to right behind a soft edge.
"""

from __future__ import annotations

import copy
import io
from functools import lru_cache
from xml.etree import ElementTree

import resvg_py
from PIL import Image, ImageChops

__all__ = ["DrawnLogo", "picture_fitted"]

STEPS = 40
_SHAPES = {"path", "circle", "ellipse", "rect", "line", "polyline", "polygon"}
_SVG = "http://www.w3.org/2000/svg"
OUTLINES_MAX = 24
"""A logo of more outlines is drawn all at once; nobody could follow them."""


class DrawnLogo:
    """One logo at one size."""

    def __init__(self, content: bytes, width: int, height: int) -> None:
        self.size = (max(1, width), max(1, height))
        self._content = content
        self._is_svg = b"<svg" in content[:4096]
        self._whole: Image.Image | None = None
        self._drawn: dict[int, Image.Image] = {}
        self._tree = ElementTree.fromstring(content) if self._is_svg else None
        self._lengths: list[float] | None = None

    def at(self, permille: int) -> Image.Image:
        """Return the logo drawn so far, as RGBA of the size asked for."""
        step = min(STEPS, max(0, permille * STEPS // 1000))
        if step not in self._drawn:
            self._drawn[step] = self._at_step(step)
        return self._drawn[step]

    def whole(self) -> Image.Image:
        """Return the finished logo."""
        if self._whole is None:
            self._whole = picture_fitted(self._content, *self.size)
        return self._whole

    def _at_step(self, step: int) -> Image.Image:
        if step == STEPS:
            return self.whole()
        if step == 0:
            return Image.new("RGBA", self.size)
        if self._tree is not None and 0 < len(self._outlines(self._tree)) <= OUTLINES_MAX:
            return self._stroked(step / STEPS)
        return self._uncovered(step / STEPS)

    def _uncovered(self, share: float) -> Image.Image:
        width, height = self.size
        left, _, right, _ = self.whole().getbbox() or (0, 0, width, height)
        soft = max(2, (right - left) // 8)
        edge = left + round((right - left + soft) * share)
        ramp = Image.linear_gradient("L").rotate(-90).resize((soft, height))
        mask = Image.new("L", self.size)
        mask.paste(255, (0, 0, max(0, edge - soft), height))
        mask.paste(ramp, (edge - soft, 0))
        image = self.whole().copy()
        image.putalpha(ImageChops.multiply(image.getchannel("A"), mask))
        return image

    def _outlines(self, tree: ElementTree.Element) -> list[ElementTree.Element]:
        return [element for element in tree.iter() if element.tag.rpartition("}")[2] in _SHAPES]

    def _stroked(self, share: float) -> Image.Image:
        assert self._tree is not None
        lengths = self._measured()
        # Two thirds of the time one outline after another begins; each takes a third.
        tree = copy.deepcopy(self._tree)
        outlines = self._outlines(tree)
        span = 0.45
        for number, (element, length) in enumerate(zip(outlines, lengths, strict=True)):
            begins = (1 - span) * number / max(1, len(outlines) - 1) if len(outlines) > 1 else 0.0
            drawn = min(1.0, max(0.0, (share - begins) / span))
            _dash(element, length * drawn, drawn, self._unit())
        return _rendered(tree, *self.size)

    def _measured(self) -> list[float]:
        """Find for each outline how long its dash must become: halving from far too long."""
        if self._lengths is None:
            assert self._tree is not None
            unit = self._unit()
            lengths = []
            for number in range(len(self._outlines(self._tree))):
                goal = self._alone(number, unit * 100, unit)
                low, high = 0.0, unit * 8
                for _ in range(8):
                    middle = (low + high) / 2
                    alike = ImageChops.difference(self._alone(number, middle, unit), goal).getbbox() is None
                    low, high = (low, middle) if alike else (middle, high)
                lengths.append(high)
            self._lengths = lengths
        return self._lengths

    def _alone(self, number: int, length: float, unit: float) -> Image.Image:
        tree = copy.deepcopy(self._tree)
        assert tree is not None
        for index, element in enumerate(self._outlines(tree)):
            if index == number:
                _dash(element, length, 0.5, unit)
            else:
                element.set("display", "none")
        return _rendered(tree, 96, 96).getchannel("A")

    def _unit(self) -> float:
        assert self._tree is not None
        box = self._tree.get("viewBox", "").replace(",", " ").split()
        try:
            return max(float(box[2]), float(box[3]))
        except (IndexError, ValueError):
            return 512.0


@lru_cache(maxsize=16)
def picture_fitted(content: bytes, width: int, height: int) -> Image.Image:
    """Open an SVG or a bitmap and fit it, whole and centred, into RGBA of this size."""
    if b"<svg" in content[:4096]:
        return _rendered(ElementTree.fromstring(content), width, height)
    with Image.open(io.BytesIO(content)) as opened:
        picture = opened.convert("RGBA")
    scale = min(width / picture.width, height / picture.height)
    fitted = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    canvas = Image.new("RGBA", (width, height))
    canvas.paste(
        picture.convert("RGBa").resize(fitted, Image.Resampling.LANCZOS, reducing_gap=3).convert("RGBA"),
        ((width - fitted[0]) // 2, (height - fitted[1]) // 2),
    )
    return canvas


def _dash(element: ElementTree.Element, length: float, drawn: float, unit: float) -> None:
    """Draw only so much of an outline; a shape that is only filled borrows its fill for a thin stroke."""
    style = dict(
        part.split(":", 1) for part in element.get("style", "").replace(" ", "").split(";") if ":" in part
    )
    stroke = style.get("stroke", element.get("stroke"))
    fill = style.get("fill", element.get("fill"))
    if stroke is None and fill != "none":
        style["stroke"] = fill or "#000000"
        style["stroke-width"] = f"{unit / 120:.3f}"
    if fill != "none":
        style["fill-opacity"] = f"{max(0.0, drawn * 3 - 2):.3f}"
    if drawn <= 0:
        style["stroke-opacity"] = "0"
    style["stroke-dasharray"] = f"{max(0.001, length):.3f} {unit * 1000:.0f}"
    element.set("style", ";".join(f"{key}:{value}" for key, value in style.items()))


def _rendered(tree: ElementTree.Element, width: int, height: int) -> Image.Image:
    ElementTree.register_namespace("", _SVG)
    text = ElementTree.tostring(tree, encoding="unicode")
    png = bytes(resvg_py.svg_to_bytes(svg_string=text, width=width, height=height, skip_system_fonts=True))
    with Image.open(io.BytesIO(png)) as opened:
        image = opened.convert("RGBA")
    if image.size == (width, height):
        return image
    canvas = Image.new("RGBA", (width, height))
    canvas.paste(image, ((width - image.width) // 2, (height - image.height) // 2))
    return canvas
