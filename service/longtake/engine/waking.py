"""Waking: relay and sweeper sleep until what they know to be due; whoever commits something that is due earlier rings (P24).

A ring that is lost costs time, never work: both ask the store again after a while. Leaves to others: telling relatives
(relatives.py), and how long an idle role sleeps (pace.py).
"""

from collections.abc import Iterable
from datetime import datetime

from longtake.ports import Doorbell
from longtake.store import RunCommit

DOORBELL_RELAY = "relay"
"""For whoever publishes effects."""
DOORBELL_SWEEPER = "sweeper"
"""For whoever looks at timers and deadlines."""


def ring_when_due(commits: Iterable[RunCommit], doorbell: Doorbell) -> None:
    """After a commit: let relay and sweeper wake for what it made due later."""
    publish: list[datetime] = []
    look: list[datetime] = []
    for commit in commits:
        publish += [effect.not_before for effect, _ in commit.effects if effect.not_before is not None]
        look += [effect.deadline for effect, _ in commit.effects if effect.deadline is not None]
        look += [timer.due_at for timer in commit.timers]
    if publish:
        doorbell.ring(DOORBELL_RELAY, due_at=min(publish))
    if look:
        doorbell.ring(DOORBELL_SWEEPER, due_at=min(look))
