"""One pass over the film: every frame small, chosen frames whole, all of the sound, and the facts of the streams.

What the pictures and the sound mean is left to `picture`, `lettering` and `hearing`.
"""

from collections.abc import Collection
from fractions import Fraction
from pathlib import Path

import av
import av.error
import numpy as np
from numpy.typing import NDArray

RATE = 48_000
THUMBNAIL_LONG_SIDE = 128
FRAMES_MAX = 20_000

Picture = NDArray[np.uint8]
Sound = NDArray[np.float32]


class FilmUnreadable(Exception):
    """The container does not open, or it holds no picture."""


class Decoded:
    """What one pass over a film saw."""

    def __init__(
        self,
        *,
        width: int,
        height: int,
        rate: Fraction | None,
        pixel_format: str,
        video_codec: str,
        audio_codec: str | None,
        thumbnails: Picture,
        times: NDArray[np.float64],
        whole: dict[int, Picture],
        sound: Sound | None,
        interruption: str | None,
        declared_frames: int,
    ) -> None:
        self.width = width
        self.height = height
        self.rate = rate
        self.pixel_format = pixel_format
        self.video_codec = video_codec
        self.audio_codec = audio_codec
        self.thumbnails = thumbnails
        """Small RGB pictures of every frame: frames x height x width x 3."""
        self.times = times
        """Presentation time of every frame in seconds."""
        self.whole = whole
        """Whole RGB pictures of the frames that were asked for."""
        self.sound = sound
        """Two rows of float samples at 48 kHz, or None without a sound stream."""
        self.interruption = interruption
        """Why decoding stopped before the end, or None."""
        self.declared_frames = declared_frames
        """How many frames the container says it has, 0 when it does not say."""

    @property
    def frames(self) -> int:
        """How many frames were decoded."""
        return len(self.thumbnails)


def decode_film(path: Path, *, whole_frames: Collection[int]) -> Decoded:
    """Decode the whole film once; a break in the middle is reported, not raised."""
    try:
        container = av.open(str(path))
    except (av.error.FFmpegError, OSError) as error:
        raise FilmUnreadable(f"the container does not open: {_reason(error)}") from error
    with container:
        if not container.streams.video:
            raise FilmUnreadable("the container opens but holds no video stream")
        video = container.streams.video[0]
        audio = container.streams.audio[0] if container.streams.audio else None
        facts = video.codec_context
        width, height = facts.width, facts.height
        small = _thumbnail_size(width, height)
        wanted = set(whole_frames)
        thumbnails: list[Picture] = []
        times: list[float] = []
        whole: dict[int, Picture] = {}
        interruption = None
        try:
            for frame in container.decode(video):
                index = len(thumbnails)
                if index >= FRAMES_MAX:
                    interruption = f"more than {FRAMES_MAX} frames"
                    break
                thumbnails.append(
                    _bytes_of(
                        frame.reformat(width=small[0], height=small[1], format="rgb24", interpolation="AREA")
                    )
                )
                times.append(float(frame.time) if frame.time is not None else float("nan"))
                if index in wanted:
                    whole[index] = _bytes_of(frame.reformat(format="rgb24"))
        except av.error.FFmpegError as error:
            interruption = f"decoding stopped after frame {len(thumbnails) - 1}: {_reason(error)}"
        rate = video.average_rate
        decoded = Decoded(
            width=width,
            height=height,
            rate=Fraction(rate) if rate else None,
            pixel_format=facts.pix_fmt or "unknown",
            video_codec=facts.name,
            audio_codec=audio.codec_context.name if audio is not None else None,
            thumbnails=np.stack(thumbnails) if thumbnails else np.zeros((0, small[1], small[0], 3), np.uint8),
            times=np.array(times),
            whole=whole,
            sound=None,
            interruption=interruption,
            declared_frames=video.frames,
        )
    if audio is not None:
        try:
            decoded.sound = decode_sound(path)
        except av.error.FFmpegError as error:
            decoded.interruption = decoded.interruption or f"the sound stops decoding: {_reason(error)}"
    return decoded


def decode_sound(path: Path) -> Sound:
    """Decode a file's sound to two rows of float samples at 48 kHz."""
    pieces: list[Sound] = []
    resampler = av.AudioResampler(format="fltp", layout="stereo", rate=RATE)
    with av.open(str(path)) as container:
        for frame in container.decode(container.streams.audio[0]):
            pieces.extend(piece.to_ndarray().astype(np.float32) for piece in resampler.resample(frame))
        pieces.extend(piece.to_ndarray().astype(np.float32) for piece in resampler.resample(None))
    if not pieces:
        return np.zeros((2, 0), np.float32)
    return np.concatenate(pieces, axis=1)


def _bytes_of(frame: av.VideoFrame) -> Picture:
    return frame.to_ndarray().astype(np.uint8, copy=False)


def _thumbnail_size(width: int, height: int) -> tuple[int, int]:
    scale = min(1.0, THUMBNAIL_LONG_SIDE / max(width, height))
    return max(2, round(width * scale)), max(2, round(height * scale))


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)
