"""What the finished film sounds like: loudness, peak, silence, where the speech is and how far the music gives way.

Loudness and peak come from FFmpeg's ebur128 filter, a different implementation from the one that mixes. Speech and
music are found in the mix by comparing it with the stems, so that a promise about the mix is measured on the mix.
"""

import math

import av
import av.error
import msgspec
import numpy as np
from av.filter import Graph
from numpy.typing import NDArray

from videoads.renderer.inspect.decoding import RATE, Sound

Mono = NDArray[np.float64]

COARSE = 3
"""Speech is searched for at a third of the rate: 16 kHz are enough to tell where it is."""
SILENCE_DB = -60.0
SETTLING_SECONDS = 0.25
"""How long before and after speech the music may be on its way down or up."""
GAP_SECONDS_MIN = 0.2


class Loudness(msgspec.Struct, frozen=True):
    """Integrated loudness in LUFS and true peak in dBTP."""

    integrated_lufs: float
    true_peak_dbtp: float


def measure_loudness(sound: Sound) -> Loudness:
    """Loudness of two channels at 48 kHz by EBU R128 / ITU-R BS.1770."""
    graph = Graph()
    source = graph.add_abuffer(sample_rate=RATE, format="fltp", layout="stereo")
    meter = graph.add("ebur128", "peak=true:metadata=1")
    sink = graph.add("abuffersink")
    source.link_to(meter)
    meter.link_to(sink)
    graph.configure()
    integrated, peak = -math.inf, 0.0
    for start in range(0, sound.shape[1] + RATE, RATE):
        piece = sound[:, start : start + RATE]
        if piece.shape[1]:
            frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(piece), format="fltp", layout="stereo")
            frame.sample_rate = RATE
            frame.pts = start
            source.push(frame)
        elif start >= sound.shape[1]:
            source.push(None)
        while True:
            try:
                facts = dict(sink.pull().metadata)
            except (BlockingIOError, av.error.EOFError):
                break
            integrated = float(facts.get("lavfi.r128.I", integrated))
            peak = max(peak, float(facts.get("lavfi.r128.true_peak", 0.0)))
    peak = max(peak, float(np.abs(sound).max(initial=0.0)))
    return Loudness(integrated_lufs=integrated, true_peak_dbtp=decibels(peak))


def peak_of(sound: Sound) -> float:
    """The highest sample in dB of full scale."""
    return decibels(float(np.abs(sound).max(initial=0.0)))


def silent_second(sound: Sound) -> float | None:
    """Where the first whole second of silence begins, in seconds; None when there is none."""
    hop = RATE // 10
    middle = mono(sound)
    blocks = len(middle) // hop
    if blocks == 0:
        return 0.0
    levels = np.sqrt((middle[: blocks * hop].reshape(blocks, hop) ** 2).mean(axis=1))
    run = 0
    for index, level in enumerate(levels):
        run = run + 1 if decibels(float(level)) < SILENCE_DB else 0
        if run >= 10 or (run == blocks and run > 0):
            return (index + 1 - run) * hop / RATE
    return None


class Heard(msgspec.Struct, frozen=True):
    """Where a phrase was found in the mix, in samples, and how like the phrase that place sounds (0 to 1)."""

    start_sample: int
    end_sample: int
    likeness: float


def find_phrase(mix: Mono, phrase: Mono, *, expected_sample: int, reach_seconds: float) -> Heard:
    """Find a spoken phrase in the mix by its waveform, at most `reach_seconds` from where it was planned."""
    speech = _coarse(_speech_band(phrase))
    first = max(0, expected_sample - round(reach_seconds * RATE))
    last = min(len(mix), expected_sample + len(phrase) + round(reach_seconds * RATE))
    ground = _coarse(_speech_band(mix[first:last]))
    if len(speech) == 0 or len(ground) < len(speech):
        return Heard(start_sample=expected_sample, end_sample=expected_sample + len(phrase), likeness=0.0)
    size = 1 << (len(ground) + len(speech)).bit_length()
    product = np.fft.irfft(np.fft.rfft(ground, size) * np.conj(np.fft.rfft(speech, size)), size)
    places = len(ground) - len(speech) + 1
    sums = np.concatenate(([0.0], (ground**2).cumsum()))
    energy = np.maximum(sums[len(speech) :] - sums[: -len(speech)], 1e-9)
    likeness = np.abs(product[:places]) / np.sqrt(energy * max(float((speech**2).sum()), 1e-9))
    best = int(likeness.argmax())
    start = first + best * COARSE
    return Heard(start_sample=start, end_sample=start + len(phrase), likeness=float(likeness[best]))


class Ducking(msgspec.Struct, frozen=True):
    """How loud the music is under speech and beside it, in dB against its stem, and the difference."""

    under_speech_db: float
    beside_speech_db: float

    @property
    def depth_db(self) -> float:
        """By how many dB the music gives way."""
        return self.beside_speech_db - self.under_speech_db


def measure_ducking(
    mix: Mono, music: Mono, *, narration: Mono | None, speech: tuple[tuple[int, int], ...]
) -> Ducking | None:
    """The level of the music under and beside speech, fitted by least squares; None when either is nowhere.

    `music` and `narration` are the undisturbed stems, laid on the film's own time line.
    """
    length = min(len(mix), len(music))
    lag = _lag(mix[:length], music[:length])
    music = _shifted(music, lag, length)
    voice = _shifted(narration, lag, length) if narration is not None else None
    settling = round(SETTLING_SECONDS * RATE)
    loud = [
        (start + settling // 2, end - settling // 2)
        for start, end in speech
        if end - start > settling + round(GAP_SECONDS_MIN * RATE)
    ]
    gaps: list[tuple[int, int]] = []
    position = 0
    for start, end in (*sorted(speech), (length, length)):
        # The music sinks before the speech and comes back slowly: both sides of a gap are left out.
        opening = position + (2 * settling if position else 0)
        closing = start - (settling if start < length else 0)
        if closing - opening >= round(GAP_SECONDS_MIN * RATE):
            gaps.append((opening, closing))
        position = max(position, end)
    under = _gain(mix, music, voice, loud)
    beside = _gain(mix, music, None, gaps)
    if under is None or beside is None:
        return None
    return Ducking(under_speech_db=decibels(under), beside_speech_db=decibels(beside))


def mono(sound: Sound) -> Mono:
    """The middle of the two channels."""
    middle: Mono = sound.astype(np.float64).mean(axis=0)
    return middle


def decibels(ratio: float) -> float:
    """A ratio of amplitudes in dB, never below -120."""
    return 20.0 * math.log10(max(ratio, 1e-6))


def _gain(mix: Mono, music: Mono, voice: Mono | None, windows: list[tuple[int, int]]) -> float | None:
    """The loudest typical gain of the music over the windows: their energy-weighted mean."""
    rows, weights = [], []
    for start, end in windows:
        start, end = max(0, start), min(end, len(music))
        bed = music[start:end]
        energy = float((bed**2).sum())
        if end - start < round(GAP_SECONDS_MIN * RATE) or energy < 1e-6 * (end - start):
            continue
        columns = [bed]
        if voice is not None and float((voice[start:end] ** 2).sum()) > 1e-9:
            columns.append(voice[start:end])
        solution = np.linalg.lstsq(np.stack(columns, axis=1), mix[start:end], rcond=None)[0]
        rows.append(abs(float(solution[0])))
        weights.append(energy)
    if not rows:
        return None
    return float(np.average(rows, weights=weights))


def _lag(mix: Mono, music: Mono, *, reach: int = 4096) -> int:
    """By how many samples the mix comes later than the stem (an encoder's delay)."""
    size = 1 << (2 * len(mix)).bit_length()
    product = np.fft.irfft(np.fft.rfft(mix, size) * np.conj(np.fft.rfft(music, size)), size)
    around = np.concatenate((product[-reach:], product[: reach + 1]))
    return int(np.abs(around).argmax()) - reach


def _shifted(values: Mono, lag: int, length: int) -> Mono:
    out = np.zeros(length)
    start, source = max(0, lag), max(0, -lag)
    count = min(length - start, len(values) - source)
    if count > 0:
        out[start : start + count] = values[source : source + count]
    return out


def _speech_band(values: Mono) -> Mono:
    """Keep 200 to 5000 Hz, where speech is and the bass is not."""
    spectrum = np.fft.rfft(values)
    frequencies = np.fft.rfftfreq(len(values), 1 / RATE)
    spectrum[(frequencies < 200) | (frequencies > 5000)] = 0
    band: Mono = np.fft.irfft(spectrum, len(values))
    return band


def _coarse(values: Mono) -> Mono:
    return values[::COARSE]
