"""Sealing events: their place, cause and chained hash, in the order they happened (P22)."""

import uuid
from collections.abc import Sequence
from datetime import datetime

import msgspec

from longtake.contracts.envelope import Meta, StoredEvent, chain
from longtake.contracts.events import Event
from longtake.contracts.ids import event_id_for
from longtake.contracts.upcasters import encode_event

_meta = msgspec.json.Encoder()


class Head(msgspec.Struct, kw_only=True):
    """The end of a run's history in memory: what the next event is chained to."""

    run_id: uuid.UUID
    tenant: str
    store_epoch: int
    seq: int
    hash: bytes
    actor: str
    correlation: str


def seal(
    head: Head, events: Sequence[Event], *, causation: str, traceparent: str | None, recorded_at: datetime
) -> list[StoredEvent]:
    """Number and chain the events onto the head, which moves along."""
    meta = _meta.encode(
        Meta(causation=causation, correlation=head.correlation, actor=head.actor, traceparent=traceparent)
    )
    sealed: list[StoredEvent] = []
    for event in events:
        data = encode_event(event)
        head.seq += 1
        head.hash = chain(
            head.hash,
            store_epoch=head.store_epoch,
            seq=head.seq,
            type_=event.TYPE,
            version=event.VERSION,
            recorded_at=recorded_at,
            data=data,
            meta=meta,
        )
        sealed.append(
            StoredEvent(
                tenant=head.tenant,
                run_id=head.run_id,
                seq=head.seq,
                id=event_id_for(head.run_id, seq=head.seq, store_epoch=head.store_epoch),
                type=event.TYPE,
                version=event.VERSION,
                data=data,
                meta=meta,
                store_epoch=head.store_epoch,
                recorded_at=recorded_at,
                hash=head.hash,
            )
        )
    return sealed
