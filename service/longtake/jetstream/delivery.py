"""One delivered message and the ways to settle it.

A settlement goes through whatever client the connection has now: a delivery outlives the client that brought it. Acks and naks are
not fenced by the server - a late one of ours can settle the copy that somebody else holds - so nothing may depend on them but speed.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, Protocol

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from longtake.errors import TransportUnavailable
from longtake.jetstream.connection import Connection
from longtake.telemetry import count, get_logger

log = get_logger(__name__)

ACK_SYNC_SECONDS: Final = 2.0
FORGOTTEN_NAK_SECONDS: Final = 1.0

_ACK: Final = b"+ACK"
_TERM: Final = b"+TERM"
_NO_HEADERS: Final[Mapping[str, str]] = {}
# $JS.ACK.<stream>.<consumer>.<delivered>..., or with <domain>.<account> before <stream> in the second version.
_V1_TOKENS: Final = 9
_V1_DELIVERED: Final = 4
_V2_DELIVERED: Final = 6


class Settleable(Protocol):
    """What `settling` needs of a delivery."""

    @property
    def is_settled(self) -> bool: ...
    async def nak(self, *, delay_seconds: float = 0.0) -> None: ...


class JetStreamDelivery:
    """The port `Delivery`. A second settlement is a mistake of the caller and raises RuntimeError."""

    __slots__ = ("__weakref__", "_connection", "_consumer", "_message", "arrived_at", "is_settled")

    def __init__(self, connection: Connection, consumer: str, message: Msg, arrived_at: float) -> None:
        self._connection = connection
        self._consumer = consumer
        self._message = message
        self.arrived_at = arrived_at
        self.is_settled = False

    @property
    def subject(self) -> str:
        """Where it was published."""
        return self._message.subject

    @property
    def body(self) -> bytes:
        """The bytes as they were published."""
        return self._message.data

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, perhaps none."""
        return self._message.headers or _NO_HEADERS

    @property
    def deliveries(self) -> int:
        """How often the server says it was delivered; a hint."""
        return deliveries_of(self._message.reply)

    async def ack(self, *, sync: bool = False) -> None:
        """Say that it is done for. With `sync` the server has confirmed it; TransportUnavailable when it has not.

        Without `sync` a lost ack is no error: the message comes again and is found settled.
        """
        self._settle("ack")
        if sync:
            try:
                await self._connection.client.request(self._message.reply, _ACK, timeout=ACK_SYNC_SECONDS)
            except (NatsError, OSError) as error:
                raise TransportUnavailable(
                    f"the ack of {self.subject} was not confirmed and the message may come again: "
                    f"{type(error).__name__}"
                ) from error
        else:
            await self._say(_ACK)

    async def nak(self, *, delay_seconds: float = 0.0) -> None:
        """Give it back, to be delivered again after the delay."""
        self._settle("nak")
        nanoseconds = int(delay_seconds * 1e9)
        await self._say(b"-NAK" if nanoseconds <= 0 else b'-NAK {"delay": %d}' % nanoseconds)

    async def term(self) -> None:
        """Never deliver it again."""
        self._settle("term")
        await self._say(_TERM)

    def _settle(self, way: str) -> None:
        if self.is_settled:
            raise RuntimeError(f"a delivery of {self.subject} was settled twice, now by {way}")
        self.is_settled = True
        count("longtake.transport.settled", 1, {"consumer": self._consumer, "way": way})

    async def _say(self, payload: bytes) -> None:
        try:
            await self._connection.client.publish(self._message.reply, payload)
        except (TransportUnavailable, NatsError, OSError):
            # Then the server delivers it again after ack_wait, as if we had died; that is already provided for.
            log.debug("delivery.settlement_lost", consumer=self._consumer)


def deliveries_of(reply: str) -> int:
    """Read the delivery count of an ack subject in both of its forms; 1 when it is neither."""
    tokens = reply.split(".")
    place = _V1_DELIVERED if len(tokens) == _V1_TOKENS else _V2_DELIVERED
    try:
        return int(tokens[place])
    except (IndexError, ValueError):
        return 1


@asynccontextmanager
async def settling(
    deliveries: Sequence[Settleable], *, delay_seconds: float = FORGOTTEN_NAK_SECONDS
) -> AsyncIterator[None]:
    """Give back whatever the block leaves unsettled, on every way out of it: a leaked delivery stalls its consumer."""
    try:
        yield
    finally:
        forgotten = [delivery for delivery in deliveries if not delivery.is_settled]
        for delivery in forgotten:
            await delivery.nak(delay_seconds=delay_seconds)
        if forgotten:
            count("longtake.transport.unsettled", len(forgotten), {"consumer": "any"})
