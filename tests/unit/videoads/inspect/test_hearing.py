"""The sound is judged rightly: loudness, peak, silence, ducking and where the speech is."""

import numpy as np
import pytest
from kit.footage import RATE, music_like, speech_like, tone, write_film
from videoads.renderer.inspect import hearing
from videoads.renderer.inspect.decoding import decode_sound

SPEECH = ((round(1.0 * RATE), round(2.4 * RATE)), (round(3.6 * RATE), round(5.0 * RATE)))


def mixed(depth_db):
    """Six seconds of music with two phrases, the music lowered by `depth_db` under them; and the stems."""
    music = music_like(6.0)[0]
    narration = np.zeros_like(music)
    gain = np.ones_like(music)
    for seed, (start, end) in enumerate(SPEECH):
        narration[start:end] = speech_like((end - start) / RATE, seed=seed)[: end - start]
        gain[start - 4800 : end + 4800] = 10 ** (-depth_db / 20)
    return music * gain + narration, music, narration


def through_aac(path, wave):
    write_film(path, [np.zeros((32, 32, 3), np.uint8)] * 2, sound=np.stack([wave, wave]))
    return hearing.mono(decode_sound(path))


def test_a_tone_of_known_level_has_the_known_loudness():
    """EBU Tech 3341: 1 kHz at -23 dBFS in both channels measures -23 LUFS."""
    measured = hearing.measure_loudness(
        tone(4, frequency=1000, amplitude=10 ** (-23 / 20)).astype(np.float32)
    )

    assert measured.integrated_lufs == pytest.approx(-23.0, abs=0.1)
    assert measured.true_peak_dbtp == pytest.approx(-23.0, abs=0.5)


def test_a_peak_between_the_samples_is_seen():
    """A sine at a quarter of the rate, sampled 45 degrees off its crests, hides 3 dB from a sample meter."""
    n = np.arange(RATE)
    wave = 0.9 * np.sin(np.pi / 2 * n + np.pi / 4)
    sound = np.stack([wave, wave]).astype(np.float32)

    assert hearing.peak_of(sound) == pytest.approx(-3.9, abs=0.1)
    assert hearing.measure_loudness(sound).true_peak_dbtp > -1.2


def test_a_second_of_silence_is_found_and_a_short_rest_is_not():
    sound = tone(4).astype(np.float32)
    rest, silence = sound.copy(), sound.copy()
    rest[:, RATE : RATE + RATE // 2] = 0
    silence[:, RATE : 2 * RATE + RATE // 5] = 0

    assert hearing.silent_second(sound) is None
    assert hearing.silent_second(rest) is None
    assert hearing.silent_second(silence) == pytest.approx(1.0, abs=0.11)
    assert hearing.silent_second(np.zeros((2, 0), np.float32)) == 0.0


@pytest.mark.parametrize("depth_db", [0.0, 6.0, 9.5, 12.0])
def test_the_depth_of_ducking_is_measured_on_the_encoded_mix(tmp_path, depth_db):
    mix, music, narration = mixed(depth_db)
    heard = through_aac(tmp_path / "film.mp4", mix)

    measured = hearing.measure_ducking(heard, music, narration=narration, speech=SPEECH)
    assert measured is not None
    assert measured.depth_db == pytest.approx(depth_db, abs=0.6)


def test_ducking_is_measurable_without_the_narration_stem(tmp_path):
    mix, music, _ = mixed(12.0)
    heard = through_aac(tmp_path / "film.mp4", mix)

    measured = hearing.measure_ducking(heard, music, narration=None, speech=SPEECH)
    assert measured is not None
    assert measured.depth_db == pytest.approx(12.0, abs=2.0)


def test_ducking_of_a_mix_that_holds_no_gap_is_not_invented():
    mix, music, narration = mixed(12.0)

    assert hearing.measure_ducking(mix, music, narration=narration, speech=((0, len(mix)),)) is None


def test_a_phrase_is_found_where_it_is_spoken_also_when_that_is_not_where_it_was_planned(tmp_path):
    mix, _, narration = mixed(12.0)
    heard = through_aac(tmp_path / "film.mp4", mix)
    start, end = SPEECH[1]
    phrase = narration[start:end]

    there = hearing.find_phrase(heard, phrase, expected_sample=start, reach_seconds=1.0)
    late = hearing.find_phrase(heard, phrase, expected_sample=start - RATE // 2, reach_seconds=1.0)
    assert there.start_sample == pytest.approx(start, abs=200)
    assert late.start_sample == pytest.approx(start, abs=200)
    assert there.likeness > 0.8


def test_a_phrase_that_nobody_speaks_is_not_found(tmp_path):
    mix, _, _ = mixed(12.0)

    other = speech_like(1.4, seed=99)
    assert hearing.find_phrase(mix, other, expected_sample=SPEECH[0][0], reach_seconds=1.0).likeness < 0.35
