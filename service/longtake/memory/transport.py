"""The ports Transport, Publisher, Subscription, Delivery and OldestMessage over a broker in memory, for one process.

They answer as the JetStream adapter does: what it raises, swallows, refuses before sending, heals by itself and leaves unsaid is the same.
Each `MemoryTransport` is one process with a link of its own that may be lost. Nothing waits but `fetch`, once, through the hook it was
given. Leaves to others: what happens to the broker (broker.py), doorbells (transport_doorbell.py).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Final
from weakref import WeakSet

from longtake.contracts.ids import subject_token
from longtake.errors import AuthorityUnavailable, TransportUnavailable
from longtake.memory.broker import MemoryBroker
from longtake.memory.broker_consumer import ConsumerGone
from longtake.memory.broker_pull import Puller
from longtake.memory.broker_rules import (
    BODY_BYTES_MAX,
    CALLBACK_PARTS,
    COMMAND_CONSUMER,
    LT_CALLBACK,
    LT_EFFECT,
    BrokerSettings,
    callback_consumer,
    callback_subject,
    consumer_rules,
    effect_consumer,
    effect_subject,
    stream_rules,
)
from longtake.memory.broker_server import Copy, Settlement
from longtake.memory.broker_stream import BrokerAck, StreamBirth
from longtake.memory.faults import Hooks, LoopHooks
from longtake.ports import Delivery, OutgoingMessage, PublishResult

FETCH_MAX: Final = 512
STORED: Final = PublishResult(state="stored")
DUPLICATE: Final = PublishResult(state="duplicate")
NO_ANSWER: Final = PublishResult(state="unknown", detail="no acknowledgement in time")

OnTopology = Callable[[tuple[StreamBirth, ...]], Awaitable[None]]
"""Told who the streams are whenever that is new to this process."""


class MemoryTransport:
    """The port `Transport`, and `OldestMessage`, of one process."""

    def __init__(
        self,
        broker: MemoryBroker,
        *,
        settings: BrokerSettings | None = None,
        hooks: Hooks | None = None,
        on_topology: OnTopology | None = None,
    ) -> None:
        self.broker = broker
        self.hooks: Hooks = hooks or LoopHooks()
        self.receipts: dict[tuple[str, str], bytes] = {}
        """Receipts that were told, by tenant and command id, for a producer to be asked about."""
        self._settings = settings or BrokerSettings()
        self._on_topology = on_topology
        self._known: tuple[StreamBirth, ...] = ()
        self._pools: set[str] = set()
        self._cut = False
        self._publisher = MemoryPublisher(self)
        self.must_look = False
        """Whether a refusal or a new link asks for a look at the streams."""

    # --- the link -----------------------------------------------------------------------------------------------------

    @property
    def is_linked(self) -> bool:
        """Whether this process reaches the broker."""
        return self.broker.is_up and not self._cut

    def disconnect(self) -> None:
        """Cut this process off; the broker and the others go on."""
        self._cut = True

    def reconnect(self) -> None:
        """End the cut."""
        self._cut = False
        self.must_look = True

    def need_link(self) -> None:
        """TransportUnavailable without a link."""
        if not self.is_linked:
            raise TransportUnavailable("not connected to NATS")

    # --- the streams --------------------------------------------------------------------------------------------------

    async def declare(self) -> tuple[StreamBirth, ...]:
        """Declare streams and consumers, and tell who the streams are when that is new."""
        self.need_link()
        found = tuple(self.broker.declare_stream(rules) for rules in stream_rules(self._settings))
        for durable in (
            COMMAND_CONSUMER,
            *map(callback_consumer, range(CALLBACK_PARTS)),
            *sorted(map(effect_consumer, self._pools)),
        ):
            self.broker.declare_consumer(consumer_rules(self._settings, durable))
        if found != self._known:
            if self._on_topology is not None:
                await self._on_topology(found)
            # Only now: when the store could not be told, the next look tells it.
            self._known = found
        return found

    async def look(self) -> bool:
        """Look at the streams as the real transport does every few seconds; True when they had to be declared."""
        self.need_link()
        self.must_look = False
        if self._known and self.broker.births() == self._known:
            return False
        await self.declare()
        return True

    async def heal(self, durable: str) -> None:
        """Declare a lost consumer again, and the streams with it when they are lost too."""
        try:
            self.broker.declare_consumer(consumer_rules(self._settings, durable))
        except ConsumerGone:
            try:
                await self.declare()
            except AuthorityUnavailable as error:
                raise TransportUnavailable(
                    f"the streams are new and the store cannot be told: {error}"
                ) from error

    # --- the ports ----------------------------------------------------------------------------------------------------

    @property
    def publisher(self) -> "MemoryPublisher":
        """Publishes into the three streams."""
        return self._publisher

    async def commands(self) -> "MemorySubscription":
        """Commands that producers published."""
        return MemorySubscription(self, COMMAND_CONSUMER, self._settings)

    async def effects(self, pool: str) -> "MemorySubscription":
        """Pointers to effects of a pool; its consumer is declared at the first fetch."""
        self._pools.add(pool)
        return MemorySubscription(self, effect_consumer(pool), self._settings)

    async def callbacks(self, part: int) -> "MemorySubscription":
        """Pointers to callbacks and reports of a part."""
        return MemorySubscription(self, callback_consumer(part), self._settings)

    async def publish_receipt(self, *, tenant: str, command_id: str, receipt: bytes) -> None:
        """Tell a fire-and-forget producer; nobody hears it without a link."""
        if self.is_linked:
            self.receipts[subject_token(tenant), subject_token(command_id)] = receipt

    async def oldest_effect(self, pool: str) -> datetime | None:
        """When the oldest message of the pool that is still in the stream was stored; None when there is none."""
        self.need_link()
        return self.broker.oldest(LT_EFFECT, effect_subject(pool))

    async def oldest_callback(self, part: int) -> datetime | None:
        """When the oldest message of the part that is still in the stream was stored; None when there is none."""
        self.need_link()
        return self.broker.oldest(LT_CALLBACK, callback_subject(part))


class MemoryPublisher:
    """The port `Publisher`."""

    def __init__(self, transport: MemoryTransport) -> None:
        self._transport = transport

    async def publish(self, messages: Sequence[OutgoingMessage]) -> list[PublishResult]:
        """Publish; one result a message, in order. TransportUnavailable when there is no link: nothing was sent then."""
        self._transport.need_link()
        results = [self._publish(message) for message in messages]
        if any(result.state == "refused" for result in results):
            self._transport.must_look = True
        return results

    def _publish(self, message: OutgoingMessage) -> PublishResult:
        bytes_max = BODY_BYTES_MAX.get(message.stream)
        if bytes_max is not None and len(message.body) > bytes_max:
            return PublishResult(
                state="refused",
                detail=f"{message.subject}: {len(message.body)} bytes; {message.stream} takes {bytes_max}",
            )
        headers = {
            **message.headers,
            "Nats-Msg-Id": message.message_id,
            "Nats-Expected-Stream": message.stream,
        }
        return _result(
            self._transport.broker.publish(
                message.subject,
                message.body,
                message_id=message.message_id,
                expected_stream=message.stream,
                headers=headers,
            )
        )


class MemorySubscription:
    """The port `Subscription`: survives lost consumers and links by itself."""

    def __init__(self, transport: MemoryTransport, durable: str, settings: BrokerSettings) -> None:
        self.durable = durable
        self._transport = transport
        self._puller = Puller(transport.broker, consumer_rules(settings, durable).stream, durable)
        self._given: WeakSet[MemoryDelivery] = WeakSet()
        self._closed = False

    async def fetch(self, *, limit: int, wait_seconds: float) -> list[Delivery]:
        """Return up to `limit` messages. Without any it waits once, by the hook, and looks again.

        How long the hook waits is its own affair; it is told the durable and the seconds. TransportUnavailable without a link.
        """
        if not 1 <= limit <= FETCH_MAX:
            raise ValueError(f"limit is {limit}; it must be 1 to {FETCH_MAX}")
        copies = await self._pull(limit)
        if not copies:
            await self._transport.hooks.wait(f"fetch {self.durable} {wait_seconds:g}")
            copies = await self._pull(limit)
        deliveries = [MemoryDelivery(self._transport, copy) for copy in copies]
        for delivery in deliveries:
            self._given.add(delivery)
        return list(deliveries)

    async def close(self) -> None:
        """Stop, and give back at once what was taken and not settled. May be called twice."""
        self._closed = True
        for delivery in sorted(self._given, key=lambda delivery: delivery.sequence):
            if not delivery.is_settled:
                await delivery.nak()
        self._given.clear()

    async def _pull(self, limit: int) -> list[Copy]:
        if self._closed:
            raise TransportUnavailable(f"{self.durable}: the subscription is closed")
        self._transport.need_link()
        try:
            return self._puller.pull(limit)
        except ConsumerGone:
            await self._transport.heal(self.durable)
            return self._puller.pull(limit)


class MemoryDelivery:
    """The port `Delivery`. A second settlement is a mistake of the caller and raises RuntimeError."""

    __slots__ = ("__weakref__", "_copy", "_transport", "is_settled")

    def __init__(self, transport: MemoryTransport, copy: Copy) -> None:
        self._transport = transport
        self._copy = copy
        self.is_settled = False

    @property
    def subject(self) -> str:
        """Where it was published."""
        return self._copy.subject

    @property
    def body(self) -> bytes:
        """The bytes as they were published."""
        return self._copy.body

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""
        return self._copy.headers

    @property
    def deliveries(self) -> int:
        """How often the broker says it was delivered; a hint."""
        return self._copy.count

    @property
    def sequence(self) -> int:
        """Its place in the stream; for diagnostics only (F11)."""
        return self._copy.sequence

    async def ack(self, *, sync: bool = False) -> None:
        """Say that it is done for. With `sync` TransportUnavailable when the broker did not hear it."""
        if not self._settle("ack") and sync:
            raise TransportUnavailable(
                f"the ack of {self.subject} was not confirmed and the message may come again"
            )

    async def nak(self, *, delay_seconds: float = 0.0) -> None:
        """Give it back, to be delivered again after the delay."""
        self._settle("nak", delay_seconds)

    async def term(self) -> None:
        """Never deliver it again."""
        self._settle("term")

    def _settle(self, how: Settlement, delay_seconds: float = 0.0) -> bool:
        if self.is_settled:
            raise RuntimeError(f"a delivery of {self.subject} was settled twice, now by {how}")
        self.is_settled = True
        return self._transport.is_linked and self._transport.broker.settle(self._copy, how, delay_seconds)


def _result(ack: BrokerAck | None) -> PublishResult:
    if ack is None:
        return NO_ANSWER
    if ack.is_refusal:
        detail = ack.detail if ack.code == 503 else f"{ack.detail} ({ack.code})"
        return PublishResult(state="refused", detail=detail)
    return DUPLICATE if ack.duplicate else STORED
