"""Pixels: shades decided by measuring, logos drawn on, clips of any kind read, the picture always moving."""

import itertools
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image

from kit.film_briefs import BRIEFS, composed, shipped, write_clip
from kit.film_briefs import brief as changed_brief
from kit.promises import promise
from videoads.renderer.clips import ClipError, ClipReader
from videoads.renderer.colours import contrast, luminance, readable_on, rgb
from videoads.renderer.composition import Composition
from videoads.renderer.drawn_logo import DrawnLogo
from videoads.renderer.ground import CardGround
from videoads.renderer.inspect.ink import measured_contrast
from videoads.renderer.inspect.templates import templates_of
from videoads.renderer.items import Button
from videoads.renderer.painting import Painter
from videoads.renderer.shading import CONTRAST_MIN, Shading, measure_shading

Pictures = Callable[[int, int], Image.Image]


def plain(colour: str) -> Pictures:
    """A film whose shots are all one colour."""
    return lambda shot, frame: Image.new("RGB", (720, 1280), colour)


def shaded_contrast(shading: Shading, ground: str) -> float:
    """The contrast of the words over this ground once the shade lies on it."""
    return contrast(shading.over, shading.shaded(rgb(ground)))


@pytest.mark.parametrize("ground", ["#ffffff", "#e0b080", "#808080", "#404040", "#101010", "#00ff00"])
@pytest.mark.parametrize("name", ["espresso", "bike_light", "glasklar"])
def test_words_reach_the_contrast_over_any_ground(ground: str, name: str) -> None:
    """As strong a shade as is needed, measured."""
    for group, shading in measure_shading(composed(shipped(name)), plain(ground)).items():
        assert shaded_contrast(shading, ground) >= CONTRAST_MIN, group


def test_without_the_shade_words_over_a_bright_ground_would_not_read() -> None:
    """The check above can fail: the strength it measured is what does it."""
    shading = measure_shading(composed(shipped("espresso")), plain("#e0b080"))["caption-0"]

    assert shaded_contrast(msgspec.structs.replace(shading, strength=0), "#e0b080") < CONTRAST_MIN


def test_a_calm_dark_picture_needs_no_shade() -> None:
    """Nothing is laid over a picture that does not need it."""
    shadings = measure_shading(composed(shipped("bike_light")), plain("#05070d"))

    assert {shading.strength for shading in shadings.values()} == {0}


def test_captions_share_one_strength() -> None:
    """One hand's work: the brightest shot decides for all."""

    def pictures(shot: int, frame: int) -> Image.Image:
        return Image.new("RGB", (720, 1280), "#ffffff" if shot == 1 else "#05070d")

    shadings = measure_shading(composed(shipped("bike_light")), pictures)
    strengths = {shading.strength for group, shading in shadings.items() if group.startswith("caption")}

    assert len(strengths) == 1
    assert strengths.pop() > 100


def test_button_words_read_on_any_accent() -> None:
    """The palette's own colours first, black or white when they do not."""
    for accent in ("#b94f1f", "#ffff00", "#777777", "#0b6fae", "#ffffff", "#000000"):
        assert contrast(rgb(accent), readable_on(rgb(accent), (rgb("#888888"),))) >= CONTRAST_MIN


class Careless(Painter):
    """Lets the gleam fall on the whole button."""

    def _button_drawn(self, item: Button) -> tuple[Image.Image, Image.Image]:
        face, _ = super()._button_drawn(item)
        return face, face.getchannel("A")


def button_contrasts(name: str, folder: Path, kind: type[Painter] = Painter) -> list[float]:
    """The contrast of the button's words on the last frames of each beat, when it has its own size."""
    composition = composed(changed_brief(name, size={"width": 360, "height": 640}))
    for key, file in (("logo.svg", f"{name}-logo.svg"), ("product.png", f"{name}-product.png")):
        if (BRIEFS / file).exists():
            (folder / key).write_bytes((BRIEFS / file).read_bytes())
    card = composition.card
    assert card is not None
    painter = kind(composition, lambda key: folder / key)
    (button,) = (
        template
        for template in templates_of(composition, lambda key: folder / key)
        if template.pointer == "/card/button"
    )
    left, top = button.offset
    ratios = []
    for frame in range(card.button_frame + 18, composition.output.frames):
        if (frame - card.start_frame) % 18 >= 15:
            picture = np.asarray(painter.paint(frame))
            ratio = measured_contrast(picture, button.mask, left=left, top=top)
            assert ratio is not None
            ratios.append(ratio)
    return ratios


@pytest.mark.parametrize("name", ["espresso", "bike_light", "glasklar"])
def test_the_gleam_never_makes_the_buttons_words_harder_to_read(name: str, tmp_path: Path) -> None:
    """Light words are passed around, dark ones passed beneath; a gleam over them would be noticed."""
    ratios = button_contrasts(name, tmp_path)

    assert len(ratios) >= 12
    assert min(ratios) >= CONTRAST_MIN

    if name == "espresso":
        assert min(button_contrasts(name, tmp_path, Careless)) < CONTRAST_MIN


def test_contrast_is_that_of_wcag() -> None:
    """Known values: black on white 21, a grey on white at the border of 4.5."""
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast(rgb("#767676"), (255, 255, 255)) == pytest.approx(4.54, abs=0.01)
    assert luminance((255, 255, 255)) == pytest.approx(1)


@pytest.mark.parametrize("name", ["espresso", "bike_light", "glasklar"])
def test_a_logo_is_drawn_on_from_nothing_to_the_whole(name: str) -> None:
    """Ink only grows, each step by a little, and the last step is the logo itself."""
    logo = DrawnLogo((BRIEFS / f"{name}-logo.svg").read_bytes(), 200, 100)
    ink = [
        np.asarray(logo.at(permille).getchannel("A"), dtype=np.int64).sum() for permille in range(0, 1001, 50)
    ]

    assert ink[0] == 0
    assert all(after >= before * 0.995 for before, after in itertools.pairwise(ink))
    assert max(b - a for a, b in itertools.pairwise(ink)) < ink[-1] * 0.25
    assert logo.at(1000).tobytes() == logo.whole().tobytes()


def test_a_filled_logo_and_a_bitmap_logo_are_drawn_on_too() -> None:
    """A fill borrows a stroke; a bitmap is uncovered from the left."""
    filled = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 50"><rect width="80" height="40" fill="#f00"/></svg>'
    bitmap = (BRIEFS / "espresso-product.png").read_bytes()

    for content in (filled, bitmap):
        logo = DrawnLogo(content, 80, 40)
        amounts = [np.asarray(logo.at(p).getchannel("A"), dtype=np.int64).sum() for p in (0, 300, 600, 1000)]
        assert amounts[0] == 0 < amounts[1] < amounts[3] * 0.95
        assert amounts[1] < amounts[2] < amounts[3] * 1.05


@pytest.mark.parametrize("style", ["warm-editorial", "bold-dark", "clean-service"])
def test_the_cards_ground_moves_and_keeps_the_ink_readable(style: str) -> None:
    """Ink on the darkest and the lightest of it reads; a second later it looks different."""
    name = {"warm-editorial": "espresso", "bold-dark": "bike_light", "clean-service": "glasklar"}[style]
    palette = composed(shipped(name)).palette
    ground = CardGround(palette, style, 180, 320, 144, seed=7)
    one, other = np.asarray(ground.frame(20)), np.asarray(ground.frame(50))

    worst = min(
        contrast(rgb(palette.ink), tuple(int(v) for v in pixel))  # type: ignore[arg-type]  # three channels
        for pixel in one.reshape(-1, 3)[::37]
    )
    assert worst >= CONTRAST_MIN
    assert np.abs(one.astype(int) - other.astype(int)).mean() > 0.4


def test_a_frame_of_a_clip_is_found_by_number_forwards_and_back(tmp_path: Path) -> None:
    """Reading is sequential inside, and nobody notices."""
    write_clip(tmp_path / "a.mp4", frames=30)
    reader = ClipReader(tmp_path / "a.mp4", width=90, height=160, fps=30)

    first, tenth = reader.frame(0).tobytes(), reader.frame(10).tobytes()

    assert first != tenth
    assert reader.frame(0).tobytes() == first
    assert reader.frame(10).tobytes() == tenth
    reader.close()


def test_a_clip_that_is_too_short_holds_its_last_frame(tmp_path: Path) -> None:
    """The film is as long as its composition says, whatever a provider sent."""
    write_clip(tmp_path / "a.mp4", frames=10)
    reader = ClipReader(tmp_path / "a.mp4", width=90, height=160, fps=30)

    assert reader.frame(60).tobytes() == reader.frame(9).tobytes()
    reader.close()


@pytest.mark.parametrize(("width", "height"), [(160, 90), (180, 320), (64, 64)])
def test_a_clip_of_another_size_covers_the_picture(tmp_path: Path, width: int, height: int) -> None:
    """Scaled and cropped about the middle, never with bars."""
    write_clip(tmp_path / "a.mp4", frames=5, width=width, height=height, level=200)
    reader = ClipReader(tmp_path / "a.mp4", width=90, height=160, fps=30)

    picture = np.asarray(reader.frame(2)).astype(int)

    assert picture.shape == (160, 90, 3)
    assert (np.abs(picture - 200).min(axis=2) < 70).mean() > 0.5
    assert picture[[0, -1]].max() > 100
    reader.close()


def test_a_clip_of_half_the_rate_is_shown_at_the_films(tmp_path: Path) -> None:
    """Each of its frames stands for two of ours."""
    write_clip(tmp_path / "a.mp4", frames=20, fps=15)
    reader = ClipReader(tmp_path / "a.mp4", width=90, height=160, fps=30)
    shown = [reader.frame(index).tobytes() for index in range(20)]

    assert shown[0] == shown[1] != shown[2] == shown[3]
    reader.close()


@pytest.mark.parametrize("content", [b"", b"not a film", b"\x00" * 4000])
def test_a_file_that_is_no_clip_is_an_error_with_its_name(tmp_path: Path, content: bytes) -> None:
    """Not a black picture."""
    (tmp_path / "bad.mp4").write_bytes(content)

    with pytest.raises(ClipError, match=r"bad\.mp4"):
        ClipReader(tmp_path / "bad.mp4", width=90, height=160, fps=30).frame(0)


def tiny(tmp_path: Path) -> tuple[Composition, Callable[[str], Path]]:
    """The espresso ad at 90 x 160 over four plain clips."""
    composition = composed(changed_brief(size={"width": 90, "height": 160}))
    for index, shot in enumerate(composition.shots):
        write_clip(tmp_path / shot.media, frames=shot.frames, level=60 + 30 * index)
    for key, name in (("logo.svg", "espresso-logo.svg"), ("product.png", "espresso-product.png")):
        (tmp_path / key).write_bytes((BRIEFS / name).read_bytes())
    return composition, lambda key: tmp_path / key


@promise("H69", "H79")
def test_a_still_is_the_same_alone_and_in_sequence(tmp_path: Path) -> None:
    """One frame can be looked at without rendering what comes before it."""
    composition, media = tiny(tmp_path)
    whole = Painter(composition, media)
    pictures = {frame: whole.paint(frame).tobytes() for frame in range(0, 432, 9)}
    whole.close()

    for frame in (0, 63, 144, 288, 423):
        alone = Painter(composition, media)
        assert alone.paint(frame).tobytes() == pictures[frame]
        alone.close()


def test_the_picture_changes_in_every_second_of_the_card(tmp_path: Path) -> None:
    """Measured on pixels, not on the layout."""
    composition, media = tiny(tmp_path)
    painter = Painter(composition, media)
    pictures = [np.asarray(painter.paint(frame)).astype(int) for frame in range(289, 432, 15)]
    painter.close()

    assert all(np.abs(a - b).mean() > 0.3 for a, b in itertools.pairwise(pictures))
