"""One set of running providers for a test module's faults, and fresh ones for tests that kill them."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from kit.providers import ProviderBench, WebhookReceiver
from videoads.providers.clips import ClipsClient
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


@pytest_asyncio.fixture
async def bench(tmp_path: Path) -> AsyncIterator[ProviderBench]:
    bench = ProviderBench(tmp_path / "providers", arguments=["--speed", "50", "--profile", "plain"])
    await bench.start()
    yield bench
    await bench.stop()


@pytest_asyncio.fixture
async def clients(bench: ProviderBench) -> AsyncIterator[Clients]:
    clients = Clients(bench.base_url)
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
