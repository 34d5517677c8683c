"""What goes wrong, how often: each seed draws a profile of its own, and every fault of it from the seed alone (4.1, swarm).

Faults are drawn per place and occurrence from streams of their own, so that one of them can be left out (`without`) while
the others stay as they were: that is how a failing seed is made small.
Leaves to others: what a fault does to a call (calls.py), the habits of the transport (transport.py) and provider.
"""

from collections.abc import Collection
from random import Random

import msgspec

CALL_FAULTS = ("crash_before", "crash_after", "not_executed", "executed_and_lost", "frozen")
"""What may happen at a port call."""

TRANSPORT_FAULTS = (
    "loss", "duplicate", "reorder", "delay", "publish_lost_answer", "publish_refused", "taken_by_dead", "given_again",
    "acked_but_lost", "zombie_ack",
)  # fmt: skip
"""What may happen to a message."""

STORMS = (
    "authority_outage", "transport_outage", "power_loss", "transport_restart", "stream_deleted", "stream_purged",
    "consumer_deleted", "process_killed", "clock_step", "store_rewound", "deployed",
)  # fmt: skip
"""What happens to a whole server at once, a few times a seed."""

PROVIDER_FAULTS = (
    "timeout_after_success", "never_arrived", "throttled", "refused", "bad_output", "job_fails", "callback_late",
    "callback_twice", "callback_contradicts", "callback_early", "look_up_fails", "slow",
)  # fmt: skip
"""Habits of a paid provider."""

OTHER_FAULTS = ("bell_lost", "answer_lost", "forged_callback", "unknown_pointer", "conflict", "hidden")
"""Lost doorbells and answers to clients, what strangers send, and what the authority's readers may see."""

_RANGES: dict[str, tuple[float, float]] = {
    "crash_before": (0.0005, 0.006), "crash_after": (0.0005, 0.006), "not_executed": (0.002, 0.05),
    "executed_and_lost": (0.002, 0.06), "frozen": (0.0005, 0.003),
    "loss": (0.02, 0.3), "duplicate": (0.02, 0.5), "reorder": (0.05, 0.5), "delay": (0.02, 0.2),
    "publish_lost_answer": (0.01, 0.1), "acked_but_lost": (0.01, 0.1),
    "publish_refused": (0.005, 0.05), "taken_by_dead": (0.01, 0.08), "given_again": (0.02, 0.2), "zombie_ack": (0.01, 0.1),
    "timeout_after_success": (0.05, 0.4), "never_arrived": (0.05, 0.3), "throttled": (0.05, 0.3), "refused": (0.02, 0.15),
    "bad_output": (0.02, 0.15), "job_fails": (0.05, 0.3), "callback_late": (0.1, 0.6), "callback_twice": (0.1, 0.6),
    "callback_contradicts": (0.05, 0.3), "callback_early": (0.1, 0.6), "look_up_fails": (0.05, 0.4), "slow": (0.05, 0.4),
    "bell_lost": (0.05, 0.5), "answer_lost": (0.02, 0.2), "forged_callback": (0.05, 0.4), "unknown_pointer": (0.2, 1.0),
    "conflict": (0.01, 0.1), "hidden": (0.02, 0.2),
}  # fmt: skip
"""Lowest and highest rate of a fault that is switched on."""

_ON = 0.45
"""How likely a fault is part of a profile."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Which faults a seed has, and at what rate; storms with their times in seconds."""

    rates: dict[str, float] = {}
    storms: tuple[tuple[float, str], ...] = ()
    safety_seconds: float = 240.0
    """How long things go wrong; afterwards nothing does, and everything must come to rest."""
    without: tuple[str, ...] = ()
    """Faults that are left out: "name" all of a kind, "place#n" the n-th of a place, "storm#n" the n-th storm."""

    def calm(self) -> "Profile":
        """The same time with nothing that goes wrong."""
        return msgspec.structs.replace(self, rates={}, storms=())


def draw_profile(seed: int | str, *, safety_seconds: float = 240.0) -> Profile:
    """The fault profile of a seed; one seed in sixteen has none, so that the plain way is walked too."""
    chance = Random(f"profile|{seed}")
    if chance.random() < 1 / 16:
        return Profile(safety_seconds=safety_seconds)
    rates = {}
    for name, (low, high) in _RANGES.items():
        on, share = chance.random() < _ON, chance.random()
        if on:
            rates[name] = low + (high - low) * share
    storms: list[tuple[float, str]] = []
    for name in STORMS:
        if chance.random() < (0.12 if name in ("store_rewound", "deployed") else 0.22):
            storms += [
                (round(chance.uniform(2, safety_seconds * 0.9), 3), name)
                for _ in range(1 + (chance.random() < 0.3))
            ]
    return Profile(rates=rates, storms=tuple(sorted(storms)), safety_seconds=safety_seconds)


class Faults:
    """Draws the faults of one run of a seed, and remembers which occurred."""

    def __init__(self, seed: int | str, profile: Profile) -> None:
        self._seed = seed
        self.profile = profile
        self._streams: dict[str, Random] = {}
        self._occurrence: dict[str, int] = {}
        self._without = frozenset(profile.without)
        self.on = True
        """Off in the liveness phase."""
        self.away_until: dict[str, int] = {}
        """Of servers that are away, until when, in virtual microseconds."""
        self.counts: dict[str, int] = {}
        """How often each fault occurred."""
        self.places: dict[str, int] = {}
        """How often each port call was made."""
        self.happened: list[str] = []
        """Every fault at a place, as it can be named in `without`."""
        table = [(name, profile.rates.get(name, 0.0)) for name in CALL_FAULTS if name not in self._without]
        self._table = [(name, rate) for name, rate in table if rate > 0]
        self._total = sum(rate for _, rate in self._table)

    def _stream(self, place: str) -> Random:
        stream = self._streams.get(place)
        if stream is None:
            stream = self._streams[place] = Random(f"{self._seed}|{place}")
        return stream

    def note(self, name: str) -> None:
        """A fault occurred."""
        self.counts[name] = self.counts.get(name, 0) + 1

    def draw(self, place: str) -> str | None:
        """Which fault meets this call, if any."""
        self.places[place] = number = self.places.get(place, 0) + 1
        if not self.on or not self._table:
            return None
        drawn = self._stream(place).random()
        if drawn >= self._total:
            return None
        for name, rate in self._table:
            if drawn < rate:
                return self._happens(name, f"{place}#{number}")
            drawn -= rate
        return None

    def happens(self, name: str, place: str) -> bool:
        """Whether a fault of this kind meets this occurrence of a place."""
        rate = self.profile.rates.get(name, 0.0)
        if not self.on or rate <= 0 or name in self._without:
            return False
        key = f"{place}|{name}"
        self._occurrence[key] = number = self._occurrence.get(key, 0) + 1
        return self._stream(key).random() < rate and self._happens(name, f"{key}#{number}") is not None

    def _happens(self, name: str, mark: str) -> str | None:
        if mark in self._without:
            return None
        self.happened.append(mark)
        self.note(name)
        return name

    def is_away(self, server: str, now_us: int) -> bool:
        """Whether nobody reaches this server now."""
        return now_us < self.away_until.get(server, 0)

    def storms(self) -> list[tuple[float, str]]:
        """The storms that are not left out."""
        return [
            (at, name)
            for number, (at, name) in enumerate(self.profile.storms)
            if name not in self._without and f"storm#{number}" not in self._without
        ]

    def chance(self, place: str, share: float) -> bool:
        """A draw beside a fault."""
        return self._stream(f"{place}|chance").random() < share

    def down_seconds(self, place: str) -> float:
        """How long a killed process stays away."""
        return 0.2 + self._stream(f"{place}|down").random() ** 3 * 40

    def frozen_seconds(self, place: str) -> float:
        """How long a process is stopped; often longer than a lease."""
        return 1 + self._stream(f"{place}|frozen").random() ** 2 * 60

    def number(self, place: str, low: float, high: float) -> float:
        """Some number, drawn for a place."""
        return self._stream(f"{place}|number").uniform(low, high)

    def live(self, names: Collection[str]) -> bool:
        """Whether any of these can happen in this profile."""
        return any(self.profile.rates.get(name, 0.0) > 0 for name in names)
