"""Colours as numbers: reading `#rrggbb`, mixing, and the contrast that WCAG 2 defines."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["CONTRAST_MIN", "Rgb", "contrast", "hex_of", "luminance", "mixed", "readable_on", "rgb"]

Rgb: TypeAlias = tuple[int, int, int]

CONTRAST_MIN = 4.5
"""What text must reach against what surrounds it."""

_WHITE: Rgb = (255, 255, 255)
_BLACK: Rgb = (0, 0, 0)


def rgb(text: str) -> Rgb:
    """Read `#rrggbb`."""
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def hex_of(colour: Rgb) -> str:
    """Write a colour as `#rrggbb`."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


def mixed(one: Rgb, other: Rgb, share: float) -> Rgb:
    """Return `one` with the given share (0 to 1) of `other`."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def luminance(colour: Rgb) -> float:
    """Return the relative luminance, 0 for black and 1 for white."""
    red, green, blue = (_linear(channel / 255) for channel in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Rgb, other: Rgb) -> float:
    """Return the contrast ratio, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def readable_on(ground: Rgb, preferred: tuple[Rgb, ...]) -> Rgb:
    """Return the first preferred colour that reads well on `ground`; white or black when none does."""
    for colour in preferred:
        if contrast(ground, colour) >= CONTRAST_MIN + 0.3:
            return colour
    return max((_WHITE, _BLACK), key=lambda colour: contrast(ground, colour))


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)
