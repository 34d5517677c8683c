"""The composition as a document: what is refused, and that one film has one text."""

import json
from typing import Any

import msgspec
import pytest

from kit.film_briefs import composed, shipped
from kit.promises import promise
from videoads.renderer.composition import (
    Box,
    CompositionError,
    Output,
    composition_as_json,
    composition_schema,
    parse_composition,
    safe_area,
)

SHIPPED = ("espresso", "bike_light", "glasklar")


def document(name: str = "espresso") -> dict[str, Any]:
    read: dict[str, Any] = json.loads(composition_as_json(composed(shipped(name))))
    return read


@promise("H71")
@pytest.mark.parametrize("name", SHIPPED)
def test_a_composition_reads_back_as_itself(name: str) -> None:
    """Writing and reading change nothing, so a stored one can be rendered years later."""
    composition = composed(shipped(name))

    assert parse_composition(composition_as_json(composition)) == composition


@pytest.mark.parametrize("name", SHIPPED)
def test_the_same_brief_gives_the_same_bytes(name: str) -> None:
    """Two runs of a brief are compared by these."""
    assert composition_as_json(composed(shipped(name))) == composition_as_json(composed(shipped(name)))


def test_a_composition_holds_whole_numbers_only() -> None:
    """No fraction, so no rounding differs between machines."""
    assert b"." not in b"".join(part.encode() for part in _numbers(document()))


def _numbers(value: Any) -> list[str]:
    match value:
        case dict():
            return [text for item in value.values() for text in _numbers(item)]
        case list():
            return [text for item in value for text in _numbers(item)]
        case bool() | str() | None:
            return []
        case _:
            return [repr(value)]


BROKEN: list[tuple[str, list[str | int], Any, str]] = [
    ("/shots/1/start_frame", ["shots", 1, "start_frame"], 71, "without gap"),
    ("/output/frames", ["output", "frames"], 433, "give 432"),
    ("/cuts", ["cuts", 0], 73, "the shots say"),
    ("/card/start_frame", ["card", "start_frame"], 287, "is next"),
    ("/shots/0/media", ["shots", 0, "media"], "https://a.example/b.mp4", "object key"),
    ("/audio/music", ["audio", "music"], "", "object key"),
    ("/output/width", ["output", "width"], "720", "Expected `int`"),
    ("/shots/2/transition", ["shots", 2, "transition"], "fade", "Invalid enum"),
    ("/version", ["version"], 2, "Invalid enum"),
    ("", ["extra"], 1, "unknown field `extra`"),
]


@promise("H71")
@pytest.mark.parametrize(
    ("pointer", "path", "value", "words"), BROKEN, ids=[b[0] + str(b[2]) for b in BROKEN]
)
def test_a_stale_or_broken_composition_is_refused_with_its_pointer(
    pointer: str, path: list[str | int], value: Any, words: str
) -> None:
    """The whole one is accepted; each of these differs from it in one place."""
    broken = document()
    place: Any = broken
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value

    with pytest.raises(CompositionError) as refused:
        parse_composition(json.dumps(broken).encode())

    assert refused.value.pointer == pointer
    assert words in str(refused.value)


@pytest.mark.parametrize("raw", [b"", b"[", b"[]", b"\xff"])
def test_what_is_no_composition_is_refused(raw: bytes) -> None:
    """No traceback from a decoder gets out."""
    with pytest.raises(CompositionError):
        parse_composition(raw)


def test_the_schema_names_every_member_and_forbids_others() -> None:
    """The generated schema is as strict as the reader."""
    schema = composition_schema()

    parts = schema["$defs"]
    assert {"Composition", "Shot", "Title", "Caption", "Card", "Audio"} <= set(parts)
    assert all(part["additionalProperties"] is False for part in parts.values())
    assert json.loads(msgspec.json.encode(schema)) == schema


def test_the_safe_area_leaves_twelve_twenty_and_eight_percent() -> None:
    """Top 12, bottom 20, sides 8, rounded inwards."""
    area = safe_area(Output(720, 1280, 30, 1, "h264-aac"))

    assert area == Box(58, 154, 604, 870)
