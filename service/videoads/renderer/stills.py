"""Still pictures of a film: the contact sheet with a frame a second, and the poster.

Both are gathered while the film is rendered, so that no frame is painted twice. The poster is the still that
shows most: sharp, colourful, with its words fully there.
"""

from __future__ import annotations

from pathlib import Path

import av
import av.error
import numpy as np
from PIL import Image, ImageDraw

from videoads.renderer.clips import ClipError, ClipReader
from videoads.renderer.colours import readable_on, rgb
from videoads.renderer.composition import Audio, Composition, Effects, Output, Palette, Shot
from videoads.renderer.lettering.metrics import font

__all__ = ["StillGatherer", "stills_of_film"]

COLUMNS_MAX = 5
SHEET_WIDTH = 1500
GAP = 14
LABEL_ROWS = 30


class StillGatherer:
    """Give `see` to `render_film` as `on_frame`; afterwards write what is wanted."""

    def __init__(self, composition: Composition) -> None:
        self._composition = composition
        output = composition.output
        seconds = -(-output.frames // output.fps)
        self._columns = min(COLUMNS_MAX, seconds)
        width = (SHEET_WIDTH - GAP * (self._columns + 1)) // self._columns
        self._thumb = (width, max(1, width * output.height // output.width))
        self._thumbs: list[tuple[int, Image.Image]] = []
        self._best: tuple[float, int, Image.Image] | None = None
        self._candidates = _poster_candidates(composition)

    def see(self, index: int, picture: Image.Image) -> None:
        """Look at one finished frame."""
        fps = self._composition.output.fps
        if index % fps == fps // 2 or (
            index == self._composition.output.frames - 1 and index % fps < fps // 2
        ):
            self._thumbs.append(
                (index, picture.resize(self._thumb, Image.Resampling.LANCZOS, reducing_gap=2))
            )
        if index in self._candidates:
            score = _richness(picture)
            if self._best is None or score > self._best[0]:
                self._best = (score, index, picture.copy())

    @property
    def poster_frame(self) -> int:
        """The frame chosen for the poster."""
        assert self._best is not None, "no frame has been seen"
        return self._best[1]

    def write_poster(self, out: Path) -> None:
        """Write the poster as JPEG."""
        assert self._best is not None, "no frame has been seen"
        self._best[2].save(out, format="JPEG", quality=92, optimize=True)

    def write_contact(self, out: Path) -> None:
        """Write the contact sheet as JPEG, each picture labelled with its time and frame."""
        palette = self._composition.palette
        surface = rgb(palette.surface)
        ink = readable_on(surface, (rgb(palette.ink),))
        width, height = self._thumb
        rows = -(-len(self._thumbs) // self._columns)
        sheet = Image.new(
            "RGB",
            (GAP + self._columns * (width + GAP), GAP + rows * (height + LABEL_ROWS + GAP)),
            surface,
        )
        draw = ImageDraw.Draw(sheet)
        label = font("bricolage-grotesque-latin-standard-normal.woff2", 18, 600)
        fps = self._composition.output.fps
        for number, (index, thumb) in enumerate(self._thumbs):
            x = GAP + number % self._columns * (width + GAP)
            y = GAP + number // self._columns * (height + LABEL_ROWS + GAP)
            sheet.paste(thumb, (x, y))
            text = f"{index / fps:.1f} s · frame {index}"
            draw.text((x, y + height + 6), text, font=label, fill=ink)
        sheet.save(out, format="JPEG", quality=88, optimize=True)


def stills_of_film(
    film: Path, composition: Composition | None, *, poster: Path | None = None, contact: Path | None = None
) -> None:
    """Decode a finished film and write its poster and contact sheet; without a composition any calm frame may win."""
    output = None if composition is None else composition.output
    reader = None
    try:
        with av.open(str(film)) as container:
            if not container.streams.video:
                raise ClipError(f"{film.name} holds no picture")
            stream = container.streams.video[0]
            rate = round(float(stream.average_rate or 30))
            frames = stream.frames or max(1, round(float(container.duration or 0) / 1_000_000 * rate))
            reader = ClipReader(
                film,
                width=output.width if output else stream.width,
                height=output.height if output else stream.height,
                fps=output.fps if output else rate,
            )
    except (av.error.FFmpegError, OSError) as error:
        raise ClipError(f"{film.name} cannot be opened: {error}") from error
    gatherer = StillGatherer(composition or _unknown(reader.size, rate, frames))
    try:
        for index in range(output.frames if output else frames):
            gatherer.see(index, reader.frame(index))
    finally:
        reader.close()
    if poster is not None:
        gatherer.write_poster(poster)
    if contact is not None:
        gatherer.write_contact(contact)


def _unknown(size: tuple[int, int], fps: int, frames: int) -> Composition:
    """Stand in for the composition of a film of which only the file is known."""
    return Composition(
        version=1,
        product="",
        language="",
        style="clean-service",
        output=Output(size[0], size[1], fps, frames, "h264-aac"),
        palette=Palette("#101418", "#101418", "#f4f6f8", "#f4f6f8", "#f4f6f8"),
        shots=tuple(
            Shot(f"part-{part}", "film", frames * part // 6, max(1, frames // 6), "cut") for part in range(6)
        ),
        titles=(),
        call_outs=(),
        captions=(),
        logo=None,
        card=None,
        audio=Audio(rate=48000, narration=None, music="film", effects=Effects((), None, 0), seed=0),
        cuts=(),
    )


def _poster_candidates(composition: Composition) -> set[int]:
    """Frames in which everything of a shot has arrived and nothing yet leaves."""
    chosen = {
        shot.start_frame + shot.frames * share // 100 for shot in composition.shots for share in (62, 80)
    }
    return chosen or {composition.output.frames // 2}


def _richness(picture: Image.Image) -> float:
    """Colour spread times detail, on a small copy."""
    small = np.asarray(picture.resize((90, 160), Image.Resampling.BOX), dtype=np.float32)
    red_green = small[..., 0] - small[..., 1]
    yellow_blue = (small[..., 0] + small[..., 1]) / 2 - small[..., 2]
    colour = float(
        np.hypot(red_green.std(), yellow_blue.std()) + 0.3 * np.hypot(red_green.mean(), yellow_blue.mean())
    )
    grey = small.mean(axis=2)
    detail = float(np.abs(np.diff(grey, axis=0)).mean() + np.abs(np.diff(grey, axis=1)).mean())
    return (10 + colour) * (2 + detail)
