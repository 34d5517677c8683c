"""A subscription that looks: at once, when rung, and when it has slept long enough.

What was given out is not given again until it is settled, and then only after a moment: a row that whoever took it could not
do away with must not turn the wheel all day.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from longtake.errors import AuthorityUnavailable, TransportUnavailable
from longtake.ports import Delivery, Doorbell

AGAIN_SECONDS = 0.5
"""After an ack, until the same thing is given out again if it still waits."""
LIMIT_MIN = 8


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Something that waits."""

    key: str
    """The same for as long as it is the same work."""
    body: bytes
    traceparent: str | None = None


Look = Callable[[int], Awaitable[list[Found]]]
"""Given how many messages are wanted, what waits."""


class PolledDelivery:
    """The port `Delivery`; it was never on a wire."""

    def __init__(self, subject: str, found: Found, settled: Callable[[str, float], None]) -> None:
        self.subject = subject
        self.body = found.body
        self.headers: Mapping[str, str] = {"traceparent": found.traceparent} if found.traceparent else {}
        self.deliveries = 1
        self._key = found.key
        self._settled = settled

    async def ack(self, *, sync: bool = False) -> None:
        """It is not given again unless it still waits a moment later."""
        self._settled(self._key, AGAIN_SECONDS)

    async def nak(self, *, delay_seconds: float = 0.0) -> None:
        """It is given again after the delay."""
        self._settled(self._key, delay_seconds)

    async def term(self) -> None:
        """As an ack: there is nothing to take away."""
        self._settled(self._key, AGAIN_SECONDS)


class PolledSubscription:
    """The port `Subscription` over one look into the authority."""

    def __init__(self, bell: str, look: Look, *, doorbell: Doorbell, patience: Callable[[], float]) -> None:
        self._bell = bell
        self._look = look
        self._doorbell = doorbell
        self._patience = patience
        self._quiet_until: dict[str, float] = {}
        self._wakes_at: float | None = None

    async def fetch(self, *, limit: int, wait_seconds: float) -> list[Delivery]:
        """Up to `limit` of what waits; an empty list when nothing does in time. TransportUnavailable when nobody can look."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + wait_seconds
        while True:
            given = await self._give(limit, loop.time())
            left = ends_at - loop.time()
            if given or left <= 0:
                return given
            # Whatever was put back for a while rings no bell when its time comes.
            sooner = left if self._wakes_at is None else max(0.0, self._wakes_at - loop.time())
            await self._doorbell.wait(self._bell, timeout_seconds=min(left, self._patience(), sooner))

    async def close(self) -> None:
        """Nothing is held."""

    async def _give(self, limit: int, now: float) -> list[Delivery]:
        self._quiet_until = {key: until for key, until in self._quiet_until.items() if until > now}
        held = len(self._quiet_until)
        try:
            found = await self._look(max(LIMIT_MIN, limit) + held)
        except AuthorityUnavailable as error:
            raise TransportUnavailable(f"{self._bell}: {error}") from error
        given: list[Delivery] = []
        quiet = [self._quiet_until[item.key] for item in found if item.key in self._quiet_until]
        self._wakes_at = min((until for until in quiet if until != float("inf")), default=None)
        for item in found:
            if item.key not in self._quiet_until and len(given) < limit:
                self._quiet_until[item.key] = float("inf")
                given.append(PolledDelivery(f"longtake.v1.{self._bell}", item, self._settle))
        return given

    def _settle(self, key: str, seconds: float) -> None:
        self._quiet_until[key] = asyncio.get_running_loop().time() + seconds


class Silence:
    """A subscription on which nothing ever comes."""

    async def fetch(self, *, limit: int, wait_seconds: float) -> list[Delivery]:
        """An empty list, after the time."""
        await asyncio.sleep(wait_seconds)
        return []

    async def close(self) -> None:
        """Nothing is held."""
