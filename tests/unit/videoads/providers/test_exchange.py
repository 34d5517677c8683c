"""A call is made once, and the answer to "did bytes leave?" is right at every place where it can break."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from videoads.providers.contract import ErrorClass, Fetched, FetchFailed, Rejected, Unknown
from videoads.providers.exchange import (
    ANSWER_BYTES_MAX,
    Answer,
    Exchange,
    Lost,
    NotSent,
    retry_after_seconds,
    seconds_until,
    without_answer,
)

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
MEDIA = b"media" * 1000
DIGEST = hashlib.sha256(MEDIA).hexdigest().encode()


class Server:
    """Counts connections and behaves as told."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.connections = 0
        self._behaviour = behaviour

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await reader.readuntil(b"\r\n\r\n")
            await self._behaviour(reader, writer)
        finally:
            writer.close()


@asynccontextmanager
async def serving(behaviour: Behaviour) -> AsyncIterator[tuple[Exchange, Server]]:
    server = Server(behaviour)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    exchange = Exchange(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
    try:
        yield exchange, server
    finally:
        await exchange.close()
        listening.close()
        await listening.wait_closed()


def saying(raw: bytes) -> Behaviour:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    return say


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-encoding: gzip\r\n\r\nabcd",
    ],
)
async def test_an_answer_that_is_not_whole_is_lost_and_the_call_is_not_repeated(raw: bytes) -> None:
    async with serving(saying(raw)) as (exchange, server):
        exchanged = await exchange.call("POST", "/", body=b"{}")

    assert isinstance(exchanged, Lost), exchanged
    assert server.connections == 1
    assert isinstance(without_answer(exchanged), Unknown)


async def test_a_whole_answer_is_an_answer() -> None:
    async with serving(saying(b"HTTP/1.1 503 Busy\r\ncontent-length: 2\r\n\r\n{}")) as (exchange, server):
        exchanged = await exchange.call("POST", "/", body=b"{}")

    assert isinstance(exchanged, Answer) and (exchanged.status, exchanged.document()) == (503, {})
    assert server.connections == 1


async def test_silence_until_the_time_is_up_is_lost() -> None:
    async with serving(silent) as (exchange, _):
        exchanged = await exchange.call("POST", "/", body=b"{}", timeout_seconds=0.2)

    assert isinstance(exchanged, Lost) and "TimeoutError" in exchanged.reason


async def test_an_answer_without_end_is_cut_off_and_lost() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        part = b"x" * 1024 * 1024
        for _ in range(ANSWER_BYTES_MAX // len(part) + 8):
            writer.write(part)
            try:
                await writer.drain()
            except ConnectionError:
                return

    async with serving(endless) as (exchange, _):
        exchanged = await exchange.call("GET", "/")

    assert isinstance(exchanged, Lost) and "larger than" in exchanged.reason


async def test_a_name_that_does_not_resolve_sends_nothing() -> None:
    exchange = Exchange("http://nowhere.invalid:9")

    exchanged = await exchange.call("POST", "/", body=b"{}")

    await exchange.close()
    assert isinstance(exchanged, NotSent)
    rejected = without_answer(exchanged)
    assert isinstance(rejected, Rejected) and rejected.nothing_sent


async def test_cancelling_a_call_is_not_swallowed() -> None:
    heard = asyncio.Event()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.set()
        await reader.read()

    async with serving(hear) as (exchange, _):
        call = asyncio.create_task(exchange.call("POST", "/", body=b"{}"))
        await asyncio.wait_for(heard.wait(), 10)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


def head(length: int, *more: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"content-length: %d" % length, *more, b"", b""]
    return b"\r\n".join(lines)


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (head(len(MEDIA), b"x-content-sha256: " + b"0" * 64) + MEDIA, ErrorClass.BAD_OUTPUT),
        (head(len(MEDIA)) + MEDIA[:-1], ErrorClass.TRANSIENT),
        (head(0), ErrorClass.BAD_OUTPUT),
        (head(len(MEDIA) + 1) + MEDIA + b"x", ErrorClass.BAD_OUTPUT),
        (b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n", ErrorClass.NOT_FOUND),
        (b"HTTP/1.1 302 Go\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n", ErrorClass.TRANSIENT),
    ],
    ids=["other digest", "cut off", "empty", "too large", "not found", "elsewhere"],
)
async def test_a_download_that_is_not_right_leaves_the_old_file_and_no_part(
    raw: bytes, error: ErrorClass, tmp_path: Path
) -> None:
    target = tmp_path / "media"
    target.write_bytes(b"old")
    async with serving(saying(raw)) as (exchange, _):
        outcome = await exchange.download("/", target, size_bytes_max=len(MEDIA))

    assert isinstance(outcome, FetchFailed) and outcome.error is error, outcome
    assert [path.name for path in tmp_path.iterdir()] == ["media"]
    assert target.read_bytes() == b"old"


async def test_a_download_of_exactly_the_limit_with_the_announced_digest_is_fetched(tmp_path: Path) -> None:
    async with serving(saying(head(len(MEDIA), b"x-content-sha256: " + DIGEST) + MEDIA)) as (exchange, _):
        outcome = await exchange.download("/", tmp_path / "media", size_bytes_max=len(MEDIA))

    assert isinstance(outcome, Fetched) and outcome.sha256 == DIGEST.decode()
    assert (tmp_path / "media").read_bytes() == MEDIA


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("7", 7), ("1.5", 1.5), ("", 2), ("soon", 2), ("-1", 2), ("nan", 2), ("inf", 2), ("3601", 2)],
)
def test_retry_after_is_believed_only_when_it_makes_sense(text: str, seconds: float) -> None:
    answer = Answer(status=429, headers={"retry-after": text}, body=b"")

    assert retry_after_seconds(answer) == seconds


def test_a_deadline_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        seconds_until(datetime(2026, 5, 4))
    assert seconds_until(datetime(2000, 1, 1, tzinfo=UTC)) < 0
