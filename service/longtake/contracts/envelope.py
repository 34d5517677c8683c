"""The envelope of a stored event: its place, its cause, and the hash that chains it to the one before (P22)."""

import hashlib
import uuid
from datetime import datetime

import msgspec

GENESIS = bytes(32)
"""What the first event of a run is chained to."""


class Meta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why an event exists and which trace it belongs to."""

    causation: str
    """`command:{id}`, `effect:{id}`, `inbox:{id}`, `timer:{key}`, `signal:{id}`, `line:{project}`."""
    correlation: str
    """The command that started the run."""
    actor: str
    traceparent: str | None = None


class StoredEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `events`; data and meta are the exact stored bytes."""

    tenant: str
    run_id: uuid.UUID
    seq: int
    id: uuid.UUID
    type: str
    version: int
    data: bytes
    meta: bytes
    store_epoch: int
    recorded_at: datetime
    hash: bytes


def chain(
    previous: bytes,
    *,
    store_epoch: int,
    seq: int,
    type_: str,
    version: int,
    recorded_at: datetime,
    data: bytes,
    meta: bytes,
) -> bytes:
    """SHA-256(prev, epoch, seq, type, version, recorded_at, exact data bytes, exact meta bytes) (P22).

    Integers are four bytes, big endian; recorded_at is eight bytes of microseconds since 1970; texts and bytes are
    preceded by their length in four bytes, so that no two histories share a preimage.
    """
    hasher = hashlib.sha256(previous)
    hasher.update(store_epoch.to_bytes(4, "big"))
    hasher.update(seq.to_bytes(4, "big"))
    for part in (type_.encode(),):
        hasher.update(len(part).to_bytes(4, "big") + part)
    hasher.update(version.to_bytes(4, "big"))
    hasher.update(microseconds(recorded_at).to_bytes(8, "big"))
    for part in (data, meta):
        hasher.update(len(part).to_bytes(4, "big") + part)
    return hasher.digest()


def microseconds(moment: datetime) -> int:
    """Whole microseconds since 1970-01-01 UTC, exactly."""
    whole = int(moment.replace(microsecond=0).timestamp())
    return whole * 1_000_000 + moment.microsecond
