"""The film: every frame of a composition painted, its sound mixed, and both written into one file.

Two profiles: `h264-aac` (MP4, index before the media) and `vp9-opus` (WebM, no GPL encoder). The file appears
under its name only when it is whole. What is drawn is `painting.py`'s, what sounds is `sound`'s.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import av
import av.error
import msgspec
import numpy as np
from av.audio.resampler import AudioResampler
from av.video.reformatter import VideoReformatter
from PIL import Image

from videoads.renderer.composition import Composition
from videoads.renderer.painting import Painter
from videoads.renderer.sound.soundtrack import mix_soundtrack
from videoads.renderer.sound.wav import Pcm

__all__ = ["FilmReport", "ShadeReport", "film_suffix", "render_film"]

Media = Callable[[str], Path]

# x264's macroblock tree answers equal frames with different files; without it they are equal. A number of threads
# of our own, for the encoder's slices of work depend on it, and elsewhere there may be more processors.
_VIDEO = {
    "h264-aac": (
        "libx264",
        {"crf": "20", "preset": "veryfast", "profile": "high", "x264-params": "mbtree=0"},
    ),
    "vp9-opus": (
        "libvpx-vp9",
        {"crf": "27", "b": "0", "deadline": "realtime", "cpu-used": "6", "row-mt": "1"},
    ),
}
_AUDIO = {"h264-aac": ("aac", "fltp", 192_000), "vp9-opus": ("libopus", "s16", 160_000)}
_CONTAINER = {"h264-aac": ("mp4", ".mp4"), "vp9-opus": ("webm", ".webm")}

KEYFRAME_EVERY = 72
ENCODER_THREADS = 2


class ShadeReport(msgspec.Struct, frozen=True):
    """The shade one group of words was given: its strength of 255 and the contrast reached, in hundredths."""

    group: str
    strength: int
    contrast_hundredths: int


class FilmReport(msgspec.Struct, frozen=True):
    """What was made and what was measured while making it."""

    frames: int
    width: int
    height: int
    fps: int
    profile: str
    bytes: int
    sha256: str
    pcm_sha256: str
    integrated_lufs: float
    true_peak_dbtp: float
    ducking_db: float
    music_only: bool
    shades: tuple[ShadeReport, ...]


def film_suffix(profile: str) -> str:
    """Return the ending that a file of this profile bears."""
    return _CONTAINER[profile][1]


def render_film(
    composition: Composition,
    media: Media,
    out: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
    on_frame: Callable[[int, Image.Image], None] | None = None,
) -> FilmReport:
    """Make the whole film at `out`; `on_frame` sees each finished picture, not to be changed."""
    output = composition.output
    soundtrack = mix_soundtrack(composition, media)
    painter = Painter(composition, media)
    part = out.with_name(out.name + ".part")
    container_name = _CONTAINER[output.profile][0]
    options = {"movflags": "+faststart"} if container_name == "mp4" else {}
    try:
        painter.measure()
        with av.open(str(part), "w", format=container_name, options=options) as container:
            codec, codec_options = _VIDEO[output.profile]
            video = container.add_stream(
                codec, rate=output.fps, options={**codec_options, "g": str(KEYFRAME_EVERY)}
            )
            assert isinstance(video, av.VideoStream)
            video.width, video.height, video.pix_fmt = output.width, output.height, "yuv420p"
            # Frames in turn, so that painting goes on while earlier frames are encoded.
            video.thread_type, video.thread_count = "FRAME", ENCODER_THREADS
            audio_codec, sample_format, bit_rate = _AUDIO[output.profile]
            audio = container.add_stream(audio_codec, rate=soundtrack.rate, layout="stereo")
            assert isinstance(audio, av.AudioStream)
            audio.bit_rate = bit_rate
            sound = _sound_frames(soundtrack.pcm, soundtrack.rate, sample_format, audio.codec_context)
            heard = 0
            converter = VideoReformatter()
            for index in range(output.frames):
                picture = painter.paint(index)
                if on_frame is not None:
                    on_frame(index, picture)
                frame = converter.reformat(
                    av.VideoFrame.from_numpy_buffer(np.asarray(picture), format="rgb24"), format="yuv420p"
                )
                frame.pts, frame.time_base = index, Fraction(1, output.fps)
                container.mux(video.encode(frame))
                while heard * output.fps < (index + 1) * soundtrack.rate:
                    samples = next(sound, None)
                    if samples is None:
                        break
                    heard += samples.samples
                    container.mux(audio.encode(samples))
                if progress is not None:
                    progress(index + 1, output.frames)
            for samples in sound:
                container.mux(audio.encode(samples))
            container.mux(video.encode(None))
            container.mux(audio.encode(None))
        part.replace(out)
    finally:
        painter.close()
        part.unlink(missing_ok=True)
    content = out.read_bytes()
    return FilmReport(
        frames=output.frames,
        width=output.width,
        height=output.height,
        fps=output.fps,
        profile=output.profile,
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        pcm_sha256=soundtrack.digest,
        integrated_lufs=soundtrack.integrated_lufs,
        true_peak_dbtp=soundtrack.true_peak_dbtp,
        ducking_db=soundtrack.ducking_db,
        music_only=soundtrack.music_only,
        shades=tuple(
            ShadeReport(group, shading.strength, round(shading.contrast * 100))
            for group, shading in sorted(painter.shadings.items())
        ),
    )


def _sound_frames(
    pcm: Pcm, rate: int, sample_format: str, codec: av.AudioCodecContext
) -> Iterator[av.AudioFrame]:
    """Cut the mix into the frames that the encoder takes."""
    codec.open(strict=False)
    size = codec.frame_size or 1024
    resampler = AudioResampler(format=sample_format, layout="stereo", rate=rate, frame_size=size)
    packed = np.ascontiguousarray(pcm, dtype=np.int16).reshape(1, -1)
    whole = av.AudioFrame.from_ndarray(packed, format="s16", layout="stereo")
    whole.sample_rate, whole.pts, whole.time_base = rate, 0, Fraction(1, rate)
    yield from resampler.resample(whole)
    yield from resampler.resample(None)
