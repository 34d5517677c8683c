"""When and whom a crash run kills: placed by a seed on the progress of the run, never by the clock.

Pure: a seed in, kills out; progress in, "now" or "not yet" out.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from longtake.client import StepNow

Target = Literal["service", "service and postgres", "service and nats-server"]
TARGETS: tuple[Target, ...] = ("service and postgres", "service and nats-server", "service")
IN_FLIGHT = frozenset({"queued", "running", "waiting_external", "reconciling", "retry_scheduled"})
COMMITS = (3, 9)
"""Between which events a kill "after the k-th event" lies."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """What can be seen of a run and of its outsiders at one moment."""

    events: int
    steps: Sequence[StepNow]
    created: Mapping[str, int]
    """Requests that each provider took for this run."""
    open: Mapping[str, int]

    @property
    def in_flight(self) -> list[StepNow]:
        """Steps that somebody works on, or that wait for it."""
        return [step for step in self.steps if step.status in IN_FLIGHT]

    @property
    def phases(self) -> list[str]:
        """The phases of the steps in flight."""
        return list(dict.fromkeys(step.phase for step in self.in_flight))


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """One kill: `phase` when that phase has begun, `request` while a provider holds one, `commit` after the k-th event."""

    at: Literal["phase", "request", "commit"]
    place: str
    target: Target
    order: float

    def words(self, open_: Mapping[str, int]) -> str:
        """The moment in words, given the requests that were open then."""
        match self.at:
            case "phase":
                return f"after the commit that began {self.place}"
            case "request" if self.place in open_:
                return f"while a request to {self.place} is open"
            case "request":
                return f"after a request to {self.place} was open"
            case "commit":
                return f"after the commit of event {self.place}"

    def is_due(self, seen: Progress) -> bool:
        """Whether the moment has come; a moment that was passed has come too."""
        order = list(dict.fromkeys(step.phase for step in seen.steps))
        reached = max((order.index(phase) for phase in seen.phases), default=-1)
        match self.at:
            case "phase":
                return reached >= order.index(self.place)
            case "request":
                # A request that another kill caught is over; the next that is open takes its place.
                taken = seen.created.get(self.place, 0) > 0
                return self.place in seen.open or (taken and (bool(seen.open) or reached == len(order) - 1))
            case "commit":
                return seen.events >= int(self.place)


def kills_of(seed: int, *, phases: Sequence[str], providers: Sequence[str]) -> list[Kill]:
    """At least three kills in the order of their moments; one takes Postgres too, one nats-server.

    Neighbouring seeds walk through phases and providers, so that a handful of them has hit every one.
    """
    chance = random.Random(seed)
    last = len(phases) - 1
    held = providers[seed % len(providers)]
    early, late = seed % 2, last - (seed // 2) % 2
    moments: list[tuple[Literal["phase", "request", "commit"], str, float]] = [
        ("phase", phases[early], float(early)),
        # The last provider is the one that puts everything together; the others work before it.
        ("request", held, last - 0.5 if held == providers[-1] else 1.5),
        ("phase", phases[late], float(late)),
    ]
    if chance.random() < 0.5:
        moments.append(("commit", str(chance.randint(*COMMITS)), 1.2))
    alone: Target = "service"
    targets = [*TARGETS, *(alone for _ in moments[len(TARGETS) :])]
    chance.shuffle(targets)
    kills = [
        Kill(at=at, place=place, target=target, order=order)
        for (at, place, order), target in zip(moments, targets, strict=True)
    ]
    return sorted(kills, key=lambda kill: kill.order)
