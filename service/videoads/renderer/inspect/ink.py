"""Lettering and logos as they really stand in the picture: where their ink is, and how well it can be read.

A template (the ink as it should look) is searched for in the whole decoded frame, so its place is found and not
believed; contrast is the WCAG 2 ratio between the pixels of the ink and those around it, word by word. Which templates
to look for is decided in `lettering_checks`.
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

Grey = NDArray[np.float64]
Coverage = NDArray[np.uint8]

HALVED_SHORT_SIDE_MIN = 600
"""In larger pictures templates are searched for at half size."""
REFINING_PIXELS = 2
PLAIN_LEVELS = 8.0
LIKENESS_MIN = 0.45
"""A template is there when it correlates at least this well; unrelated pictures stay below 0.3."""
INK_COVERAGE_MIN = 250
CONTRAST_MIN = 4.5
RING_INNER = 2
RING_OUTER = 7
INK_PIXELS_MIN = 12
INNER_INK = 75
"""The percentile of the ink's brightness, away from the ground's, that is taken for the ink."""

_LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


class Box(msgspec.Struct, frozen=True):
    """A rectangle in pixels: left and top belong to it, right and bottom do not."""

    left: int
    top: int
    right: int
    bottom: int

    def inside(self, other: "Box", *, slack: int = 0) -> bool:
        """Whether no pixel lies outside the other box (by more than the slack)."""
        return (
            self.left >= other.left - slack
            and self.top >= other.top - slack
            and self.right <= other.right + slack
            and self.bottom <= other.bottom + slack
        )

    def overlaps(self, other: "Box") -> bool:
        """Whether the two share a pixel."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def moved(self, dx: int, dy: int) -> "Box":
        """The same box elsewhere."""
        return Box(self.left + dx, self.top + dy, self.right + dx, self.bottom + dy)

    def __str__(self) -> str:
        return f"{self.left},{self.top} to {self.right},{self.bottom}"


class Found(msgspec.Struct, frozen=True):
    """Where a template fits the picture best, and how well (0 to 1)."""

    box: Box
    likeness: float


def ink_box(coverage: Coverage, *, left: int = 0, top: int = 0) -> Box | None:
    """The smallest box around the ink of a mask whose corner lies at left, top; None when it is blank."""
    rows = np.flatnonzero((coverage > 127).any(axis=1))
    columns = np.flatnonzero((coverage > 127).any(axis=0))
    if not len(rows):
        return None
    return Box(
        left + int(columns[0]), top + int(rows[0]), left + int(columns[-1]) + 1, top + int(rows[-1]) + 1
    )


def find_template(picture: NDArray[np.uint8], template: Coverage) -> Found | None:
    """Find a mask of ink anywhere in a whole frame, be it lighter or darker than its ground.

    The measure is the normalised cross-correlation, which neither brightness nor gradients of the ground disturb.
    """
    within = ink_box(template)
    if within is None:
        return None
    cropped = template[within.top : within.bottom, within.left : within.right]
    scale = 2 if min(picture.shape[:2]) >= HALVED_SHORT_SIDE_MIN else 1
    ground = _reduced(luma(picture), scale)
    # A margin around the ink makes its outer edge part of what is recognised.
    mask = _reduced(np.pad(cropped.astype(np.float64), 2 * scale), scale)
    if mask.std() < 1e-6:
        return None
    rows, columns = mask.shape
    # Half of a thing may hang over the edge and is still found; beyond the edge lies nothing but the edge's colour.
    hang_rows, hang_columns = rows // 2, columns // 2
    padded = np.pad(ground, ((hang_rows, hang_rows), (hang_columns, hang_columns)), mode="edge")
    size = tuple(_fast_length(side) for side in padded.shape)
    mask = mask - mask.mean()
    centred = padded - padded.mean()
    product = np.fft.irfft2(np.fft.rfft2(centred, size) * np.conj(np.fft.rfft2(mask, size)), size)
    places = (padded.shape[0] - rows + 1, padded.shape[1] - columns + 1)
    count = rows * columns
    sums = _window_sums(centred, rows, columns)
    squares = _window_sums(centred**2, rows, columns)
    # On an almost plain ground noise would look like anything; so a plain window counts as if it varied a little.
    spread = np.sqrt(np.maximum(squares - sums**2 / count, count * PLAIN_LEVELS**2) * (mask**2).sum())
    likeness = np.abs(product[: places[0], : places[1]]) / spread
    y, x = divmod(int(likeness.argmax()), places[1])
    left, top = (x - hang_columns + 2) * scale, (y - hang_rows + 2) * scale
    box = Box(left, top, left + cropped.shape[1], top + cropped.shape[0])
    return Found(box=box, likeness=float(likeness[y, x]))


def refined(picture: NDArray[np.uint8], template: Coverage, found: Found) -> Found:
    """The same finding to the pixel: the places around it are compared at full size."""
    within = ink_box(template)
    if within is None:
        return found
    mask = template[within.top : within.bottom, within.left : within.right].astype(np.float64)
    mask -= mask.mean()
    grey = luma(picture)
    height, width = mask.shape
    best: tuple[float, int, int] | None = None
    for dy in range(-REFINING_PIXELS, REFINING_PIXELS + 1):
        for dx in range(-REFINING_PIXELS, REFINING_PIXELS + 1):
            left, top = found.box.left + dx, found.box.top + dy
            if left < 0 or top < 0:
                continue
            ground = grey[top : top + height, left : left + width]
            if ground.shape != mask.shape:
                continue
            score = abs(float((ground * mask).sum())) / max(float(ground.std()), 1.0)
            if best is None or score > best[0]:
                best = (score, dx, dy)
    if best is None:
        return found
    return Found(box=found.box.moved(best[1], best[2]), likeness=found.likeness)


def contrast_ratio(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The WCAG 2 contrast of two sRGB colours given as 0 to 255."""
    a, b = float(relative_luminance(first)), float(relative_luminance(second))
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


def relative_luminance(colour: NDArray[np.float64] | NDArray[np.uint8]) -> NDArray[np.float64]:
    """WCAG 2 relative luminance of sRGB values along the last axis."""
    share = np.asarray(colour, np.float64) / 255.0
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    luminance: NDArray[np.float64] = linear @ _LUMINANCE
    return luminance


def measured_contrast(picture: NDArray[np.uint8], template: Coverage, *, left: int, top: int) -> float | None:
    """The contrast of a piece of lettering whose mask lies at left, top of the frame; None when too little is in view.

    Ink is what the mask covers wholly; the ground is a ring around it that lets out the softened edge. The lettering
    is measured in pieces about as wide as they are high, and the weakest piece counts, so that a bright spot behind
    one word is not made good by the dark behind the next.
    """
    height, width = picture.shape[:2]
    reach = RING_OUTER
    mask = np.pad(template, reach)
    left, top = left - reach, top - reach
    y0, x0 = max(0, top), max(0, left)
    y1, x1 = min(height, top + mask.shape[0]), min(width, left + mask.shape[1])
    if y1 - y0 < 2 or x1 - x0 < 2:
        return None
    mask = mask[y0 - top : y1 - top, x0 - left : x1 - left]
    luminance = relative_luminance(picture[y0:y1, x0:x1])
    touched = mask > 8
    ink = _eroded(mask >= INK_COVERAGE_MIN)
    if ink.sum() < INK_PIXELS_MIN:
        ink = mask >= INK_COVERAGE_MIN
    if ink.sum() < INK_PIXELS_MIN:
        ink = mask >= 160
    ring = _dilated(touched, RING_OUTER) & ~_dilated(touched, RING_INNER)
    piece = max(24, mask.shape[0] if mask.shape[0] < 90 else mask.shape[0] // 2)
    ratios = []
    for start in range(0, mask.shape[1], piece):
        window = slice(start, start + piece)
        here, around = ink[:, window], ring[:, window]
        if here.sum() < INK_PIXELS_MIN or around.sum() < INK_PIXELS_MIN:
            continue
        outside = float(np.median(luminance[:, window][around]))
        middle = float(np.median(luminance[:, window][here]))
        # Ink has one colour; what differs from it was softened at the edge of a stroke, so its inner half counts.
        inside = float(
            np.percentile(luminance[:, window][here], INNER_INK if middle > outside else 100 - INNER_INK)
        )
        ratios.append((max(inside, outside) + 0.05) / (min(inside, outside) + 0.05))
    return min(ratios) if ratios else None


def luma(picture: NDArray[np.uint8]) -> Grey:
    """Brightness as the eye weighs it, 0 to 255."""
    grey: Grey = picture.astype(np.float64) @ _LUMINANCE
    return grey


def _reduced(values: Grey, scale: int) -> Grey:
    if scale == 1:
        return values
    rows, columns = values.shape[0] // scale, values.shape[1] // scale
    blocks = values[: rows * scale, : columns * scale].reshape(rows, scale, columns, scale)
    reduced: Grey = blocks.mean(axis=(1, 3))
    return reduced


def _window_sums(values: Grey, rows: int, columns: int) -> Grey:
    sums = np.zeros((values.shape[0] + 1, values.shape[1] + 1))
    sums[1:, 1:] = values.cumsum(0).cumsum(1)
    window: Grey = (
        sums[rows:, columns:] - sums[:-rows, columns:] - sums[rows:, :-columns] + sums[:-rows, :-columns]
    )
    return window


def _fast_length(length: int) -> int:
    """The next length that has only the factors 2, 3 and 5, for which a Fourier transform is quick."""
    while True:
        rest = length
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return length
        length += 1


def _dilated(mask: NDArray[np.bool_], radius: int) -> NDArray[np.bool_]:
    grown = np.pad(mask, radius).astype(np.int32)
    side = 2 * radius + 1
    sums = np.zeros((grown.shape[0] + 1, grown.shape[1] + 1), np.int64)
    sums[1:, 1:] = grown.cumsum(0).cumsum(1)
    window: NDArray[np.bool_] = (
        sums[side:, side:] - sums[:-side, side:] - sums[side:, :-side] + sums[:-side, :-side]
    ) > 0
    return window


def _eroded(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return ~_dilated(~mask, 1)
