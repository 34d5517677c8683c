"""Small films and sounds drawn in the test itself, so that no binary file lies in the repository.

Every film here is good unless the test asks for one thing to be wrong.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

RATE = 48_000
FPS = 30

Picture = NDArray[np.uint8]
Draw = Callable[[int], Picture]


def moving_gradient(width: int, height: int, *, tint: tuple[int, int, int], speed: int = 3) -> Draw:
    """A shot of soft stripes that travel; tints tell shots apart."""
    rows, columns = np.mgrid[0:height, 0:width]

    def draw(index: int) -> Picture:
        wave = (np.sin((columns + rows / 2 + index * speed) / (width / 9)) * 40).astype(np.int16)
        return np.clip(np.stack([wave + channel for channel in tint], axis=-1), 0, 255).astype(np.uint8)

    return draw


def sequence(*shots: tuple[Draw, int]) -> Iterable[Picture]:
    """Shots one after the other, each with its number of frames, joined by hard cuts."""
    for draw, frames in shots:
        for index in range(frames):
            yield draw(index)


def write_film(
    path: Path,
    pictures: Iterable[Picture],
    *,
    sound: NDArray[np.floating] | None = None,
    fps: int = FPS,
    crf: int = 18,
    pixel_format: str = "yuv420p",
    faststart: bool = True,
    codec: str = "libx264",
) -> Path:
    """Encode pictures (and sound: two rows, 48 kHz) as H.264 (or another codec) and AAC in MP4."""
    options = {"movflags": "+faststart"} if faststart else {}
    with av.open(str(path), "w", format="mp4", options=options) as container:
        video = None
        audio = None
        for picture in pictures:
            if video is None:
                video = container.add_stream(codec, rate=fps)
                video.height, video.width = picture.shape[:2]
                video.pix_fmt = pixel_format
                video.options = (
                    {"preset": "ultrafast", "crf": str(crf)} if codec == "libx264" else {"qscale": "2"}
                )
                if sound is not None:
                    audio = container.add_stream("aac", rate=RATE, layout="stereo")
            container.mux(video.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        assert video is not None, "a film needs a picture"
        container.mux(video.encode())
        if audio is not None and sound is not None:
            samples = np.ascontiguousarray(sound, dtype=np.float32)
            for start in range(0, samples.shape[1], 1024):
                piece = np.ascontiguousarray(samples[:, start : start + 1024])
                frame = av.AudioFrame.from_ndarray(piece, format="fltp", layout="stereo")
                frame.sample_rate = RATE
                frame.pts = start
                container.mux(audio.encode(frame))
            container.mux(audio.encode())
    return path


def tone(seconds: float, *, frequency: float = 997.0, amplitude: float = 0.1) -> NDArray[np.float64]:
    """A sine in both channels."""
    time = np.arange(round(seconds * RATE)) / RATE
    wave = amplitude * np.sin(2 * np.pi * frequency * time)
    return np.stack([wave, wave])


def music_like(seconds: float, *, seed: int = 1) -> NDArray[np.float64]:
    """A bed of chords and pulses in both channels, never silent."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * RATE)) / RATE
    wave = sum(
        np.sin(2 * np.pi * pitch * time + rng.uniform(0, 6))
        for pitch in (82.4, 123.5, 196.0, 246.9, 329.6, 659.2)
    )
    beat = 0.6 + 0.4 * np.exp(-6 * (time % 0.6))
    noise = rng.normal(size=len(time)) * np.exp(-40 * (time % 0.3))
    bed = 0.05 * wave * beat + 0.05 * noise
    return np.stack([bed, bed])


def speech_like(seconds: float, *, seed: int) -> NDArray[np.float64]:
    """Something with the spectrum and syllables of speech, one channel."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * RATE)) / RATE
    pitch = 110 + 25 * np.sin(2 * np.pi * (1.3 + 0.2 * rng.uniform()) * time + rng.uniform(0, 6))
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    voiced = sum(np.sin(k * phase + rng.uniform(0, 6)) / k for k in range(1, 24))
    breath = rng.normal(size=len(time)) * 0.4
    syllables = 0.5 - 0.5 * np.cos(2 * np.pi * 4.2 * time + rng.uniform(0, 1))
    wave: NDArray[np.float64] = 0.12 * (voiced + breath) * syllables
    return wave
