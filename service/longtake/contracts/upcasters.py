"""Reading stored events: from any version that was ever written to the struct of today (F57).

An unknown type or version stops that run (UnreadableHistory); an unknown field is kept out of the struct and in the
stored bytes.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from longtake.contracts.events import EVENT_TYPES, Event
from longtake.errors import UnreadableHistory

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]


def _money_in_one_place(data: dict[str, Any]) -> dict[str, Any]:
    """run_accepted 1 -> 2: what was frozen of the money stands under `money`; version 1 held the whole cap."""
    rest = dict(data)
    money = {
        "account": rest.pop("account"),
        "billing": rest.pop("billing", "prepaid"),
        "quoted": rest.pop("quoted"),
        "cap": rest.pop("cap"),
        "price_list": rest.pop("price_list"),
    }
    return {**rest, "money": {**money, "held": money["cap"]}}


UPCASTERS: dict[tuple[str, int], Upcaster] = {("run_accepted", 1): _money_in_one_place}
"""(type, version) -> function that turns stored data of that version into data of the next."""

_types = {event.TYPE: event for event in EVENT_TYPES}
_decoders = {event.TYPE: msgspec.json.Decoder(event) for event in EVENT_TYPES}
_encoder = msgspec.json.Encoder()


def encode_event(event: Event) -> bytes:
    """The exact data bytes that are stored and hashed."""
    return _encoder.encode(event)


def decode_event(type_: str, version: int, data: bytes | str) -> Event:
    """Read stored data; UnreadableHistory when nothing here knows the type or version."""
    current = _types.get(type_)
    if current is None or version > current.VERSION:
        raise UnreadableHistory(type_, version, "this program does not know the event")
    try:
        if version == current.VERSION:
            return _decoders[type_].decode(data)
        plain = msgspec.json.decode(data)
        for step in range(version, current.VERSION):
            upcaster = UPCASTERS.get((type_, step))
            if upcaster is None:
                raise UnreadableHistory(type_, step, "no upcaster leads on from this version")
            plain = upcaster(plain)
        return msgspec.convert(plain, current)
    except msgspec.DecodeError as error:
        raise UnreadableHistory(type_, version, str(error)) from error
