"""Telling relatives: after a commit, whoever must look at a fact it wrote for others is rung (P5, P24).

A ring that is lost costs time, never a fact: sweeper and starter find the rows. Leaves to others: writing the rows
(the deciding statement), and what the facts mean (workflow/families.py, workflow/queueing.py).
"""

from collections.abc import Iterable

from longtake.contracts.signals import Outgoing
from longtake.engine.hints import Hints
from longtake.ports import Doorbell

DOORBELL_STARTER = "starter"

ERRANDS = frozenset({"start_child", "scopes_freed", "start_due"})
"""Kinds that admission takes; the others are facts for runs."""


def tell_relatives(outgoing: Iterable[Outgoing], hints: Hints, doorbell: Doorbell | None) -> None:
    """Ring whoever these committed facts are for."""
    errand = False
    runs = []
    for fact in outgoing:
        if fact.kind in ERRANDS:
            errand = True
        else:
            runs.append((fact.run_id, fact.id))
    if runs:
        hints.runs_soon(runs)
    if errand and doorbell is not None:
        doorbell.ring(DOORBELL_STARTER)
