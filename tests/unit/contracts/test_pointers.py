"""Pointer messages: read or refused, never half believed."""

import uuid

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.contracts.pointers import (
    POINTER_BYTES_MAX,
    CallbackPointers,
    EffectPointers,
    decode_callback_pointers,
    decode_effect_pointers,
    encode_pointers,
    message_id,
)
from longtake.errors import PoisonMessage

UUIDS = st.uuids()


@given(st.lists(st.tuples(UUIDS, st.integers(1, 99), st.integers(1, 99)), max_size=64), st.integers(0, 9))
def test_effect_pointers_read_back(effects: list, epoch: int) -> None:
    pointers = EffectPointers(epoch=epoch, effects=tuple(effects))

    assert pointers == decode_effect_pointers(encode_pointers(pointers))
    assert len(encode_pointers(pointers)) <= POINTER_BYTES_MAX


@given(st.lists(UUIDS, max_size=32), st.lists(UUIDS, max_size=32))
def test_callback_pointers_read_back(inbox: list, effects: list) -> None:
    pointers = CallbackPointers(epoch=1, inbox=tuple(inbox), effects=tuple(effects))

    assert pointers == decode_callback_pointers(encode_pointers(pointers))


@given(st.binary(max_size=300))
def test_any_bytes_are_either_pointers_or_poison(raw: bytes) -> None:
    for decode in (decode_effect_pointers, decode_callback_pointers):
        try:
            decode(raw)
        except PoisonMessage as error:
            assert error.reason


@given(st.data())
def test_a_bent_message_is_poison_or_another_message(data: st.DataObject) -> None:
    good = encode_pointers(EffectPointers(epoch=1, effects=((uuid.UUID(int=5), 1, 1),)))
    at = data.draw(st.integers(0, len(good) - 1))
    bent = good[:at] + bytes([data.draw(st.integers(0, 255))]) + good[at + 1 :]
    try:
        read = decode_effect_pointers(bent)
    except PoisonMessage:
        return
    assert isinstance(read, EffectPointers)
    assert bent == good or read != decode_effect_pointers(good) or bent.lower() == good.lower()


def test_a_giant_message_is_not_parsed() -> None:
    with pytest.raises(PoisonMessage, match=f"at most {POINTER_BYTES_MAX}"):
        decode_effect_pointers(b" " * (POINTER_BYTES_MAX + 1))


@pytest.mark.parametrize(
    "body",
    [
        {"epoch": 1},
        {"epoch": 1, "effects": [], "more": 1},
        {"epoch": 1, "effects": [["x", 1, 1]]},
        {"effects": []},
    ],
)
def test_a_message_of_another_shape_is_poison(body: dict) -> None:
    with pytest.raises(PoisonMessage):
        decode_effect_pointers(msgspec.json.encode(body))


def test_a_needed_second_publish_has_another_message_id() -> None:
    body = encode_pointers(EffectPointers(epoch=1, effects=()))

    assert message_id(body) == message_id(body) != message_id(body, generation=1)
    assert message_id(body) != message_id(body + b" ")
