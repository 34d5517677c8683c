"""Doorbells between processes by LISTEN and NOTIFY, for a service without a broker (P24).

Each ring is a statement of its own on a connection of its own: a notification inside a decision would put all decisions in line
at their commit. While nobody can be heard - the connection is lost, or a pooler in transaction mode hides it - sleepers look
more often.
"""

import asyncio
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import asyncpg
import structlog

from longtake.doorbells import LocalDoorbell
from longtake.errors import AuthorityUnavailable
from longtake.postgres.failures import AWAY
from longtake.postgres.pool import connect
from longtake.postgres.statements import statement

CHANNEL = "longtake_doorbell"
AGAIN_SECONDS = 0.5
DEAF_SECONDS = 1.0
"""How often to look while nobody can be heard."""

log = structlog.get_logger("longtake.postgres.doorbell")


class PostgresDoorbell(LocalDoorbell):
    """The port `Doorbell` over one connection, opened again whenever it is lost. A `Service`."""

    def __init__(self, address: Mapping[str, Any]) -> None:
        super().__init__()
        self._address = address
        self._me = uuid.uuid4().hex[:12]
        self._outbox: dict[str, datetime | None] = {}
        self._filled = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self.hears = False
        """Whether rings of other processes come through now."""

    async def start(self) -> None:
        """Listen to other processes and tell them."""
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name="doorbell")

    async def started(self) -> None:
        """A doorbell is lossy: it works as soon as it is made."""

    async def stop(self) -> None:
        """Stop. May be called twice."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.wait({keeper})
        self.forget_timers()

    def ring(self, name: str, *, due_at: datetime | None = None) -> None:
        """Wake whoever waits for `name`, now or when it is due, in this process and others."""
        super().ring(name, due_at=due_at)
        # Many rings of one name before the keeper runs are one notification, of the earliest time.
        waiting = self._outbox.get(name, due_at)
        self._outbox[name] = None if waiting is None or due_at is None else min(waiting, due_at)
        self._filled.set()

    def patience(self, seconds: float) -> float:
        """How long a sleeper may sleep who would otherwise sleep for `seconds`."""
        return seconds if self.hears else min(seconds, DEAF_SECONDS)

    async def _keep(self) -> None:
        while True:
            try:
                connection = await connect(self._address)
            except AuthorityUnavailable:
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            try:
                await connection.add_listener(CHANNEL, self._on_ring)
                self.hears = True
                await self._send(connection)
            except AWAY as error:
                log.warning("longtake.doorbell_lost", reason=f"{type(error).__name__}: {error}")
            finally:
                self.hears = False
                with suppress(*AWAY):
                    connection.terminate()
            await asyncio.sleep(AGAIN_SECONDS)

    async def _send(self, connection: asyncpg.Connection) -> None:
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        gone = asyncio.create_task(lost.wait())
        try:
            while not lost.is_set():
                filled = asyncio.create_task(self._filled.wait())
                await asyncio.wait({filled, gone}, return_when=asyncio.FIRST_COMPLETED)
                filled.cancel()
                self._filled.clear()
                rings, self._outbox = self._outbox, {}
                if rings:
                    payloads = [f"{self._me}|{name}|{_millis(due_at)}" for name, due_at in rings.items()]
                    await connection.execute(statement("doorbell_ring"), payloads)
        finally:
            gone.cancel()

    def _on_ring(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        sender, _, said = str(payload).partition("|")
        name, _, due = said.partition("|")
        if sender == self._me or not name:
            return
        try:
            due_at = datetime.fromtimestamp(int(due) / 1000, UTC) if due else None
        except (ValueError, OverflowError, OSError):
            due_at = None
        self.ring_here(name, due_at)


def _millis(due_at: datetime | None) -> str:
    return "" if due_at is None else str(int(due_at.timestamp() * 1000))
