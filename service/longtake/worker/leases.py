"""Lease profiles: how long a claim holds without a sign of life, and how often the sign is given (G33, P18).

A short lease is noticed soon when its holder dies; a long one forgives a holder that is busy or cut off for minutes.
Every claim begins as the default; its first heartbeat makes it what its activity asks for.
"""

import time
from collections.abc import Callable
from typing import Literal

import msgspec

from longtake.contracts.effects import EffectKind

LeaseProfile = Literal["default", "long"]
MARGIN = 0.1
"""The share of a lease in which its holder no longer relies on it."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A time to live and the time between two heartbeats; at least two of these fit into it."""

    seconds: int
    beat_seconds: float

    def __post_init__(self) -> None:
        """Refuse a lease that one late heartbeat would lose."""
        if self.beat_seconds * 2 > self.seconds:
            raise ValueError(
                f"a lease of {self.seconds} s does not hold for two beats of {self.beat_seconds} s"
            )


class Trust:
    """How long a lease is surely ours without asking: from before it was asked for, its time less a margin (F47, F49).

    Counted by the monotonic clock of this process, which nobody sets and which goes on while the process stands still.
    Its heartbeat's thread moves it on; the loop reads it.
    """

    def __init__(self, seconds: float, *, since: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`since`: on that clock, a moment before the authority was asked for the lease."""
        self._clock = clock
        self._until = since + seconds * (1 - MARGIN)

    def renew(self, seconds: float, *, since: float) -> None:
        """It was renewed; what was asked for earlier shortens nothing."""
        self._until = max(self._until, since + seconds * (1 - MARGIN))

    @property
    def holds(self) -> bool:
        """Whether nobody else can have the lease yet."""
        return self._clock() < self._until


LONG = Lease(seconds=300, beat_seconds=45.0)
"""For calls of many minutes, such as a model that writes or a request that is held open."""

LOOK = Lease(seconds=180, beat_seconds=45.0)
"""For a look at what such a call began: a poll, a look-up, a cancel."""


def lease_of(profile: LeaseProfile, kind: EffectKind, *, default: Lease) -> Lease:
    """The lease of one effect; never shorter than what the process was set to."""
    if profile == "default":
        return default
    chosen = LONG if kind == "execute" else LOOK
    return chosen if chosen.seconds >= default.seconds else default
