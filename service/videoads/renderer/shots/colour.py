"""Colours: reading `#rrggbb`, mixing, lightness, and the palette's derived names.

A brand's palette may be dark on light or light on dark; the pieces ask for `dark` and `pale` and get the
right ones either way.
"""

import re
from collections.abc import Mapping

from videoads.renderer.shots.request import Palette

Rgb = tuple[int, int, int]
_TOKEN = re.compile(r"@([a-z]+)(?:~([a-z]+)(\d+))?")


def rgb(colour: str) -> Rgb:
    """`#rrggbb` as three bytes."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def hexed(colour: Rgb) -> str:
    """Three bytes as `#rrggbb`."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


def mix(first: Rgb, second: Rgb, share: float) -> Rgb:
    """`first` with `share` (0 to 1) of `second` in it."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def lightness(colour: Rgb) -> float:
    """Perceived lightness, 0 to 1 (relative weights of the eye, no gamma: good enough to order five colours)."""
    return (0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]) / 255


def named_colours(palette: Palette) -> dict[str, Rgb]:
    """The five brand colours and the derived ones: `dark`, `pale`, `white`, `black`."""
    colours = {field: rgb(getattr(palette, field)) for field in Palette.__struct_fields__}
    ordered = sorted((colours["background"], colours["surface"], colours["ink"]), key=lightness)
    dark, pale = ordered[0], ordered[-1]
    if lightness(dark) > 0.2:
        dark = mix(dark, (8, 8, 12), 0.75)
    if lightness(pale) < 0.75:
        pale = mix(pale, (255, 252, 246), 0.8)
    return colours | {"dark": dark, "pale": pale, "white": (255, 255, 255), "black": (0, 0, 0)}


def recolour(svg: str, colours: Mapping[str, Rgb]) -> str:
    """Replace `@name` and `@name~other30` (name with 30 % of other) in a drawing by real colours."""

    def replace(found: re.Match[str]) -> str:
        first = colours[found[1]]
        return hexed(mix(first, colours[found[2]], int(found[3]) / 100) if found[2] else first)

    return _TOKEN.sub(replace, svg)
