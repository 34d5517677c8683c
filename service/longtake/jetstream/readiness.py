"""Waiting for the streams at a process's start, as a `Service` that stands between the transport and the roles.

A hint that is sent before its stream is there is lost, and found late. NATS may come later than we do, so the wait
has an end, and the roles begin without it.
"""

from longtake.jetstream.transport import JetStreamTransport

READY_SECONDS = 3.0


class StreamsReady:
    """Holds up what is started after it until the streams are there, READY_SECONDS at most."""

    def __init__(self, transport: JetStreamTransport, *, seconds: float = READY_SECONDS) -> None:
        self._transport = transport
        self._seconds = seconds

    async def start(self) -> None:
        """Wait."""
        await self._transport.wait_ready(self._seconds)

    async def started(self) -> None:
        """It has waited when `start` returns."""

    async def stop(self) -> None:
        """Nothing to end."""
