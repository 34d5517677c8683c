"""How wide text is, where its lines break, and the largest size at which it fits.

Fonts are the vendored files only, never the machine's. Sizes are whole pixels; a `TextBlock` made here keeps
its ink inside its box, so that boxes can be compared instead of pixels.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from itertools import combinations, pairwise
from typing import Literal

from PIL import ImageFont

from videoads.renderer.composition import Box, TextBlock
from videoads.renderer.lettering.coverage import Face, covered_by

__all__ = ["TextDoesNotFit", "ascent", "baselines", "block_height", "fit", "font", "runs", "text_width"]

ASCENT_PERMILLE = 960
DESCENT_PERMILLE = 270
"""How far ink reaches above and below the baseline at most, capitals with an umlaut and descenders included."""

BREAKS_MAX = 5_000
"""A text of more ways to break than this is not set; briefs are limited far below."""


class TextDoesNotFit(ValueError):
    """A text for which even the smallest size is too large, or a character no font has."""


def fit(
    text: str,
    *,
    face: Face,
    weight: int,
    sizes: tuple[int, int],
    within: Box,
    lines_max: int,
    leading_percent: int,
    align: Literal["left", "centre"],
    place: Literal["top", "bottom"] = "top",
) -> TextBlock:
    """Set `text` as large as `sizes` (largest, smallest) and the box allow, in balanced lines."""
    words = text.split()
    largest, smallest = sizes
    for size in _sizes(largest, smallest):
        leading = size * leading_percent // 100
        for count in range(1, min(lines_max, len(words)) + 1):
            height = block_height(size, leading, count)
            if height > within.height:
                break
            lines = _balanced(words, count, face, size, weight, within.width)
            if lines is not None:
                width = max(text_width(line, face, size, weight) for line in lines)
                x = within.x if align == "left" else within.x + (within.width - width) // 2
                y = within.y if place == "top" else within.bottom - height
                return TextBlock(lines, face, size, weight, align, leading, Box(x, y, width, height))
    raise TextDoesNotFit(f"{text!r} does not fit {within.width} x {within.height} pixels")


def block_height(size: int, leading: int, lines: int) -> int:
    """Return the height of so many lines, from the highest possible ink to the lowest."""
    return ascent(size) + -(-size * DESCENT_PERMILLE // 1000) + leading * (lines - 1)


def ascent(size: int) -> int:
    """Return the rows from the top of a block to its first baseline."""
    return -(-size * ASCENT_PERMILLE // 1000)


def baselines(block: TextBlock) -> Iterator[tuple[str, int, int]]:
    """Yield each line with its left edge and its baseline."""
    for index, line in enumerate(block.lines):
        x = block.box.x
        if block.align == "centre":
            x += (block.box.width - text_width(line, block.face, block.size, block.weight)) // 2
        yield line, x, block.box.y + ascent(block.size) + index * block.line_height


def text_width(text: str, face: Face, size: int, weight: int) -> int:
    """Return the advance of `text` in pixels, rounded up."""
    return -int(-sum(font(name, size, weight).getlength(part) for name, part in runs(text, face)) // 1)


def runs(text: str, face: Face) -> list[tuple[str, str]]:
    """Split text into (font file, characters) so that each file has its characters."""
    parts: list[tuple[str, str]] = []
    for character in text:
        name = covered_by(face, character)
        if name is None:
            raise TextDoesNotFit(f"no glyph for {character!r} (U+{ord(character):04X}) in the {face} face")
        if character == " " and parts:
            name = parts[-1][0]
        if parts and parts[-1][0] == name:
            parts[-1] = (name, parts[-1][1] + character)
        else:
            parts.append((name, character))
    return parts


@lru_cache(maxsize=256)
def font(name: str, size: int, weight: int) -> ImageFont.FreeTypeFont:
    """Open a vendored font file at a size and weight; the optical size follows the size."""
    source = resources.files(__package__).joinpath("fonts", name)
    with resources.as_file(source) as path:
        opened = ImageFont.truetype(str(path), size)
    if name.startswith("fraunces"):
        opened.set_variation_by_axes([min(144, max(9, size * 2)), weight, 40, 0])
    else:
        opened.set_variation_by_axes([min(96, max(12, size)), min(800, weight), 100])
    return opened


def _sizes(largest: int, smallest: int) -> Iterator[int]:
    step = max(1, largest // 48)
    yield from range(largest, smallest, -step)
    yield smallest


def _balanced(
    words: list[str], count: int, face: Face, size: int, weight: int, width: int
) -> tuple[str, ...] | None:
    """Return the break into `count` lines whose widths differ least, or None when none fits the width."""
    best: tuple[int, tuple[str, ...]] | None = None
    for tried, breaks in enumerate(combinations(range(1, len(words)), count - 1)):
        if tried >= BREAKS_MAX:
            break
        edges = (0, *breaks, len(words))
        lines = tuple(" ".join(words[a:b]) for a, b in pairwise(edges))
        widths = [_line_width(line, face, size, weight) for line in lines]
        if max(widths) > width:
            continue
        mean = sum(widths) // count
        # A break after a sentence mark or comma reads better than an even one, within reason.
        marks = sum(1 for line in lines[:-1] if line[-1] in ".,!?;:")
        cost = sum((w - mean) ** 2 for w in widths) - marks * (width // 5) ** 2
        if best is None or cost < best[0]:
            best = (cost, lines)
    return None if best is None else best[1]


@lru_cache(maxsize=4096)
def _line_width(line: str, face: Face, size: int, weight: int) -> int:
    return text_width(line, face, size, weight)
