"""The shipped briefs become finished films that keep every promise of delivery, and twice the same film.

The espresso ad is made once at full size, the other two at half size; nothing is described by hand, all is measured.
"""

import os
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image

from kit.promises import promise
from videoads.brief import OutputSize, read_brief
from videoads.renderer import testbed
from videoads.renderer.composition import composition_as_json, parse_composition
from videoads.renderer.inspect import inspect_film, ssim, still_frames
from videoads.renderer.inspect.container import file_sha256
from videoads.renderer.inspect.decoding import decode_film
from videoads.renderer.inspect.similarity import SIMILARITY_MIN

BRIEFS = Path(testbed.__file__).parents[1] / "fixtures" / "briefs"


pytestmark = pytest.mark.timeout(240)


def brief_of(name, *, width=720, height=1280):
    return msgspec.structs.replace(read_brief(BRIEFS / f"{name}.json"), size=OutputSize(width, height))


@pytest.fixture(scope="module")
def espresso(tmp_path_factory):
    """The espresso ad at full size: its folder, what was prepared and what was reported."""
    folder = tmp_path_factory.mktemp("espresso")
    prepared, report = testbed.render(
        brief_of("espresso"),
        folder / "ad.mp4",
        cache=folder / "media",
        poster=folder / "poster.jpg",
        contact=folder / "contact.jpg",
    )
    yield folder, prepared, report
    shutil.rmtree(folder, ignore_errors=True)


def failed_lines(film, prepared):
    inspection = inspect_film(
        film,
        prepared.composition,
        media=prepared.media,
        expected_sha256=file_sha256(film),
        expected_bytes=film.stat().st_size,
    )
    return [check.line() for check in inspection.failures]


@promise("H02", "H79")
def test_the_espresso_ad_keeps_every_promise_of_delivery(espresso):
    folder, prepared, _ = espresso

    assert failed_lines(folder / "ad.mp4", prepared) == []


def test_the_espresso_ad_is_directed_as_ordered(espresso):
    """432 frames at 30 fps, 720 x 1280, 100 BPM: a bar is 72 frames, every cut on a bar, the card lasts two."""
    _, prepared, report = espresso
    composition = prepared.composition
    output = composition.output

    assert (output.frames, output.fps, output.width, output.height) == (432, 30, 720, 1280)
    assert report.frames == 432
    assert composition.cuts == (72, 144, 216, 288)
    assert (composition.card.start_frame, composition.card.frames) == (288, 144)
    assert composition.titles[0].word_frames == tuple(sorted(set(composition.titles[0].word_frames)))
    assert len(composition.call_outs) == 2
    assert composition.logo is not None
    assert composition.card.product_picture is not None


def test_every_shot_of_the_espresso_ad_is_a_set_piece_and_every_phrase_is_spoken(espresso):
    _, prepared, _ = espresso

    assert prepared.notes == ()
    assert [phrase.text for phrase in prepared.composition.audio.narration.timings.phrases] == [
        phrase.text for phrase in prepared.script.phrases
    ]
    assert all(len(caption.block.lines) <= 2 for caption in prepared.composition.captions)


def test_poster_and_contact_sheet_are_pictures_of_the_film(espresso):
    folder, prepared, _ = espresso
    with Image.open(folder / "poster.jpg") as poster, Image.open(folder / "contact.jpg") as contact:
        shown = np.asarray(poster.convert("RGB"))
        assert poster.size == (prepared.composition.output.width, prepared.composition.output.height)
        assert min(contact.size) >= 600
    decoded = decode_film(folder / "ad.mp4", whole_frames=())
    small = np.asarray(Image.fromarray(shown).resize(decoded.thumbnails.shape[2:0:-1], Image.Resampling.BOX))
    distance = np.abs(decoded.thumbnails.astype(np.int16) - small.astype(np.int16)).mean(axis=(1, 2, 3))
    assert distance.min() < 4.0


def test_the_composition_travels_as_json_and_comes_back_the_same(espresso):
    folder, prepared, _ = espresso
    raw = composition_as_json(prepared.composition)

    assert parse_composition(raw) == prepared.composition
    assert (folder / "media" / "composition.json").read_bytes() == raw


@pytest.mark.parametrize("name", ["bike_light", "glasklar"])
@promise("H79")
def test_the_other_briefs_keep_every_promise_too(name, tmp_path):
    """A bold dark product, and a service in German with umlauts and without narration."""
    film = tmp_path / "ad.mp4"
    prepared, _ = testbed.render(brief_of(name, width=360, height=640), film, cache=tmp_path / "media")

    assert failed_lines(film, prepared) == []
    assert (prepared.composition.audio.narration is None) == (name == "glasklar")
    assert prepared.notes == (("no narration: music only",) if name == "glasklar" else ())


@promise("H79")
def test_two_renders_of_one_brief_are_the_same_film(tmp_path):
    """Same composition, same sound to the sample, twelve decoded stills that no eye tells apart.

    Each time everything is made anew in another folder: clip, voice, music, mix and file. Bytes of MP4 are not compared.
    """
    whole = brief_of("espresso", width=216, height=384)
    brief = msgspec.structs.replace(
        whole, seconds=4.8, scenes=whole.scenes[1:2], narration=(whole.narration[1], whole.narration[4])
    )
    compositions, sounds, pictures = [], [], []
    for folder in (tmp_path / "first", tmp_path / "second"):
        folder.mkdir()
        prepared, report = testbed.render(brief, folder / "ad.mp4", cache=folder / "media")
        compositions.append(composition_as_json(prepared.composition))
        sounds.append(report.pcm_sha256)
        stills = still_frames(prepared.composition.output.frames)
        pictures.append(decode_film(folder / "ad.mp4", whole_frames=stills).whole)

    assert compositions[0] == compositions[1]
    assert sounds[0] == sounds[1]
    assert len(stills) == 12
    assert min(ssim(pictures[0][frame], pictures[1][frame]) for frame in stills) >= SIMILARITY_MIN
    assert ssim(pictures[0][stills[0]], pictures[0][stills[1]]) < SIMILARITY_MIN, (
        "two frames must differ to it"
    )


def test_rendering_leaves_nothing_behind_outside_its_folder(espresso):
    folder, _, _ = espresso

    assert {path.name for path in folder.iterdir()} == {"ad.mp4", "poster.jpg", "contact.jpg", "media"}
    assert not list(folder.rglob("*.part"))
    assert os.listdir(folder / "media")
