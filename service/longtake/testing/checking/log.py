"""The log: dense, chained, ended once, each command decided once (I1 to I4).

Leaves to others: what events may say (observed.py).
"""

import itertools
import uuid
from collections.abc import Iterator, Sequence

from longtake.contracts.envelope import GENESIS, StoredEvent
from longtake.engine.audit import verify_history
from longtake.errors import BrokenChain
from longtake.testing.checking.found import Evidence, Violation
from longtake.testing.checking.store import EventRow, RunRow
from longtake.testing.observing import ENDS

TERMINAL_OF = {event: event.removeprefix("run_") for event in ENDS}


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every run's history."""
    rows = {run.run: run for run in evidence.store.runs}
    for run_id, events in evidence.store.histories().items():
        run = rows.get(run_id)
        if run is None:
            yield Violation(invariant="I6", what=f"run {run_id} has events and no row", where=f"run {run_id}")
        yield from _order(run_id, events, run)
        yield from _ends(run_id, events, run)
    yield from _decisions(evidence)


def stored(event: EventRow) -> StoredEvent:
    """The event as the auditor reads it."""
    return StoredEvent(
        tenant=event.tenant,
        run_id=uuid.UUID(event.run),
        seq=event.seq,
        id=uuid.UUID(event.id),
        type=event.type,
        version=event.version,
        data=event.data.encode(),
        meta=event.meta.encode(),
        store_epoch=event.epoch,
        recorded_at=event.recorded_at,
        hash=event.hash,
    )


def _order(run_id: str, events: Sequence[EventRow], run: RunRow | None) -> Iterator[Violation]:
    """I1, and I2 of what is stored."""
    seqs = [event.seq for event in events]
    for expected, seq in enumerate(seqs, start=1):
        if seq != expected:
            what = f"seq {seq} is there twice" if seq < expected else f"seq {expected} is missing"
            yield Violation(invariant="I1", what=what, where=f"run {run_id} seq {min(seq, expected)}")
            return
    try:
        verify_history([stored(event) for event in events])
    except BrokenChain as error:
        yield Violation(invariant="I1", what=error.reason, where=f"run {run_id} seq {error.seq}")
        return
    head = events[-1].hash if events else GENESIS
    if run is not None and (run.revision, run.head_hash) != (len(events), head):
        yield Violation(
            invariant="I1",
            what=f"the run is at revision {run.revision} with {len(events)} events, or its head is another",
            where=f"run {run_id}",
        )
    for before, event in itertools.pairwise(events):
        if event.recorded_at < before.recorded_at or event.position <= before.position:
            yield Violation(
                invariant="I2",
                what=f"{event.type} was recorded before the event that precedes it",
                where=f"run {run_id} seq {event.seq}",
            )
        if event.epoch < before.epoch:
            yield Violation(
                invariant="I2",
                what=f"{event.type} is of epoch {event.epoch}, the one before of {before.epoch}",
                where=f"run {run_id} seq {event.seq}",
            )


def _ends(run_id: str, events: Sequence[EventRow], run: RunRow | None) -> Iterator[Violation]:
    """I3."""
    ends = [event for event in events if event.type in ENDS]
    if len(ends) > 1:
        yield Violation(
            invariant="I3",
            what=f"the run ended {len(ends)} times",
            where=f"run {run_id} seq {ends[1].seq}",
            trace=tuple(f"seq {event.seq} {event.type} by {':'.join(event.cause)}" for event in ends),
        )
    if run is None:
        return
    closed = run.status in TERMINAL_OF.values()
    if closed != bool(ends) or (ends and TERMINAL_OF[ends[-1].type] != run.status):
        said = ends[-1].type if ends else "no terminal event"
        yield Violation(
            invariant="I3",
            what=f"the run is {run.status} with {said}",
            where=f"run {run_id} seq {len(events)}",
        )


def _decisions(evidence: Evidence) -> Iterator[Violation]:
    """Each accepted command is decided once: its events of one run lie together in one transaction (I4)."""
    decided: dict[tuple[str, str, str], list[EventRow]] = {}
    for event in evidence.store.events:
        kind, name = event.cause
        if kind in ("command", "inbox"):
            decided.setdefault((event.run, kind, name), []).append(event)
    for (run, kind, name), events in decided.items():
        if len({event.tx for event in events}) > 1 or events[-1].seq - events[0].seq != len(events) - 1:
            yield Violation(
                invariant="I4",
                what=f"{kind} {name} was decided more than once",
                where=f"run {run} seq {events[-1].seq}",
                trace=tuple(f"seq {event.seq} {event.type} in transaction {event.tx}" for event in events),
            )
