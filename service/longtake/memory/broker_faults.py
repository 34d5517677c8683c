"""What can happen to a message on its way, and which habits of a real broker are kept.

A `BrokerFaults` is asked once for every publication, delivery and settlement; `RandomFaults` draws its answers from a seeded
generator. `Habits` are how nats-server behaves; each can be broken, to show that the contract suite would notice.
Leaves to others: doing what was drawn (broker.py).
"""

import random
from typing import Final, Literal, Protocol

import msgspec

PublishKind = Literal["stored", "lie", "unknown_stored", "unknown_lost", "late", "refused", "doubled"]
"""Stored and acknowledged; acknowledged and not stored; stored or not stored without an acknowledgement; no acknowledgement and
stored later, as from a buffer that outlived its connection; refused; stored twice, as by a publisher that repeats itself."""
DeliverKind = Literal["given", "lost", "again"]
"""Given; taken by somebody who is dead, so it comes after the ack wait; given, and soon given once more."""
SettleKind = Literal["heard", "lost", "late"]
"""Heard at once; never; later, when somebody else may hold the message."""


class PublishFate(msgspec.Struct, frozen=True):
    """What becomes of one publication."""

    kind: PublishKind = "stored"
    seconds: float = 0.0
    """How much later, for `late`."""
    ahead: int = 0
    """How many earlier messages it overtakes."""


class SettleFate(msgspec.Struct, frozen=True):
    """What becomes of one ack, nak or term."""

    kind: SettleKind = "heard"
    seconds: float = 0.0


STORED: Final = PublishFate()
HEARD: Final = SettleFate()


class BrokerFaults(Protocol):
    """Asked for everything that passes."""

    def on_publish(self, subject: str) -> PublishFate: ...
    def on_deliver(self, subject: str) -> DeliverKind: ...
    def on_settle(self, subject: str) -> SettleFate: ...
    def loses_ring(self, name: str) -> bool:
        """Whether another process does not hear this doorbell."""
        ...


class NoBrokerFaults:
    """Everything arrives, once and at once."""

    def on_publish(self, subject: str) -> PublishFate:
        """Stored."""
        return STORED

    def on_deliver(self, subject: str) -> DeliverKind:
        """Given."""
        return "given"

    def on_settle(self, subject: str) -> SettleFate:
        """Heard."""
        return HEARD

    def loses_ring(self, name: str) -> bool:
        """Never."""
        return False


class FaultRates(msgspec.Struct, frozen=True, kw_only=True):
    """How often, from 0 to 1 each; the kinds of one passage exclude each other and add up to at most 1."""

    publish_lie: float = 0.0
    publish_unknown_stored: float = 0.0
    publish_unknown_lost: float = 0.0
    publish_late: float = 0.0
    publish_refused: float = 0.0
    publish_doubled: float = 0.0
    deliver_lost: float = 0.0
    deliver_again: float = 0.0
    settle_lost: float = 0.0
    settle_late: float = 0.0
    ring_lost: float = 0.0
    late_seconds_max: float = 20.0
    reorder_window: int = 0

    def __post_init__(self) -> None:
        for name in ("publish", "deliver", "settle", "ring"):
            rates = [getattr(self, field) for field in self.__struct_fields__ if field.startswith(f"{name}_")]
            if min(rates) < 0 or sum(rates) > 1:
                raise ValueError(
                    f"the rates of {name} are {rates}; each must be 0 to 1, and so must their sum"
                )
        if self.late_seconds_max < 0 or self.reorder_window < 0:
            raise ValueError(
                f"late_seconds_max is {self.late_seconds_max} and reorder_window is {self.reorder_window}; "
                f"neither can be negative"
            )


class RandomFaults:
    """Draws by rates; the same generator state gives the same faults. `stop` ends all of them."""

    def __init__(self, rng: random.Random, rates: FaultRates) -> None:
        self.rates = rates
        self._rng = rng
        self._stopped = False
        self.counts: dict[str, int] = {}
        """How often each fault was drawn, by name."""
        self._publish = _ladder(
            ("lie", rates.publish_lie),
            ("unknown_stored", rates.publish_unknown_stored),
            ("unknown_lost", rates.publish_unknown_lost),
            ("late", rates.publish_late),
            ("refused", rates.publish_refused),
            ("doubled", rates.publish_doubled),
        )
        self._deliver = _ladder(("lost", rates.deliver_lost), ("again", rates.deliver_again))
        self._settle = _ladder(("lost", rates.settle_lost), ("late", rates.settle_late))

    def stop(self) -> None:
        """From here on nothing goes wrong."""
        self._stopped = True

    def on_publish(self, subject: str) -> PublishFate:
        """Draw the fate of a publication."""
        if self._stopped:
            return STORED
        kind = self._draw("publish", self._publish) or "stored"
        ahead = self._rng.randint(0, self.rates.reorder_window) if self.rates.reorder_window else 0
        if ahead:
            self._count("publish.reordered")
        if kind == "stored" and not ahead:
            return STORED
        seconds = self._rng.uniform(0, self.rates.late_seconds_max) if kind == "late" else 0.0
        return PublishFate(kind, seconds, ahead)  # type: ignore[arg-type] # names of the ladder above

    def on_deliver(self, subject: str) -> DeliverKind:
        """Draw the fate of a delivery."""
        if self._stopped or not self._deliver:
            return "given"
        return self._draw("deliver", self._deliver) or "given"  # type: ignore[return-value] # as above

    def on_settle(self, subject: str) -> SettleFate:
        """Draw the fate of a settlement."""
        if self._stopped or not self._settle:
            return HEARD
        kind = self._draw("settle", self._settle)
        if kind is None:
            return HEARD
        seconds = self._rng.uniform(0, self.rates.late_seconds_max) if kind == "late" else 0.0
        return SettleFate(kind, seconds)  # type: ignore[arg-type] # as above

    def loses_ring(self, name: str) -> bool:
        """Draw whether a doorbell is heard elsewhere."""
        if self._stopped or self._rng.random() >= self.rates.ring_lost:
            return False
        self._count("ring.lost")
        return True

    def _draw(self, passage: str, ladder: tuple[tuple[float, str], ...]) -> str | None:
        if not ladder:
            return None
        drawn = self._rng.random()
        for bound, kind in ladder:
            if drawn < bound:
                self._count(f"{passage}.{kind}")
                return kind
        return None

    def _count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1


def _ladder(*rates: tuple[str, float]) -> tuple[tuple[float, str], ...]:
    steps: list[tuple[float, str]] = []
    bound = 0.0
    for kind, rate in rates:
        if rate:
            bound += rate
            steps.append((bound, kind))
    return tuple(steps)
