"""A good film passes every check, and for each check a film that is wrong in just that way is refused by it."""

import hashlib
import json
import subprocess
import sys

import msgspec
import numpy as np
import pytest

from kit.footage import RATE, moving_gradient, sequence, write_film
from kit.promises import promise
from kit.small_ad import small_ad
from videoads.renderer.composition import Box, composition_as_json
from videoads.renderer.film import render_film
from videoads.renderer.inspect import Inspection, inspect_film
from videoads.renderer.inspect.check import Check
from videoads.renderer.inspect.decoding import decode_film
from videoads.renderer.inspect.lettering_checks import check_glyphs
from videoads.renderer.inspect.picture_checks import check_cuts
from videoads.renderer.sound.wav import read_wav, write_wav

replace = msgspec.structs.replace

CHECKS = [
    "object", "digest", "opens", "index_first", "decodes", "duration", "geometry", "frame_rate", "pixel_format",
    "codecs", "cuts", "motion", "black", "glyphs", "lettering", "safe_area", "overlap", "contrast", "sound",
    "loudness", "true_peak", "ducking", "speech",
]  # fmt: skip


@pytest.fixture(scope="module")
def ad():
    return small_ad()


@pytest.fixture(scope="module")
def good(ad, tmp_path_factory):
    return ad.film(tmp_path_factory.mktemp("good") / "good.mp4")


def failures(ad, film, composition=None, **expected):
    """Names of the failed checks; each must say where, what would be right and how to get there."""
    inspection = inspect_film(film, composition or ad.composition, media=ad.media, **expected)
    for check in inspection.failures:
        assert check.measured and check.expected and check.remedy, check
    assert inspection.passed == (not inspection.failures)
    return [check.name for check in inspection.failures]


@promise("H02", "H79")
def test_a_good_film_passes_every_check(ad, good):
    content = good.read_bytes()
    inspection = inspect_film(
        good,
        ad.composition,
        media=ad.media,
        expected_sha256=hashlib.sha256(content).hexdigest(),
        expected_bytes=len(content),
    )

    assert [check.line() for check in inspection.failures] == []
    assert [check.name for check in inspection.checks] == CHECKS


@promise("H02")
def test_a_missing_or_empty_film_is_refused_at_once(ad, tmp_path):
    empty = tmp_path / "empty.mp4"
    empty.touch()

    assert failures(ad, tmp_path / "none.mp4") == ["object"]
    assert failures(ad, empty) == ["object"]


def test_another_object_than_the_produced_one_is_refused(ad, good):
    assert failures(ad, good, expected_bytes=good.stat().st_size - 1) == ["object"]
    assert failures(ad, good, expected_sha256="0" * 64) == ["digest"]


def test_a_file_that_is_no_film_does_not_open(ad, tmp_path):
    film = tmp_path / "film.mp4"
    film.write_bytes(b"<html>502 Bad Gateway</html>")

    assert failures(ad, film) == ["opens"]


def test_a_film_with_its_index_behind_is_refused(ad, tmp_path):
    assert failures(ad, ad.film(tmp_path / "film.mp4", faststart=False)) == ["index_first"]


def test_a_film_that_breaks_off_is_refused(ad, good, tmp_path):
    film = tmp_path / "film.mp4"
    content = good.read_bytes()
    film.write_bytes(content[: len(content) * 2 // 3])
    inspection = inspect_film(film, ad.composition, media=ad.media)

    assert not inspection.check("decodes").passed
    assert inspection.check("decodes").frame < ad.composition.output.frames


def test_a_missing_last_frame_is_noticed(ad, tmp_path):
    assert "decodes" in failures(ad, ad.film(tmp_path / "film.mp4", pictures=ad.pictures[:-1]))


def test_sound_that_ends_early_is_refused(ad, tmp_path):
    assert failures(ad, ad.film(tmp_path / "film.mp4", sound=ad.sound[:, : -RATE // 2])) == ["duration"]


def test_another_size_is_refused(ad, tmp_path):
    smaller = [picture[:-4, :-4] for picture in ad.pictures]

    assert failures(ad, ad.film(tmp_path / "film.mp4", pictures=smaller)) == ["geometry"]


def test_another_rate_is_refused(ad, tmp_path):
    assert "frame_rate" in failures(ad, ad.film(tmp_path / "film.mp4", fps=25))


def test_pixels_and_codecs_that_players_do_not_know_are_refused(ad, tmp_path):
    assert failures(ad, ad.film(tmp_path / "deep.mp4", pixel_format="yuv444p")) == ["pixel_format"]
    assert "codecs" in failures(ad, ad.film(tmp_path / "old.mp4", codec="mpeg4"))


def test_a_cut_at_another_frame_is_refused(ad, tmp_path):
    cut = ad.composition.cuts[0]
    early = [*ad.pictures[: cut - 14], *ad.pictures[cut : cut + 14], *ad.pictures[cut:]]
    inspection = inspect_film(ad.film(tmp_path / "film.mp4", pictures=early), ad.composition, media=ad.media)

    assert not inspection.check("cuts").passed
    assert str(cut) in inspection.check("cuts").expected


def test_a_cut_that_nobody_asked_for_is_refused_where_it_is(ad, tmp_path):
    strange = [
        picture[..., ::-1] if 20 <= index < 44 else picture for index, picture in enumerate(ad.pictures)
    ]
    inspection = inspect_film(
        ad.film(tmp_path / "film.mp4", pictures=strange), ad.composition, media=ad.media
    )

    assert (inspection.check("cuts").passed, inspection.check("cuts").frame) == (False, 20)


def test_hard_cuts_are_held_to_the_frame(ad, tmp_path):
    red, blue = (moving_gradient(90, 160, tint=tint) for tint in ((170, 60, 60), (50, 70, 170)))
    film = write_film(tmp_path / "film.mp4", sequence((red, 30), (blue, 42)))
    first = ad.composition.shots[0]
    shots = (replace(first, frames=30), replace(first, start_frame=30, frames=42))
    hard = replace(
        ad.composition, shots=shots, cuts=(30,), card=None, output=replace(ad.composition.output, frames=72)
    )
    decoded = decode_film(film, whole_frames=())
    late = replace(
        hard, shots=(replace(first, frames=31), replace(first, start_frame=31, frames=41)), cuts=(31,)
    )

    assert check_cuts(decoded, hard).passed
    assert not check_cuts(decoded, late).passed
    assert not check_cuts(decoded, replace(hard, shots=shots[:1], cuts=())).passed


def test_a_frozen_second_is_refused_where_it_begins(ad, tmp_path):
    frozen = list(ad.pictures)
    frozen[98:138] = [frozen[98]] * 40
    inspection = inspect_film(ad.film(tmp_path / "film.mp4", pictures=frozen), ad.composition, media=ad.media)

    assert not inspection.check("motion").passed
    assert 98 <= inspection.check("motion").frame <= 108


def test_a_black_stretch_is_refused(ad, tmp_path):
    black = list(ad.pictures)
    black[2:8] = [np.zeros_like(black[0])] * 6
    inspection = inspect_film(ad.film(tmp_path / "film.mp4", pictures=black), ad.composition, media=ad.media)

    assert (inspection.check("black").passed, inspection.check("black").frame) == (False, 2)


def test_a_caption_that_was_not_drawn_is_missed(ad, tmp_path):
    pictures = ad.repainted(replace(ad.composition, captions=()))
    inspection = inspect_film(
        ad.film(tmp_path / "film.mp4", pictures=pictures), ad.composition, media=ad.media
    )

    assert [check.name for check in inspection.failures] == ["lettering"]
    assert inspection.check("lettering").pointer == "/captions/0/block"


def moved(composition, *, down):
    """The same composition with its caption elsewhere."""
    caption = composition.captions[0]
    box = caption.block.box
    block = replace(caption.block, box=Box(box.x, box.y + down, box.width, box.height))
    return replace(composition, captions=(replace(caption, block=block),))


def test_a_caption_below_the_safe_area_is_refused_as_declared_and_as_seen(ad, tmp_path):
    low = moved(ad.composition, down=70)
    film = ad.film(tmp_path / "film.mp4", pictures=ad.repainted(low))
    seen = inspect_film(film, ad.composition, media=ad.media).check("safe_area")

    assert failures(ad, film, low) == ["safe_area"]
    assert not seen.passed
    assert "is seen at" in seen.measured


def test_a_caption_elsewhere_than_composed_is_refused_even_inside_the_safe_area(ad, tmp_path):
    film = ad.film(tmp_path / "film.mp4", pictures=ad.repainted(moved(ad.composition, down=-60)))

    assert failures(ad, film) == ["safe_area"]


def test_a_label_over_the_title_is_refused_as_declared_and_as_seen(ad, tmp_path):
    label, title = ad.composition.call_outs[0], ad.composition.titles[0].block.box
    up = title.y + title.height // 2 - label.block.box.y
    box, ink = label.box, label.block.box
    over = replace(
        ad.composition,
        call_outs=(
            replace(
                label,
                box=Box(box.x, box.y + up, box.width, box.height),
                block=replace(label.block, box=Box(ink.x, ink.y + up, ink.width, ink.height)),
            ),
        ),
    )
    film = ad.film(tmp_path / "film.mp4", pictures=ad.repainted(over))

    assert "overlap" in failures(ad, film, over)
    assert "overlap" in failures(ad, film)


def test_a_button_over_the_offer_or_outside_the_safe_area_is_refused(ad, good):
    card = ad.composition.card
    offer, button = card.offer.box, card.button_box

    def with_button(**place):
        return replace(ad.composition, card=replace(card, button_box=replace(button, **place)))

    assert failures(ad, good, with_button(y=offer.y)) == ["overlap"]
    assert failures(ad, good, with_button(x=2)) == ["safe_area"]


def test_a_character_without_a_glyph_is_refused(ad):
    card = ad.composition.card
    composition = replace(
        ad.composition, card=replace(card, tagline=replace(card.tagline, lines=("Th\ue000 lamp",)))
    )
    check = check_glyphs(composition)

    assert check_glyphs(ad.composition).passed
    assert (check.passed, check.pointer) == (False, "/card/tagline/lines/0")
    assert "U+E000" in check.measured


def test_words_that_are_hard_to_read_are_refused(ad, tmp_path):
    box = ad.composition.captions[0].block.box

    def washed(picture):
        out = picture.copy()
        part = out[box.y - 8 : box.bottom + 8, box.x - 10 : box.right + 10].astype(np.float64)
        out[box.y - 8 : box.bottom + 8, box.x - 10 : box.right + 10] = part * 0.5 + 150 * 0.5
        return out

    pictures = [washed(picture) if index < 72 else picture for index, picture in enumerate(ad.pictures)]
    inspection = inspect_film(
        ad.film(tmp_path / "film.mp4", pictures=pictures), ad.composition, media=ad.media
    )

    assert [check.name for check in inspection.failures] == ["contrast"]
    assert inspection.check("contrast").pointer == "/captions/0/block"


def test_no_sound_and_a_silent_second_are_refused(ad, tmp_path):
    hole = ad.sound.copy()
    hole[:, 3 * RATE : 3 * RATE + RATE * 12 // 10] = 0

    assert "sound" in failures(ad, ad.film(tmp_path / "mute.mp4", silent=True))
    assert failures(ad, ad.film(tmp_path / "hole.mp4", sound=hole)) == ["sound"]


def test_sound_too_quiet_or_too_loud_is_refused(ad, tmp_path):
    assert failures(ad, ad.film(tmp_path / "quiet.mp4", sound=ad.sound * 0.7)) == ["loudness"]
    assert "loudness" in failures(ad, ad.film(tmp_path / "loud.mp4", sound=(ad.sound * 1.6).clip(-1, 1)))


def test_a_peak_above_the_ceiling_is_refused(ad, tmp_path):
    spiked = ad.sound.copy()
    spiked[:, RATE * 4 : RATE * 4 + 24] = 0.99

    assert failures(ad, ad.film(tmp_path / "film.mp4", sound=spiked)) == ["true_peak"]


def test_music_that_does_not_give_way_is_refused(ad, tmp_path):
    level = ad.remixed(replace(ad.composition, audio=replace(ad.composition.audio, ducking_centibels=200)))

    assert failures(ad, ad.film(tmp_path / "film.mp4", sound=level)) == ["ducking"]


def test_speech_outside_its_captions_window_and_missing_speech_are_refused(ad, tmp_path):
    voice, rate = read_wav(ad.media("narration.wav"))
    write_wav(ad.folder / "late.wav", np.roll(voice, rate * 3 // 2, axis=0), rate)
    audio = ad.composition.audio
    late_timings = msgspec.structs.replace(
        audio.narration.timings,
        phrases=tuple(
            replace(p, start_sample=p.start_sample + rate * 3 // 2, end_sample=p.end_sample + rate * 3 // 2)
            for p in audio.narration.timings.phrases
        ),
    )
    late = ad.remixed(
        replace(
            ad.composition,
            audio=replace(audio, narration=replace(audio.narration, media="late.wav", timings=late_timings)),
        )
    )
    mute = ad.remixed(replace(ad.composition, audio=replace(audio, narration=None)))
    late_check = inspect_film(ad.film(tmp_path / "a.mp4", sound=late), ad.composition, media=ad.media).check(
        "speech"
    )
    mute_check = inspect_film(ad.film(tmp_path / "b.mp4", sound=mute), ad.composition, media=ad.media).check(
        "speech"
    )

    assert (late_check.passed, mute_check.passed) == (False, False)
    assert "is heard from" in late_check.measured
    assert "is not heard" in mute_check.measured


def test_without_the_stems_nothing_about_the_mix_is_claimed(ad, good, tmp_path):
    inspection = inspect_film(
        good,
        ad.composition,
        media=lambda key: ad.media(key) if key == "logo.svg" else tmp_path / "none",
    )

    assert [check.name for check in inspection.failures] == ["ducking", "speech"]


def test_a_film_without_narration_has_nothing_to_duck(ad, tmp_path):
    quiet = replace(ad.composition, captions=(), audio=replace(ad.composition.audio, narration=None))
    film = ad.film(tmp_path / "film.mp4", pictures=ad.repainted(quiet), sound=ad.remixed(quiet))

    assert failures(ad, film, quiet) == []


def test_a_film_without_words_has_nothing_to_read(ad, tmp_path):
    bare = replace(ad.composition, titles=(), call_outs=(), captions=(), logo=None)
    bare = replace(
        bare,
        card=None,
        cuts=(),
        output=replace(bare.output, frames=72),
        audio=replace(
            bare.audio, narration=None, effects=replace(bare.audio.effects, hit_frame=71, whoosh_frames=())
        ),
    )
    film = ad.film(tmp_path / "film.mp4", pictures=ad.repainted(bare), sound=ad.remixed(bare))
    mute = ad.film(tmp_path / "mute.mp4", pictures=ad.repainted(bare), sound=ad.sound)

    assert failures(ad, film, bare) == []
    assert not inspect_film(mute, ad.composition, media=ad.media).check("contrast").passed


def test_a_film_in_vp9_and_opus_is_judged_by_its_own_profile(ad, tmp_path):
    free = replace(ad.composition, output=replace(ad.composition.output, profile="vp9-opus"))
    film = tmp_path / "film.webm"
    render_film(free, ad.media, film)

    assert failures(ad, film, free) == []
    assert failures(ad, film) == ["codecs"]


def test_a_failed_check_reads_as_one_line_with_place_and_remedy():
    check = Check(
        name="contrast", passed=False, measured="2.10:1 in caption 3", expected="at least 4.5:1", frame=60, second=2.0,
        pointer="/captions/2/block", remedy="Lay a plate behind the words",
    )  # fmt: skip

    assert check.line() == (
        "contrast failed at frame 60 (2.00 s) [/captions/2/block]: 2.10:1 in caption 3; expected at least 4.5:1. "
        "Lay a plate behind the words"
    )
    with pytest.raises(KeyError, match="no check is named 'colour'"):
        Inspection((check,)).check("colour")


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "videoads.renderer.inspect", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_command_passes_a_good_film_and_says_what_is_wrong_with_a_bad_one(ad, good, tmp_path):
    composition = ad.folder / "composition.json"
    composition.write_bytes(composition_as_json(ad.composition))
    fine = run(good, composition, "--json")
    bad = run(ad.film(tmp_path / "film.mp4", sound=ad.sound * 0.5), composition)
    wrong = run(good, tmp_path / "none.json")
    lost = run(good, composition, "--media", tmp_path)
    (tmp_path / "logo.svg").write_text("<svg")
    broken = run(good, composition, "--media", tmp_path)

    assert fine.returncode == 0
    assert [check["name"] for check in json.loads(fine.stdout)["checks"]] == CHECKS
    assert (bad.returncode, bad.stdout.count("\n")) == (1, 1)
    assert bad.stdout.startswith("loudness failed: ")
    assert (wrong.returncode, lost.returncode, broken.returncode) == (2, 2, 3)
    assert lost.stderr.count("\n") == 1
    assert "logo.svg" in lost.stderr
    assert "Traceback" not in wrong.stderr + bad.stderr
