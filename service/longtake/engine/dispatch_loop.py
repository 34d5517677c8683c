"""The dispatcher's loop: readers of all parts fill one queue, batches are taken from it, messages settled after.

A message is acked when what it pointed at is decided or turned out to be nothing; poison and unknown pointers are kept
as dead letters first. While the authority is away nothing is acked and everything is tried again.
"""

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import structlog

from longtake.contracts.pointers import CallbackPointers, decode_callback_pointers
from longtake.crash_points import reach
from longtake.engine.dispatcher import Dispatcher, Pointers
from longtake.engine.hints import CALLBACK_PARTS
from longtake.engine.suspects import sift
from longtake.errors import AuthorityUnavailable, PoisonMessage, TransportUnavailable
from longtake.lifecycle import LoopService
from longtake.ports import Delivery, Subscription, Transport
from longtake.store import SweepStore

SIGNALS_PER_BATCH_MAX = 256
MESSAGES_PER_FETCH = 64
FETCH_SECONDS = 5.0
BATCHES_QUEUED_MAX = 16
NAK_SECONDS_MAX = 1.0
AWAY_SECONDS = 0.5

log = structlog.get_logger("longtake.engine.dispatcher")


class DispatchLoop(LoopService):
    """The dispatcher role of one process."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        transport: Transport,
        sweep: SweepStore,
        *,
        parts: Sequence[int] = range(CALLBACK_PARTS),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """Runs of different parts never meet, so loops over disjoint parts may share a dispatcher.

        `sleep` and `uniform` are for worlds without a clock and without chance.
        """
        super().__init__(f"dispatcher-{'-'.join(map(str, parts))}", self._work)
        self._dispatcher = dispatcher
        self._transport = transport
        self._sweep = sweep
        self._parts = parts
        self._sleep = sleep
        self._uniform = uniform
        self._queue: asyncio.Queue[list[Delivery]] = asyncio.Queue(BATCHES_QUEUED_MAX)

    async def _work(self, stopping: asyncio.Event) -> None:
        subscriptions = [await self._transport.callbacks(part) for part in self._parts]
        readers = [asyncio.create_task(self._read(subscription, stopping)) for subscription in subscriptions]
        settling: asyncio.Task[None] | None = None
        stop = asyncio.create_task(stopping.wait())
        try:
            while not stopping.is_set():
                taking = asyncio.create_task(self._take())
                await asyncio.wait({taking, stop}, return_when=asyncio.FIRST_COMPLETED)
                if not taking.done():
                    taking.cancel()
                    break
                settled = await self.batch(taking.result())
                if settling is not None:
                    await settling
                settling = asyncio.create_task(settled)
        finally:
            stop.cancel()
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
            if settling is not None:
                await settling
            for subscription in subscriptions:
                await subscription.close()

    async def _read(self, subscription: Subscription, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            try:
                deliveries = await subscription.fetch(limit=MESSAGES_PER_FETCH, wait_seconds=FETCH_SECONDS)
            except TransportUnavailable:
                await asyncio.sleep(AWAY_SECONDS)
                continue
            if deliveries:
                await self._queue.put(deliveries)

    async def _take(self) -> list[Delivery]:
        """Everything that waits, at least one message, up to a batch."""
        taken = await self._queue.get()
        while len(taken) < SIGNALS_PER_BATCH_MAX and not self._queue.empty():
            taken = taken + self._queue.get_nowait()
        return taken

    async def batch(self, deliveries: list[Delivery]) -> Coroutine[Any, Any, None]:
        """Decide a batch; returns the coroutine that settles its messages."""
        pointers = Pointers()
        readable: list[tuple[Delivery, CallbackPointers]] = []
        try:
            safe, poison = await sift(self._sweep, deliveries)
        except AuthorityUnavailable as error:
            return await self._delayed(deliveries, error)
        for delivery in safe:
            try:
                body = decode_callback_pointers(delivery.body)
            except PoisonMessage as error:
                poison.append((delivery, error))
                continue
            readable.append((delivery, body))
            pointers.effects.update(dict.fromkeys(body.effects))
            pointers.inbox.update(dict.fromkeys(body.inbox))
            pointers.runs.update(dict.fromkeys(body.runs))
        reach("batch.before_facts")
        try:
            outcome = await self._dispatcher.handle(pointers)
        except AuthorityUnavailable as error:
            return await self._delayed(deliveries, error)
        return self._settle(readable, poison, outcome.unknown, deferred=outcome.deferred > 0)

    async def _delayed(
        self, deliveries: list[Delivery], error: AuthorityUnavailable
    ) -> Coroutine[Any, Any, None]:
        log.warning("longtake.dispatch_delayed", messages=len(deliveries), reason=str(error))
        await self._sleep(self._uniform(0, AWAY_SECONDS))
        return self._put_back(deliveries)

    async def _settle(
        self,
        readable: list[tuple[Delivery, CallbackPointers]],
        poison: list[tuple[Delivery, PoisonMessage]],
        unknown: set[uuid.UUID],
        *,
        deferred: bool,
    ) -> None:
        reach("settled.before_ack")
        try:
            for delivery, error in poison:
                await self._dead_letter(delivery, f"poison: {error.reason}")
                await delivery.term()
            for delivery, body in readable:
                lost = [id_ for id_ in (*body.effects, *body.inbox, *body.runs) if id_ in unknown]
                if lost:
                    await self._dead_letter(delivery, f"unknown pointer: {', '.join(map(str, lost))}")
                if deferred:
                    await delivery.nak(delay_seconds=self._uniform(0.1, NAK_SECONDS_MAX))
                else:
                    await delivery.ack()
        except (AuthorityUnavailable, TransportUnavailable) as error:
            # Unsettled messages come again; what they point at is settled by then.
            log.warning("longtake.settling_delayed", reason=str(error))

    async def _put_back(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            try:
                await delivery.nak(delay_seconds=self._uniform(0.1, NAK_SECONDS_MAX))
            except TransportUnavailable:
                return

    async def _dead_letter(self, delivery: Delivery, reason: str) -> None:
        log.error("longtake.dead_letter", subject=delivery.subject, reason=reason)
        await self._sweep.dead_letter(
            tenant=None,
            source="dispatcher",
            subject=delivery.subject,
            reason=reason,
            body=delivery.body,
            headers=delivery.headers,
        )
