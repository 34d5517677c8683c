"""The simulator's observer, shown a store of Postgres: its own small model of every run, event by event (4.5).

It holds causes, plans, attempts, applied outcomes, dependencies, parallelism, scopes and what follows an end to its model
(I3, I4, I7, I15 to I19, I27), as it does after every commit of a simulated world; here after the last.
"""

import uuid
from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

from longtake.memory.store_session import MemoryDatabase
from longtake.memory.store_tables import Tables
from longtake.memory.tables import EffectRow, EventRow, InboxRow, PlanRow, SignalRow, StoredRun
from longtake.testing.checking import store as dumped
from longtake.testing.checking.found import Evidence, Unfollowable, Violation, followed
from longtake.testing.checking.store import StoreDump
from longtake.testing.observing import Observer
from longtake.testing.provider import FakeProvider
from longtake.testing.world import World

LEFT_TO_OTHERS = frozenset({"I1", "I2", "I20", "F56"})
"""log and money say these with their places."""


class _Silent:
    """A world and a provider of which nothing is known."""

    witness: tuple[()] = ()

    def __init__(self, now: datetime) -> None:
        self._now = now

    def monotonic(self) -> float:
        return 0.0

    def now(self) -> datetime:
        return self._now

    def job_of(self, *_: object) -> None:
        return None


class _Loaded:
    """Of a database in memory what an observer reads."""

    def __init__(self, store: StoreDump) -> None:
        self.locks: dict[Any, Any] = {}
        self.last_position = max((event.position for event in store.events), default=0)
        self.store_epoch = store.store_epoch
        self.tables = _tables(store)


def check(evidence: Evidence) -> Iterator[Violation]:
    """Let the observer look once at everything, as it does at a store that was taken back."""
    database = _Loaded(evidence.store)
    silent = _Silent(evidence.store.now)
    for run_id in [run_id for run_id in database.tables.events if run_id not in database.tables.runs]:
        del database.tables.events[run_id]  # log speaks of them
    histories = database.tables.events
    database.tables.events = {}
    observer = Observer(cast(World, silent), cast(MemoryDatabase, database), cast(FakeProvider, silent))
    observer.looks_back = True
    for run_id, events in histories.items():
        database.tables.events[run_id] = events
        database.last_position += 1
        try:
            followed(observer.look)
        except Unfollowable as error:
            yield Violation(
                invariant="I5", what=f"the history cannot be followed: {error}", where=f"run {run_id}"
            )
            observer.runs.pop(run_id, None)
            del database.tables.events[run_id]
        for found in observer.violations:
            if found.invariant not in LEFT_TO_OTHERS:
                yield Violation(invariant=found.invariant, what=found.message, where=f"run {run_id}")
        observer.violations.clear()


def _tables(store: StoreDump) -> Tables:
    tables = Tables()
    for command in store.commands:
        # Known by its key alone.
        tables.commands[command.tenant, command.actor, command.id] = cast(Any, None)
    for plan in store.plans:
        tables.plans[plan.tenant, plan.fingerprint] = PlanRow(
            workflow="", workflow_version=1, plan=plan.plan.encode(), input=b"{}", policy=b"{}"
        )
    for run in store.runs:
        tables.runs[uuid.UUID(run.run)] = _run(run)
    for effect in store.effects:
        row = _effect(effect)
        tables.effects[row.id] = row
        if row.closed_at is None:
            tables.open_effects.setdefault(row.run_id, {})[row.id] = None
    for event in store.events:
        tables.events.setdefault(uuid.UUID(event.run), []).append(_event(event))
    for kept in store.inbox:
        tables.inbox[uuid.UUID(kept.id)] = _callback(kept, store.now)
    for signal in store.signals:
        tables.signals[uuid.UUID(signal.id)] = SignalRow(
            id=uuid.UUID(signal.id),
            tenant="",
            run_id=uuid.UUID(signal.run),
            kind=signal.kind,
            payload=b"",
            created_at=signal.created_at,
        )
    return tables


def _run(run: dumped.RunRow) -> StoredRun:
    return StoredRun(
        run_id=uuid.UUID(run.run),
        tenant=run.tenant,
        project=run.project,
        workflow="",
        workflow_version=1,
        actor=run.actor,
        account=run.account,
        command_id=run.command,
        fingerprint=run.fingerprint,
        plan_checked="",
        store_epoch=run.epoch,
        head_hash=run.head_hash,
        quoted=run.quoted,
        cap=run.cap,
        accepted_at=run.accepted_at,
        updated_at=run.accepted_at,
        revision=run.revision,
        status=run.status,
        blockers=tuple(run.blockers),
        poisoned=run.poisoned,
        ended_at=run.ended_at,
    )


def _event(event: dumped.EventRow) -> EventRow:
    return EventRow(
        run_id=uuid.UUID(event.run),
        tenant=event.tenant,
        seq=event.seq,
        id=uuid.UUID(event.id),
        type=event.type,
        version=event.version,
        data=event.data.encode(),
        meta=event.meta.encode(),
        store_epoch=event.epoch,
        recorded_at=event.recorded_at,
        hash=event.hash,
        tx_id=event.tx,
        position=event.position,
    )


def _effect(effect: dumped.EffectRow) -> EffectRow:
    return EffectRow(
        id=uuid.UUID(effect.id),
        tenant=effect.tenant,
        run_id=uuid.UUID(effect.run),
        step=effect.step,
        attempt=effect.attempt,
        kind=cast(Any, effect.kind),
        ordinal=effect.ordinal,
        activity="",
        pool=effect.pool,
        priority=0,
        input=b"{}",
        traceparent=None,
        created_at=effect.created_at,
        not_before=effect.not_before,
        deadline=None,
        state=effect.state,
        leases=effect.leases,
        fence=effect.fence,
        receipt=None if effect.receipt is None else effect.receipt.encode(),
        disposition=cast(Any, effect.disposition),
        closed_at=effect.closed_at,
    )


def _callback(kept: dumped.InboxRow, now: datetime) -> InboxRow:
    return InboxRow(
        id=uuid.UUID(kept.id),
        tenant=kept.tenant,
        provider=kept.provider,
        dedupe_key=kept.key,
        run_id=uuid.UUID(kept.run),
        step=kept.step,
        attempt=kept.attempt,
        external_ref=None,
        callback_type="",
        payload=b"",
        traceparent=None,
        received_at=now,
        status=kept.status,
    )
