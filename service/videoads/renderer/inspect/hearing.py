"""How loud the finished film is and whether it is ever silent.

Loudness and peak come from FFmpeg's ebur128 filter, another implementation than the one that mixes, so that a fault in
one is not hidden by the other. Where the speech is and how far the music gives way is `sound.presence`'s to measure.
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

SILENCE_DB = -60.0


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


def mono(sound: Sound) -> Mono:
    """The middle of the two channels."""
    middle: Mono = sound.astype(np.float64).mean(axis=0)
    return middle


def decibels(ratio: float) -> float:
    """A ratio of amplitudes in dB, never below -120."""
    return 20.0 * math.log10(max(ratio, 1e-6))
