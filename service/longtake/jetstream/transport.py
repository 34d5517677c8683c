"""The transport of one process: publisher, subscriptions, receipts, and the streams they need kept in being.

A stream that is gone or was made anew has forgotten its messages. This object notices - by looking every few seconds, after each new
link, and when a publication is refused - declares the topology again and tells the store through `on_topology`, which compares the
births with the ones it knows, raises the transport epoch and has everything open published again (F10). A stream that came back
without its end - its server lost its power - is told through `on_behind`, to the same effect (sequences.py).

A purge by somebody with the right to it shows in neither; what it took is found as any lost pointer is, by its age (P12).
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import Final

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from longtake.contracts.ids import subject_token
from longtake.errors import AuthorityUnavailable, LongtakeError, TransportUnavailable
from longtake.jetstream.connection import JETSTREAM_ANSWER_SECONDS, Connection
from longtake.jetstream.ending import end_task
from longtake.jetstream.publisher import JetStreamPublisher
from longtake.jetstream.sequences import Sequences
from longtake.jetstream.subscriber import PullOptions, PullSubscription
from longtake.jetstream.topology import (
    COMMAND_CONSUMER,
    LT_CALLBACK,
    LT_EFFECT,
    StreamIdentity,
    TopologySettings,
    callback_consumer,
    callback_subject,
    consumer_config,
    effect_consumer,
    effect_subject,
    ensure_consumer,
    ensure_topology,
    stream_ends,
    unavailable,
)
from longtake.telemetry import get_logger, inject

log = get_logger(__name__)

TOPOLOGY_LOOK_SECONDS: Final = 10.0
NO_MESSAGE_FOUND: Final = 10037
"""JetStream's word for: the stream is there, and holds no such message."""

OnTopology = Callable[[tuple[StreamIdentity, ...]], Awaitable[None]]
"""Told who the streams are whenever that is new to this process. It may be told the same twice."""
OnBehind = Callable[[tuple[str, ...]], Awaitable[None]]
"""Told which streams have lost messages that they had acknowledged. Several processes may tell the same loss."""


class JetStreamTransport:
    """The port `Transport`. It owns the connection it is given."""

    def __init__(
        self,
        connection: Connection,
        *,
        settings: TopologySettings | None = None,
        on_topology: OnTopology | None = None,
        on_behind: OnBehind | None = None,
        pull: PullOptions | None = None,
        look_seconds: float = TOPOLOGY_LOOK_SECONDS,
    ) -> None:
        self.connection = connection
        self._settings = settings or TopologySettings()
        self._on_topology = on_topology
        self._on_behind = on_behind
        self._pull = pull
        self._look_seconds = look_seconds
        self._sequences = Sequences()
        self._publisher = JetStreamPublisher(connection, on_refused=self._suspect, sequences=self._sequences)
        self._subscriptions: set[PullSubscription] = set()
        self._known: tuple[StreamIdentity, ...] = ()
        self._declaring = asyncio.Lock()
        self._declared = asyncio.Event()
        self._look_now = asyncio.Event()
        self._looker: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect and declare the topology, in the background: NATS may come later than we do."""
        await self.connection.start()
        await self.connection.on_link(self._on_link)
        if self._looker is None:
            self._looker = asyncio.create_task(self._look(), name="jetstream-topology")

    async def stop(self) -> None:
        """Stop fetching, give back what is unsettled, flush, close. May be called twice."""
        self.connection.off_link(self._on_link)
        looker, self._looker = self._looker, None
        await end_task(looker)
        for subscription in list(self._subscriptions):
            await subscription.close()
        self._subscriptions.clear()
        self._publisher.close()
        await self.connection.stop()

    async def started(self) -> None:
        """Wait until the streams are there."""
        await self._declared.wait()

    async def oldest_effect(self, pool: str) -> datetime | None:
        """When the oldest message of the pool that is still in the stream was stored; None when there is none (P12)."""
        return await self._oldest(LT_EFFECT, effect_subject(pool))

    async def oldest_callback(self, part: int) -> datetime | None:
        """When the oldest message of the part that is still in the stream was stored; None when there is none."""
        return await self._oldest(LT_CALLBACK, callback_subject(part))

    async def _oldest(self, stream: str, subject: str) -> datetime | None:
        request = json.dumps({"seq": 1, "next_by_subj": subject}).encode()
        try:
            # A relay that sat out the timeout of a question whose link is gone would publish nothing for so long.
            reply = await self.connection.while_linked(
                self.connection.client.request(
                    f"$JS.API.STREAM.MSG.GET.{stream}", request, timeout=JETSTREAM_ANSWER_SECONDS
                )
            )
        except (NatsError, OSError) as error:
            raise unavailable(error) from error
        answer = json.loads(reply.data)
        refusal = answer.get("error")
        if refusal is not None and refusal.get("err_code") != NO_MESSAGE_FOUND:
            # Above all a stream that is not there yet: nothing can be told of it, and nothing be published into it.
            raise TransportUnavailable(f"{stream}: {refusal.get('description', refusal)}")
        found = answer.get("message")
        return None if found is None else datetime.fromisoformat(found["time"])

    async def wait_ready(self, timeout_seconds: float) -> bool:
        """Wait until the streams are there; False when they are not in time."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._declared.wait()
        except TimeoutError:
            return False
        return True

    @property
    def publisher(self) -> JetStreamPublisher:
        """Publishes into the three streams."""
        return self._publisher

    # A subscription is its caller's own: each keeps its request standing, and who closes one closes no other's.

    async def commands(self) -> PullSubscription:
        """Commands that producers published."""
        return self._subscription(COMMAND_CONSUMER)

    async def effects(self, pool: str) -> PullSubscription:
        """Pointers to effects of a pool; its consumer is declared at the first fetch."""
        return self._subscription(effect_consumer(pool))

    async def callbacks(self, part: int) -> PullSubscription:
        """Pointers to callbacks and reports of a part."""
        return self._subscription(callback_consumer(part))

    async def publish_receipt(self, *, tenant: str, command_id: str, receipt: bytes) -> None:
        """Tell a fire-and-forget producer; nobody may be listening, and a lost receipt can be asked for."""
        headers = {"Content-Type": "application/json"}
        inject(headers)
        subject = f"longtake.v1.receipt.{subject_token(tenant)}.{subject_token(command_id)}"
        try:
            await self.connection.client.publish(subject, receipt, headers=headers)
        except (TransportUnavailable, NatsError, OSError):
            log.debug("receipt.lost", tenant=tenant, command_id=command_id)

    async def declare(self) -> tuple[StreamIdentity, ...]:
        """Declare streams and consumers now; returns who the streams are. TransportUnavailable without JetStream."""
        async with self._declaring:
            durables = sorted({subscription.durable for subscription in self._subscriptions})
            pools = [
                durable.removeprefix("effects_") for durable in durables if durable.startswith("effects_")
            ]
            try:
                found = await self.connection.while_linked(
                    ensure_topology(self._jetstream(), pools, self._settings)
                )
            except (NatsError, OSError) as error:
                raise unavailable(error) from error
            await self._learn(found)
            return found

    # --- keeping the streams in being ---------------------------------------------------------------------------------

    def _subscription(self, durable: str) -> PullSubscription:
        stream, _ = consumer_config(self._settings, durable)

        async def heal() -> bool:
            return await self._heal(durable)

        subscription = PullSubscription(
            self.connection,
            stream=stream,
            durable=durable,
            heal=heal,
            options=self._pull,
            on_close=self._subscriptions.discard,
        )
        self._subscriptions.add(subscription)
        return subscription

    async def _heal(self, durable: str) -> bool:
        try:
            return await self.connection.while_linked(
                ensure_consumer(self._jetstream(), durable, self._settings)
            )
        except NotFoundError:
            try:
                await self.declare()
            except AuthorityUnavailable as error:
                # Whoever fetches waits for the transport alone; the store is told by the next look.
                raise TransportUnavailable(
                    f"the streams are new and the store cannot be told: {error}"
                ) from error
            return True
        except (NatsError, OSError) as error:
            raise unavailable(error) from error

    def _jetstream(self) -> JetStreamContext:
        return self.connection.client.jetstream(timeout=JETSTREAM_ANSWER_SECONDS)

    async def _on_link(self, _client: Client) -> None:
        self._look_now.set()

    def _suspect(self) -> None:
        self._look_now.set()

    async def _look(self) -> None:
        while True:
            try:
                if self.connection.is_linked:
                    await self._look_once()
            except (LongtakeError, NatsError, OSError) as error:
                log.warning("transport.topology_unknown", error=f"{type(error).__name__}: {error}")
            except Exception:
                # Of `on_topology`, most likely. The look must go on: nobody else notices a lost stream.
                log.exception("transport.topology_look_failed")
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look_seconds):
                    await self._look_now.wait()
            self._look_now.clear()

    async def _look_once(self) -> None:
        if not self._known:
            await self.declare()
            return
        expected = {stream.name: self._sequences.highest(stream.name) for stream in self._known}
        ends = await self.connection.while_linked(stream_ends(self._jetstream()))
        if tuple(ends) != self._known:
            await self.declare()
            return
        for stream, last_sequence in ends.items():
            self._sequences.looked(stream.name, last_sequence, expected=expected[stream.name])
        if behind := self._sequences.behind:
            log.warning("transport.streams_are_behind", streams=behind)
            if self._on_behind is not None:
                await self._on_behind(behind)
            # Only now: when the store could not be told, the next look tells it.
            self._sequences.forget(*behind)

    async def _learn(self, found: tuple[StreamIdentity, ...]) -> None:
        if found != self._known:
            if self._known:
                log.warning("transport.streams_are_new", streams=[identity.name for identity in found])
            if self._on_topology is not None:
                await self._on_topology(found)
            # Only now: when the store could not be told, the next look tells it.
            self._sequences.forget(*(stream.name for stream in set(found) - set(self._known)))
            self._known = found
        self._declared.set()
