"""Lease profiles: how long a claim holds without a sign of life, and how often the sign is given (G33, P18).

A short lease is noticed soon when its holder dies; a long one forgives a holder that is busy or cut off for minutes.
Every claim begins as the default; its first heartbeat makes it what its activity asks for.
"""

from typing import Literal

import msgspec

from longtake.contracts.effects import EffectKind

LeaseProfile = Literal["default", "long"]


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
