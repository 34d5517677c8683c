"""Progress: a history in which everything failed proves nothing, and at the end everything goes on (I35, tail-ok)."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from longtake.contracts.summary import TERMINAL
from longtake.testing.checking.effects import IDLE_SECONDS
from longtake.testing.checking.found import Evidence, Violation
from longtake.testing.checking.history import CLIENT, Call

PATIENT = frozenset({"blocked", "needs_input", "paused"})
"""States in which a run waits for a person."""
WAITING = frozenset({"sleeping", "waiting_event", "needs_input", "blocked"})
"""States of a step whose run waits for a time or for somebody to say something."""


def check(evidence: Evidence) -> Iterator[Violation]:
    """Each client is answered, in the end and mostly; each run has come to rest."""
    sessions: dict[str, list[Call]] = {}
    for call in evidence.calls:
        if call.f in CLIENT:
            sessions.setdefault(call.proc.partition("#")[0], []).append(call)
    for session, calls in sessions.items():
        yield from _session(evidence, session, calls)
    if not evidence.settled:
        return
    waits = {
        effect.run
        for effect in evidence.store.effects
        if effect.closed_at is None and effect.not_before > evidence.store.now
    }
    waits |= {step.run for step in evidence.store.steps if step.status in WAITING}
    ended = {run.run for run in evidence.store.runs if run.status in TERMINAL}
    for event in evidence.store.events:
        if event.type == "run_queued":
            waits.add(event.run)
        elif event.type == "run_started":
            waits.discard(event.run)
        elif event.type == "run_accepted" and event.run not in ended and event.body.get("parent"):
            waits.add(event.body["parent"]["run_id"])  # the child is asked why it has not ended
    for run in evidence.store.runs:
        if run.status not in TERMINAL | PATIENT and run.run in evidence.moving - waits:
            yield Violation(
                invariant="I35",
                what=f"the service is at rest and the run is {run.status}: {run.label}",
                where=f"run {run.run}",
            )
    for timer in evidence.store.timers:
        if evidence.store.now - timer.due_at > timedelta(seconds=IDLE_SECONDS):
            yield Violation(
                invariant="I35",
                what=f"the timer {timer.key} has not fired and was due at {timer.due_at}",
                where=f"run {timer.run}",
            )


def _session(evidence: Evidence, session: str, calls: list[Call]) -> Iterator[Violation]:
    last = calls[-1]
    if last.type == "info":
        yield Violation(
            invariant="tail-ok",
            what=f"the last call of {session} was never answered",
            where=f"op {last.id}",
            trace=(str(last),),
        )
    calm = [call for call in calls if not _struck(evidence, call)]
    types = Counter(call.type for call in calm)
    if calm and types["ok"] < evidence.ok_floor * len(calm):
        yield Violation(
            invariant="tail-ok",
            what=f"{session}: {types['ok']} of {len(calm)} calls were answered ok outside of faults, "
            f"{evidence.ok_floor:.0%} are needed",
            where=f"session {session}",
            trace=tuple(str(call) for call in calm if call.type != "ok")[:5],
        )


def _struck(evidence: Evidence, call: Call) -> bool:
    return any(call.begun <= until and call.ended >= since for since, until in evidence.fault_windows)
