"""The vendored fonts: what they cover is proven by drawing it, and ink stays in its box."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import ImageFont

from kit.promises import promise
from videoads.renderer.composition import Box
from videoads.renderer.lettering.coverage import FACES, Face, covered_by, missing_glyphs
from videoads.renderer.lettering.metrics import TextDoesNotFit, baselines, fit, font, text_width
from videoads.renderer.masks import lettered

LETTERS = "ABCXYZabcxyzgjpqyÄÖÜäöüßéèñçøåłőš0123456789.,!?–—„“”’€%&·…"


def drawn(opened: ImageFont.FreeTypeFont, character: str) -> bytes:
    return bytes(opened.getmask(character, mode="L"))


@promise("H71")
@pytest.mark.parametrize("face", list(FACES))
def test_each_listed_character_draws_something_else_than_the_empty_box(face: Face) -> None:
    """The list of covered characters is the truth about the files."""
    for character in LETTERS:
        name = covered_by(face, character)
        assert name is not None, character
        opened = font(name, 40, 600)
        assert drawn(opened, character) != drawn(opened, "\uffff"), character


@pytest.mark.parametrize("face", list(FACES))
def test_a_character_the_fonts_lack_would_draw_the_empty_box(face: Face) -> None:
    """What the check above compares with is what a missing glyph looks like."""
    opened = font(FACES[face][0], 40, 600)

    assert drawn(opened, "光") == drawn(opened, "\uffff")
    assert covered_by(face, "光") is None


def test_missing_glyphs_are_named_once_in_order() -> None:
    """An emoji and a sign from elsewhere."""
    assert missing_glyphs("Straße ☕ 光 ☕") == ["☕", "光"]


def test_a_missing_glyph_is_an_error_and_never_an_empty_box() -> None:
    """Setting refuses what it cannot draw."""
    with pytest.raises(TextDoesNotFit, match="U\\+2615"):
        text_width("a ☕", "serif", 40, 600)


@pytest.mark.parametrize("face", list(FACES))
@pytest.mark.parametrize("text", ["Ärger", "jgpqy,", "Straße", "ŁÓDŹ", "“Quote”", "Éclair (ÅÇ)"])
def test_ink_stays_within_its_block(face: Face, text: str) -> None:
    """So that boxes may stand for pixels in every check."""
    block = fit(
        text, face=face, weight=700, sizes=(96, 20), within=Box(50, 50, 600, 300), lines_max=1,
        leading_percent=100, align="left",
    )  # fmt: skip

    for line, x, baseline in baselines(block):
        mask, left, top = lettered(line, block.face, block.size, block.weight)
        slack = block.size // 12
        assert x + left >= block.box.x - slack
        assert x + left + mask.width <= block.box.right + slack
        assert baseline + top >= block.box.y
        assert baseline + top + mask.height <= block.box.bottom


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("abcdefghijklmnoprstuvwäöü", min_size=1, max_size=9), min_size=2, max_size=8))
def test_lines_are_broken_without_losing_a_word_and_never_too_wide(words: list[str]) -> None:
    """Whatever the words, the block holds them all, in order, within its width."""
    within = Box(0, 0, 420, 400)
    block = fit(
        " ".join(words), face="grotesque", weight=600, sizes=(60, 12), within=within, lines_max=3,
        leading_percent=110, align="centre",
    )  # fmt: skip

    assert " ".join(block.lines).split() == words
    assert within.contains(block.box)
    assert all(text_width(line, "grotesque", block.size, 600) <= within.width for line in block.lines)


def test_the_largest_size_that_fits_is_taken() -> None:
    """A narrower box gives smaller letters, never cut ones."""
    sizes = [
        fit(
            "Durchblick", face="serif", weight=600, sizes=(120, 10), within=Box(0, 0, width, 200), lines_max=1,
            leading_percent=100, align="left",
        ).size
        for width in (600, 400, 200)
    ]  # fmt: skip

    assert all(a > b for a, b in pairwise(sizes))


def test_a_text_too_wide_for_the_smallest_size_is_refused() -> None:
    """Refused with the text and the room there was."""
    with pytest.raises(TextDoesNotFit, match="does not fit 40 x 40"):
        fit(
            "Durchblick", face="serif", weight=600, sizes=(60, 30), within=Box(0, 0, 40, 40), lines_max=1,
            leading_percent=100, align="left",
        )  # fmt: skip


def test_the_weight_axis_works() -> None:
    """Heavier letters have more ink: the fonts are variable and the axis is set."""

    def ink(weight: int) -> int:
        mask, _, _ = lettered("Durchblick", "grotesque", 60, weight)
        return int(np.asarray(mask, dtype=np.int64).sum())

    assert ink(300) < ink(550) < ink(800)
