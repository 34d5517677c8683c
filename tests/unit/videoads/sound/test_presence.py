"""What is measured on a finished film: the voice in its windows and the ducking, after a lossy codec."""

import msgspec
import numpy as np
import pytest
from sound_kit import RATE, MixedAd, through_codec

from videoads.renderer.sound import ducking_depth_db, locate_phrases, mix, speech_presence_db
from videoads.renderer.sound.presence import LIKENESS_MIN, codec_delay, mono


@pytest.fixture(scope="module")
def film(ad: MixedAd) -> np.ndarray:
    return through_codec(ad.report.pcm)


def test_each_phrase_is_found_where_it_was_put(ad: MixedAd, film):
    heard = locate_phrases(film, ad.narration.pcm, ad.windows, RATE)
    for phrase, (begin, end) in zip(heard, ad.windows, strict=True):
        assert abs(phrase.start_sample - begin) < RATE // 100
        assert abs(phrase.end_sample - end) < RATE // 100
        assert phrase.likeness > 0.9, "the voice stands far before the music"


def test_a_phrase_that_sounds_half_a_second_late_is_found_there(ad: MixedAd):
    """The broken variant: speech outside its caption's window."""
    shifted = mix(
        msgspec.structs.replace(ad.plan, narration_start_frame=15), music=ad.music, narration=ad.narration
    )
    heard = locate_phrases(through_codec(shifted.pcm), ad.narration.pcm, ad.windows, RATE)
    for phrase, (begin, _) in zip(heard, ad.windows, strict=True):
        assert phrase.start_sample - begin == pytest.approx(RATE // 2, abs=RATE // 100)


def test_a_missing_narration_is_not_found_anywhere(ad: MixedAd):
    """The broken variant: music and effects alone resemble no phrase."""
    silent = through_codec(mix(ad.plan, music=ad.music).pcm)
    for phrase in locate_phrases(silent, ad.narration.pcm, ad.windows, RATE):
        assert phrase.likeness < LIKENESS_MIN


def test_one_missing_phrase_is_told_from_the_others(ad: MixedAd):
    pcm = ad.narration.pcm.copy()
    begin, end = ad.windows[1]
    pcm[begin:end] = 0
    holed = mix(ad.plan, music=ad.music, narration=msgspec.structs.replace(ad.narration, pcm=pcm))
    likeness = [p.likeness for p in locate_phrases(holed.pcm, ad.narration.pcm, ad.windows, RATE)]
    assert likeness[0] > LIKENESS_MIN and likeness[2] > LIKENESS_MIN
    assert likeness[1] < min(likeness[0], likeness[2])


def test_ducking_is_measured_through_the_codec(ad: MixedAd, film):
    assert ducking_depth_db(film, ad.music, ad.windows, RATE) == pytest.approx(ad.plan.ducking_db, abs=1.5)


@pytest.mark.parametrize("depth", [0.0, 3.0, 6.0])
def test_too_little_ducking_measures_under_nine_decibels(ad: MixedAd, depth):
    weak = mix(msgspec.structs.replace(ad.plan, ducking_db=depth), music=ad.music, narration=ad.narration)
    assert ducking_depth_db(through_codec(weak.pcm), ad.music, ad.windows, RATE) == pytest.approx(
        depth, abs=1.5
    )


def test_music_that_is_always_low_does_not_count_as_ducking(ad: MixedAd):
    """The broken variant a plain level meter would pass: the voice is far above music that never moves."""
    quiet = (ad.music * 0.1).astype(np.int16)
    flat = np.clip(quiet[: ad.narration.pcm.shape[0]].astype(int) + ad.narration.pcm[:, None], -32768, 32767)
    assert ducking_depth_db(flat.astype(np.int16), ad.music, ad.windows, RATE) < 3.0


def test_without_music_or_without_gaps_there_is_no_ducking_to_report(ad: MixedAd, film):
    assert ducking_depth_db(film, np.zeros_like(ad.music), ad.windows, RATE) == 0.0
    assert ducking_depth_db(film, ad.music, [(0, len(film))], RATE) == 0.0
    assert ducking_depth_db(film[:100], ad.music, ad.windows, RATE) == 0.0


@pytest.mark.parametrize("lag", [-1200, 0, 1024, 4400])
def test_a_codecs_delay_is_found_and_taken_out(ad: MixedAd, lag):
    late = np.roll(ad.report.pcm, lag, axis=0)
    assert codec_delay(mono(late), mono(ad.music), RATE) == pytest.approx(lag, abs=2)
    undelayed = ducking_depth_db(ad.report.pcm, ad.music, ad.windows, RATE)
    assert ducking_depth_db(late, ad.music, ad.windows, RATE) == pytest.approx(undelayed, abs=0.6)


def test_the_voice_band_is_louder_where_someone_speaks(ad: MixedAd, film):
    gaps = [(0, ad.windows[0][0] - 2000), (ad.windows[1][1] + 2000, ad.windows[2][0] - 2000)]
    assert speech_presence_db(film, ad.windows[0], gaps, RATE) > 0.0
    assert speech_presence_db(film, (0, 0), [], RATE) == 0.0


def test_a_phrase_of_silence_is_never_heard(ad: MixedAd):
    nothing = np.zeros_like(ad.narration.pcm)
    assert locate_phrases(ad.report.pcm, nothing, ad.windows, RATE)[0].likeness == 0.0
