"""How a brief's members are checked, one method for each kind of member.

A `BriefReader` walks a decoded document and notes every problem instead of stopping at the first. What a brief
is stands in `brief.py`; whether a picture can be opened is `pictures.py`'s question.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

from videoads.bars import FPS, FRAMES_PER_BAR, bars_for, bars_needed, card_bars, scene_bars
from videoads.brief import (
    Brief,
    BriefProblem,
    ClosingCard,
    Colours,
    Language,
    OutputSize,
    Picture,
    Profile,
    Scene,
    Style,
)
from videoads.pictures import PictureProblem, check_picture, media_type_of
from videoads.renderer.colours import CONTRAST_MIN, contrast, rgb
from videoads.renderer.lettering.coverage import missing_glyphs

__all__ = ["BriefReader"]

SECONDS_MIN = 4.8
SECONDS_MAX = 60.0
SCENES_MAX = 8
PICTURE_BYTES_MAX = 3_000_000
WORD_CHARACTERS_MAX = 24
"""A longer word fits no line of the headline at a readable size."""

SPOKEN_CHARACTERS_PER_SECOND = 17
"""Faster than this no voice speaks and nobody reads."""


class BriefReader:
    """Reads a decoded document member by member and notes each problem instead of stopping at the first."""

    def __init__(self, base: Path | None) -> None:
        self.base = base
        self.problems: list[BriefProblem] = []

    def brief(self, document: object) -> Brief | None:
        """Read the whole document; only meaningful while `problems` stays empty."""
        members = self._object(document, "", Brief)
        if members is None:
            return None
        seconds = self._number(members, "seconds", 14.4, SECONDS_MIN, SECONDS_MAX)
        scenes = self._scenes(members.get("scenes"), seconds)
        brief = Brief(
            product=self._text(members, "", "product", 24),
            headline=self._text(members, "", "headline", 48),
            tagline=self._text(members, "", "tagline", 60, required=False),
            scenes=scenes,
            colours=self._colours(members.get("colours")),
            closing=self._closing(members.get("closing")),
            style=self._choice(members, "style", get_args(Style), "warm-editorial"),
            language=self._choice(members, "language", get_args(Language), "en"),
            narration=self._narration(members.get("narration"), len(scenes), seconds),
            logo=self._picture(members.get("logo"), "/logo", ("image/svg+xml", "image/png")),
            product_picture=self._picture(
                members.get("product_picture"), "/product_picture", ("image/png", "image/jpeg", "image/webp")
            ),
            seconds=seconds,
            fps=self._fps(members),
            size=self._size(members.get("size")),
            profile=self._choice(members, "profile", get_args(Profile), "h264-aac"),
        )
        return brief

    def _say(self, pointer: str, message: str, remedy: str) -> None:
        self.problems.append(BriefProblem(pointer, message, remedy))

    def _object(self, value: object, pointer: str, kind: type[msgspec.Struct]) -> Mapping[str, object] | None:
        known = kind.__struct_fields__
        if not isinstance(value, dict):
            what = "missing" if value is None else f"{_json_kind(value)}, not an object"
            self._say(pointer, what, "give an object with " + ", ".join(known))
            return None
        for name in value:
            if name not in known:
                self._say(f"{pointer}/{_escaped(name)}", "unknown member", "use one of " + ", ".join(known))
        return value

    def _text(
        self, members: Mapping[str, object], parent: str, name: str, limit: int, *, required: bool = True
    ) -> str:
        pointer = f"{parent}/{name}"
        value = members.get(name)
        if value is None and not required:
            return ""
        if value is None:
            self._say(pointer, "missing", f"give a text of 1 to {limit} characters")
            return ""
        return self._checked_text(value, pointer, limit, required=required)

    def _checked_text(
        self, value: object, pointer: str, limit: int, *, required: bool = True, drawn: bool = True
    ) -> str:
        if not isinstance(value, str):
            self._say(pointer, f"{_json_kind(value)}, not a text", f"give a text of up to {limit} characters")
            return ""
        control = next((c for c in value if ord(c) < 32 or 0xD800 <= ord(c) <= 0xDFFF), None)
        if control is not None:
            self._say(
                pointer, f"contains the character U+{ord(control):04X}", "use printable characters only"
            )
            return ""
        text = " ".join(value.split())
        if required and not text:
            self._say(pointer, "empty", f"give a text of 1 to {limit} characters")
        if len(text) > limit:
            self._say(pointer, f"{len(text)} characters, {limit} fit", f"shorten it to {limit} characters")
        if drawn:
            word = max(text.split(), key=len, default="")
            if len(word) > WORD_CHARACTERS_MAX:
                remedy = f"break words of more than {WORD_CHARACTERS_MAX} letters, with a hyphen and a space"
                self._say(pointer, f"the word {word[:40]!r} has {len(word)} letters and fits no line", remedy)
            missing = missing_glyphs(text)
            if missing:
                shown = " ".join(f"{c} (U+{ord(c):04X})" for c in missing[:5])
                self._say(pointer, f"the fonts have no glyph for {shown}", "use Latin letters")
        return text

    def _number(
        self, members: Mapping[str, object], name: str, default: float, low: float, high: float
    ) -> float:
        value = members.get(name, default)
        if isinstance(value, str) and _DECIMAL.fullmatch(value):
            value = float(value)  # as brief_as_json writes it: a command's payload has no binary fractions
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._say(f"/{name}", f"{_json_kind(value)}, not a number", f"give {low} to {high}")
            return default
        if not low <= value <= high:
            self._say(f"/{name}", f"{value} is out of range", f"give {low} to {high}")
            return default
        return float(value)

    def _fps(self, members: Mapping[str, object]) -> int:
        value = members.get("fps", FPS)
        if value != FPS or isinstance(value, bool):
            self._say("/fps", f"{value!r} frames a second is not offered", f"give {FPS} or leave it out")
        return FPS

    def _choice(
        self, members: Mapping[str, object], name: str, allowed: tuple[str, ...], default: str
    ) -> Any:
        """Return one of `allowed`; typed Any because the caller's field is the matching Literal."""
        value = members.get(name, default)
        if value not in allowed:
            self._say(f"/{name}", f"{value!r} is not offered", "give one of " + ", ".join(allowed))
            return default
        return value

    def _scenes(self, value: object, seconds: float) -> tuple[Scene, ...]:
        if not isinstance(value, list) or not value:
            self._say("/scenes", "no scenes", f"give a list of 1 to {SCENES_MAX} scenes")
            return ()
        if len(value) > SCENES_MAX:
            self._say("/scenes", f"{len(value)} scenes, the limit is {SCENES_MAX}", "leave scenes out")
            return ()
        bars = bars_for(seconds)
        room = bars - card_bars(bars)
        if len(value) > room:
            need = bars_needed(len(value)) * FRAMES_PER_BAR / FPS
            message = (
                f"{len(value)} scenes do not fit: {seconds:g} s are {bars} bars, {room} of them for scenes"
            )
            self._say("/scenes", message, f"give at most {room} scenes or {need:g} seconds")
        return tuple(self._scene(item, f"/scenes/{index}") for index, item in enumerate(value))

    def _scene(self, value: object, pointer: str) -> Scene:
        members = self._object(value, pointer, Scene)
        if members is None:
            return Scene(prompt="")
        prompt = self._checked_text(members.get("prompt", ""), f"{pointer}/prompt", 600, drawn=False)
        call_outs = members.get("call_outs", [])
        if not isinstance(call_outs, list) or len(call_outs) > 2:
            self._say(f"{pointer}/call_outs", "not a list of at most two texts", "give [], one or two texts")
            call_outs = []
        shows_product = members.get("shows_product", True)
        if not isinstance(shows_product, bool):
            self._say(f"{pointer}/shows_product", f"{_json_kind(shows_product)}", "give true or false")
            shows_product = True
        return Scene(
            shows_product=shows_product,
            prompt=prompt,
            line=self._text(members, pointer, "line", 56, required=False),
            call_outs=tuple(
                self._checked_text(text, f"{pointer}/call_outs/{index}", 22)
                for index, text in enumerate(call_outs)
            ),
        )

    def _narration(self, value: object, scenes: int, seconds: float) -> tuple[str, ...] | None:
        if value is None:
            return None
        if not isinstance(value, list) or len(value) not in (scenes, scenes + 1):
            remedy = f"give null, or {scenes} lines (one a scene), or {scenes + 1} (one more for the card)"
            said = f"{len(value)} lines" if isinstance(value, list) else _json_kind(value)
            self._say("/narration", f"{said} for {scenes} scenes", remedy)
            return None
        lines = []
        bars = bars_for(seconds)
        windows = (*scene_bars(scenes, bars), card_bars(bars)) if 0 < scenes <= bars - card_bars(bars) else ()
        for index, item in enumerate(value):
            pointer = f"/narration/{index}"
            text = self._checked_text(item, pointer, 160, required=False)
            if index < len(windows):
                room = int(windows[index] * FRAMES_PER_BAR / FPS * SPOKEN_CHARACTERS_PER_SECOND)
                if len(text) > room:
                    message = f"{len(text)} characters cannot be spoken in {windows[index] * 2.4:g} s"
                    self._say(pointer, message, f"shorten it to {room} characters")
            lines.append(text)
        return tuple(lines)

    def _colours(self, value: object) -> Colours:
        members = self._object(value, "/colours", Colours)
        read = {}
        for name in Colours.__struct_fields__:
            colour = (members or {}).get(name)
            read[name] = "#000000"
            if members is None:
                continue
            if isinstance(colour, str) and _is_colour(colour):
                read[name] = colour.lower()
            else:
                said = "missing" if colour is None else f"{colour!r} is not a colour"
                self._say(f"/colours/{name}", said, "give it as #rrggbb, for example #b5532a")
        colours = Colours(**read)
        if members is not None and all(_is_colour(str(members.get(name))) for name in ("ink", "surface")):
            reached = contrast(rgb(colours.ink), rgb(colours.surface))
            if reached < CONTRAST_MIN:
                message = f"the contrast of ink on surface is {reached:.1f}, too little to read"
                self._say(
                    "/colours/ink", message, f"choose colours with a contrast of {CONTRAST_MIN} or more"
                )
        return colours

    def _closing(self, value: object) -> ClosingCard:
        members = self._object(value, "/closing", ClosingCard)
        if members is None:
            return ClosingCard(offer="", button="", address="")
        return ClosingCard(
            offer=self._text(members, "/closing", "offer", 44),
            button=self._text(members, "/closing", "button", 22),
            address=self._text(members, "/closing", "address", 36),
        )

    def _size(self, value: object) -> OutputSize:
        if value is None:
            return OutputSize()
        members = self._object(value, "/size", OutputSize)
        read = {}
        for name, default in (("width", 720), ("height", 1280)):
            side = (members or {}).get(name, default)
            if isinstance(side, bool) or not isinstance(side, int) or not 64 <= side <= 1920 or side % 2:
                self._say(
                    f"/size/{name}", f"{side!r} pixels is not possible", "give an even number, 64 to 1920"
                )
                side = default
            read[name] = side
        return OutputSize(**read)

    def _picture(self, value: object, pointer: str, allowed: tuple[str, ...]) -> Picture | None:
        if value is None:
            return None
        kinds = ", ".join(kind.removeprefix("image/").removesuffix("+xml").upper() for kind in allowed)
        content: bytes | None
        if isinstance(value, str):
            content = self._file_beside(value, pointer)
        elif isinstance(value, dict) and isinstance(value.get("base64"), str):
            for name in set(value) - {"base64", "media_type"}:
                self._say(f"{pointer}/{_escaped(name)}", "unknown member", "use base64 and media_type")
            content = self._decoded(value["base64"], f"{pointer}/base64")
        else:
            self._say(pointer, f"{_json_kind(value)}, not a picture", 'give a path or {"base64": "..."}')
            return None
        if content is None:
            return None
        if len(content) > PICTURE_BYTES_MAX:
            self._say(pointer, f"{len(content)} bytes", f"give a picture under {PICTURE_BYTES_MAX} bytes")
            return None
        media_type = media_type_of(content)
        if media_type not in allowed:
            self._say(pointer, f"not one of {kinds}", f"give a {kinds} file")
            return None
        try:
            check_picture(content, media_type)
        except PictureProblem as problem:
            self._say(pointer, str(problem), problem.remedy)
            return None
        return Picture(media_type=media_type, base64=base64.b64encode(content).decode())

    def _decoded(self, text: str, pointer: str) -> bytes | None:
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            self._say(pointer, "not base64", "encode the file's bytes as standard base64 without line breaks")
            return None

    def _file_beside(self, name: str, pointer: str) -> bytes | None:
        if self.base is None:
            remedy = 'send the picture inside the brief as {"base64": "..."}'
            self._say(pointer, f"the path {name!r} cannot be read from here", remedy)
            return None
        if "\x00" in name:
            self._say(pointer, "the path contains U+0000", "give a plain file name")
            return None
        folder = self.base.resolve()
        path = (folder / name).resolve()
        if not path.is_relative_to(folder):
            self._say(
                pointer, f"the path {name!r} leaves the brief's folder", "put the file beside the brief"
            )
            return None
        try:
            if path.stat().st_size > PICTURE_BYTES_MAX:
                return b"\x00" * (PICTURE_BYTES_MAX + 1)
            return path.read_bytes()
        except OSError as error:
            self._say(pointer, f"cannot read {name!r}: {error.strerror}", "put the file beside the brief")
            return None


_DECIMAL = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


def _is_colour(text: str) -> bool:
    return len(text) == 7 and text[0] == "#" and all(c in "0123456789abcdefABCDEF" for c in text[1:])


def _json_kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"


def _escaped(name: object) -> str:
    return str(name).replace("~", "~0").replace("/", "~1")
