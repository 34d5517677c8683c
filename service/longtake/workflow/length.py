"""The length of a history: a run is called long at half of what is kept of it, and fails at all of it (P17).

A run that goes on for ever would be folded, proved and shown in ever more time. At the limit nothing new begins: the run
ends like any that fails, and only what settles it is still recorded. Asked wherever a run would go on: every way in
which it could grow without end comes by there.
Leaves to others: the number of steps (validation.py, expanding.py), the size of an event.
"""

from datetime import timedelta

from longtake.contracts.events import HistoryLong, RunFailing
from longtake.workflow.draft import Draft
from longtake.workflow.ending import settle_when_known
from longtake.workflow.evolve_attempts import SETTLE_SECONDS_MAX


def bound_length(draft: Draft) -> None:
    """Warn at half of the limit, once; let the run fail at the limit."""
    state = draft.state
    if not state.is_long and 2 * state.revision >= state.events_max:
        draft.record(HistoryLong(events_max=state.events_max))
    if state.revision < state.events_max:
        return
    draft.record(
        RunFailing(
            error_class="quota_exhausted",
            origin="request",
            message=f"{state.revision} events are recorded of the run, at most {state.events_max} are taken: "
            "let child runs do parts of the work",
            settle_until=draft.now + timedelta(seconds=SETTLE_SECONDS_MAX),
        )
    )
    settle_when_known(draft)
