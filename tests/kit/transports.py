"""Transports for tests: the real one, with the patience of a test."""

import asyncio
import itertools
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from nats.aio.client import Client

from longtake.jetstream import (
    Connection,
    ConnectionOptions,
    JetStreamTransport,
    StreamIdentity,
    TopologySettings,
)
from longtake.jetstream.subscriber import PullOptions, PullSubscription
from longtake.jetstream.topology import LT_EFFECT, effect_subject
from longtake.jetstream.transport import OnTopology
from longtake.jetstream.watchdog import WatchdogOptions
from longtake.ports import Delivery, OutgoingMessage

T = TypeVar("T")

POOL = "short"
QUICK_WATCHDOG = WatchdogOptions(interval_seconds=0.1, answer_seconds=0.3)
QUICK_PULL = PullOptions(
    expires_seconds=2.0,
    heartbeat_seconds=0.5,
    check_seconds=1.0,
    check_pause_seconds=0.05,
    buffer_seconds=0.8,
)

_numbers = itertools.count(1)


class Told:
    """Remembers what the store would have been told about the streams."""

    def __init__(self) -> None:
        self.identities: list[tuple[StreamIdentity, ...]] = []
        self.behind: list[tuple[str, ...]] = []

    async def __call__(self, identities: tuple[StreamIdentity, ...]) -> None:
        self.identities.append(identities)

    async def take_behind(self, streams: tuple[str, ...]) -> None:
        """The other half: which streams have lost something."""
        self.behind.append(streams)


def transport_to(
    url: str,
    told: OnTopology | None = None,
    *,
    settings: TopologySettings | None = None,
    pull: PullOptions = QUICK_PULL,
) -> JetStreamTransport:
    """A transport that is not yet started."""
    options = ConnectionOptions(
        servers=(url,), role="test", connect_seconds=1.0, reconnect_seconds=0.05, watchdog=QUICK_WATCHDOG
    )
    return JetStreamTransport(
        Connection(options),
        settings=settings,
        on_topology=told,
        on_behind=told.take_behind if isinstance(told, Told) else None,
        pull=pull,
        look_seconds=0.3,
    )


def pointer(body: bytes = b"pointer", *, message_id: str | None = None, pool: str = POOL) -> OutgoingMessage:
    """A message to the effects of a pool, with an id of its own unless one is given."""
    return OutgoingMessage(
        subject=effect_subject(pool),
        body=body,
        message_id=message_id or f"m{next(_numbers)}",
        stream=LT_EFFECT,
    )


def pointers(number: int) -> list[OutgoingMessage]:
    """So many messages, with bodies 0, 1, 2 and so on."""
    return [pointer(str(index).encode()) for index in range(number)]


async def take(subscription: PullSubscription, number: int, *, seconds: float = 10.0) -> list[Delivery]:
    """Fetch until there are `number`, without settling them."""
    taken: list[Delivery] = []
    while len(taken) < number:
        found = await subscription.fetch(limit=min(number - len(taken), 256), wait_seconds=seconds)
        assert found, f"{len(taken)} of {number} messages came within {seconds} s"
        taken += found
    return taken


async def barrier(client: Client) -> None:
    """Wait until the server has done everything that the client said before.

    One `flush` is not enough: nats-py writes its PING past the commands that still wait for its flusher.
    """
    await client.flush()
    await client.flush()


async def begun(work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """Start work beside the test and let it come to its first wait."""
    task = asyncio.create_task(work)
    await asyncio.wait((task,), timeout=0.01)
    return task


async def ack_all(deliveries: Iterable[Delivery]) -> list[bytes]:
    """Acknowledge, confirmed by the server, and return the bodies."""
    bodies = []
    for delivery in deliveries:
        await delivery.ack(sync=True)
        bodies.append(delivery.body)
    return bodies
