"""Doorbells: lossy wake-ups between roles, in this process and others (P24).

A lost ring costs one polling interval, never work. A ring in this process does not go through NATS. Leaves to others: who
waits and is woken here (doorbells.py), the polling that is the truth.
"""

import asyncio
import uuid
from datetime import UTC, datetime
from typing import Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from longtake.doorbells import LocalDoorbell
from longtake.errors import TransportUnavailable
from longtake.jetstream.connection import Connection
from longtake.jetstream.ending import end_task
from longtake.telemetry import get_logger

log = get_logger(__name__)

SUBJECT: Final = "longtake.v1.doorbell."


class NatsDoorbell(LocalDoorbell):
    """The port `Doorbell`; without a connection it rings in this process alone."""

    def __init__(self, connection: Connection | None = None) -> None:
        super().__init__()
        self._connection = connection
        self._outbox: dict[str, datetime | None] = {}
        self._outbox_filled = asyncio.Event()
        self._me = uuid.uuid4().hex[:12]
        self._sender: asyncio.Task[None] | None = None
        self._subscribed: Client | None = None

    async def start(self) -> None:
        """Listen to other processes and tell them."""
        if self._connection is not None and self._sender is None:
            await self._connection.on_link(self._on_link)
            self._sender = asyncio.create_task(self._send(self._connection), name="doorbell-sender")

    async def started(self) -> None:
        """A doorbell is lossy: it works as soon as it is made."""

    async def stop(self) -> None:
        """Stop. May be called twice."""
        if self._connection is not None:
            self._connection.off_link(self._on_link)
        sender, self._sender = self._sender, None
        await end_task(sender)
        self.forget_timers()

    def ring(self, name: str, *, due_at: datetime | None = None) -> None:
        """Wake whoever waits for `name`, now or when it is due, in this process and others."""
        super().ring(name, due_at=due_at)
        if self._sender is not None:
            # Many rings of one name before the sender runs are one message, of the earliest time.
            waiting = self._outbox.get(name, due_at)
            self._outbox[name] = None if waiting is None or due_at is None else min(waiting, due_at)
            self._outbox_filled.set()

    async def _on_link(self, client: Client) -> None:
        if client is not self._subscribed:
            await client.subscribe(f"{SUBJECT}>", cb=self._on_message)
            self._subscribed = client

    async def _on_message(self, message: Msg) -> None:
        sender, _, due = message.data.decode("ascii", "replace").partition("|")
        if sender == self._me:
            return
        try:
            due_at = datetime.fromtimestamp(int(due) / 1000, UTC) if due else None
        except (ValueError, OverflowError, OSError):
            due_at = None
        self.ring_here(message.subject.removeprefix(SUBJECT), due_at)

    async def _send(self, connection: Connection) -> None:
        while True:
            await self._outbox_filled.wait()
            self._outbox_filled.clear()
            rings, self._outbox = self._outbox, {}
            for name, due_at in rings.items():
                due = "" if due_at is None else str(int(due_at.timestamp() * 1000))
                try:
                    await connection.client.publish(SUBJECT + name, f"{self._me}|{due}".encode())
                except (TransportUnavailable, NatsError, OSError):
                    log.debug("doorbell.lost", doorbell=name)


async def ring_once(connection: Connection, name: str) -> None:
    """Ring from a process that ends now and waits for nothing. Raises TransportUnavailable."""
    await connection.client.publish(SUBJECT + name, b"once|")
