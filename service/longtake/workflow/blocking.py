"""Blockers: what a run waits for a person or an operator for, and since when the way out has been offered (P3, P19)."""

from datetime import datetime, timedelta

from longtake.contracts.summary import Blocker
from longtake.workflow.run_state import INFORMATIVE, NEEDS_INPUT, RUN_BLOCKER, RunState

BLOCKED_SECONDS_MAX = 7 * 24 * 3600
"""How long a blocked run waits for a person before it fails (P19)."""


def block(state: RunState, key: str, blocker: Blocker, at: datetime) -> None:
    """Something waits for a person."""
    unblock(state, key)
    state.blockers[key] = blocker
    if blocker.type in INFORMATIVE:
        return
    if blocker.type in NEEDS_INPUT:
        state.since["provide_generation_input", key] = state.revision
        state.since.setdefault("provide_generation_input", state.revision)
        return
    if state.ending is None:  # the time to settle bounds a run that ends
        state.blocked_until = at + timedelta(seconds=BLOCKED_SECONDS_MAX)
    _retry_target_changed(state, key)


def unblock(state: RunState, key: str) -> None:
    """Something waits for a person no more; no change when it did not."""
    blocker = state.blockers.pop(key, None)
    if blocker is None or blocker.type in INFORMATIVE:
        return
    if blocker.type in NEEDS_INPUT:
        state.since.pop(("provide_generation_input", key), None)
        if not any(other.type in NEEDS_INPUT for other in state.blockers.values()):
            state.since.pop("provide_generation_input", None)
        return
    if not _decisions(state):
        state.blocked_until = None
    _retry_target_changed(state, key)


def _decisions(state: RunState) -> list[str]:
    """Keys of the blockers that wait for a decision, rather than for input."""
    return [key for key, blocker in state.blockers.items() if blocker.type not in NEEDS_INPUT | INFORMATIVE]


def _retry_target_changed(state: RunState, key: str) -> None:
    """Keep `since` (P3): a retry of the whole run has the set of blockers as its target, one of a step its own."""
    decisions = _decisions(state)
    if key.startswith(RUN_BLOCKER):
        # Under a blocker of the run no step could be retried, so what stands now stands anew.
        state.since["retry_generation", RUN_BLOCKER] = state.revision
        for other in decisions:
            if not other.startswith(RUN_BLOCKER):
                state.since["retry_generation", other] = state.revision
    elif key in state.blockers:
        state.since["retry_generation", key] = state.revision
    else:
        state.since.pop(("retry_generation", key), None)
    if decisions:
        state.since["retry_generation"] = state.revision
    else:
        state.since.pop("retry_generation", None)
