"""What one frame shows, compared as data: the layout is pure and exact."""

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from kit.film_briefs import composed, shipped
from kit.promises import promise
from videoads.renderer.items import Button, Clip, DrawItem, Ground, Mark, Words
from videoads.renderer.layout import layout

GOLDEN = Path(__file__).parent / "golden"
FRAMES = {"espresso": (0, 40, 100, 143, 144, 250, 288, 310, 400, 431), "glasklar": (60, 74, 300)}


def as_json(items: list[DrawItem]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(items), indent=1) + b"\n"


def golden_cases() -> list[tuple[str, int]]:
    """The brief and frame of each golden file; `python test_layout.py` writes them anew."""
    return [(name, frame) for name, frames in FRAMES.items() for frame in frames]


@promise("H79")
@pytest.mark.parametrize(("name", "frame"), golden_cases())
def test_a_frame_is_laid_out_exactly_as_before(name: str, frame: int) -> None:
    """A change of look is a change of these files, seen in review."""
    assert (
        as_json(layout(composed(shipped(name)), frame)) == (GOLDEN / f"{name}-{frame:03}.json").read_bytes()
    )


def test_the_golden_comparison_catches_a_word_moved_by_one_pixel() -> None:
    """The check above can fail."""
    composition = composed(shipped("espresso"))
    title = composition.titles[0]
    box = msgspec.structs.replace(title.block.box, x=title.block.box.x + 1)
    moved = msgspec.structs.replace(title, block=msgspec.structs.replace(title.block, box=box))
    changed = msgspec.structs.replace(composition, titles=(moved, *composition.titles[1:]))

    assert as_json(layout(changed, 40)) != (GOLDEN / "espresso-040.json").read_bytes()


def test_the_headline_arrives_word_by_word() -> None:
    """Each word has its own frame; none disappears again before the end."""
    composition = composed(shipped("espresso"))
    counts = [
        sum(isinstance(item, Words) and item.group == "title-0" for item in layout(composition, frame))
        for frame in range(70)
    ]

    assert counts[0] == 0
    assert counts == sorted(counts)
    assert counts[-1] == 6
    assert len(set(counts)) >= 6


def test_a_cut_is_hard_even_when_the_camera_whips() -> None:
    """The frame before a cut shows the old shot, the cut's own frame the new one."""
    composition = composed(shipped("espresso"))

    for number, cut in enumerate(composition.cuts[:-1]):
        before, after = layout(composition, cut - 1)[0], layout(composition, cut)[0]
        assert isinstance(before, Clip)
        assert isinstance(after, Clip)
        assert (before.shot, after.shot) == (number, number + 1)
        assert before.shift < 0 < after.shift


def test_the_logo_of_the_card_is_drawn_stroke_by_stroke() -> None:
    """From nothing to the whole, never backwards."""
    composition = composed(shipped("espresso"))
    drawn = [
        item.drawn_permille
        for frame in range(288, 432)
        for item in layout(composition, frame)
        if isinstance(item, Mark) and item.kind == "logo"
    ]

    assert drawn == sorted(drawn)
    assert drawn[0] < 50
    assert drawn[-1] == 1000
    assert len(set(drawn)) > 30


@pytest.mark.parametrize("name", ["espresso", "bike_light", "glasklar"])
def test_the_card_never_stands_still(name: str) -> None:
    """Two frames that follow one another always differ."""
    composition = composed(shipped(name))
    frames = [as_json(layout(composition, frame)) for frame in range(288, 432)]

    assert all(a != b for a, b in pairwise(frames))


def test_the_card_shows_everything_in_its_second_bar() -> None:
    """Logo, product, name, tagline, offer, button and address have all arrived and are opaque."""
    composition = composed(shipped("espresso"))
    items = layout(composition, 400)

    words = " ".join(item.text for item in items if isinstance(item, Words) and item.opacity == 255)
    assert words == "Matina The slow espresso maker Free beans with your first Matina matina.example"
    assert {item.kind for item in items if isinstance(item, Mark)} == {"logo", "product"}
    assert any(isinstance(item, Button) and item.block.lines == ("Bring it home",) for item in items)
    assert isinstance(items[0], Ground)


@pytest.mark.parametrize("frame", [-1, 432])
def test_a_frame_outside_the_film_is_refused(frame: int) -> None:
    """Frames count from 0."""
    with pytest.raises(ValueError, match="of 432"):
        layout(composed(shipped("espresso")), frame)


def write_golden() -> None:
    """Write the golden files from the layout as it is now."""
    for name, frame in golden_cases():
        (GOLDEN / f"{name}-{frame:03}.json").write_bytes(as_json(layout(composed(shipped(name)), frame)))


if __name__ == "__main__":
    write_golden()
