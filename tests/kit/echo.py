"""A publisher gone mad: whatever is published comes again, several times, late and in another order (F27).

It listens beside the streams, as any client may, and publishes copies with ids of their own, so that no de-duplication helps.
"""

import asyncio
import random
from types import TracebackType
from typing import Final, Self

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

COPIES: Final = 3
WINDOW: Final = 50
MARK: Final = "Echo"
LATE_SECONDS: Final = 0.3
"""What is still held after so long is said although the window is not full."""


class Echo:
    """While the block runs. `copies` counts what was published again."""

    def __init__(self, client: Client, chance: random.Random, *, subjects: tuple[str, ...]) -> None:
        self._client = client
        self._chance = chance
        self._subjects = subjects
        self._held: list[Msg] = []
        self._late: asyncio.Task[None] | None = None
        self._open = True
        self.copies = 0

    async def __aenter__(self) -> Self:
        for subject in self._subjects:
            await self._client.subscribe(subject, cb=self._hear)
        await self._client.flush()
        self._late = asyncio.create_task(self._say_late())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Say no more."""
        self._open = False
        if self._late is not None:
            self._late.cancel()
            await asyncio.gather(self._late, return_exceptions=True)

    async def _hear(self, message: Msg) -> None:
        if not self._open or (message.headers and MARK in message.headers):
            return
        self._held += [message] * COPIES
        while len(self._held) >= WINDOW:
            await self._say_one()

    async def _say_late(self) -> None:
        while True:
            await asyncio.sleep(LATE_SECONDS)
            while self._held:
                await self._say_one()

    async def _say_one(self) -> None:
        message = self._held.pop(self._chance.randrange(len(self._held)))
        self.copies += 1
        headers = {
            **(message.headers or {}),
            MARK: "1",
            "Nats-Msg-Id": f"echo-{self._chance.getrandbits(64):x}",
        }
        try:
            await self._client.publish(message.subject, message.data, headers=headers)
        except (NatsError, OSError):
            self.copies -= 1
