"""Ports: what the engine needs of the world, as Protocols (floor 2). Adapters implement them and never call the engine."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

import msgspec

# --- transport: hints that may be lost, doubled, reordered or deleted at any moment (design.md 10) -------------------


class OutgoingMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message to publish into a JetStream stream."""

    subject: str
    body: bytes
    message_id: str
    stream: str
    """The stream that must take it; another or none is an error (F09)."""
    headers: Mapping[str, str] = {}


class PublishResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one message. None of them proves that anything was or will be done (T14)."""

    state: Literal["stored", "duplicate", "unknown", "refused"]
    detail: str = ""


class Publisher(Protocol):
    """Publishes many messages at once."""

    async def publish(self, messages: Sequence[OutgoingMessage]) -> list[PublishResult]:
        """Publish; one result a message, in order. TransportUnavailable when not connected: nothing is buffered."""
        ...


class Delivery(Protocol):
    """One delivered message. It must be settled by exactly one of ack, nak, term."""

    @property
    def subject(self) -> str: ...
    @property
    def body(self) -> bytes: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def deliveries(self) -> int:
        """How often the server says it was delivered; a hint, not a count to decide by."""
        ...

    async def ack(self, *, sync: bool = False) -> None: ...
    async def nak(self, *, delay_seconds: float = 0.0) -> None: ...
    async def term(self) -> None: ...


class Subscription(Protocol):
    """A durable pull consumer."""

    async def fetch(self, *, limit: int, wait_seconds: float) -> list[Delivery]:
        """Return up to `limit` messages as soon as there are some; an empty list after `wait_seconds`.

        Survives deleted consumers and lost connections by itself; TransportUnavailable while there is none.
        """
        ...

    async def close(self) -> None: ...


class Transport(Protocol):
    """The JetStream side of one process."""

    @property
    def publisher(self) -> Publisher: ...
    async def commands(self) -> Subscription: ...
    async def effects(self, pool: str) -> Subscription: ...
    async def callbacks(self, part: int) -> Subscription: ...
    async def publish_receipt(self, *, tenant: str, command_id: str, receipt: bytes) -> None:
        """Tell a fire-and-forget producer; lossy."""
        ...


class Doorbell(Protocol):
    """Lossy wake-ups between roles (P24). Losing one costs time, never work."""

    def ring(self, name: str, *, due_at: datetime | None = None) -> None:
        """Wake whoever waits for `name`, in this process and others."""
        ...

    async def wait(self, name: str, *, timeout_seconds: float) -> bool:
        """Return True when rung, False after the timeout."""
        ...


class OldestMessage(Protocol):
    """How far the streams have got: a hint younger than the oldest message there may still be waiting (P12)."""

    async def oldest_effect(self, pool: str) -> datetime | None:
        """Time of the oldest message of the pool that is still in the stream; None when there is none."""
        ...

    async def oldest_callback(self, part: int) -> datetime | None:
        """Time of the oldest message of the part that is still in the stream; None when there is none."""
        ...
