"""The shipped briefs' soundtracks: spoken by the real voice, mixed, sent through a codec, and measured there."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from sound_kit import RATE, through_codec

import videoads
from kit.promises import promise
from videoads.brief import parse_brief
from videoads.renderer.composing import MediaKeys, compose
from videoads.renderer.composition import Composition, SpokenPhrase, Timings
from videoads.renderer.sound import (
    MixReport,
    MusicPlan,
    PhraseWindow,
    SoundRequestError,
    compose_music,
    ducking_depth_db,
    integrated_lufs,
    locate_phrases,
    read_wav,
    speak,
    true_peak_dbtp,
    write_wav,
)
from videoads.renderer.sound.soundtrack import mix_plan, mix_soundtrack
from videoads.script import write_script

BRIEFS = Path(videoads.__file__).parent / "fixtures" / "briefs"


@dataclass(frozen=True)
class Track:
    composition: Composition
    media: Callable[[str], Path]
    report: MixReport


@pytest.fixture(scope="module")
def track(tmp_path_factory) -> Callable[[str], Track]:
    """The soundtrack of a shipped brief, made once."""
    made: dict[str, Track] = {}

    def make(name: str) -> Track:
        if name in made:
            return made[name]
        folder = tmp_path_factory.mktemp(name)
        script = write_script(parse_brief((BRIEFS / f"{name}.json").read_bytes(), base=BRIEFS))
        plan = msgspec.convert(msgspec.to_builtins(script.music), MusicPlan)
        write_wav(folder / "music.wav", compose_music(plan), RATE)
        timings = None
        if script.phrases:
            windows = [PhraseWindow(p.start_frame, p.end_frame) for p in script.phrases]
            spoken = speak([p.text for p in script.phrases], seed=script.music.seed, windows=windows)
            write_wav(folder / "voice.wav", spoken.pcm, RATE)
            heard = [
                SpokenPhrase(p.key, t.text, t.start_sample, t.end_sample)
                for p, t in zip(script.phrases, spoken.phrases, strict=True)
            ]
            timings = Timings(RATE, tuple(heard))
        keys = MediaKeys(
            clips=tuple(f"{shot.key}.mp4" for shot in script.shots),
            music="music.wav",
            narration="voice.wav" if timings else None,
            logo="logo.svg" if script.has_logo else None,
            product_picture="product.png" if script.has_product_picture else None,
        )
        composition = compose(script, keys, timings)

        def media(key: str) -> Path:
            return folder / key

        made[name] = Track(composition, media, mix_soundtrack(composition, media))
        return made[name]

    return make


@promise("H79")
@pytest.mark.parametrize("name", ["espresso", "bike_light"])
def test_a_narrated_ad_keeps_its_promises_through_aac(track, name):
    ad = track(name)
    film = through_codec(ad.report.pcm)
    narration = ad.composition.audio.narration
    windows = [(p.start_sample, p.end_sample) for p in narration.timings.phrases]
    assert len(film) == ad.composition.output.frames * RATE // ad.composition.output.fps
    assert integrated_lufs(film, RATE) == pytest.approx(-16.0, abs=1.0)
    assert true_peak_dbtp(film) <= -1.0
    assert ducking_depth_db(film, read_wav(ad.media("music.wav"))[0], windows, RATE) >= 9.0
    voice = read_wav(ad.media("voice.wav"))[0]
    for found, (begin, end) in zip(locate_phrases(film, voice, windows, RATE), windows, strict=True):
        assert found.likeness > 0.9
        assert abs(found.start_sample - begin) < RATE // 100 and abs(found.end_sample - end) < RATE // 100


def test_an_ad_without_narration_is_music_only_at_the_same_level(track):
    ad = track("glasklar")
    assert ad.report.music_only and ad.report.ducking_db == 0.0
    film = through_codec(ad.report.pcm, "libopus", "webm")
    assert integrated_lufs(film, RATE) == pytest.approx(-16.0, abs=1.0)
    assert true_peak_dbtp(film) <= -1.0


@pytest.mark.parametrize("name", ["espresso", "bike_light", "glasklar"])
def test_whooshes_fall_on_the_cuts_and_the_hit_on_a_bar(track, name):
    composition = track(name).composition
    plan = mix_plan(composition)
    assert set(plan.whoosh_frames) <= set(composition.cuts)
    assert plan.hit_frame is not None and plan.hit_frame % 72 == 0
    assert plan.ceiling_dbtp < composition.audio.true_peak_centidb / 100


def test_the_same_composition_and_media_give_the_same_digest(track):
    ad = track("espresso")
    assert mix_soundtrack(ad.composition, ad.media).digest == ad.report.digest


def test_media_that_is_not_there_is_named_by_its_pointer(track):
    ad = track("espresso")
    with pytest.raises(SoundRequestError) as refusal:
        mix_soundtrack(ad.composition, lambda key: Path("nowhere") / key)
    assert refusal.value.pointer == "/audio/music"
    with pytest.raises(SoundRequestError) as refusal:
        mix_soundtrack(ad.composition, lambda key: ad.media(key) if key == "music.wav" else Path("nowhere"))
    assert refusal.value.pointer == "/audio/narration/media"
