"""What nobody has looked at, and when something is due: the questions of the sweeper, as one look answers them.

Leaves to others: what is published (store_publishing.py), ending what was found (store_sweeps.py).
"""

import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from longtake.memory.store_session import Session
from longtake.memory.tables import EffectRow, StoredRun
from longtake.store import LostDoorbell


def open_effects(session: Session, statement: str) -> Iterator[EffectRow]:
    """Every open effect as committed, except of runs that this reader does not see yet."""
    tables = session.tables
    for run_id, ids in tables.open_effects.items():
        if not session.hides(statement, run_id):
            for id_ in ids:
                yield tables.effects[id_]


DOUBLINGS_MAX = 5
"""The grace of a pointer doubles so often with its generations."""


def backoff(effect: EffectRow, grace_seconds: float) -> timedelta:
    """How long a pointer of this generation is left alone."""
    return timedelta(seconds=grace_seconds * 2 ** min(effect.generation - 1, DOUBLINGS_MAX))


def looked_at(session: Session, statement: str, run_id: uuid.UUID) -> StoredRun | None:
    """The run of something that waits; None when nobody looks at it."""
    run = session.tables.runs.get(run_id)
    return None if run is None or run.poisoned or session.hides(statement, run_id) else run


DEATH_SECONDS = 5.0
"""So long after a dispatcher fell silent everything that it can have been told is told again."""


def died_holding(session: Session, told_at: datetime) -> bool:
    """Whether a dispatcher that may have taken this doorbell has fallen silent just now."""
    since = max(told_at, session.now - timedelta(seconds=DEATH_SECONDS))
    return any(
        "dispatcher" in row.roles and since <= row.alive_until <= session.now
        for row in session.tables.incarnations.values()
    )


def lost_effects(
    session: Session, grace_seconds: float, oldest: Sequence[datetime | None]
) -> Iterator[LostDoorbell]:
    """Receipts, ended leases and deadlines that nobody has looked at."""
    now, grace = session.now, timedelta(seconds=grace_seconds)
    for effect in open_effects(session, "doorbells_lost"):
        if session.tables.runs[effect.run_id].poisoned:
            continue
        told_at = effect.reported_at if effect.reported_at is not None else effect.heartbeat_at
        standing = oldest[effect.run_id.bytes[15] % len(oldest)]
        lost = (
            effect.state in ("reported", "expired")
            and told_at is not None
            and told_at < now - grace
            and (standing is None or standing > told_at + grace or died_holding(session, told_at))
        )
        late = effect.receipt is None and effect.deadline is not None and effect.deadline <= now
        if lost or late:
            trace = effect.report_traceparent or effect.traceparent
            yield LostDoorbell(what="effect", id=effect.id, run_id=effect.run_id, traceparent=trace)


def lost_callbacks(session: Session, grace_seconds: float) -> Iterator[LostDoorbell]:
    """Callbacks that nobody has looked at for a grace."""
    before = session.now - timedelta(seconds=grace_seconds)
    for run_id, ids in session.tables.open_inbox.items():
        if looked_at(session, "doorbells_lost", run_id) is None:
            continue
        for id_ in ids:
            row = session.tables.inbox[id_]
            if row.received_at < before:
                yield LostDoorbell(what="inbox", id=id_, run_id=run_id, traceparent=row.traceparent)


def due_timers(session: Session) -> Iterator[LostDoorbell]:
    """Timers whose time has come."""
    for (run_id, _), timer in session.tables.timers.items():
        run = looked_at(session, "doorbells_lost", run_id) if timer.due_at <= session.now else None
        if run is not None:
            yield LostDoorbell(what="run", id=run_id, run_id=run_id, traceparent=trace_of(session, run))


def lost_signals(session: Session, grace_seconds: float) -> Iterator[LostDoorbell]:
    """Signals that nobody has looked at for a grace."""
    before = session.now - timedelta(seconds=grace_seconds)
    for run_id, ids in session.tables.open_signals.items():
        run = looked_at(session, "doorbells_lost", run_id)
        for id_ in ids:
            if run is not None and session.tables.signals[id_].created_at < before:
                yield LostDoorbell(what="run", id=run_id, run_id=run_id, traceparent=trace_of(session, run))


def trace_of(session: Session, run: StoredRun) -> str | None:
    """The trace of the command that the run began with."""
    command = session.tables.commands.get((run.tenant, run.actor, run.command_id))
    return None if command is None else command.traceparent


def due_times(session: Session, grace_seconds: float) -> Iterator[datetime]:
    """Every moment at which something is due that no doorbell announces."""
    tables, grace = session.tables, timedelta(seconds=grace_seconds)
    for effect in open_effects(session, "next_due"):
        if effect.state == "queued":
            if effect.published_at is None:
                yield effect.not_before
            else:
                yield max(effect.published_at, effect.not_before) + backoff(effect, grace_seconds)
        elif effect.state == "leased":
            if effect.lease_until is not None:
                yield effect.lease_until
        else:
            yield (effect.reported_at if effect.reported_at is not None else session.now) + grace
        if effect.receipt is None and effect.deadline is not None:
            yield effect.deadline
    yield from (timer.due_at for timer in tables.timers.values())
    for ids in tables.open_inbox.values():
        yield from (tables.inbox[id_].received_at + grace for id_ in ids)
    for run_id, ids in tables.open_signals.items():
        run = tables.runs.get(run_id)
        if run is not None and not run.poisoned:
            yield from (tables.signals[id_].created_at for id_ in ids)
    yield from (errand.created_at for errand in tables.errands.values() if errand.settled_at is None)
