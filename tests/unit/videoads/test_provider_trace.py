"""The trace of a run goes on to the provider: every call of an activity carries its `traceparent`."""

import asyncio
import uuid

from longtake import Call
from videoads.activities.clips import ClipGenerate
from videoads.outsiders import Outsiders
from videoads.providers.clips import ClipsClient

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class OneProvider(Outsiders):
    """Outsiders whose clip provider is whoever listens at an address."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.clips = ClipsClient(url)

    async def clients(self):
        return self


async def _heard_by_a_provider(call_of) -> str:
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.set_result(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    outsiders = OneProvider(f"http://127.0.0.1:{port}")
    try:
        await ClipGenerate(outsiders).reconcile(call_of())
    finally:
        await outsiders.clips.close()
        server.close()
    return (await heard).decode().lower()


def _call(trace: str | None) -> Call:
    return Call(
        run_id=uuid.uuid4(),
        step="clip.generate:1",
        attempt=1,
        kind="reconcile",
        input={},
        token="lt1",
        external_ref=None,
        artifacts=None,
        callback_url=str,
        traceparent=trace,
    )


async def test_a_call_carries_the_trace_of_its_run():
    assert f"traceparent: {TRACE}" in await _heard_by_a_provider(lambda: _call(TRACE))


async def test_a_call_without_a_trace_sends_none():
    assert "traceparent" not in await _heard_by_a_provider(lambda: _call(None))
