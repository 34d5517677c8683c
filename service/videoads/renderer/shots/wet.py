"""Wet ground: what stands above a line is mirrored below it, dim, soft and trembling."""

import numpy as np
from PIL import Image

from videoads.renderer.shots.canvas import Canvas
from videoads.renderer.shots.colour import Rgb

COARSE = 4


def mirror(
    canvas: Canvas, line: float, *, tint: Rgb, share: float, seconds: float, depth: float = 1.0
) -> None:
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
    shift = (0.35 + rows * 0.012) * (
        np.sin(rows * 0.55 + seconds * 6) + 0.6 * np.sin(rows * 1.7 - seconds * 9)
    )
    columns = (np.arange(small[0])[None, :] + shift[:, None]).clip(0, small[0] - 1.001)
    whole = columns.astype(int)
    part = (columns - whole)[:, :, None].astype(np.float32)
    following = np.minimum(whole + 1, small[0] - 1)
    pixels = pixels[rows[:, None], whole] * (1 - part) + pixels[rows[:, None], following] * part
    fade = (share * np.clip(1.08 - rows / small[1], 0, 1))[:, None, None]
    ground = np.array(tint, np.float32)
    mixed = ground * (1 - fade * 0.75) + pixels * fade
    result = Image.fromarray(mixed.clip(0, 255).astype(np.uint8))
    picture.paste(result.resize((picture.width, high), Image.Resampling.BILINEAR), (0, at))
    if at + high < picture.height:
        picture.paste(tint, (0, at + high, picture.width, picture.height))
