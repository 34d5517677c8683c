"""The narrator: lines of text become speech whose timings are measured, not guessed.

Each phrase is spoken apart, the silence around it is cut away by its energy, and it is placed: inside its
planned window when it has one, else after the phrase before. So the timings are those of the samples
themselves. The voice is the default one of hibari-tts (English, inside its wheel, nothing is downloaded).
Without that package there is no narration and no substitute. What language a brief is in, and whether it
is narrated at all, is decided by whoever asks.
"""

import importlib.util
from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from .errors import NarrationTooLong, SoundRequestError, VoiceUnavailable
from .filters import bump, equalise, resample, slope
from .wav import Pcm, as_pcm

__all__ = ["Narration", "PhraseTiming", "PhraseWindow", "Voice", "speak", "voice_available"]

LINES_MAX = 64
LINE_CHARACTERS_MAX = 400
NARRATION_SECONDS_MAX = 180.0
FASTEST_PACE = 1.12
PACE_TRIES_MAX = 3
PHRASE_LEVEL = 0.11
PAUSE_SECONDS = 0.28
LEAD_SECONDS = 0.06
TRIM_BELOW_PEAK_DB = 42.0
TRIM_KEEP_SECONDS = 0.02
SIBILANT_HZ = 4800.0
SIBILANT_SECONDS = 0.008
SIBILANT_LEVEL = 0.32
PAUSE_BELOW_PEAK_DB = 40.0
INNER_PAUSE_SECONDS = 0.16
TIGHT_PAUSE_SECONDS = 0.09


class PhraseWindow(msgspec.Struct, frozen=True):
    """Where a phrase may sound: frames of the film, the end not included."""

    start_frame: int
    end_frame: int


class PhraseTiming(msgspec.Struct, frozen=True):
    """Where a phrase does sound, in samples, and at which pace it was spoken (1.0 = the voice's own)."""

    text: str
    start_sample: int
    end_sample: int
    pace: float = 1.0


class Narration(msgspec.Struct, frozen=True):
    """Spoken lines on one time line: mono PCM from the film's start, and each phrase's measured place."""

    pcm: Pcm
    rate: int
    phrases: tuple[PhraseTiming, ...]
    voice: str


class Voice(Protocol):
    """A speaker: text to mono floats at its own rate, the same bytes for the same seed."""

    name: str
    rate: int

    def say(self, text: str, *, pace: float, seed: int) -> NDArray[np.float64]:
        """Speak one phrase."""
        ...


def voice_available() -> bool:
    """Is the speech package installed? Answers without loading it."""
    return all(importlib.util.find_spec(name) is not None for name in ("hibari", "onnxruntime"))


def speak(
    lines: Sequence[str],
    *,
    seed: int,
    rate: int = 48000,
    windows: Sequence[PhraseWindow] | None = None,
    fps: int = 30,
    voice: Voice | None = None,
    pointer: str = "/lines",
) -> Narration:
    """Speak `lines`, one phrase each.

    With `windows` each phrase starts a breath into its window and ends inside it; one that is too long is
    spoken up to 12 % faster, and if that is not enough `NarrationTooLong` says by how much. `pointer` is the
    JSON pointer of the list of lines in the caller's document, for refusals.
    """
    _refuse_bad_lines(lines, windows, fps, pointer)
    speaker = voice or _hibari()
    spoken: list[tuple[NDArray[np.float64], float]] = []
    for index, text in enumerate(lines):
        room = None if windows is None else (windows[index].end_frame - windows[index].start_frame) / fps
        spoken.append(_fit(speaker, text, room, seed=seed + index, rate=rate, pointer=f"{pointer}/{index}"))

    phrases: list[PhraseTiming] = []
    cursor = int(LEAD_SECONDS * rate)
    for index, (text, (sound, pace)) in enumerate(zip(lines, spoken, strict=True)):
        if windows is not None:
            begin = windows[index].start_frame * rate // fps
            end = windows[index].end_frame * rate // fps
            cursor = begin + min(int(LEAD_SECONDS * rate), max(0, end - begin - len(sound)))
        phrases.append(PhraseTiming(text, cursor, cursor + len(sound), round(pace, 3)))
        cursor += len(sound) + int(PAUSE_SECONDS * rate)

    total = max(phrase.end_sample for phrase in phrases) + int(LEAD_SECONDS * rate)
    if windows is not None:
        total = max(total, max(window.end_frame for window in windows) * rate // fps)
    line = np.zeros(total)
    for phrase, (sound, _) in zip(phrases, spoken, strict=True):
        line[phrase.start_sample : phrase.end_sample] += sound
    return Narration(as_pcm(line)[:, 0], rate, tuple(phrases), speaker.name)


def _refuse_bad_lines(
    lines: Sequence[str], windows: Sequence[PhraseWindow] | None, fps: int, pointer: str
) -> None:
    if not 1 <= len(lines) <= LINES_MAX:
        raise SoundRequestError(pointer, f"{len(lines)} lines", f"give 1 to {LINES_MAX}")
    for index, text in enumerate(lines):
        where = f"{pointer}/{index}"
        if not any(character.isalnum() for character in text):
            raise SoundRequestError(where, "there is nothing to say in it", "give words or leave it out")
        if len(text) > LINE_CHARACTERS_MAX:
            raise SoundRequestError(
                where, f"{len(text)} characters", f"at most {LINE_CHARACTERS_MAX}, break it into phrases"
            )
    if windows is None:
        return
    if len(windows) != len(lines):
        raise SoundRequestError(pointer, f"{len(lines)} lines and {len(windows)} windows", "give one each")
    last_end = 0
    for index, window in enumerate(windows):
        if not last_end <= window.start_frame < window.end_frame:
            raise SoundRequestError(
                f"{pointer}/{index}",
                f"the window {window.start_frame}..{window.end_frame} is empty or begins before frame {last_end}",
                "give windows in order, each after the one before",
            )
        if window.end_frame / fps > NARRATION_SECONDS_MAX:
            raise SoundRequestError(
                f"{pointer}/{index}", "the window ends too late", f"stay within {NARRATION_SECONDS_MAX:.0f} s"
            )
        last_end = window.end_frame


def _fit(
    speaker: Voice, text: str, room_seconds: float | None, *, seed: int, rate: int, pointer: str
) -> tuple[NDArray[np.float64], float]:
    def say(pace: float, pause_seconds: float) -> NDArray[np.float64]:
        raw = speaker.say(text, pace=pace, seed=seed)
        return _polish(raw, speaker.rate, rate, pause_seconds=pause_seconds)

    sound = say(1.0, INNER_PAUSE_SECONDS)
    if len(sound) == 0:
        raise SoundRequestError(pointer, f"the voice cannot read {text!r}", "write it in plain words")
    if room_seconds is None or len(sound) / rate <= room_seconds:
        return sound, 1.0
    # Shorter pauses are less noticed than faster speech, so they come first.
    sound = say(1.0, TIGHT_PAUSE_SECONDS)
    pace = 1.0
    # The voice rounds durations to frames of its own, so a corrected try may still be a hair too long.
    for _ in range(PACE_TRIES_MAX):
        if len(sound) / rate <= room_seconds:
            return sound, pace
        if pace >= FASTEST_PACE:
            break
        pace = min(FASTEST_PACE, pace * len(sound) / rate / room_seconds * 1.01)
        sound = say(pace, TIGHT_PAUSE_SECONDS)
    if len(sound) / rate > room_seconds:
        raise NarrationTooLong(pointer, seconds=len(sound) / rate, window_seconds=room_seconds, text=text)
    return sound, pace


def _polish(
    raw: NDArray[np.float64], rate_from: int, rate: int, *, pause_seconds: float
) -> NDArray[np.float64]:
    """Trim the silence around a phrase, take the rumble out, and bring it to the level of its neighbours."""
    sound = resample(raw, rate_from, rate)
    if len(sound) == 0 or not np.any(sound):
        return sound[:0]
    sound = equalise(sound, rate, _tone)
    block = max(1, rate // 200)
    padded = np.pad(sound, (0, -len(sound) % block)).reshape(-1, block)
    level = np.sqrt(np.mean(padded**2, axis=1))
    loud = np.flatnonzero(level > level.max() * 10 ** (-TRIM_BELOW_PEAK_DB / 20))
    keep = int(TRIM_KEEP_SECONDS * rate)
    begin = max(0, int(loud[0]) * block - keep)
    end = min(len(sound), (int(loud[-1]) + 1) * block + keep)
    sound = _close_pauses(sound[begin:end], rate, float(level.max()), pause_seconds)
    fade = min(keep // 3, len(sound) // 4)
    sound[:fade] *= np.linspace(0.0, 1.0, fade)
    sound[len(sound) - fade :] *= np.linspace(1.0, 0.0, fade)
    active = level[level > level.max() * 0.1]
    sound *= PHRASE_LEVEL / float(np.sqrt(np.mean(active**2)))
    return np.tanh(_soften_sibilants(sound, rate) * 1.15) / 1.15


def _tone(f: NDArray[np.float64]) -> NDArray[np.float64]:
    """No rumble, less boom, more presence, so that the words stand before the music."""
    return (
        slope(f, low=75.0, order=3) * (1.0 - 0.28 * bump(f, 190.0, 0.8)) * (1.0 + 0.5 * bump(f, 3400.0, 1.0))
    )


def _soften_sibilants(sound: NDArray[np.float64], rate: int) -> NDArray[np.float64]:
    """Turn the hiss of an s down where it sticks out, and only there."""
    hiss = equalise(sound, rate, lambda f: slope(f, low=SIBILANT_HZ, order=3))
    width = max(1, int(SIBILANT_SECONDS * rate))
    level = np.sqrt(np.convolve(hiss**2, np.full(width, 1.0 / width), mode="same"))
    limit = SIBILANT_LEVEL * PHRASE_LEVEL
    gain = np.minimum(1.0, (limit / np.maximum(level, 1e-6)) ** 0.75)
    return sound - hiss * (1.0 - gain)


def _close_pauses(
    sound: NDArray[np.float64], rate: int, loudest: float, pause_seconds: float
) -> NDArray[np.float64]:
    """Shorten the silences inside a phrase: the voice rests between sentences longer than an ad can."""
    block = max(1, rate // 200)
    count = len(sound) // block
    level = np.sqrt(np.mean(sound[: count * block].reshape(count, block) ** 2, axis=1))
    silent = level < loudest * 10 ** (-PAUSE_BELOW_PEAK_DB / 20)
    kept_max = int(pause_seconds * rate) // block
    keep = np.ones(len(sound), dtype=bool)
    start = 0
    for at in range(1, count + 1):
        if at == count or silent[at] != silent[start]:
            if silent[start] and start > 0 and at < count and at - start > kept_max:
                # The cut lies in the middle of the silence, so neither breath nor onset is touched.
                first = start + kept_max // 2
                keep[first * block : (first + at - start - kept_max) * block] = False
            start = at
    return sound[keep]


class _HibariVoice:
    name = "hibari-tts heart (en-US)"

    def __init__(self) -> None:
        # Imported here: the package costs half a second, which a music request need not pay.
        from hibari import Hibari  # type: ignore[import-untyped]  # the package ships no types

        self._engine = Hibari(threads=1)
        self.rate = int(self._engine.sample_rate)

    def say(self, text: str, *, pace: float, seed: int) -> NDArray[np.float64]:
        return np.asarray(self._engine(text, speed=pace, seed=seed), dtype=np.float64)


_loaded: list[_HibariVoice] = []


def _hibari() -> Voice:
    if not voice_available():
        raise VoiceUnavailable("the package hibari-tts is not importable")
    if not _loaded:
        try:
            _loaded.append(_HibariVoice())
        except (ImportError, OSError) as error:
            raise VoiceUnavailable(str(error)) from error
    return _loaded[0]
