"""What the sound tests share: an independent meter, a codec round trip, a stand-in voice."""

import io
from dataclasses import dataclass

import av
import numpy as np
from numpy.typing import NDArray

from videoads.renderer.sound import (
    MixPlan,
    MixReport,
    Narration,
    Pcm,
)
from videoads.renderer.sound.wav import as_pcm

RATE = 48000


class BabbleVoice:
    """A stand-in for a speaker: voiced syllables, one for each vowel, deterministic, no words in them."""

    name = "babble"
    rate = 24000

    def say(self, text: str, *, pace: float, seed: int) -> NDArray[np.float64]:
        random = np.random.default_rng([seed, len(text)])
        parts = [np.zeros(self.rate // 5)]
        for letter in text:
            if letter in "aeiou":
                t = np.arange(int(0.16 * self.rate / pace)) / self.rate
                pitch = 170.0 + 60.0 * random.random()
                wave = sum(np.sin(2 * np.pi * pitch * k * t) / k**0.7 for k in range(1, 18))
                parts.append(np.hanning(len(t)) * wave * 0.1)
            elif letter in ".,":
                parts.append(np.zeros(int(0.4 * self.rate)))
        parts.append(np.zeros(self.rate // 4))
        return np.concatenate(parts)


def meter(pcm: Pcm, rate: int = RATE) -> tuple[float, float]:
    """Integrated loudness and true peak by FFmpeg's own ebur128 filter."""
    frames = pcm[:, None] if pcm.ndim == 1 else pcm
    layout = "stereo" if frames.shape[1] == 2 else "mono"
    graph = av.filter.Graph()
    source = graph.add_abuffer(sample_rate=rate, format="s16", layout=layout)
    ebur128 = graph.add("ebur128", "metadata=1:peak=true")
    sink = graph.add("abuffersink")
    source.link_to(ebur128)
    ebur128.link_to(sink)
    graph.configure()
    frame = av.AudioFrame.from_ndarray(
        np.ascontiguousarray(frames.reshape(1, -1)), format="s16", layout=layout
    )
    frame.sample_rate = rate
    frame.pts = 0
    graph.push(frame)
    graph.push(None)
    loudness, peak = -70.0, 0.0
    while True:
        try:
            values = graph.pull().metadata
        except (av.error.EOFError, av.error.BlockingIOError):
            return loudness, float(20 * np.log10(max(peak, 1e-6)))
        loudness = float(values["lavfi.r128.I"])
        peak = max([peak, *(float(value) for key, value in values.items() if "true_peaks_ch" in key)])


def through_codec(pcm: Pcm, codec: str = "aac", container: str = "mp4") -> Pcm:
    """Encode and decode, as a finished film does to its sound."""
    memory = io.BytesIO()
    with av.open(memory, "w", format=container) as out:
        stream = out.add_stream(codec, rate=RATE, layout="stereo")
        stream.bit_rate = 192_000
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(pcm.reshape(1, -1)), format="s16", layout="stereo"
        )
        frame.sample_rate = RATE
        frame.pts = 0
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    memory.seek(0)
    with av.open(memory) as film:
        return as_pcm(np.concatenate([part.to_ndarray() for part in film.decode(audio=0)], axis=1))


@dataclass(frozen=True)
class MixedAd:
    """A small mixed ad with its stems, and a way to mix it otherwise."""

    music: Pcm
    narration: Narration
    plan: MixPlan
    report: MixReport

    @property
    def windows(self) -> list[tuple[int, int]]:
        return [(phrase.start_sample, phrase.end_sample) for phrase in self.report.narration]
