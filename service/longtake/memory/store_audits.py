"""Callbacks, plan checks and what the auditor reads, in memory."""

import uuid
from collections.abc import Sequence

import msgspec

from longtake.contracts.envelope import StoredEvent
from longtake.memory.store_session import MemoryDatabase, RowRefused, Session
from longtake.memory.tables import InboxRow, SignalRow
from longtake.store import ProjectionRows, UncheckedRun
from longtake.workflow.projection import RunRow, StepRow


class MemoryInboxStore:
    """Implements `InboxStore`."""

    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database

    async def insert_callback(
        self,
        *,
        id: uuid.UUID,
        tenant: str,
        provider: str,
        dedupe_key: str,
        run_id: uuid.UUID,
        step: str,
        attempt: int,
        external_ref: str | None,
        type: str,
        payload: bytes,
        traceparent: str | None,
    ) -> int | None:
        """Keep one; returns how many copies came so far, None when there is no such run."""

        def write(session: Session) -> int | None:
            run = session.view.runs.get(run_id)
            if run is None or (session.defences.tenant_checked and run.tenant != tenant):
                return None
            session.lock("inbox", id)
            if session.view.inbox.get(id) is not None:
                if session.defences.inbox_unique:
                    mine = session.view.inbox.own(id)
                    assert mine is not None, "it was found"
                    mine.copies += 1
                    return mine.copies
                number = sum(row.dedupe_key == dedupe_key for row in session.tables.inbox.values())
                row_id = uuid.UUID(int=(id.int + number) % 2**128)
            else:
                row_id = id
            if any("\x00" in text for text in (step, type, external_ref or "")):
                raise RowRefused("inbox: a text cannot hold U+0000")
            session.view.inbox.put(
                row_id,
                InboxRow(
                    id=row_id,
                    tenant=run.tenant,
                    provider=provider,
                    dedupe_key=dedupe_key,
                    run_id=run_id,
                    step=step,
                    attempt=attempt,
                    external_ref=external_ref,
                    callback_type=type,
                    payload=payload,
                    traceparent=traceparent,
                    received_at=session.now,
                ),
            )
            return 1

        return await self._database.run("inbox_insert", write)

    async def callback_run(self, run_id: uuid.UUID, effect_id: uuid.UUID) -> tuple[str, str | None] | None:
        """Whose run it is, and the trace of the effect that the callback answers."""

        def read(session: Session) -> tuple[str, str | None] | None:
            run, effect = session.tables.runs.get(run_id), session.tables.effects.get(effect_id)
            return None if run is None else (run.tenant, None if effect is None else effect.traceparent)

        return await self._database.run("callback_run", read)


class MemoryPlanCheckStore:
    """Implements `PlanCheckStore`."""

    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database

    async def deploy(self, application: str) -> None:
        """From now on nothing is decided for a run that was not compared with this application."""

        def write(session: Session) -> None:
            store = session.view.store.own(0)
            assert store is not None, "the store has its row"
            store.application = application

        await self._database.run("application_deploy", write)

    async def unchecked_runs(self, application: str, limit: int) -> list[UncheckedRun]:
        """Active runs that were not compared with it."""

        def read(session: Session) -> list[UncheckedRun]:
            found = [
                run
                for run in session.tables.runs.values()
                if run.ended_at is None
                and run.plan_checked != application
                and not session.hides("runs_unchecked", run.run_id)
            ]
            found.sort(key=lambda run: run.run_id)
            plans = session.tables.plans
            return [
                UncheckedRun(
                    run_id=run.run_id,
                    tenant=run.tenant,
                    workflow=run.workflow,
                    workflow_version=run.workflow_version,
                    fingerprint=run.fingerprint,
                    plan=plans[(run.tenant, run.fingerprint)].plan,
                    input=plans[(run.tenant, run.fingerprint)].input,
                    policy=plans[(run.tenant, run.fingerprint)].policy,
                    drift_blocked="plan_drift" in run.blockers,
                    revision=run.revision,
                )
                for run in found[:limit]
            ]

        return await self._database.run("runs_unchecked", read)

    async def mark_checked(self, run_ids: Sequence[uuid.UUID], application: str) -> None:
        """Their plans are as this application builds them."""

        def write(session: Session) -> None:
            found = [run_id for run_id in sorted(set(run_ids)) if session.view.runs.get(run_id) is not None]
            for run_id in found:
                session.lock("run", run_id)
            for run_id in found:
                if (run := session.view.runs.own(run_id)) is not None:
                    run.plan_checked = application

        await self._database.run("runs_checked", write)

    async def signal(
        self, *, id: uuid.UUID, tenant: str, run_id: uuid.UUID, kind: str, payload: bytes
    ) -> None:
        """Keep a durable fact for a run."""

        def write(session: Session) -> None:
            session.lock("signal", id)
            if session.view.signals.get(id) is None:
                row = SignalRow(
                    id=id, tenant=tenant, run_id=run_id, kind=kind, payload=payload, created_at=session.now
                )
                session.view.signals.put(id, row)

        await self._database.run("signal_insert", write)


class MemoryAuditStore:
    """Implements `AuditStore`."""

    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database

    async def run_ids(self, after: uuid.UUID, limit: int) -> list[tuple[uuid.UUID, str]]:
        """A page of all runs."""

        def read(session: Session) -> list[tuple[uuid.UUID, str]]:
            found = sorted(run_id for run_id in session.tables.runs if run_id > after)
            return [
                (run_id, session.tables.runs[run_id].tenant)
                for run_id in found
                if not session.hides("run_ids_all", run_id)
            ][:limit]

        return await self._database.run("run_ids_all", read)

    async def history(self, run_id: uuid.UUID) -> list[StoredEvent]:
        """All events of a run, exact bytes."""

        def read(session: Session) -> list[StoredEvent]:
            stored = sorted(session.tables.events.get(run_id, ()), key=lambda event: event.seq)
            return [
                StoredEvent(
                    tenant=event.tenant,
                    run_id=run_id,
                    seq=event.seq,
                    id=event.id,
                    type=event.type,
                    version=event.version,
                    data=event.data,
                    meta=event.meta,
                    store_epoch=event.store_epoch,
                    recorded_at=event.recorded_at,
                    hash=event.hash,
                )
                for event in stored
            ]

        return await self._database.run("events_verify", read)

    async def plan_document(self, tenant: str, run_id: uuid.UUID) -> bytes | None:
        """The frozen plan of a run."""

        def read(session: Session) -> bytes | None:
            run = session.tables.runs.get(run_id)
            if run is None or (session.defences.tenant_checked and run.tenant != tenant):
                return None
            return session.tables.plans[(run.tenant, run.fingerprint)].plan

        return await self._database.run("plan_read", read)

    async def projection(self, run_id: uuid.UUID) -> ProjectionRows | None:
        """A run's rows as they stand."""

        def read(session: Session) -> ProjectionRows | None:
            run = session.tables.runs.get(run_id)
            if run is None:
                return None
            row = {name: getattr(run, name) for name in _PROJECTION_COLUMNS}
            steps = sorted(
                (step for (owner, _), step in session.tables.steps.items() if owner == run_id),
                key=lambda step: step.key,
            )
            entries = [entry for entry in session.tables.ledger.values() if entry.run_id == run_id]
            return ProjectionRows(
                run={**row, "blockers": list(run.blockers), "head_hash": run.head_hash.hex()},
                steps=tuple({**msgspec.structs.asdict(s), "artifacts": list(s.artifacts)} for s in steps),
                charged=sum(entry.amount for entry in entries if entry.kind == "charge"),
                refunded=sum(entry.amount for entry in entries if entry.kind == "refund"),
            )

        return await self._database.run("projection_read", read)

    async def replace_projection(
        self, run_id: uuid.UUID, tenant: str, row: RunRow, steps: Sequence[StepRow], *, poisoned: bool
    ) -> bool:
        """Put a fold in the place of a projection; False when the run moved meanwhile."""

        def write(session: Session) -> bool:
            found = session.view.runs.get(run_id)
            if found is None or found.revision != row.revision:
                return False
            session.lock("run", run_id)
            run = session.view.runs.own(run_id)
            assert run is not None, "it was found"
            run.status, run.phase, run.label = row.status, row.phase, row.label
            run.charged, run.refunded = row.charged, row.refunded
            run.blockers = tuple(blocker.type for blocker in row.blockers)
            run.poisoned, run.poll_at, run.summary, run.ended_at = (
                poisoned,
                row.poll_at,
                row.summary,
                row.ended_at,
            )
            for key in [key for key in session.tables.steps if key[0] == run_id]:
                session.view.steps.drop(key)
            for step in steps:
                session.view.steps.put((run_id, step.key), step)
            return True

        return await self._database.run("projection_replace_run", write)


_PROJECTION_COLUMNS = (
    "run_id", "status", "phase", "label", "revision", "charged", "refunded", "quoted", "cap", "poll_at", "summary",
    "ended_at", "poisoned", "account", "actor", "project",
)  # fmt: skip
