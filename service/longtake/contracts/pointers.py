"""Pointers: the only thing JetStream carries of effects and callbacks (G28, G44, P11).

A pointer is a hint. Whatever it names is read from Postgres before anything is believed.
"""

import uuid
from hashlib import sha256
from typing import TypeVar

import msgspec

from longtake.errors import PoisonMessage

POINTER_BYTES_MAX = 16 * 1024
POINTERS_PER_MESSAGE_MAX = 64
SCHEMA_VERSION = 1


class EffectPointers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of a message on `longtake.v1.effect.{pool}`: (effect id, attempt, generation)."""

    schema_version: int = SCHEMA_VERSION
    epoch: int
    effects: tuple[tuple[uuid.UUID, int, int], ...]


class CallbackPointers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of a message on `longtake.v1.callback.{part}`: inbox rows, reported effects and runs alike."""

    schema_version: int = SCHEMA_VERSION
    epoch: int
    inbox: tuple[uuid.UUID, ...] = ()
    effects: tuple[uuid.UUID, ...] = ()
    runs: tuple[uuid.UUID, ...] = ()
    """Runs with due timers or open signals."""


T = TypeVar("T", EffectPointers, CallbackPointers)

_encoder = msgspec.json.Encoder()
_effects = msgspec.json.Decoder(EffectPointers)
_callbacks = msgspec.json.Decoder(CallbackPointers)


def encode_pointers(pointers: EffectPointers | CallbackPointers) -> bytes:
    """Encode a pointer body."""
    return _encoder.encode(pointers)


def message_id(body: bytes, *, generation: int = 0) -> str:
    """Message id of a pointer message: the digest of its pointers, generations included (design.md 10)."""
    return sha256(body + generation.to_bytes(8, "big")).hexdigest()[:32]


def decode_effect_pointers(raw: bytes) -> EffectPointers:
    """Read an effect message; PoisonMessage when it is none."""
    return _checked(_effects, raw, "effects")


def decode_callback_pointers(raw: bytes) -> CallbackPointers:
    """Read a callback message; PoisonMessage when it is none."""
    return _checked(_callbacks, raw, "callbacks")


def _checked(decoder: "msgspec.json.Decoder[T]", raw: bytes, what: str) -> T:
    if len(raw) > POINTER_BYTES_MAX:
        raise PoisonMessage(what, f"{len(raw)} bytes, at most {POINTER_BYTES_MAX} are taken")
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PoisonMessage(what, str(error)) from error
