"""Says again what could not be said for want of a link, as soon as there is one (F03, P12).

A pointer whose publication failed is marked as published by a living process, so a relay takes it for lost only when the oldest message
of its stream is younger - and that one may wait out the acknowledgement of somebody whose link broke too. Who knows that nothing was
stored need not be waited for.

Leaves to others: what a process that died had not said (the relay, by its incarnation), and what a stream refused.
"""

import asyncio
import random
from collections.abc import Sequence
from typing import Final

from longtake.errors import TransportUnavailable
from longtake.lifecycle import LoopService
from longtake.ports import OutgoingMessage, Publisher, PublishResult

REPEAT_SECONDS: Final = 0.5
UNSAID_MAX: Final = 4096
"""Messages kept in memory; what is more is found by the relay."""


class RepeatingPublisher(LoopService):
    """The port `Publisher` over another one. The same message keeps its id, so a copy is a duplicate to its stream."""

    def __init__(self, publisher: Publisher, *, repeat_seconds: float = REPEAT_SECONDS) -> None:
        super().__init__("unsaid hints", self._work)
        self._publisher = publisher
        self._repeat_seconds = repeat_seconds
        self._unsaid: dict[str, OutgoingMessage] = {}
        self._some = asyncio.Event()

    @property
    def unsaid(self) -> int:
        """How many messages wait for a link."""
        return len(self._unsaid)

    async def publish(self, messages: Sequence[OutgoingMessage]) -> list[PublishResult]:
        """Publish; what has no answer is kept. TransportUnavailable as the other one raises it."""
        try:
            results = await self._publisher.publish(messages)
        except TransportUnavailable:
            self._keep(messages)
            raise
        self._keep(
            [said for said, result in zip(messages, results, strict=True) if result.state == "unknown"]
        )
        return results

    def _keep(self, messages: Sequence[OutgoingMessage]) -> None:
        for message in messages[: UNSAID_MAX - len(self._unsaid)]:
            self._unsaid[message.message_id] = message
        if self._unsaid:
            self._some.set()

    async def _work(self, stopping: asyncio.Event) -> None:
        ending = asyncio.ensure_future(stopping.wait())
        try:
            while not stopping.is_set():
                some = asyncio.ensure_future(self._some.wait())
                await asyncio.wait((some, ending), return_when=asyncio.FIRST_COMPLETED)
                some.cancel()
                await asyncio.wait((ending,), timeout=self._repeat_seconds * random.uniform(0.5, 1.5))
                if not stopping.is_set():
                    await self._repeat()
        finally:
            ending.cancel()

    async def _repeat(self) -> None:
        again, self._unsaid = list(self._unsaid.values()), {}
        self._some.clear()
        try:
            await self.publish(again)
        except TransportUnavailable:
            return  # kept again; said once by whoever published it first
