"""Publishes many messages at once and says of each what the server said.

All acknowledgements come to one inbox of our own and are told apart by the last token of their subject, so a message in flight costs
a dictionary entry instead of a future, a timer and a request (bench/transport.py has the figures). Nothing is buffered while there is
no link. None of the four results proves that anything was done: the authority is elsewhere (T14).

Leaves to others: what is published again and when (the relay), and message ids, which carry the generation so that a needed
repetition is not swallowed as a duplicate.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import (
    BadHeaderError,
    BadSubjectError,
    ConnectionClosedError,
    ConnectionDrainingError,
    MaxPayloadError,
    OutboundBufferLimitError,
)

from longtake.errors import TransportUnavailable
from longtake.jetstream.connection import Connection
from longtake.jetstream.sequences import Sequences
from longtake.jetstream.topology import MESSAGE_BYTES_MAX
from longtake.ports import OutgoingMessage, PublishResult
from longtake.telemetry import count, inject

IN_FLIGHT_MAX: Final = 1024
"""Messages sent before their acknowledgements are waited for; longer sequences go in slices."""
ACK_SECONDS: Final = 5.0

_STATUS: Final = "Status"
_NO_RESPONDERS: Final = "503"

STORED: Final = PublishResult(state="stored")
DUPLICATE: Final = PublishResult(state="duplicate")
_NO_ACK: Final = PublishResult(state="unknown", detail="no acknowledgement in time")
_LINK_LOST: Final = PublishResult(
    state="unknown", detail="the connection was lost before the acknowledgement"
)
_NOT_SENT: Final = PublishResult(state="unknown", detail="the connection was lost before it was sent")


class _AckError(msgspec.Struct):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _Ack(msgspec.Struct):
    stream: str = ""
    seq: int = 0
    duplicate: bool = False
    error: _AckError | None = None


_decode_ack = msgspec.json.Decoder(_Ack).decode


class _Batch:
    """The messages of one slice and how many of them have no answer yet."""

    __slots__ = ("done", "first", "missing", "results")

    def __init__(self, first: int, size: int) -> None:
        self.first = first
        self.results: list[PublishResult | None] = [None] * size
        self.missing = size
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(self, index: int, result: PublishResult) -> None:
        if self.results[index] is None:
            self.results[index] = result
            self.missing -= 1
            if not self.missing and not self.done.done():
                self.done.set_result(None)

    def settle_rest(self, result: PublishResult) -> None:
        for index, known in enumerate(self.results):
            if known is None:
                self.settle(index, result)


class JetStreamPublisher:
    """The port `Publisher` over one connection."""

    def __init__(
        self,
        connection: Connection,
        *,
        ack_seconds: float = ACK_SECONDS,
        on_refused: Callable[[], None] | None = None,
        sequences: Sequences | None = None,
    ) -> None:
        """`on_refused` is also called when a stream is found to have lost what it had acknowledged (`sequences`)."""
        self._connection = connection
        self._ack_seconds = ack_seconds
        self._on_refused = on_refused
        self._sequences = sequences or Sequences()
        self._inbox = ""
        self._inbox_client: Client | None = None
        self._subscribing = asyncio.Lock()
        self._next = 0
        self._waiting: dict[int, _Batch] = {}
        connection.on_loss(self._on_loss)

    async def publish(self, messages: Sequence[OutgoingMessage]) -> list[PublishResult]:
        """Publish; one result a message, in order. TransportUnavailable when there is no link: nothing was sent then."""
        results: list[PublishResult] = []
        for start in range(0, len(messages), IN_FLIGHT_MAX):
            try:
                results += await self._publish_slice(messages[start : start + IN_FLIGHT_MAX])
            except TransportUnavailable:
                if not results:
                    raise
                results += [_NOT_SENT] * (len(messages) - len(results))
                break
        self._tell(messages, results)
        return results

    def close(self) -> None:
        """Forget the connection; outstanding messages become unknown."""
        self._connection.off_loss(self._on_loss)
        self._on_loss()

    async def _publish_slice(self, messages: Sequence[OutgoingMessage]) -> list[PublishResult]:
        client = await self._ready_client()
        batch = _Batch(self._next, len(messages))
        self._next += len(messages)
        try:
            await self._send(client, batch, messages)
            if batch.missing:
                await asyncio.wait((batch.done,), timeout=self._ack_seconds)
        finally:
            for token in range(batch.first, batch.first + len(messages)):
                self._waiting.pop(token, None)
        batch.settle_rest(_NO_ACK)
        return [result for result in batch.results if result is not None]

    async def _send(self, client: Client, batch: _Batch, messages: Sequence[OutgoingMessage]) -> None:
        for index, message in enumerate(messages):
            bytes_max = MESSAGE_BYTES_MAX.get(message.stream)
            if bytes_max is not None and len(message.body) > bytes_max:
                batch.settle(index, _too_large(message, bytes_max))
                continue
            headers = dict(message.headers)
            headers["Nats-Msg-Id"] = message.message_id
            headers["Nats-Expected-Stream"] = message.stream
            inject(headers)
            token = batch.first + index
            self._waiting[token] = batch
            try:
                await client.publish(
                    message.subject, message.body, reply=f"{self._inbox}.{token}", headers=headers
                )
            except (BadHeaderError, BadSubjectError, MaxPayloadError, ValueError) as error:
                batch.settle(index, PublishResult(state="refused", detail=f"{message.subject}: {error}"))
            except (OutboundBufferLimitError, ConnectionClosedError, ConnectionDrainingError, OSError):
                batch.settle_rest(_NOT_SENT)
                return

    async def _ready_client(self) -> Client:
        client = self._connection.client
        if client is self._inbox_client:
            return client
        async with self._subscribing:
            if client is not self._inbox_client:
                inbox = client.new_inbox()
                await client.subscribe(f"{inbox}.*", cb=self._on_ack)
                self._inbox, self._inbox_client = inbox, client
        return client

    async def _on_ack(self, message: Msg) -> None:
        token = int(message.subject.rpartition(".")[2])
        batch = self._waiting.pop(token, None)
        if batch is not None:
            batch.settle(token - batch.first, self._read_ack(message))

    def _on_loss(self) -> None:
        # Acknowledgements that were under way when the link broke come no more.
        for batch in set(self._waiting.values()):
            batch.settle_rest(_LINK_LOST)
        self._waiting.clear()
        self._sequences.link_lost()

    def _tell(self, messages: Sequence[OutgoingMessage], results: Sequence[PublishResult]) -> None:
        counted: dict[tuple[str, str], int] = {}
        for message, result in zip(messages, results, strict=True):
            key = (message.stream, result.state)
            counted[key] = counted.get(key, 0) + 1
        for (stream, state), number in counted.items():
            count("longtake.transport.published", number, {"stream": stream, "result": state})
            if state == "refused" and self._on_refused is not None:
                self._on_refused()

    def _read_ack(self, message: Msg) -> PublishResult:
        if message.headers and message.headers.get(_STATUS) == _NO_RESPONDERS:
            return PublishResult(state="refused", detail="no stream takes this subject")
        try:
            ack = _decode_ack(message.data)
        except msgspec.DecodeError as error:
            return PublishResult(state="unknown", detail=f"unreadable acknowledgement: {error}")
        if ack.error is not None:
            detail = f"{ack.error.description} (code {ack.error.code}, {ack.error.err_code})"
            return PublishResult(state="refused", detail=detail)
        if ack.duplicate:
            return DUPLICATE
        if self._sequences.stored(ack.stream, ack.seq) and self._on_refused is not None:
            self._on_refused()
        return STORED


def _too_large(message: OutgoingMessage, bytes_max: int) -> PublishResult:
    return PublishResult(
        state="refused",
        detail=f"{message.subject}: {len(message.body)} bytes; {message.stream} takes {bytes_max}",
    )
