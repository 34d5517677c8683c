"""One set of running providers for a test module's faults, and fresh ones for tests that kill them."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from kit.providers import ProviderBench, WebhookReceiver
from videoads.providers.clips import ClipsClient
from videoads.providers.launch import find_providers, stop_providers
from videoads.providers.music import MusicClient
from videoads.providers.render import RenderClient
from videoads.providers.voice import VoiceClient

SECRET = "whsec_" + "bG9uZ3Rha2UtdGVzdC1zZWNyZXQtMDAwMDAwMDAwMDE="


class Clients:
    """A client of each provider at one address."""

    def __init__(self, base_url: str) -> None:
        self.clips = ClipsClient(base_url)
        self.stills = ClipsClient(base_url, style="stills")
        self.voice = VoiceClient(base_url)
        self.music = MusicClient(base_url)
        self.render = RenderClient(base_url, secrets=[SECRET])

    async def close(self) -> None:
        for client in (self.clips, self.stills, self.voice, self.music, self.render):
            await client.close()


ARGUMENTS = ["--speed", "50", "--profile", "plain"]


@pytest.fixture(scope="session")
def shared_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data directory of one running program that all tests may use which do not kill it."""
    data = tmp_path_factory.mktemp("shared") / "providers"
    yield data
    if running := asyncio.run(find_providers(data)):
        asyncio.run(stop_providers(running))


@pytest_asyncio.fixture
async def bench(shared_data: Path) -> AsyncIterator[ProviderBench]:
    """The shared program, tidied."""
    bench = ProviderBench(shared_data, arguments=ARGUMENTS)
    await bench.begin()
    yield bench
    await bench.leave()


@pytest_asyncio.fixture
async def own_bench(tmp_path: Path) -> AsyncIterator[ProviderBench]:
    """A program of the test's own, to be killed."""
    bench = ProviderBench(tmp_path / "providers", arguments=ARGUMENTS)
    await bench.start()
    yield bench
    await bench.stop()


@pytest_asyncio.fixture
async def clients(bench: ProviderBench) -> AsyncIterator[Clients]:
    """Clients of the shared program."""
    clients = Clients(bench.base_url)
    yield clients
    await clients.close()


@pytest_asyncio.fixture
async def own_clients(own_bench: ProviderBench) -> AsyncIterator[Clients]:
    """Clients of the test's own program."""
    clients = Clients(own_bench.base_url)
    yield clients
    await clients.close()


@pytest_asyncio.fixture
async def nobody() -> AsyncIterator[Clients]:
    """Clients of an address where nobody listens and, while the test runs, nobody can."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        clients = Clients(f"http://127.0.0.1:{bound.getsockname()[1]}")
        yield clients
        await clients.close()


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    async with WebhookReceiver() as receiver:
        yield receiver


@pytest.fixture
def soon() -> datetime:
    """A deadline no test should meet."""
    return datetime.now(UTC) + timedelta(seconds=50)
