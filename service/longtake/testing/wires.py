"""The transport of a simulated world: the broker in memory under the faults of the seed, and a link to it for each process.

The broker lives outside all processes and keeps the habits of nats-server (memory/broker_habits.py). Every use of a link is a
port call of its process, the settling of a delivery too.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from longtake.errors import TransportUnavailable
from longtake.memory.broker import MemoryBroker
from longtake.memory.broker_faults import HEARD, STORED, DeliverKind, PublishFate, SettleFate
from longtake.memory.broker_rules import LT_CALLBACK, LT_COMMAND, LT_EFFECT
from longtake.memory.broker_server import Copy
from longtake.memory.transport import MemoryTransport
from longtake.ports import Delivery, OutgoingMessage
from longtake.testing.calls import Port
from longtake.testing.faults import Faults
from longtake.testing.resting import finish
from longtake.testing.world import START, Process, World

LISTEN_SECONDS = 60.0
ACK_WAIT = {LT_EFFECT: 10.0, LT_CALLBACK: 30.0, LT_COMMAND: 30.0}
REORDER_WINDOW_MAX = 50
STRAY = "stray-"
"""What ids of messages begin with that strangers leave in the streams."""

OnTopology = Callable[..., Awaitable[None]]


class Wires:
    """The broker, and what goes wrong with it."""

    def __init__(self, world: World, faults: Faults, pools: Sequence[str]) -> None:
        self.world = world
        self.faults = faults
        self.receipts: dict[tuple[str, str], bytes] = {}
        """Receipts that were told to fire-and-forget producers."""
        self.settled_strays: list[bytes] = []
        """Bodies of messages that name nothing and that somebody acked or terminated."""
        self.broker = _Broker(_BrokerClock(world), rng=world.random, faults=_Fates(self), on_news=self._tell)
        self.broker.settled_strays = self.settled_strays
        operator = MemoryTransport(self.broker, hooks=_Waits(self))
        for pool in pools:
            finish(operator.effects(pool))
        finish(operator.declare())
        self._operator = operator

    def connect(self, process: Process, on_topology: OnTopology) -> "Connection":
        """The link of one process."""
        return Connection(self, process, on_topology)

    def now(self) -> datetime:
        """Time on the broker's clock."""
        return self.broker.clock_of_world.now()

    # --- news ---------------------------------------------------------------------------------------------------------

    def _tell(self, stream: str) -> None:
        now = self.now()
        for (name, durable), consumer in self.broker.consumers.items():
            if name == stream and (
                consumer.ready or ((due := consumer.next_due()) is not None and due <= now)
            ):
                self.world.sound(f"news.{durable}")

    def tell_later(self, stream: str, seconds: float) -> None:
        """Wake whoever waits for messages of a stream when something of it is due again."""

        def catch_up() -> None:
            if stream in self.broker.streams:
                self.broker.state(stream)  # does what is late
                self._tell(stream)

        self.world.later(seconds, catch_up)

    def seconds_until_due(self, durable: str) -> float:
        """How long nothing will come for a consumer unless somebody publishes."""
        due = next(
            (consumer.next_due() for (_, name), consumer in self.broker.consumers.items() if name == durable),
            None,
        )
        if due is None:
            return LISTEN_SECONDS
        return min(LISTEN_SECONDS, max(0.01, (due - self.now()).total_seconds()))

    # --- storms -------------------------------------------------------------------------------------------------------

    def power_loss(self, seconds: float) -> None:
        """Everything of the last seconds is gone, acknowledged or not; what was settled then is back."""
        self.broker.power_loss(seconds)

    def restart(self) -> None:
        """The server restarts: ids of settled messages are forgotten."""
        self.broker.restart()

    def delete_stream(self, name: str) -> None:
        """Deleted; whoever looks makes it again, empty."""
        if name in self.broker.streams:
            self.broker.delete_stream(name)

    def purge_stream(self, name: str) -> None:
        """Emptied; it is still the same stream."""
        if name in self.broker.streams:
            self.broker.purge(name)

    def delete_consumer(self, share: float) -> None:
        """A consumer is deleted; whoever pulls makes it again."""
        consumers = list(self.broker.consumers)
        if consumers:
            self.broker.delete_consumer(*consumers[int(share * len(consumers))])

    def calm(self) -> None:
        """Nothing is held back any more."""
        finish(self._operator.declare())
        for name in self.broker.streams:
            self._tell(name)

    def backlog(self) -> str:
        """What waits to be taken; empty when nothing does."""
        for name, count in self.broker.backlog().items():
            if count:
                return f"{count} messages wait in {name}"
        return ""

    async def inject(self, message: OutgoingMessage) -> None:
        """Publish from outside of any process."""
        await self.world.pause("producer.publish")
        if not self.faults.is_away("transport", self.world.now_us):
            await self._operator.publisher.publish([message])


class _BrokerClock:
    """The broker's own clock: it goes on when that of the authority steps."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now(self) -> datetime:
        return START + timedelta(microseconds=self._world.now_us)


class _Broker(MemoryBroker):
    """Notes which messages of strangers were settled."""

    settled_strays: list[bytes]

    def __init__(self, clock: _BrokerClock, **rest: Any) -> None:
        super().__init__(clock, **rest)
        self.clock_of_world = clock

    def settle(self, copy: Copy, how: Any, delay_seconds: float = 0.0) -> bool:
        if (
            how in ("ack", "term")
            and copy.consumer.rules.stream != LT_EFFECT
            and str(copy.headers.get("Nats-Msg-Id", "")).startswith(STRAY)
        ):
            self.settled_strays.append(copy.body)
        return super().settle(copy, how, delay_seconds)


class _Fates:
    """Draws what becomes of messages from the faults of the seed."""

    def __init__(self, wires: Wires) -> None:
        self._wires = wires
        self._world = wires.world
        self._faults = wires.faults

    def on_publish(self, subject: str) -> PublishFate:
        """The fate of a publication."""
        faults = self._faults
        if not faults.on:
            return STORED
        place = f"publish.{subject[12:20]}"
        ahead = (
            1 + int(self._world.random.random() * REORDER_WINDOW_MAX)
            if faults.happens("reorder", place)
            else 0
        )
        if faults.happens("loss", place):
            return PublishFate("lie")
        if faults.happens("duplicate", place):
            return PublishFate("doubled", ahead=ahead)
        if faults.happens("delay", place):
            seconds = faults.number("delay", 0.1, 20)
            self._wires.tell_later(_stream_of(subject), seconds + 0.001)
            return PublishFate("late", seconds=seconds)
        if faults.happens("publish_lost_answer", place):
            return PublishFate("unknown_stored", ahead=ahead)
        if faults.happens("publish_refused", place):
            return PublishFate("refused")
        return PublishFate(ahead=ahead) if ahead else STORED

    def on_deliver(self, subject: str) -> DeliverKind:
        """The fate of a delivery."""
        stream = _stream_of(subject)
        self._wires.tell_later(stream, ACK_WAIT[stream] + 0.001)
        if not self._faults.on:
            return "given"
        if self._faults.happens("taken_by_dead", "deliver"):
            return "lost"
        return "again" if self._faults.happens("given_again", "deliver") else "given"

    def on_settle(self, subject: str) -> SettleFate:
        """The fate of an ack, nak or term."""
        if not self._faults.on:
            return HEARD
        if self._faults.happens("acked_but_lost", "settle"):
            return SettleFate("lost")
        if self._faults.happens("zombie_ack", "settle"):
            seconds = self._faults.number("late", 0.1, 40)
            self._wires.tell_later(_stream_of(subject), seconds + 0.001)
            return SettleFate("late", seconds=seconds)
        return HEARD

    def loses_ring(self, name: str) -> bool:
        """Doorbells are the world's own."""
        return False


def _stream_of(subject: str) -> str:
    return (
        {"c": LT_COMMAND, "e": LT_EFFECT}.get(subject[12], LT_COMMAND) if subject[13] != "a" else LT_CALLBACK
    )


class _Waits:
    """Where a fetch goes that found nothing."""

    def __init__(self, wires: Wires) -> None:
        self._wires = wires

    async def wait(self, reason: str) -> None:
        """Until there is news for the consumer. A real fetch comes back empty and is asked again; here it listens on."""
        durable = reason.split(" ")[1]
        await self._wires.world.listen(f"news.{durable}", seconds=self._wires.seconds_until_due(durable))


class Connection:
    """What one process has of the transport; every call is a port call."""

    def __init__(self, wires: Wires, process: Process, on_topology: OnTopology) -> None:
        self._wires = wires
        self._process = process
        self.link = MemoryTransport(wires.broker, hooks=_Waits(wires), on_topology=on_topology)
        self.publisher: Any = self._port("publisher", _Publishing(wires, self.link))
        self.oldest: Any = self._port("oldest", _Oldest(self.link))
        self.look: Callable[[], Awaitable[bool]] = self._port("topology", _Looking(self.link)).look

    def _port(self, name: str, thing: Any) -> Any:
        return Port(
            self._process, name, thing, self._wires.faults, away=TransportUnavailable, outage="transport"
        )

    async def commands(self) -> Any:
        """The consumer of commands."""
        return self._subscription("subscription.commands", await self.link.commands())

    async def effects(self, pool: str) -> Any:
        """The consumer of a pool."""
        return self._subscription("subscription.effect", await self.link.effects(pool))

    async def callbacks(self, part: int) -> Any:
        """The consumer of a part."""
        return self._subscription("subscription.callback", await self.link.callbacks(part))

    def _subscription(self, name: str, subscription: Any) -> "_Subscription":
        return _Subscription(self, name, subscription)

    async def publish_receipt(self, *, tenant: str, command_id: str, receipt: bytes) -> None:
        """Tell a producer; lossy."""
        await self._process.world.pause("transport.receipt")
        self._wires.receipts[tenant, command_id] = receipt
        self._process.world.sound(f"receipt.{tenant}.{command_id}")


class _Publishing:
    def __init__(self, wires: Wires, link: MemoryTransport) -> None:
        self._wires = wires
        self._link = link

    async def publish(self, messages: Sequence[OutgoingMessage]) -> Any:
        return await self._link.publisher.publish(messages)


class _Oldest:
    def __init__(self, link: MemoryTransport) -> None:
        self._link = link

    async def oldest_effect(self, pool: str) -> datetime | None:
        return await self._link.oldest_effect(pool)

    async def oldest_callback(self, part: int) -> datetime | None:
        return await self._link.oldest_callback(part)


class _Looking:
    def __init__(self, link: MemoryTransport) -> None:
        self._link = link

    async def look(self) -> bool:
        return await self._link.look()


class _Subscription:
    """Implements `Subscription` with port calls."""

    def __init__(self, connection: Connection, name: str, subscription: Any) -> None:
        self._connection = connection
        self._name = name
        self._fetch = connection._port(name, subscription).fetch
        self._close = subscription.close

    async def fetch(self, *, limit: int, wait_seconds: float) -> list[Delivery]:
        """Take messages; their settling is a port call too."""
        found: list[Delivery] = await self._fetch(limit=limit, wait_seconds=wait_seconds)
        return [self._connection._port(self._name, delivery) for delivery in found]

    async def close(self) -> None:
        """Give back what is unsettled."""
        await self._close()


__all__ = ["LT_CALLBACK", "LT_COMMAND", "LT_EFFECT", "Connection", "Wires"]
