"""A server, a misbehaving wire to it, and a transport, for one test each."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import nats
import pytest_asyncio
from nats.aio.client import Client

from kit.lone_nats import LoneNats
from kit.proxy import TcpProxy
from kit.transports import QUICK_WATCHDOG, Told, transport_to
from longtake.jetstream import Connection, ConnectionOptions, JetStreamTransport, TopologySettings

Connect = Callable[..., Awaitable[Connection]]


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[LoneNats]:
    server = LoneNats(tmp_path)
    await server.start()
    yield server
    await server.kill()


@pytest_asyncio.fixture
async def proxy(server: LoneNats) -> AsyncIterator[TcpProxy]:
    async with TcpProxy("127.0.0.1", server.port) as proxy:
        yield proxy


@pytest_asyncio.fixture
async def bystander(server: LoneNats) -> AsyncIterator[Client]:
    """A plain client that looks at the server past our own code."""
    client = await nats.connect(server.url)
    yield client
    await client.close()


@pytest_asyncio.fixture
async def told() -> Told:
    return Told()


@pytest_asyncio.fixture
async def transport(server: LoneNats, told: Told) -> AsyncIterator[JetStreamTransport]:
    transport = transport_to(server.url, told)
    await transport.start()
    assert await transport.wait_ready(10)
    yield transport
    await transport.stop()


@pytest_asyncio.fixture
async def frail(proxy: TcpProxy, told: Told) -> AsyncIterator[JetStreamTransport]:
    """A transport whose wire can be cut. What a cut swallowed is delivered again after a second, not after ten."""
    settings = TopologySettings(effect_ack_wait_seconds=1.0)
    transport = transport_to(f"nats://127.0.0.1:{proxy.port}", told, settings=settings)
    await transport.start()
    assert await transport.wait_ready(10)
    yield transport
    proxy.heal()
    await transport.stop()


@pytest_asyncio.fixture
async def impatient(server: LoneNats, told: Told) -> AsyncIterator[JetStreamTransport]:
    """A transport whose server delivers again after one second without an ack."""
    transport = transport_to(server.url, told, settings=TopologySettings(effect_ack_wait_seconds=1.0))
    await transport.start()
    assert await transport.wait_ready(10)
    yield transport
    await transport.stop()


@pytest_asyncio.fixture
async def connect(server: LoneNats) -> AsyncIterator[Connect]:
    """Make connections, stopped for you when the test ends."""
    made: list[Connection] = []

    async def connect(url: str = server.url, role: str = "test") -> Connection:
        connection = Connection(
            ConnectionOptions(servers=(url,), role=role, reconnect_seconds=0.05, watchdog=QUICK_WATCHDOG)
        )
        made.append(connection)
        await connection.start()
        return connection

    yield connect
    for connection in made:
        await connection.stop()
