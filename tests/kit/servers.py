"""Postgres and NATS for tests: started once a session (once a worker of pytest-xdist), a clean piece of each a test.

    async def test_something(database, broker):
        connection = await database.connect()      # a database of its own, migrations applied
        client = await broker.connect()            # NATS with no stream in it

`servers` gives both servers, `bare_database` a database without our tables. The servers run in a thread with an
event loop of its own, so the loop of a test may come and go.
"""

import asyncio
import itertools
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import asyncpg
import nats
import pytest
import pytest_asyncio
from nats.aio.client import Client

from longtake.embedded import THROWAWAY, EmbeddedServers

T = TypeVar("T")

ADMIN_DATABASE = "postgres"
TEMPLATE = "longtake_template"
EMPTY = "template1"
START_SECONDS = 60.0

_numbers = itertools.count(1)


class LoopThread:
    """An event loop in a thread of its own: the kernel ties our servers to the thread that started them."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="test-servers", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], seconds: float = START_SECONDS) -> T:
        """Run to the end there, called from any thread that runs no loop."""
        return self.submit(work).result(seconds)

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin there; `asyncio.wrap_future` waits for it in another loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def close(self) -> None:
        """End the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


@dataclass(frozen=True)
class Servers:
    """The two servers of this session."""

    embedded: EmbeddedServers
    thread: LoopThread

    @property
    def postgres_dsn(self) -> str:
        """The server's own database; tests want `database` instead."""
        return self.embedded.postgres_dsn

    @property
    def nats_url(self) -> str:
        """The address of NATS, without its token."""
        return self.embedded.nats_url

    @property
    def nats_token(self) -> str:
        """The token that NATS asks for."""
        return self.embedded.nats_token

    async def in_thread(self, work: Coroutine[Any, Any, T]) -> T:
        """Run in the servers' own loop and wait here."""
        return await asyncio.wrap_future(self.thread.submit(work))


@dataclass(frozen=True)
class Database:
    """One database of the embedded server, there for one test."""

    name: str
    connect_kwargs: dict[str, Any]
    _open: list[asyncpg.Connection] = field(default_factory=list)

    @property
    def dsn(self) -> str:
        """The address as a URL, as `LONGTAKE_POSTGRES_URL` wants it."""
        host = quote(self.connect_kwargs["host"], safe="")
        return f"postgresql://{self.connect_kwargs['user']}@/{self.name}?host={host}&port={self.connect_kwargs['port']}"

    async def connect(self, **options: Any) -> asyncpg.Connection:
        """A new connection, closed for you when the test ends."""
        connection: asyncpg.Connection = await asyncpg.connect(**self.connect_kwargs, **options)
        self._open.append(connection)
        return connection

    async def close(self) -> None:
        """Close what `connect` opened."""
        await asyncio.gather(*(connection.close() for connection in self._open), return_exceptions=True)
        self._open.clear()


@dataclass(frozen=True)
class Broker:
    """NATS with no stream in it, there for one test."""

    url: str
    token: str
    _open: list[Client] = field(default_factory=list)

    @property
    def connect_kwargs(self) -> dict[str, Any]:
        """Keyword arguments of `nats.connect`."""
        return {"servers": [self.url], "token": self.token}

    async def connect(self, **options: Any) -> Client:
        """A new client, closed for you when the test ends."""
        client = await nats.connect(**{**self.connect_kwargs, **options})
        self._open.append(client)
        return client

    async def close(self) -> None:
        """Close what `connect` opened."""
        await asyncio.gather(*(client.close() for client in self._open), return_exceptions=True)
        self._open.clear()


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Both servers, without fsync, in a directory that is gone afterwards."""
    with started() as servers:
        yield servers


@contextmanager
def serving() -> Iterator[Servers]:
    """The same for a program that is no test, with a template of our tables."""
    with started() as servers:
        servers.thread.run(_make_template(servers.embedded))
        yield servers


@contextmanager
def started() -> Iterator[Servers]:
    """Both servers in a thread of their own."""
    home = Path(tempfile.mkdtemp(prefix="longtake-test-"))
    thread = LoopThread()
    embedded = thread.run(_make(home))
    try:
        thread.run(embedded.start())
        yield Servers(embedded, thread)
    finally:
        thread.run(embedded.stop())
        thread.close()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def migrated_template(servers: Servers) -> str:
    """The name of a database with all migrations applied, from which each test's own is copied."""
    servers.thread.run(_make_template(servers.embedded))
    return TEMPLATE


@pytest_asyncio.fixture
async def bare_database(servers: Servers) -> AsyncIterator[Database]:
    """An empty database."""
    async with fresh_database(servers, EMPTY) as database:
        yield database


@pytest_asyncio.fixture
async def database(servers: Servers, migrated_template: str) -> AsyncIterator[Database]:
    """A database with all migrations applied and no row."""
    async with fresh_database(servers, migrated_template) as database:
        yield database


@pytest_asyncio.fixture
async def broker(servers: Servers) -> AsyncIterator[Broker]:
    """NATS without streams, before the test and after it."""
    async with clean_broker(servers) as broker:
        yield broker


@asynccontextmanager
async def clean_broker(servers: Servers) -> AsyncIterator[Broker]:
    """NATS without streams, before the block and after it."""
    broker = Broker(servers.nats_url, servers.nats_token)
    await _delete_streams(broker)
    try:
        yield broker
    finally:
        await broker.close()
        await _delete_streams(broker)


async def _make(home: Path) -> EmbeddedServers:
    return EmbeddedServers(home, profile=THROWAWAY)


async def _make_template(embedded: EmbeddedServers) -> None:
    # Imported here, so that tests of the servers alone do not need the tables.
    from longtake import resources
    from longtake.postgres.migrator import migrate

    await _administer(embedded, f'drop database if exists "{TEMPLATE}"', f'create database "{TEMPLATE}"')
    connection = await asyncpg.connect(**embedded.postgres_connect_kwargs(TEMPLATE))
    try:
        await migrate(connection, resources.directory("migrations"))
    finally:
        await connection.close()


@asynccontextmanager
async def fresh_database(servers: Servers, template: str) -> AsyncIterator[Database]:
    """A database of its own, copied from a template, gone after the block."""
    name = f"test_{next(_numbers)}"
    embedded = servers.embedded
    await servers.in_thread(_administer(embedded, f'create database "{name}" template "{template}"'))
    database = Database(name, embedded.postgres_connect_kwargs(name))
    try:
        yield database
    finally:
        await database.close()
        await servers.in_thread(_administer(embedded, f'drop database if exists "{name}" with (force)'))


async def _administer(embedded: EmbeddedServers, *statements: str) -> None:
    connection = await asyncpg.connect(**embedded.postgres_connect_kwargs(ADMIN_DATABASE))
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def _delete_streams(broker: Broker) -> None:
    client = await nats.connect(**broker.connect_kwargs)
    try:
        stream = client.jetstream()
        while names := [info.config.name for info in await stream.streams_info()]:
            await asyncio.gather(*(_settled(stream.delete_stream(name)) for name in names if name))
    finally:
        await client.close()


async def _settled(work: Awaitable[T]) -> T:
    return await work
