"""A durable pull consumer that keeps one standing request with the server and survives what may happen to it.

`fetch` of nats-py makes one or two requests a call, and takes the first word of a deleted consumer for idleness. Here the request
stands: what arrives between two calls waits in a short buffer, and a call asks only for what is not on its way already. So the
messages that are buffered or on their way never exceed the last `limit`, and a worker may pass its free slots as the limit.

The consumer is looked at every ten seconds, after three empty waits, and at once when the server hints at trouble (409, 503, missing
heartbeats); what is missing or changed is declared again. Nobody may wrap `fetch` in `wait_for`: its own wait is bounded.
Leaves to others: what the messages mean, and settling them.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final
from weakref import WeakSet

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription
from nats.errors import Error as NatsError

from longtake.errors import TransportUnavailable
from longtake.jetstream.connection import Connection
from longtake.jetstream.delivery import JetStreamDelivery
from longtake.ports import Delivery
from longtake.telemetry import count, get_logger

log = get_logger(__name__)

FETCH_MAX: Final = 512
"""The largest `limit`; it also bounds the buffer."""
ALWAYS_TOP_UP: Final = 16
"""Up to this limit each missing message is asked for; above it only when half are missing, to save requests."""
EMPTY_WAITS_MAX: Final = 3

Heal = Callable[[], Awaitable[bool]]
"""Declare the consumer again when it is missing or changed; True when it was."""


class PullOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How long requests stand and how often the consumer is looked at."""

    expires_seconds: float = 30.0
    heartbeat_seconds: float = 5.0
    heartbeats_missed_max: float = 2.5
    check_seconds: float = 10.0
    check_pause_seconds: float = 1.0
    """Between two looks that only suspicion asked for."""
    buffer_seconds: float = 8.0
    """Older buffered messages are dropped: the server is about to deliver them again, perhaps to somebody else."""


class _Request(msgspec.Struct):
    """A standing request: how many messages it may still bring, and until when."""

    number: int
    open: int
    ends_at: float


class PullSubscription:
    """The port `Subscription` of one durable consumer. One caller at a time."""

    def __init__(
        self,
        connection: Connection,
        *,
        stream: str,
        durable: str,
        heal: Heal,
        options: PullOptions | None = None,
        on_close: "Callable[[PullSubscription], None] | None" = None,
    ) -> None:
        self.durable = durable
        self._connection = connection
        self._request_subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}"
        self._heal = heal
        self._on_close = on_close
        self._options = options or PullOptions()
        self._labels = {"consumer": durable}
        self._buffer: deque[JetStreamDelivery] = deque()
        self._given: WeakSet[JetStreamDelivery] = WeakSet()
        self._requests: deque[_Request] = deque()
        self._arrived = asyncio.Event()
        self._client: Client | None = None
        self._inbox = ""
        self._nats: NatsSubscription | None = None
        self._links = 0
        self._next_number = 0
        self._heard_at = 0.0
        self._checked_at = float("-inf")
        self._suspicion: str | None = "not looked at yet"
        self._empty_waits = 0
        self._fetching = False
        self._closed = False
        connection.on_loss(self._arrived.set)

    async def fetch(self, *, limit: int, wait_seconds: float) -> list[Delivery]:
        """Return up to `limit` messages as soon as there are some; an empty list after `wait_seconds`.

        TransportUnavailable while there is no link, no JetStream, or after `close`.
        """
        if not 1 <= limit <= FETCH_MAX:
            raise ValueError(f"limit is {limit}; it must be 1 to {FETCH_MAX}")
        if self._fetching:
            raise RuntimeError(f"two callers fetch from {self.durable} at once")
        self._fetching = True
        try:
            return await self._fetch(limit, wait_seconds)
        except (NatsError, OSError) as error:
            raise TransportUnavailable(f"{self.durable}: {type(error).__name__}: {error}") from error
        finally:
            self._fetching = False

    async def close(self) -> None:
        """Stop, and give back at once what was taken and not settled. May be called twice."""
        self._closed = True
        if self._on_close is not None:
            self._on_close(self)
        self._connection.off_loss(self._arrived.set)
        self._arrived.set()
        nats, self._nats = self._nats, None
        if nats is not None and self._client is not None and self._client.is_connected:
            try:
                await nats.unsubscribe()
            except (NatsError, OSError):
                log.debug("subscription.unsubscribe_failed", consumer=self.durable)
        for delivery in (*self._buffer, *self._given):
            if not delivery.is_settled:
                await delivery.nak()
        self._buffer.clear()

    # --- fetching -----------------------------------------------------------------------------------------------------

    async def _fetch(self, limit: int, wait_seconds: float) -> list[Delivery]:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + wait_seconds
        while True:
            if self._closed:
                raise TransportUnavailable(f"{self.durable}: the subscription is closed")
            await self._attach()
            self._drop_old(loop.time())
            if not self._buffer:
                await self._look_if_due(loop.time())
            self._arrived.clear()
            await self._top_up(limit, loop.time())
            if self._buffer:
                return self._take(limit)
            left = ends_at - loop.time()
            if left <= 0:
                self._empty_waits += 1
                return []
            await self._wait(min(left, self._options.heartbeat_seconds))

    def _take(self, limit: int) -> list[Delivery]:
        self._empty_waits = 0
        taken: list[Delivery] = []
        while self._buffer and len(taken) < limit:
            delivery = self._buffer.popleft()
            self._given.add(delivery)
            taken.append(delivery)
        count("longtake.transport.delivered", len(taken), self._labels)
        return taken

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            return

    def _drop_old(self, now: float) -> None:
        while self._buffer and now - self._buffer[0].arrived_at > self._options.buffer_seconds:
            self._buffer.popleft()

    # --- the standing request -----------------------------------------------------------------------------------------

    async def _attach(self) -> None:
        client = self._connection.client
        if client is not self._client:
            inbox = client.new_inbox()
            self._nats = await client.subscribe(f"{inbox}.*", cb=self._on_message)
            self._client, self._inbox = client, inbox
        if self._links != self._connection.links:
            # The server forgot our requests with the old link, and perhaps more than that.
            self._links = self._connection.links
            self._requests.clear()
            self._suspicion = "new link"

    async def _top_up(self, limit: int, now: float) -> None:
        while self._requests and self._requests[0].ends_at < now:
            self._requests.popleft()
        known = len(self._buffer) + sum(request.open for request in self._requests)
        if known >= limit or (limit > ALWAYS_TOP_UP and known * 2 > limit):
            return
        assert self._client is not None
        options = self._options
        self._next_number += 1
        missing = limit - known
        body = b'{"batch":%d,"expires":%d,"idle_heartbeat":%d}' % (
            missing,
            int(options.expires_seconds * 1e9),
            int(options.heartbeat_seconds * 1e9),
        )
        # One second more than the server's own end, so that its word comes first.
        self._requests.append(_Request(self._next_number, missing, now + options.expires_seconds + 1.0))
        self._heard_at = max(self._heard_at, now)
        await self._client.publish(self._request_subject, body, reply=f"{self._inbox}.{self._next_number}")

    async def _on_message(self, message: Msg) -> None:
        now = asyncio.get_running_loop().time()
        self._heard_at = now
        status = message.headers.get("Status") if message.headers and not message.data else None
        if status is None:
            if self._requests:
                self._requests[0].open -= 1
                if self._requests[0].open <= 0:
                    self._requests.popleft()
            self._buffer.append(JetStreamDelivery(self._connection, self.durable, message, now))
        elif status == "100":
            return
        else:
            self._end_request(message, status)
        self._arrived.set()

    def _end_request(self, message: Msg, status: str) -> None:
        number = message.subject.rpartition(".")[2]
        self._requests = deque(request for request in self._requests if str(request.number) != number)
        if status not in ("404", "408"):
            # 409: consumer deleted, leader changed, server stopping, too many requests. 503: nobody is there at all.
            self._suspicion = f"{status} {(message.headers or {}).get('Description', '')}".strip()

    # --- looking after the consumer ------------------------------------------------------------------------------------

    async def _look_if_due(self, now: float) -> None:
        options = self._options
        silent = now - self._heard_at > options.heartbeat_seconds * options.heartbeats_missed_max
        if self._requests and silent:
            self._suspicion = "no heartbeat"
        if self._suspicion is None and self._empty_waits >= EMPTY_WAITS_MAX:
            self._suspicion = "empty waits"
        age = now - self._checked_at
        if age < (options.check_seconds if self._suspicion is None else options.check_pause_seconds):
            return
        is_first = self._checked_at == float("-inf")
        reason, self._suspicion, self._checked_at, self._empty_waits = self._suspicion, None, now, 0
        try:
            repaired = await self._heal()
        except BaseException:
            self._suspicion = reason or "the last look failed"
            raise
        if repaired and not is_first:
            log.warning(
                "transport.consumer_declared_again", consumer=self.durable, reason=reason or "routine look"
            )
            count("longtake.transport.consumer_repairs", 1, self._labels)
        if repaired or reason not in (None, "empty waits"):
            self._requests.clear()
