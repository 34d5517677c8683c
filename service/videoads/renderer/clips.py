"""Reading clips: any frame of a video file, fitted to the film's picture.

Clips come from providers, so their size, rate and length may differ from what was asked: they are scaled to
cover the picture, and a clip that is too short holds its last frame. Files that do not open raise `ClipError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import av
import av.error
from av.video.reformatter import VideoReformatter
from PIL import Image

__all__ = ["ClipError", "ClipReader"]


class ClipError(ValueError):
    """A clip that cannot be opened or holds no picture."""


class ClipReader:
    """One clip, read forwards; going back starts again from the beginning."""

    def __init__(self, path: Path, *, width: int, height: int, fps: int) -> None:
        self.path = path
        self.size = (width, height)
        self.fps = fps
        self._frames: Iterator[av.VideoFrame] | None = None
        self._position = -1
        self._current: av.VideoFrame | None = None
        self._image: Image.Image | None = None
        self._container: av.container.InputContainer | None = None
        self._step = 1.0
        # One for all frames: making a converter takes a third as long as a conversion.
        self._converter = VideoReformatter()

    def frame(self, index: int) -> Image.Image:
        """Return the picture shown `index` film frames after the clip's start; not to be drawn on."""
        if self._frames is None or index < self._position_in_film():
            self.close()
            self._frames = self._decoded()
        while self._current is None or (self._position + 1) * self._step <= index + 0.001:
            following = next(self._frames, None)
            if following is None:
                break
            self._position += 1
            self._current, self._image = following, None
        if self._current is None:
            raise ClipError(f"{self.path.name} holds no picture")
        if self._image is None:  # frames that are only passed over are never converted
            self._image = self._fitted(self._current)
        return self._image

    def close(self) -> None:
        """Let the file go."""
        if self._container is not None:
            self._container.close()
        self._container, self._frames, self._position = None, None, -1
        self._current, self._image = None, None

    def _position_in_film(self) -> int:
        return int(self._position * self._step + 0.999)

    def _decoded(self) -> Iterator[av.VideoFrame]:
        try:
            self._container = av.open(str(self.path))
            if not self._container.streams.video:
                raise ClipError(f"{self.path.name} holds no picture")
            stream = self._container.streams.video[0]
            stream.thread_type = "AUTO"
            rate = float(stream.average_rate or self.fps)
            self._step = 1.0 if abs(rate - self.fps) < 0.01 else self.fps / rate
            yield from self._container.decode(stream)
        except (av.error.FFmpegError, OSError) as error:
            raise ClipError(f"{self.path.name} cannot be decoded: {error}") from error

    def _fitted(self, decoded: av.VideoFrame) -> Image.Image:
        width, height = self.size
        scale = max(width / decoded.width, height / decoded.height)
        if scale == 1.0 and (decoded.width, decoded.height) == self.size:
            return Image.fromarray(self._converter.reformat(decoded, format="rgb24").to_ndarray())
        wide, tall = round(decoded.width * scale), round(decoded.height * scale)
        picture = self._converter.reformat(decoded, format="rgb24", width=wide, height=tall)
        image = Image.fromarray(picture.to_ndarray())
        left, top = (wide - width) // 2, (tall - height) // 2
        return image.crop((left, top, left + width, top + height))
