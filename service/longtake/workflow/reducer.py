"""The reducer: the one place that decides what a fact means for a run (design.md 2.3).

`accept` opens a run; `decide` takes every later signal. Both own the state they are given and evolve it: what they
return is already applied to it, under `now` as the time of recording.
Leaves to others: each kind of signal has a module of its own, named in `decide`.
"""

from datetime import datetime

from longtake.contracts.signals import Signal
from longtake.workflow.admission import AcceptedFacts
from longtake.workflow.decision import Decision
from longtake.workflow.state import RunState


def accept(state: RunState, facts: AcceptedFacts, now: datetime) -> Decision:
    """Open a run: accept it, take its price, and hand out the first steps, in one decision (P9)."""
    raise NotImplementedError


def decide(state: RunState, signal: Signal, now: datetime) -> Decision:
    """Decide what one fact means for the run."""
    raise NotImplementedError
