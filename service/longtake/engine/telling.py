"""Telling: what committed decisions mean to whoever reads the log (W05).

A retry is a warning, what ends or waits for a person is an error, and what was to be expected is silence. Messages of
outsiders are not logged: they stand in the events, under the rights of the run.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec
import structlog

from longtake.store import RunCommit

_FIELDS: Final = ("step", "attempt", "error_class", "origin", "blocker", "retry_at")
_TOLD: Final = frozenset(
    {"attempt_failed", "attempt_unknown", "step_blocked", "step_failed", "run_blocked", "run_failed"}
)
_WARNINGS: Final = frozenset({"attempt_failed", "attempt_unknown"})

log = structlog.get_logger("longtake.engine.telling")


def tell(commits: Sequence[RunCommit], committed: Collection[Any]) -> None:
    """Log what went wrong in the decisions that stand; a batch in which nothing did costs a look at its events' types."""
    for commit in commits:
        if commit.run_id not in committed:
            continue
        for event in commit.events:
            if event.type not in _TOLD:
                continue
            said = msgspec.json.decode(event.data)
            if event.type == "attempt_failed" and said.get("retry_at") is None:
                continue  # the step's own end follows and is told
            facts = {name: said[name] for name in _FIELDS if said.get(name) is not None}
            say = log.warning if event.type in _WARNINGS else log.error
            say(f"longtake.{event.type}", run_id=str(commit.run_id), seq=event.seq, **facts)
