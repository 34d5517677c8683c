"""Events of money: charges, refunds, and the cap that bounds them (design.md 7, P8, P9)."""

from typing import ClassVar

from longtake.contracts.event_base import Event


class Charged(Event, frozen=True, kw_only=True):
    """Credits were taken from the run's hold; prepaid: the whole price, step and cycle absent (P9)."""

    TYPE: ClassVar[str] = "charged"

    key: str
    amount: int
    step: str | None = None
    cycle: int | None = None


class Refunded(Event, frozen=True, kw_only=True):
    """Credits were given back."""

    TYPE: ClassVar[str] = "refunded"

    key: str
    amount: int
    reason: str
    step: str | None = None
    cycle: int | None = None


class CapRaised(Event, frozen=True, kw_only=True):
    """A person allowed the run to cost more; the hold was raised in the same transaction (P8)."""

    TYPE: ClassVar[str] = "cap_raised"

    command_id: str
    actor: str
    cap: int
    """The new cap in credits."""
    held: int
    """The new hold in credits."""


class SpendCapReached(Event, frozen=True, kw_only=True):
    """These paid steps do not fit under the cap; they wait until it is raised (`needs_input: spend_cap`)."""

    TYPE: ClassVar[str] = "spend_cap_reached"

    steps: tuple[str, ...]
    net: int
    cap: int
    needed: int
    """The cap that lets all of these steps begin, in credits."""
