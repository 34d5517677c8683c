"""Suspects: messages that come again and again, looked at before anybody reads them (F16).

A message whose reading kills the process is delivered again to the next one, for ever: `max_deliver` is -1, for at its limit the
server would orphan the message instead of keeping it. So from its third delivery on a message is taken in hand in
Postgres first, and who finds it in the hand of a dead process counts one death. After enough of them it is kept as a dead
letter, unread, and terminated. Being given back costs nothing: an authority that is away for an hour makes no poison.

What a hint pointed at is not given up with it: the sweeper tells of it again, in another message.
"""

import hashlib
from collections.abc import Sequence
from typing import Protocol

from longtake.errors import PoisonMessage
from longtake.ports import Delivery

SUSPECT_FROM = 3
"""The delivery, by the server's own count, from which Postgres counts deaths. Most messages are never delivered so often."""
DEATHS_MAX = 3
"""With the two deliveries before the first count: five processes may die of a message, the sixth does not read it."""
MESSAGE_ID_HEADER = "Nats-Msg-Id"


class SuspectStore(Protocol):
    """What is asked of the store."""

    async def take_suspects(self, digests: Sequence[bytes]) -> dict[bytes, int]: ...


Deadly = list[tuple[Delivery, PoisonMessage]]


async def sift(store: SuspectStore, deliveries: Sequence[Delivery]) -> tuple[list[Delivery], Deadly]:
    """Messages that may be read, and those to be buried unread. Raises AuthorityUnavailable; nothing is settled here."""
    again = {_digest(delivery): delivery for delivery in deliveries if delivery.deliveries >= SUSPECT_FROM}
    if not again:
        return list(deliveries), []
    deaths = await store.take_suspects(sorted(again))
    deadly = [
        (again[digest], PoisonMessage("deadly", f"{number} processes ended with it in their hands"))
        for digest, number in deaths.items()
        if number >= DEATHS_MAX
    ]
    unread = {id(delivery) for delivery, _ in deadly}
    return [delivery for delivery in deliveries if id(delivery) not in unread], deadly


def _digest(delivery: Delivery) -> bytes:
    parts = (
        delivery.subject.encode(),
        delivery.headers.get(MESSAGE_ID_HEADER, "").encode("utf-8", "surrogateescape"),
        delivery.body,
    )
    return hashlib.sha256(b"\0".join(parts)).digest()
