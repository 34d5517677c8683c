"""The narrator: phrases inside their windows, timings that are those of the samples, no voice no speech."""

import importlib.util
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from sound_kit import RATE, BabbleVoice

from kit.promises import promise
from videoads.renderer.sound import (
    NarrationTooLong,
    PhraseWindow,
    SoundRequestError,
    VoiceUnavailable,
    pcm_digest,
    speak,
    voice_available,
)

LINES = ["A morning begins.", "One patient pour.", "Come home to it."]
WINDOWS = [PhraseWindow(8, 66), PhraseWindow(80, 138), PhraseWindow(160, 230)]


def sounding(pcm: np.ndarray) -> np.ndarray:
    """The samples between which there is sound, as pairs, gaps under 0.3 s closed."""
    loud = np.flatnonzero(np.abs(pcm.astype(int)) > 150)
    cuts = np.flatnonzero(np.diff(loud) > 0.3 * RATE)
    starts = np.concatenate([[loud[0]], loud[cuts + 1]])
    ends = np.concatenate([loud[cuts], [loud[-1]]]) + 1
    return np.stack([starts, ends], axis=1)


def test_each_phrase_sounds_inside_its_window_and_nowhere_else():
    spoken = speak(LINES, seed=1, windows=WINDOWS, voice=BabbleVoice())
    for phrase, window in zip(spoken.phrases, WINDOWS, strict=True):
        assert window.start_frame * 1600 <= phrase.start_sample < phrase.end_sample <= window.end_frame * 1600
    outside = spoken.pcm.copy()
    for phrase in spoken.phrases:
        outside[phrase.start_sample : phrase.end_sample] = 0
    assert not np.any(outside)


def test_timings_are_those_of_the_samples():
    """Measured apart from the code: where there is sound is where the timings say, to a few hundredths."""
    spoken = speak(LINES, seed=1, windows=WINDOWS, voice=BabbleVoice())
    measured = sounding(spoken.pcm)
    assert len(measured) == 3
    for phrase, (start, end) in zip(spoken.phrases, measured, strict=True):
        assert 0 <= start - phrase.start_sample < 0.08 * RATE
        assert 0 <= phrase.end_sample - end < 0.08 * RATE


def test_the_timing_check_sees_timings_that_were_only_planned():
    """The broken variant: windows taken for timings are off by far more than we accept."""
    spoken = speak(LINES, seed=1, windows=WINDOWS, voice=BabbleVoice())
    late = [w.end_frame * 1600 - end for w, (_, end) in zip(WINDOWS, sounding(spoken.pcm), strict=True)]
    assert max(late) > 0.08 * RATE


def test_without_windows_phrases_follow_each_other_with_a_breath_between():
    spoken = speak(LINES, seed=1, voice=BabbleVoice())
    for before, after in pairwise(spoken.phrases):
        assert after.start_sample - before.end_sample == int(0.28 * RATE)
    assert len(spoken.pcm) >= spoken.phrases[-1].end_sample


def test_a_phrase_that_almost_fits_is_spoken_faster_but_never_by_more_than_twelve_percent():
    natural = speak(["banana banana"], seed=1, voice=BabbleVoice()).phrases[0]
    frames = int((natural.end_sample - natural.start_sample) / 1600 / 1.07)
    squeezed = speak(["banana banana"], seed=1, voice=BabbleVoice(), windows=[PhraseWindow(0, frames)])
    assert 1.0 < squeezed.phrases[0].pace <= 1.12
    assert squeezed.phrases[0].end_sample <= frames * 1600


def test_a_phrase_that_would_need_a_fifth_more_speed_is_not_squeezed_in():
    natural = speak(["banana banana"], seed=1, voice=BabbleVoice()).phrases[0]
    frames = int((natural.end_sample - natural.start_sample) / 1600 / 1.2)
    with pytest.raises(NarrationTooLong):
        speak(["banana banana"], seed=1, voice=BabbleVoice(), windows=[PhraseWindow(0, frames)])


@promise("H64")
def test_a_phrase_that_cannot_fit_is_refused_with_place_and_seconds():
    with pytest.raises(NarrationTooLong) as refusal:
        speak(
            ["Aha.", "a banana in a canoe"],
            seed=1,
            windows=[PhraseWindow(0, 60), PhraseWindow(60, 75)],
            voice=BabbleVoice(),
            pointer="/narration",
        )
    assert refusal.value.pointer == "/narration/1"
    assert refusal.value.window_seconds == pytest.approx(0.5)
    assert refusal.value.seconds_over > 0.3
    assert "too long" in str(refusal.value) and "shorten" in str(refusal.value)


def test_pauses_inside_a_phrase_are_closed():
    loose = speak(["aha. aha. aha"], seed=1, voice=BabbleVoice()).pcm
    silent = np.abs(loose.astype(int)) < 40
    runs = np.diff(np.flatnonzero(np.diff(np.concatenate([[0], ~silent, [0]]).astype(int))))
    inner = runs[1::2]
    assert inner.max() < 0.3 * RATE, "the voice itself rests for 0.4 s"


class HissingVoice(BabbleVoice):
    """The same babble with an s in it that is as loud as its vowels."""

    def say(self, text: str, *, pace: float, seed: int) -> np.ndarray:
        sound = super().say(text, pace=pace, seed=seed)
        hiss = np.random.default_rng(seed).standard_normal(len(sound))
        spectrum = np.fft.rfft(hiss)
        spectrum[np.fft.rfftfreq(len(hiss), 1 / self.rate) < 6000] = 0
        middle = len(sound) // 2
        sound[middle : middle + 2400] = 0.35 * np.fft.irfft(spectrum, len(hiss))[middle : middle + 2400]
        return sound


def test_an_s_that_sticks_out_is_softened():
    def top(voice: BabbleVoice) -> float:
        signal = speak(["banana banana"], seed=1, voice=voice).pcm / 32768.0
        spectrum = np.fft.rfft(signal)
        spectrum[np.fft.rfftfreq(len(signal), 1 / RATE) < 6000] = 0
        return float(
            np.sqrt(np.max(np.convolve(np.fft.irfft(spectrum, len(signal)) ** 2, np.ones(480) / 480)))
        )

    assert 0.005 < top(HissingVoice()) < 0.09


def test_phrases_are_of_one_level():
    spoken = speak(["aha aha", "banana"], seed=2, voice=BabbleVoice())
    levels = [
        20 * np.log10(np.sqrt(np.mean(spoken.pcm[p.start_sample : p.end_sample].astype(float) ** 2)))
        for p in spoken.phrases
    ]
    assert abs(levels[0] - levels[1]) < 3.0


@pytest.mark.parametrize(
    ("lines", "windows", "pointer"),
    [
        ([], None, "/lines"),
        (["a"] * 65, None, "/lines"),
        (["one", "  ... "], None, "/lines/1"),
        (["a" * 401], None, "/lines/0"),
        (["one", "two"], [PhraseWindow(0, 9)], "/lines"),
        (["one"], [PhraseWindow(9, 9)], "/lines/0"),
        (["one", "two"], [PhraseWindow(0, 60), PhraseWindow(59, 90)], "/lines/1"),
        (["one"], [PhraseWindow(0, 6000)], "/lines/0"),
        (["xyz"], None, "/lines/0"),
    ],
)
def test_lines_that_cannot_be_spoken_are_refused_with_the_place(lines, windows, pointer):
    with pytest.raises(SoundRequestError) as refusal:
        speak(lines, seed=1, windows=windows, voice=BabbleVoice())
    assert refusal.value.pointer == pointer


def test_the_default_voice_speaks_the_same_for_the_same_seed():
    lines = ["One perfect pour.", "Order today."]
    windows = [PhraseWindow(6, 67), PhraseWindow(72, 130)]
    first = speak(lines, seed=3, windows=windows)
    again = speak(lines, seed=3, windows=windows)
    other = speak(lines, seed=4, windows=windows)
    assert pcm_digest(first.pcm) == pcm_digest(again.pcm) != pcm_digest(other.pcm)
    assert "hibari" in first.voice
    for phrase, (start, end) in zip(first.phrases, sounding(first.pcm), strict=True):
        assert 0 <= start - phrase.start_sample < 0.12 * RATE
        assert 0 <= phrase.end_sample - end < 0.12 * RATE
        assert 0.4 * RATE < end - start < 2.0 * RATE


def test_the_default_voice_sounds_like_speech_and_not_like_a_tone():
    """Energy in the voice band that comes and goes by syllables."""
    spoken = speak(["The slow espresso maker for quiet mornings."], seed=1).pcm / 32768.0
    block = RATE // 50
    levels = np.sqrt(np.mean(spoken[: len(spoken) // block * block].reshape(-1, block) ** 2, axis=1))
    assert levels.std() / levels.mean() > 0.4
    spectrum = np.abs(np.fft.rfft(spoken)) ** 2
    hertz = np.fft.rfftfreq(len(spoken), 1 / RATE)
    assert spectrum[(hertz > 100) & (hertz < 4000)].sum() > 0.85 * spectrum.sum()
    assert spectrum.max() < 0.1 * spectrum.sum(), "a tone has its energy in one line"


def test_without_the_package_there_is_a_clear_refusal_and_no_substitute(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "hibari" else found(name, *a)
    )
    assert voice_available() is False
    with pytest.raises(VoiceUnavailable, match=r"longtake\[voice\]"):
        speak(["Hello."], seed=1)


def test_nothing_is_downloaded_to_speak():
    """The voice is loaded from inside its wheel; opening a connection would be seen here."""
    code = (
        "import socket\n"
        "def no(*a, **k): raise SystemExit('a connection was opened')\n"
        "socket.socket.connect = no; socket.create_connection = no; socket.getaddrinfo = no\n"
        "from videoads.renderer.sound import speak\n"
        "print(len(speak(['Hello.'], seed=1).pcm) > 0)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert result.stdout.strip() == "True", result.stderr
    assert result.stderr == ""
