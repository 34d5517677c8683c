"""Every event that was ever written is read by the code of today, and none changes its shape unnoticed (F57)."""

import json
from typing import Any, ClassVar

import msgspec
import pytest

from kit.corpora import GoldenEvent, changed_shapes, corpora, golden_events, shape_digest
from longtake.contracts.events import EVENT_TYPES, Event
from longtake.contracts.upcasters import UPCASTERS, decode_event, encode_event
from longtake.errors import UnreadableHistory

GOLDEN = [event for corpus in corpora() for event in golden_events(corpus)]
CURRENT = {event.TYPE: event for event in EVENT_TYPES}


def newest_shapes() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads((corpora()[-1] / "shapes.json").read_bytes())
    return found


def test_every_event_ever_written_is_read_today() -> None:
    for golden in GOLDEN:
        read = decode_event(golden.type, golden.version, golden.data)

        assert type(read) is CURRENT[golden.type]
        if golden.version == read.VERSION:
            assert encode_event(read) == golden.data, golden.type


def test_the_corpora_hold_every_type_and_version() -> None:
    held = {(golden.type, golden.version) for golden in GOLDEN}

    assert held >= {(event.TYPE, event.VERSION) for event in EVENT_TYPES} | set(UPCASTERS)


def test_no_event_has_another_shape_without_a_new_version() -> None:
    assert changed_shapes(EVENT_TYPES, newest_shapes()) == []


# --- each check beside a change that it refuses -----------------------------------------------------------------------


class Grown(Event, frozen=True, kw_only=True):
    """An event as it was."""

    TYPE: ClassVar[str] = "grown"

    amount: int


class GrownSince(Grown, frozen=True, kw_only=True):
    """The same with one field more, under the same version."""

    note: str = ""


class GrownRightly(GrownSince, frozen=True, kw_only=True):
    """The same under a new version."""

    VERSION: ClassVar[int] = 2


def kept(event: type[Event]) -> dict[str, dict[str, Any]]:
    return {event.TYPE: {"version": event.VERSION, "digest": shape_digest(event)}}


def test_a_changed_shape_needs_a_version_an_upcaster_and_a_corpus() -> None:
    assert changed_shapes([Grown], kept(Grown)) == []
    assert changed_shapes([GrownSince], kept(Grown)) == ["grown: another shape under the same version 1"]
    assert changed_shapes([GrownRightly], kept(Grown)) == [
        "grown: version 2 is not in the newest corpus",
        "grown: no upcaster leads on from version 1",
    ]
    assert changed_shapes([GrownRightly], kept(GrownRightly), [("grown", 1)]) == []
    assert changed_shapes([], kept(Grown)) == ["grown: written once, and no type of today reads it"]
    assert changed_shapes([Grown], kept(GrownRightly)) == [
        "grown: version 1 is older than the 2 that was written"
    ]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda one: f"{one.type}-{one.version}-{one.origin}")
def test_a_field_of_a_later_release_is_passed_over(golden: GoldenEvent) -> None:
    """A rolled back process reads what the newer one wrote; the bytes in the store keep the field."""
    more = {**msgspec.json.decode(golden.data), "of_a_later_release": {"x": 1}}

    read = decode_event(golden.type, golden.version, msgspec.json.encode(more))

    assert read == decode_event(golden.type, golden.version, golden.data)


def test_a_lost_required_field_is_told_by_type_and_version() -> None:
    golden = next(one for one in GOLDEN if one.type == "steps_scheduled")

    with pytest.raises(UnreadableHistory, match="steps_scheduled"):
        decode_event(golden.type, golden.version, b"{}")
