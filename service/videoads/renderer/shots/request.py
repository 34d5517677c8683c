"""What a caller asks of the shots and what it gets back: plain data and the one error.

The drawing itself is in `pieces/`; the words that choose a piece are in `match`.
"""

import re

import msgspec

FRAMES_MAX = 1800
SIDE_MAX = 4096
SIDE_MIN = 16
FPS_MAX = 120
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\Z")


class ShotError(ValueError):
    """A request that cannot be drawn: `pointer` is its JSON pointer, the message says what would be right."""

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(f"{pointer or '/'}: {message}")
        self.pointer = pointer


class Palette(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The brand's five colours as `#rrggbb`; every sprite is recoloured from them."""

    background: str
    surface: str
    ink: str
    accent: str
    light: str


class ShotRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One shot: its words, its length and size, its seed and its colours."""

    prompt: str
    frames: int
    fps: int
    width: int
    height: int
    seed: int
    palette: Palette
    product_picture: str | None = None
    title: str = ""


class ClipReport(msgspec.Struct, frozen=True):
    """What `write_clip` made. `note` says in words which picture was chosen, and why when none fitted."""

    set_piece: str
    frames: int
    width: int
    height: int
    fps: int
    seconds: float
    note: str
    anchors: tuple[tuple[float, float], ...] = ()


def check_request(request: ShotRequest) -> None:
    """Refuse a request that cannot be drawn, naming the field and the remedy."""
    limits = (
        ("frames", request.frames, 1, FRAMES_MAX),
        ("fps", request.fps, 1, FPS_MAX),
        ("width", request.width, SIDE_MIN, SIDE_MAX),
        ("height", request.height, SIDE_MIN, SIDE_MAX),
    )
    for name, value, least, most in limits:
        if not least <= value <= most:
            raise ShotError(f"/{name}", f"is {value}; use {least} to {most}")
    for name in ("width", "height"):
        if getattr(request, name) % 2:
            raise ShotError(f"/{name}", f"is {getattr(request, name)}; H.264 needs an even number")
    for field in Palette.__struct_fields__:
        colour = getattr(request.palette, field)
        if not _COLOUR.match(colour):
            raise ShotError(f"/palette/{field}", f"is {colour!r}; write a colour as #rrggbb")
