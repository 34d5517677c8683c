"""Where the words lie: inside the safe area, apart from each other, for any size of picture."""

from itertools import pairwise

import msgspec
import pytest

from kit.film_briefs import brief, composed, planned, shipped
from kit.promises import promise
from videoads.brief import Brief
from videoads.renderer.composing import Anchor, MediaKeys, compose
from videoads.renderer.composition import Box, Composition, CompositionError, safe_area
from videoads.script import write_script

SHIPPED = ("espresso", "bike_light", "glasklar")
SIZES = ((720, 1280), (1280, 720), (1080, 1080), (540, 960), (90, 160), (1080, 1920))


def sized(name: str, width: int, height: int) -> Brief:
    return brief(name, size={"width": width, "height": height})


def boxes(composition: Composition) -> dict[str, Box]:
    """Every box with words or marks, by name."""
    named: dict[str, Box] = {}
    for index, title in enumerate(composition.titles):
        named[f"title-{index}"] = title.block.box
        if title.kicker is not None:
            named[f"kicker-{index}"] = title.kicker.box
    named |= {f"call-out-{i}": call_out.box for i, call_out in enumerate(composition.call_outs)}
    named |= {f"caption-{i}": caption.block.box for i, caption in enumerate(composition.captions)}
    if composition.logo is not None:
        named["logo"] = composition.logo.box
    return named


def card_boxes(composition: Composition) -> dict[str, Box]:
    """The card's boxes that may not touch each other."""
    card = composition.card
    assert card is not None
    named = {
        "name": card.name.box,
        "offer": card.offer.box,
        "button": card.button_box,
        "address": card.address.box,
    }
    if card.tagline is not None:
        named["tagline"] = card.tagline.box
    if card.logo is not None:
        named["logo"] = card.logo_box
    if card.product_picture is not None:
        named["product"] = card.product_box
    return named


def escapees(composition: Composition) -> list[str]:
    """Names of boxes that leave the safe area."""
    area = safe_area(composition.output)
    named = boxes(composition) | {f"card {k}": box for k, box in card_boxes(composition).items()}
    return [name for name, box in named.items() if not area.contains(box)]


def overlaps(named: dict[str, Box]) -> list[tuple[str, str]]:
    """Pairs of boxes that share a pixel."""
    names = list(named)
    return [
        (one, other)
        for index, one in enumerate(names)
        for other in names[index + 1 :]
        if named[one].overlaps(named[other])
    ]


@promise("H79")
@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_everything_to_read_lies_in_the_safe_area(name: str, size: tuple[int, int]) -> None:
    """Top 12 %, bottom 20 %, sides 8 % belong to the player's buttons."""
    assert escapees(composed(sized(name, *size))) == []


def test_the_safe_area_check_catches_a_caption_that_is_too_low() -> None:
    """The check above can fail."""
    composition = composed(shipped("espresso"))
    caption = composition.captions[0]
    low = msgspec.structs.replace(caption.block.box, y=caption.block.box.y + 40)
    block = msgspec.structs.replace(caption.block, box=low)
    moved = msgspec.structs.replace(caption, block=block)

    broken = msgspec.structs.replace(composition, captions=(moved, *composition.captions[1:]))

    assert escapees(broken) == ["caption-0"]


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_nothing_to_read_lies_over_anything_else(name: str, size: tuple[int, int]) -> None:
    """Things of one shot keep apart, and so do the parts of the card."""
    composition = composed(sized(name, *size))
    assert overlaps(card_boxes(composition)) == []

    for shot in composition.shots:
        first, last = shot.start_frame, shot.start_frame + shot.frames
        of_shot = {
            f"title-{i}": t.block.box
            for i, t in enumerate(composition.titles)
            if first <= t.start_frame < last
        }
        of_shot |= {
            f"kicker-{i}": t.kicker.box
            for i, t in enumerate(composition.titles)
            if t.kicker is not None and first <= t.start_frame < last
        }
        of_shot |= {
            f"call-out-{i}": c.box
            for i, c in enumerate(composition.call_outs)
            if first <= c.start_frame < last
        }
        if composition.logo is not None:
            of_shot["logo"] = composition.logo.box
        for index, caption in enumerate(composition.captions):
            if first <= caption.start_frame < last:
                assert overlaps({**of_shot, f"caption-{index}": caption.block.box}) == []


def test_the_overlap_check_catches_two_boxes_that_share_a_pixel() -> None:
    """The check above can fail, and does not for neighbours."""
    one = Box(0, 0, 10, 10)

    assert overlaps({"one": one, "other": Box(9, 9, 5, 5)}) == [("one", "other")]
    assert overlaps({"one": one, "other": Box(10, 0, 5, 5)}) == []


def test_a_caption_is_shown_while_its_samples_are_heard() -> None:
    """Timed by what was spoken, not by what was planned."""
    given = shipped("espresso")
    script = write_script(given)
    timings = planned(script)
    assert timings is not None
    late = msgspec.structs.replace(timings.phrases[1], start_sample=100 * 1600 + 5, end_sample=120 * 1600 + 5)
    spoken = msgspec.structs.replace(timings, phrases=(timings.phrases[0], late, *timings.phrases[2:]))
    keys = MediaKeys(clips=tuple(shot.key for shot in script.shots), music="m", narration="n")

    caption = compose(script, keys, spoken).captions[1]

    assert caption.start_frame == 100
    assert 121 <= caption.end_frame <= 121 + 6


@pytest.mark.parametrize("name", ["espresso", "bike_light"])
def test_captions_have_two_lines_at_most_and_do_not_meet(name: str) -> None:
    """One caption at a time; none stands over a cut or over the card."""
    composition = composed(shipped(name))
    captions = composition.captions

    assert all(len(caption.block.lines) <= 2 for caption in captions)
    assert all(a.end_frame <= b.start_frame for a, b in pairwise(captions))
    for caption in captions:
        assert not any(caption.start_frame < cut < caption.end_frame for cut in composition.cuts)


def test_the_two_lines_of_a_caption_are_balanced() -> None:
    """No orphan: the shorter line is at least half as long as the longer."""
    for name in ("espresso", "bike_light"):
        for caption in composed(shipped(name)).captions:
            if len(caption.block.lines) == 2:
                short, long = sorted(len(line) for line in caption.block.lines)
                assert short * 2 >= long, caption.block.lines


def test_call_outs_are_tied_to_the_points_the_clip_names() -> None:
    """The drawing knows where its parts are."""
    script = write_script(shipped("espresso"))
    clips = tuple(shot.key for shot in script.shots)
    anchors = ((), (Anchor(250, 500), Anchor(750, 600)), (), ())

    composition = compose(
        script, MediaKeys(clips=clips, music="m", narration="n", anchors=anchors), planned(script)
    )

    assert [(c.point_x, c.point_y) for c in composition.call_outs] == [(180, 640), (540, 768)]
    assert not any(c.box.contains(Box(c.point_x, c.point_y, 1, 1)) for c in composition.call_outs)


@pytest.mark.parametrize("profile", ["h264-aac", "vp9-opus"])
def test_the_profile_of_the_brief_is_the_films(profile: str) -> None:
    """vp9-opus avoids the GPL encoder."""
    assert composed(brief(profile=profile)).output.profile == profile


def test_clips_must_be_as_many_as_shots() -> None:
    """A missing clip is said, not left black."""
    script = write_script(shipped("glasklar"))

    with pytest.raises(CompositionError, match="1 clips for 4 shots"):
        compose(script, MediaKeys(clips=("a",), music="m"), None)


def test_sound_and_timings_come_together() -> None:
    """A narration without timings could not be captioned."""
    script = write_script(shipped("espresso"))
    clips = tuple(shot.key for shot in script.shots)

    with pytest.raises(CompositionError, match="without timings"):
        compose(script, MediaKeys(clips=clips, music="m", narration="n"), None)
