"""One bench for the ports: two processes with transports and doorbells, over nats-server or over the broker in memory.

The first process's wire can be cut. A wait of a port in memory lets the clock run to whatever is due, as the real wait would.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import nats

from kit.lone_nats import LoneNats
from kit.probe import eventually
from kit.proxy import TcpProxy
from kit.transports import barrier, transport_to
from longtake.errors import TransportUnavailable
from longtake.jetstream import JetStreamTransport, NatsDoorbell, TopologySettings
from longtake.memory.broker import MemoryBroker
from longtake.memory.broker_rules import BrokerSettings
from longtake.memory.clock import ManualClock
from longtake.memory.transport import MemoryTransport
from longtake.memory.transport_doorbell import Belfry, MemoryDoorbell
from longtake.ports import Delivery, Doorbell, OldestMessage, OutgoingMessage, Subscription, Transport

POOL = "short"
SUBJECT = "longtake.v1.effect.short"
STREAM = "LT_EFFECT"
CONSUMER = "effects_short"
ACK_WAIT = 1.0
SOON = 0.2
LONG = 10.0


class TransportOfOne(Transport, OldestMessage, Protocol):
    """What a process has: the transport, and how far its streams have got."""


class Ports(Protocol):
    """What a clause about ports may do."""

    first: TransportOfOne
    second: TransportOfOne
    bell: Doorbell
    other_bell: Doorbell
    told: list[Sequence[Any]]
    """What the first process told of the streams, each time."""

    async def cut(self) -> None: ...
    async def heal(self) -> None: ...
    async def delete_consumer(self) -> None: ...
    async def delete_stream(self) -> None: ...
    async def look(self) -> None:
        """Wait until the first process has looked at streams that were made anew."""
        ...

    async def heard(self, name: str) -> bool:
        """Whether the other process hears a bell within a short while."""
        ...


def message(body: bytes = b"x", *, id: str, **changes: str) -> OutgoingMessage:
    """A pointer to effects of the pool."""
    return OutgoingMessage(
        subject=changes.get("subject", SUBJECT),
        body=body,
        message_id=id,
        stream=changes.get("stream", STREAM),
        headers={"traceparent": "00-1-2-01"},
    )


async def publish(ports: Ports, *bodies: str) -> list[str]:
    """Publish each body under an id of its own; the states that were told."""
    results = await ports.first.publisher.publish(
        [message(body.encode(), id=f"id-{body}") for body in bodies]
    )
    return [result.state for result in results]


async def take(subscription: Subscription, number: int) -> list[Delivery]:
    """Fetch until there are so many."""
    taken: list[Delivery] = []
    for _ in range(20):
        try:
            taken += await subscription.fetch(limit=number - len(taken), wait_seconds=LONG / 5)
        except TransportUnavailable:
            continue
        if len(taken) == number:
            return taken
    raise AssertionError(f"{len(taken)} of {number} messages came")


async def nothing_comes(subscription: Subscription, *, seconds: float = SOON) -> bool:
    """Whether nothing comes within a short while."""
    return await subscription.fetch(limit=1, wait_seconds=seconds) == []


class MemoryPorts:
    """Two processes over one broker in memory."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.broker = MemoryBroker(self.clock)
        self.told: list[Sequence[Any]] = []
        settings = BrokerSettings(effect_ack_wait_seconds=ACK_WAIT)
        self.first = MemoryTransport(self.broker, settings=settings, hooks=self, on_topology=self._tell)
        self.second = MemoryTransport(self.broker, settings=settings, hooks=self)
        belfry = Belfry(self.clock)
        self.bell = MemoryDoorbell(belfry, self.first, hooks=self)
        self.other_bell = MemoryDoorbell(belfry, self.second, hooks=self)

    async def open(self) -> None:
        """Declare the streams."""
        await self.first.declare()

    async def _tell(self, births: Sequence[Any]) -> None:
        self.told.append(births)

    async def wait(self, reason: str) -> None:
        """The hook: let the clock run to what is due within the seconds that the port would wait."""
        ends_at = self.clock.now() + timedelta(seconds=float(reason.rsplit(" ", 1)[-1]))
        dues = [self.broker.next_due()]
        dues += [bell.next_due() for bell in (self.bell, self.other_bell)]
        soonest = min((due for due in dues if due is not None), default=ends_at)
        self.clock.set(max(self.clock.now(), min(soonest, ends_at)))

    async def cut(self) -> None:
        self.first.disconnect()

    async def heal(self) -> None:
        self.first.reconnect()

    async def delete_consumer(self) -> None:
        self.broker.delete_consumer(STREAM, CONSUMER)

    async def delete_stream(self) -> None:
        self.broker.delete_stream(STREAM)
        self.clock.advance(1)

    async def look(self) -> None:
        await self.first.look()

    async def heard(self, name: str) -> bool:
        return await self.other_bell.wait(name, timeout_seconds=SOON)


class RealPorts:
    """Two processes over one nats-server."""

    def __init__(self, server: LoneNats, proxy: TcpProxy) -> None:
        self._server = server
        self._proxy = proxy
        self.told: list[Sequence[Any]] = []
        settings = TopologySettings(effect_ack_wait_seconds=ACK_WAIT)
        self.first: JetStreamTransport = transport_to(
            f"nats://127.0.0.1:{proxy.port}", settings=settings, told=self._tell
        )
        self.second: JetStreamTransport = transport_to(server.url, settings=settings)
        self.bell = NatsDoorbell(self.first.connection)
        self.other_bell = NatsDoorbell(self.second.connection)

    async def _tell(self, births: Sequence[Any]) -> None:
        self.told.append(births)

    async def open(self, stack: AsyncExitStack) -> None:
        """Start everything; the stack ends it."""
        for transport in (self.first, self.second):
            await transport.start()
            stack.push_async_callback(transport.stop)
            assert await transport.wait_ready(LONG)
        for bell in (self.bell, self.other_bell):
            await bell.start()
            stack.push_async_callback(bell.stop)
        for transport in (self.first, self.second):
            # A ring before the server knows who listens is lost, as it may be; clauses begin after that.
            await barrier(transport.connection.client)

    async def cut(self) -> None:
        self._proxy.refuse()
        await eventually(lambda: not self.first.connection.is_linked, "the link was lost")

    async def heal(self) -> None:
        self._proxy.heal()
        await eventually(lambda: self.first.connection.is_linked, "the link is back")

    async def delete_consumer(self) -> None:
        await self._at_server(lambda js: js.delete_consumer(STREAM, CONSUMER))

    async def delete_stream(self) -> None:
        await self._at_server(lambda js: js.delete_stream(STREAM))

    async def _at_server(self, work: Callable[[Any], Awaitable[Any]]) -> None:
        client = await nats.connect(self._server.url)
        try:
            await work(client.jetstream())
        finally:
            await client.close()

    async def look(self) -> None:
        await eventually(lambda: len(self.told) > 1, "the first process told of other streams")

    async def heard(self, name: str) -> bool:
        return await self.other_bell.wait(name, timeout_seconds=SOON)


@asynccontextmanager
async def real_ports(home: Path) -> AsyncIterator[RealPorts]:
    """A server, a wire that can be cut, and two processes."""
    async with AsyncExitStack() as stack:
        server = LoneNats(home)
        await server.start()
        stack.push_async_callback(server.kill)
        proxy = await stack.enter_async_context(TcpProxy("127.0.0.1", server.port))
        ports = RealPorts(server, proxy)
        await ports.open(stack)
        stack.callback(proxy.heal)
        yield ports
