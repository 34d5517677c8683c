"""The testbed makes a whole film from a brief, with no server, and twice the same."""

from pathlib import Path

import pytest

from kit.film_briefs import brief
from kit.promises import promise
from videoads.brief import Brief
from videoads.renderer import testbed
from videoads.renderer.composition import composition_as_json, parse_composition
from videoads.renderer.sound import voice_available


def tiny() -> Brief:
    """One narrated scene and a card, two bars, 90 x 160."""
    return brief(seconds=4.8, size={"width": 90, "height": 160}, narration=["Some mornings deserve more."])


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@promise("H69", "H72")
def test_a_film_with_poster_and_contact_sheet_comes_from_a_brief_alone(cache: Path, tmp_path: Path) -> None:
    """No server, no provider, no charge."""
    told: list[str] = []
    prepared, report = testbed.render(
        tiny(),
        tmp_path / "ad.mp4",
        cache=cache,
        poster=tmp_path / "poster.jpg",
        contact=tmp_path / "contact.jpg",
        progress=lambda what, done, of: told.append(what),
    )

    assert report.frames == prepared.composition.output.frames == 144
    assert report.music_only is not voice_available()
    assert {path.name for path in tmp_path.iterdir()} == {"ad.mp4", "poster.jpg", "contact.jpg"}
    assert set(told) == {"clips", "film"}


def test_two_caches_give_the_same_composition_and_the_same_still(cache: Path, tmp_path: Path) -> None:
    """Nothing of a machine's past is in a film; file names are digests of what was asked."""
    one, other = testbed.prepare(tiny(), cache=cache), testbed.prepare(tiny(), cache=tmp_path)

    assert composition_as_json(one.composition) == composition_as_json(other.composition)
    assert parse_composition((tmp_path / "composition.json").read_bytes()) == one.composition
    still = testbed.still(tiny(), 60, cache=cache)
    assert still.tobytes() == testbed.still(tiny(), 60, cache=tmp_path).tobytes()


def test_a_clip_is_named_by_the_picture_it_shows_not_by_where_that_lies(tmp_path: Path) -> None:
    """The same product picture in two folders names one clip; another picture names another."""
    names = []
    for folder, picture in (("one", "espresso"), ("two", "espresso"), ("other", "bike_light")):
        shows = brief(
            seconds=4.8,
            size={"width": 90, "height": 160},
            scenes=[{"prompt": "The brewer turns in", "line": "Made by hand", "shows_product": True}],
            narration=None,
            product_picture=f"{picture}-product.png",
        )
        (first,) = testbed.prepare(shows, cache=tmp_path / folder).composition.shots
        names.append(first.media)

    assert names[0] == names[1] != names[2]


def test_a_second_look_makes_nothing_anew(cache: Path) -> None:
    """Clips and sound are found in the cache."""
    testbed.prepare(tiny(), cache=cache)
    before = {path: path.stat().st_mtime_ns for path in cache.glob("clip-*.mp4")}
    testbed.prepare(tiny(), cache=cache)

    assert {path: path.stat().st_mtime_ns for path in cache.glob("clip-*.mp4")} == before


def test_a_prompt_that_fits_no_set_piece_is_drawn_and_said(cache: Path) -> None:
    """An abstract shot in the brand's colours, and a note."""
    odd = brief(
        seconds=4.8,
        size={"width": 90, "height": 160},
        scenes=[{"prompt": "quantum accounting", "line": "Sums."}],
        narration=None,
    )

    assert any("no set piece" in note for note in testbed.prepare(odd, cache=cache).notes)


def test_a_frame_outside_the_film_is_refused(cache: Path) -> None:
    """With the frames there are."""
    with pytest.raises(testbed.TestbedError, match="give 0 to 143"):
        testbed.still(tiny(), 144, cache=cache)
