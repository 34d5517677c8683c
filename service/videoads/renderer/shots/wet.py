"""Wet ground: what stands above a line is mirrored below it, dim, soft and trembling."""

import numpy as np
from PIL import Image

from videoads.renderer.shots.colour import Rgb
from videoads.renderer.shots.stage import Canvas

COARSE = 4


def mirror(canvas: Canvas, line: float, *, tint: Rgb, share: float, seconds: float, depth: float = 1.0) -> None:
    """Paint the reflection of everything painted so far below the height `line`; `share` is how much is kept."""
    picture = canvas.picture
    at = round(canvas.project(0, line, depth)[1])
    high = min(picture.height - at, at)
    if at <= 2 or high <= 2:
        return
    small = max(1, picture.width // COARSE), max(1, high // COARSE)
    above = picture.crop((0, at - high, picture.width, at)).resize(small, Image.Resampling.BOX)
    pixels = np.asarray(above.transpose(Image.Transpose.FLIP_TOP_BOTTOM)).astype(np.float32)
    rows = np.arange(small[1])
    shift = np.round((1.2 + rows * 0.035) * np.sin(rows * 0.9 + seconds * 7)).astype(int)
    columns = (np.arange(small[0])[None, :] + shift[:, None]).clip(0, small[0] - 1)
    pixels = pixels[rows[:, None], columns]
    fade = (share * np.clip(1.08 - rows / small[1], 0, 1))[:, None, None]
    ground = np.array(tint, np.float32)
    mixed = ground * (1 - fade * 0.75) + pixels * fade
    result = Image.fromarray(mixed.clip(0, 255).astype(np.uint8))
    picture.paste(result.resize((picture.width, high), Image.Resampling.BILINEAR), (0, at))
    if at + high < picture.height:
        picture.paste(tint, (0, at + high, picture.width, picture.height))
