"""Stored events: exact bytes, versions, the chain."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.plans import film
from kit.promises import promise
from longtake.contracts import upcasters
from longtake.contracts.envelope import GENESIS, chain, microseconds
from longtake.contracts.events import EVENT_TYPES, Charged
from longtake.contracts.outcomes import Cancelled, Impossible
from longtake.contracts.upcasters import decode_event, encode_event
from longtake.errors import UnreadableHistory
from longtake.workflow.script import Script


def histories() -> list[Any]:
    script = Script(film(2))
    script.accept()
    script.submit("scene:1")
    script.call_back("scene:1")
    script.succeed("scene:1")
    script.fail("scene:2")
    script.wait(9).lose_lease("scene:2", call_opened=True)
    script.report("scene:2", Impossible(evidence="e"))
    script.retry()
    script.cancel()
    script.report("voice", Cancelled())
    return [event for event, _ in script.history]


def test_every_event_reads_back_from_its_bytes() -> None:
    for event in histories():
        assert event == decode_event(event.TYPE, event.VERSION, encode_event(event))


def test_wire_names_are_unique() -> None:
    assert len(EVENT_TYPES) == len({event.TYPE for event in EVENT_TYPES})


@promise("H26")
@pytest.mark.parametrize(
    ("type_", "version", "data", "reason"),
    [
        ("never_heard_of", 1, b"{}", "does not know"),
        ("charged", 2, b"{}", "does not know"),
        ("charged", 1, b"{}", "missing required field"),
        ("charged", 1, b"nonsense", "malformed"),
        ("charged", 0, b"{}", "no upcaster leads on"),
    ],
)
def test_what_cannot_be_read_stops_the_run_with_a_reason(
    type_: str, version: int, data: bytes, reason: str
) -> None:
    with pytest.raises(UnreadableHistory, match=reason) as caught:
        decode_event(type_, version, data)

    assert type_ == caught.value.type


def test_an_unknown_field_is_kept_out() -> None:
    assert Charged(key="k", amount=1) == decode_event("charged", 1, b'{"key":"k","amount":1,"new":2}')


def test_an_old_version_is_led_up_to_the_present(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        upcasters.UPCASTERS, ("charged", 0), lambda old: {"key": old["k"], "amount": old["a"]}
    )

    assert Charged(key="k", amount=3) == decode_event("charged", 0, b'{"k":"k","a":3}')


def test_an_upcaster_that_leads_nowhere_is_an_unreadable_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(upcasters.UPCASTERS, ("charged", 0), lambda old: {"key": 7})

    with pytest.raises(UnreadableHistory):
        decode_event("charged", 0, b"{}")


LINK: dict[str, Any] = {
    "store_epoch": 1, "seq": 1, "type_": "charged", "version": 1, "recorded_at": datetime(2026, 1, 1, tzinfo=UTC),
    "data": b"{}", "meta": b"{}",
}  # fmt: skip


@promise("H26")
@pytest.mark.parametrize(
    "change",
    [
        {"store_epoch": 2}, {"seq": 2}, {"type_": "charge"}, {"version": 2}, {"data": b"{ }"}, {"meta": b"{ }"},
        {"recorded_at": LINK["recorded_at"] + timedelta(microseconds=1)}, {"data": b"{}{", "meta": b"}"},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_every_part_of_an_event_is_in_its_link(change: dict) -> None:
    assert chain(GENESIS, **LINK) != chain(GENESIS, **{**LINK, **change})
    assert chain(GENESIS, **LINK) != chain(b"\x01" * 32, **LINK)
    assert chain(GENESIS, **LINK) == chain(GENESIS, **LINK)


@given(st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_times_are_linked_to_the_microsecond(moment: datetime) -> None:
    assert moment == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds(moment))


@given(st.binary(max_size=100))
def test_any_bytes_are_an_event_or_an_unreadable_history(raw: bytes) -> None:
    try:
        read = decode_event("charged", 1, raw)
    except UnreadableHistory:
        return
    assert isinstance(read, Charged)
    assert msgspec.json.decode(raw)
