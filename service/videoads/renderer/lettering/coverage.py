"""Which characters the vendored fonts can draw.

Read from `fonts/coverage.json`, which was taken from the fonts' own character maps, so that a brief can be
checked without a font engine. A test draws every listed character to prove the list.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Literal

import msgspec

__all__ = ["FACES", "Face", "covered_by", "missing_glyphs"]

Face = Literal["serif", "grotesque"]

FACES: dict[Face, tuple[str, ...]] = {
    "serif": ("fraunces-latin-full-normal.woff2", "fraunces-latin-ext-full-normal.woff2"),
    "grotesque": (
        "bricolage-grotesque-latin-standard-normal.woff2",
        "bricolage-grotesque-latin-ext-standard-normal.woff2",
    ),
}
"""The files of each face, the first that has a character draws it."""


def missing_glyphs(text: str) -> list[str]:
    """Return the characters of `text` that either face cannot draw, each once, in order."""
    missing = [c for c in dict.fromkeys(text) if any(covered_by(face, c) is None for face in FACES)]
    return missing


def covered_by(face: Face, character: str) -> str | None:
    """Return the font file of `face` that has the character, or None."""
    point = ord(character)
    for name in FACES[face]:
        if any(low <= point <= high for low, high in _ranges()[name]):
            return name
    return None


@cache
def _ranges() -> dict[str, list[tuple[int, int]]]:
    raw = resources.files(__package__).joinpath("fonts/coverage.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, list[tuple[int, int]]])
