"""A brief: what somebody wants advertised, checked before a credit is spent.

`parse_brief` reads JSON and either returns a `Brief` or raises one `BriefError` that lists everything
wrong with it, each with a JSON pointer and what would be right. A brief read from a file may name pictures
lying beside it; afterwards their contents travel inside the brief. How each member is checked is in
`brief_reader.py`; turning a brief into shots is `script.py`'s work.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from videoads.bars import FPS

__all__ = [
    "BRIEF_BYTES_MAX",
    "Brief",
    "BriefError",
    "BriefProblem",
    "ClosingCard",
    "Colours",
    "Language",
    "OutputSize",
    "Picture",
    "Profile",
    "Scene",
    "Style",
    "brief_as_json",
    "parse_brief",
    "read_brief",
]

Style = Literal["warm-editorial", "bold-dark", "clean-service"]
Profile = Literal["h264-aac", "vp9-opus"]
Language = Literal["en", "de"]

BRIEF_BYTES_MAX = 12_000_000


class Colours(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The brand's palette, each as `#rrggbb`."""

    background: str
    surface: str
    ink: str
    accent: str
    light: str


class Picture(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A picture's bytes (base64) and what they are."""

    media_type: str
    base64: str

    def content(self) -> bytes:
        """Return the bytes of the picture file."""
        return base64.b64decode(self.base64)


class Scene(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One shot: what is seen, the words shown over it and up to two short call-outs.

    `shows_product` false keeps the brief's product picture to the closing card, when the shot draws its own.
    """

    prompt: str
    line: str = ""
    call_outs: tuple[str, ...] = ()
    shows_product: bool = True


class ClosingCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the last two bars say."""

    offer: str
    button: str
    address: str


class OutputSize(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The picture's size in pixels."""

    width: int = 720
    height: int = 1280


class Brief(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything needed to write an ad; complete in itself once parsed."""

    product: str
    headline: str
    scenes: tuple[Scene, ...]
    colours: Colours
    closing: ClosingCard
    tagline: str = ""
    style: Style = "warm-editorial"
    language: Language = "en"
    narration: tuple[str, ...] | None = None
    logo: Picture | None = None
    product_picture: Picture | None = None
    seconds: float = 14.4
    fps: int = FPS
    size: OutputSize = OutputSize()
    profile: Profile = "h264-aac"


class BriefProblem(NamedTuple):
    """One thing wrong: where, what, and what would be right."""

    pointer: str
    message: str
    remedy: str


class BriefError(ValueError):
    """A brief that cannot be made into an ad, with every problem found."""

    def __init__(self, problems: list[BriefProblem]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{first.pointer or '/'}: {first.message}; {first.remedy}{more}")


def read_brief(path: Path) -> Brief:
    """Read a brief file; the pictures it names are looked for in its own folder."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        problem = BriefProblem("", f"cannot read {path}: {error.strerror}", "give the path of a JSON file")
        raise BriefError([problem]) from error
    return parse_brief(raw, base=path.parent)


def parse_brief(raw: bytes, *, base: Path | None) -> Brief:
    """Return the brief in `raw`, or raise `BriefError` with all its problems.

    `base` is the folder in which named pictures are found; without one only inline pictures are accepted.
    """
    if len(raw) > BRIEF_BYTES_MAX:
        message = f"the brief has {len(raw)} bytes, the limit is {BRIEF_BYTES_MAX}"
        raise BriefError([BriefProblem("", message, "use smaller pictures")])
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BriefError([BriefProblem("", f"not JSON: {error}", "send one JSON object in UTF-8")]) from error
    from videoads.brief_reader import BriefReader  # it needs the types above

    reader = BriefReader(base)
    brief = reader.brief(document)
    if reader.problems or brief is None:
        raise BriefError(reader.problems)
    _refuse_what_does_not_fit(brief)
    return brief


def _refuse_what_does_not_fit(brief: Brief) -> None:
    """Set all words once, as the film will, so that a text too wide is refused now and not after the clips."""
    try:
        from videoads.renderer.composing import refuse_what_does_not_fit
    except ImportError:  # the service itself is installed without the renderer; it looks again
        return
    refuse_what_does_not_fit(brief)


def brief_as_json(brief: Brief) -> dict[str, Any]:
    """Return the brief as plain JSON values, pictures inside; `parse_brief` reads it back anywhere.

    `seconds` becomes decimal text: the canonical form of a command refuses binary fractions.
    """
    document: dict[str, Any] = msgspec.to_builtins(brief)
    document["seconds"] = f"{brief.seconds:.6f}".rstrip("0").rstrip(".")
    return document
