"""How strong a shade words need over a moving picture, decided by measuring the picture.

For each title and caption some frames of its window are looked at where the words will stand. The lightest
shade that gives every sampled pixel enough contrast is taken; none when the picture is calm enough by itself.
Captions share one strength, so that they look like one hand's work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from videoads.renderer.colours import CONTRAST_MIN, Rgb, luminance, mixed, rgb
from videoads.renderer.composition import Box, Composition

__all__ = ["Shading", "measure_shading"]

SAMPLES = 6
MARGIN = 0.9
"""Asked for above the minimum: compression softens edges, and not every frame is looked at."""

STRENGTHS = (0, 36, 64, 92, 116, 140, 160, 180, 200, 216, 232, 244)
DARK_WORDS_BIAS = {"warm-editorial": -70, "bold-dark": -140, "clean-service": 130}
"""How much stronger a shade may be for dark words on a light veil than for light words on a dark one."""

EXTREME_PERCENT = 1.0
"""Single glints do not decide."""


class Shading(msgspec.Struct, frozen=True):
    """Colour of the words, colour of the shade, its strength (0 to 255), and the contrast reached.

    `dims`: the shade darkens the picture like a shadow, keeping its hues; otherwise it lies on it like paint.
    """

    over: Rgb
    under: Rgb
    strength: int
    contrast: float
    dims: bool = False

    def shaded(self, ground: Rgb) -> Rgb:
        """Return what becomes of a colour of the picture beneath the shade."""
        share = self.strength / 255
        if self.dims:
            red, green, blue = (
                round(part * (1 - share * (1 - dark / 255)))
                for part, dark in zip(ground, self.under, strict=True)
            )
            return red, green, blue
        return mixed(ground, self.under, share)


def measure_shading(
    composition: Composition, picture: Callable[[int, int], Image.Image], *, only: range | None = None
) -> dict[str, Shading]:
    """Measure every group of words; `picture(shot, frame)` is asked in order. `only` limits the film's frames."""
    palette = composition.palette
    named = (palette.background, palette.surface, palette.ink, palette.accent, palette.light)
    colours = sorted((rgb(text) for text in named), key=luminance)
    dark, light = colours[0], colours[-1]
    windows = _windows(composition)
    wanted: dict[tuple[int, int], list[str]] = defaultdict(list)
    for group, (_, first, last) in windows.items():
        if only is None or (first < only.stop and last >= only.start):
            for number in range(SAMPLES):
                wanted[_locate(composition, first + (last - first) * number // (SAMPLES - 1))].append(group)
    pixels: dict[str, list[NDArray[np.float32]]] = defaultdict(list)
    for (shot, frame), groups in sorted(wanted.items()):
        image = picture(shot, frame)
        for group in dict.fromkeys(groups):
            box = windows[group][0]
            crop = image.crop((box.x, box.y, box.right, box.bottom)).reduce(2)
            pixels[group].append(np.asarray(crop, dtype=np.float32).reshape(-1, 3))
    shadings = {}
    preference = DARK_WORDS_BIAS[composition.style]
    for group, samples in pixels.items():
        seen = np.concatenate(samples)
        dims = group.startswith("title")
        light_words = _least(seen, words=light, shade=_tinted(seen, dark), dims=dims)
        dark_words = _least(seen, words=dark, shade=light)
        calmer = dark_words.strength < light_words.strength + preference
        shadings[group] = dark_words if calmer and group.startswith("title") else light_words
    captions = [group for group in shadings if group.startswith("caption")]
    if captions:
        strongest = max(shadings[group].strength for group in captions)
        for group in captions:
            shadings[group] = msgspec.structs.replace(shadings[group], strength=strongest)
    return shadings


def _windows(composition: Composition) -> dict[str, tuple[Box, int, int]]:
    """The box of each group and the first and last frame in which it is fully seen."""
    windows = {}
    frame_box = Box(0, 0, composition.output.width, composition.output.height)
    for index, title in enumerate(composition.titles):
        box = title.block.box
        if title.kicker is not None:
            top = title.kicker.box.y
            width = max(box.right, title.kicker.box.right) - box.x
            box = Box(box.x, top, width, box.bottom - top)
        windows[f"title-{index}"] = (_grown(box, 4, frame_box), title.start_frame + 6, title.end_frame - 4)
    for index, caption in enumerate(composition.captions):
        windows[f"caption-{index}"] = (
            _grown(caption.block.box, 6, frame_box),
            caption.start_frame,
            max(caption.start_frame, caption.end_frame - 1),
        )
    return windows


def _grown(box: Box, by: int, within: Box) -> Box:
    x, y = max(within.x, box.x - by), max(within.y, box.y - by)
    return Box(x, y, min(within.right, box.right + by) - x, min(within.bottom, box.bottom + by) - y)


def _locate(composition: Composition, frame: int) -> tuple[int, int]:
    for index, shot in enumerate(composition.shots):
        if frame < shot.start_frame + shot.frames:
            return index, max(0, frame - shot.start_frame)
    return len(composition.shots) - 1, composition.shots[-1].frames - 1


def _tinted(pixels: NDArray[np.float32], dark: Rgb) -> Rgb:
    """Give the dark shade the hue of the picture beneath, so that it looks like shadow and not like paint."""
    mean = pixels.mean(axis=0)
    scale = min(0.34, 58.0 / max(1.0, float(mean.max())))
    rich = mean * (mean / max(1.0, float(mean.max()))) ** 0.7
    red, green, blue = (
        round(0.8 * float(part) * scale + 0.2 * base) for part, base in zip(rich, dark, strict=True)
    )
    tinted = (red, green, blue)
    return tinted if luminance(tinted) < 0.03 else dark


def _least(pixels: NDArray[np.float32], *, words: Rgb, shade: Rgb, dims: bool = False) -> Shading:
    """Find the weakest shade under which the words read; the strongest when none is enough."""
    ink = luminance(words)
    reached = 1.0
    strength = STRENGTHS[-1]
    for strength in STRENGTHS:
        share = strength / 255
        under = np.asarray(shade, dtype=np.float32)
        kept = 1 - share * (1 - under / 255) if dims else np.float32(1 - share)
        shaded = (pixels * kept + (0 if dims else under * share)).astype(np.float32)
        grounds = _luminances(shaded)
        if ink > luminance(shade):
            ground = float(np.percentile(grounds, 100 - EXTREME_PERCENT))
            reached = (ink + 0.05) / (ground + 0.05)
        else:
            ground = float(np.percentile(grounds, EXTREME_PERCENT))
            reached = (ground + 0.05) / (ink + 0.05)
        if reached >= CONTRAST_MIN + MARGIN:
            break
    return Shading(words, shade, strength, round(reached, 2), dims)


def _luminances(pixels: NDArray[np.float32]) -> NDArray[np.float32]:
    values = pixels / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    weighed: NDArray[np.float32] = linear @ np.array([0.2126, 0.7152, 0.0722], dtype=np.float32)
    return weighed
