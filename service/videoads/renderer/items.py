"""The things a frame can show: what `layout` lists and `painting` draws, in whole numbers."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from videoads.renderer.composition import Box, TextBlock
from videoads.renderer.lettering.coverage import Face

__all__ = [
    "Band",
    "Button",
    "Clip",
    "Colour",
    "Disc",
    "DrawItem",
    "Ground",
    "Mark",
    "Plate",
    "Rule",
    "Words",
]

Colour = Literal["over", "under", "ink", "surface", "bright", "accent", "on_accent"]
"""`over` is words on a picture and `under` the shade beneath them, `bright` the lighter of ink and surface."""


class Clip(msgspec.Struct, frozen=True, tag="clip"):
    """A frame of a shot, moved sideways and smeared while whipping, visible from column `left`."""

    shot: int
    frame: int
    shift: int = 0
    smear: int = 1
    left: int = 0


class Ground(msgspec.Struct, frozen=True, tag="ground"):
    """The closing card's moving ground, visible from row `top`."""

    frame: int
    top: int


class Band(msgspec.Struct, frozen=True, tag="band"):
    """A soft shade across the picture beneath a title, as strong as `group` needs."""

    group: str
    box: Box
    opacity: int


class Plate(msgspec.Struct, frozen=True, tag="plate"):
    """A rounded plate; with a group its strength is the measured one."""

    box: Box
    radius: int
    colour: Colour
    opacity: int
    group: str = ""


class Words(msgspec.Struct, frozen=True, tag="words"):
    """Text on one baseline, cut off outside the rows `rows`."""

    text: str
    face: Face
    size: int
    weight: int
    x: int
    baseline: int
    colour: Colour
    opacity: int
    rows: tuple[int, int]
    group: str = ""


class Rule(msgspec.Struct, frozen=True, tag="rule"):
    """A straight line."""

    from_x: int
    from_y: int
    to_x: int
    to_y: int
    width: int
    colour: Colour
    opacity: int
    group: str = ""


class Disc(msgspec.Struct, frozen=True, tag="disc"):
    """A filled circle; radius in quarter pixels so that it can breathe."""

    x: int
    y: int
    radius_quarters: int
    colour: Colour
    opacity: int


class Mark(msgspec.Struct, frozen=True, tag="mark"):
    """A brought picture fitted into a box; a logo is drawn stroke by stroke up to `drawn_permille`."""

    media: str
    kind: Literal["logo", "product"]
    box: Box
    opacity: int
    drawn_permille: int = 1000
    zoom_permille: int = 1000
    lift_quarters: int = 0


class Button(msgspec.Struct, frozen=True, tag="button"):
    """The closing card's button with its words, enlarged by `zoom_permille`, a gleam at `gleam_permille`."""

    block: TextBlock
    box: Box
    opacity: int
    zoom_permille: int
    gleam_permille: int


DrawItem: TypeAlias = Clip | Ground | Band | Plate | Words | Rule | Disc | Mark | Button
