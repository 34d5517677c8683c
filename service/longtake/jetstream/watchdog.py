"""Says when a client is dead although it says it is connected.

nats-py can die silently: an error inside its read loop ends the loop while the status stays CONNECTED, a half-open TCP connection
looks like a quiet one, and one hanging close can stop reconnection for ever. So somebody outside asks for a round trip.

A trap: `flush` of nats-py 2.16 returns at once, and well, when the read loop is dead, for it was made lenient for clean exits.
`rtt` sends the same PING but insists on the PONG, so that is what we ask (connection.py says how, for it has a trap too).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

Probe = Callable[[float], Awaitable[object]]
"""One round trip within that many seconds, or any exception."""

FAILURES_TO_DEATH: Final = 2
"""One failure may be a pause of ours or theirs."""


class WatchdogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How often to ask and how long to wait."""

    interval_seconds: float = 5.0
    answer_seconds: float = 2.0


async def watch(probe: Probe, options: WatchdogOptions) -> str:
    """Ask again and again; return what the last failure said once the client counts as dead."""
    failures = 0
    while True:
        await asyncio.sleep(options.interval_seconds)
        try:
            await probe(options.answer_seconds)
        except Exception as error:  # noqa: BLE001 - whatever a dead client raises, it is dead
            failures += 1
            if failures >= FAILURES_TO_DEATH:
                return f"{type(error).__name__}: {error}"
        else:
            failures = 0
