"""The promises about the sound: there, loud enough, never too loud, the voice in its windows, the music below it.

The voice and the music are judged on the finished mix, by comparing it with their stems (`sound.presence`).
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from videoads.renderer.composition import Composition
from videoads.renderer.inspect.check import Check, failed, passed
from videoads.renderer.inspect.decoding import RATE, Sound, decode_sound
from videoads.renderer.inspect.hearing import measure_loudness, peak_of, silent_second
from videoads.renderer.sound.presence import ducking_depth_db, locate_phrases
from videoads.renderer.sound.wav import Pcm, as_pcm

LOUDNESS_LUFS = -16.0
LOUDNESS_SLACK = 1.0
TRUE_PEAK_DBTP_MAX = -1.0
PEAK_DB_MIN = -30.0
DUCKING_DB_MIN = 9.0
PHRASE_LIKENESS_MIN = 0.3
PHRASE_REACH_SECONDS = 0.1
WINDOW_SLACK_SECONDS = 0.04
MEASURABLE_SECONDS_MIN = 1.0

Window = tuple[int, int]


def check_sound(
    sound: Sound | None, composition: Composition, media: Callable[[str], Path]
) -> tuple[Check, ...]:
    """All checks of the sound."""
    audible = check_audible(sound, composition.output.fps)
    if sound is None or not audible.passed:
        return (audible,)
    return (
        audible,
        *check_levels(sound),
        check_ducking(sound, composition, media),
        check_speech(sound, composition, media),
    )


def check_audible(sound: Sound | None, fps: int) -> Check:
    """There is sound, and no second of it is silent."""
    expected = "sound without a silent second"
    remedy = "Mix and mux the sound again"
    if sound is None:
        return failed("sound", "no sound stream", expected, remedy=remedy)
    peak = peak_of(sound)
    if peak < PEAK_DB_MIN:
        return failed("sound", f"a peak of {peak:.1f} dB", expected, remedy=remedy)
    silent = silent_second(sound)
    if silent is not None:
        words = f"silence from {silent:.1f} s"
        return failed("sound", words, expected, frame=round(silent * fps), fps=fps, remedy=remedy)
    return passed("sound", f"sounding throughout, peak {peak:.1f} dB", expected)


def check_levels(sound: Sound) -> tuple[Check, Check]:
    """Integrated loudness and true peak."""
    measured = measure_loudness(sound)
    loudness_expected = f"{LOUDNESS_LUFS:.0f} LUFS, 1 up or down"
    loudness_words = f"{measured.integrated_lufs:.1f} LUFS"
    peak_words, peak_expected = (
        f"{measured.true_peak_dbtp:.1f} dBTP",
        f"at most {TRUE_PEAK_DBTP_MAX:.0f} dBTP",
    )
    if sound.shape[1] < MEASURABLE_SECONDS_MIN * RATE:
        loudness = passed("loudness", "too short to be integrated", loudness_expected)
    elif abs(measured.integrated_lufs - LOUDNESS_LUFS) <= LOUDNESS_SLACK:
        loudness = passed("loudness", loudness_words, loudness_expected)
    else:
        loudness = failed("loudness", loudness_words, loudness_expected, remedy="Level the mix to -16 LUFS")
    if measured.true_peak_dbtp <= TRUE_PEAK_DBTP_MAX:
        return loudness, passed("true_peak", peak_words, peak_expected)
    return loudness, failed("true_peak", peak_words, peak_expected, remedy="Lower the limiter's ceiling")


def check_ducking(sound: Sound, composition: Composition, media: Callable[[str], Path]) -> Check:
    """The music lies at least 9 dB lower under speech than beside it."""
    expected = f"the music at least {DUCKING_DB_MIN:.0f} dB lower under speech"
    narration = composition.audio.narration
    if narration is None or not narration.timings.phrases:
        return passed("ducking", "nobody speaks", expected)
    music = _stem(media, composition.audio.music)
    if music is None:
        return _no_stem("ducking", expected, "/audio/music")
    speech = [
        _at_rate(p.start_sample, p.end_sample, narration.timings.rate) for p in narration.timings.phrases
    ]
    depth = ducking_depth_db(_pcm(sound), music, speech, RATE)
    words = f"{depth:.1f} dB lower"
    if depth >= DUCKING_DB_MIN:
        return passed("ducking", words, expected)
    return failed(
        "ducking", words, expected, pointer="/audio", remedy="Lower the music under the voice when mixing"
    )


def check_speech(sound: Sound, composition: Composition, media: Callable[[str], Path]) -> Check:
    """Each phrase is heard inside the window of its caption; one without a caption where its timing says."""
    expected = "each phrase heard inside its caption's window"
    narration = composition.audio.narration
    if narration is None or not narration.timings.phrases:
        return passed("speech", "nobody speaks", expected)
    stem = _stem(media, narration.media)
    if stem is None:
        return _no_stem("speech", expected, "/audio/narration/media")
    fps = composition.output.fps
    captions = {caption.phrase: caption for caption in composition.captions}
    mix = _pcm(sound)
    slack = round(WINDOW_SLACK_SECONDS * RATE)
    for index, phrase in enumerate(narration.timings.phrases):
        planned = _at_rate(phrase.start_sample, phrase.end_sample, narration.timings.rate)
        heard = _locate(mix, stem, planned)
        caption = captions.get(phrase.key)
        window = (
            planned
            if caption is None
            else (caption.start_frame * RATE // fps, caption.end_frame * RATE // fps)
        )
        pointer = f"/audio/narration/timings/phrases/{index}"
        frame = window[0] * fps // RATE
        if heard is None:
            return failed(
                "speech",
                f"{phrase.text!r} is not heard",
                expected,
                frame=frame,
                fps=fps,
                pointer=pointer,
                remedy="Mix the narration into the film again",
            )
        if heard[0] < window[0] - slack or heard[1] > window[1] + slack:
            return failed(
                "speech",
                f"{phrase.text!r} is heard from {heard[0] / RATE:.2f} to {heard[1] / RATE:.2f} s",
                f"it between {window[0] / RATE:.2f} and {window[1] / RATE:.2f} s",
                frame=frame,
                fps=fps,
                pointer=pointer,
                remedy="Time the captions by the samples of the narration that is mixed in",
            )
    return passed("speech", f"{len(narration.timings.phrases)} phrases, each in its window", expected)


def _locate(mix: Pcm, stem: Pcm, planned: Window) -> Window | None:
    """Where a phrase is heard: at its planned place if it is there, else wherever it is, else nowhere."""
    if planned[1] > len(stem):
        return None
    # The same words may be said twice; so the planned place is asked first.
    reach = round(PHRASE_REACH_SECONDS * RATE)
    first = max(0, planned[0] - reach)
    near = locate_phrases(mix[first : planned[1] + reach], stem, [planned], RATE)[0]
    if near.likeness >= PHRASE_LIKENESS_MIN:
        return first + near.start_sample, first + near.end_sample
    anywhere = locate_phrases(mix, stem, [planned], RATE)[0]
    if anywhere.likeness >= PHRASE_LIKENESS_MIN:
        return anywhere.start_sample, anywhere.end_sample
    return None


def _stem(media: Callable[[str], Path], key: str) -> Pcm | None:
    path = media(key)
    return _pcm(decode_sound(path)) if path.is_file() else None


def _no_stem(name: str, expected: str, pointer: str) -> Check:
    return failed(
        name,
        "the stem is not at hand, so the mix cannot be measured",
        expected,
        pointer=pointer,
        remedy="Give the inspection the media of the composition",
    )


def _pcm(sound: Sound) -> Pcm:
    return as_pcm(np.asarray(sound, dtype=np.float64))


def _at_rate(start: int, end: int, rate: int) -> Window:
    return start * RATE // rate, end * RATE // rate
