"""The line for scopes in memory: who waits, who may begin, and what decisions asked of admission.

Leaves to others: the transaction around it (store_admission.py), and who may begin when (workflow/queueing.py).
"""

import uuid
from collections.abc import Sequence
from datetime import datetime

from longtake.contracts.codec import to_json
from longtake.contracts.signals import Outgoing
from longtake.memory.store_session import MemoryDatabase, RowRefused, Session
from longtake.memory.tables import QueuedRun, SignalRow
from longtake.store import Errand
from longtake.workflow.queueing import LINE_MAX, Waiting


def read_line(session: Session, tenant: str, project: str) -> tuple[list[Waiting], datetime]:
    """Who is in line, in the order of acceptance, and the time."""
    part = session.view.scope_queue
    rows = {**part.below, **part.changed}
    line = sorted(
        (
            (run_id, row)
            for run_id, row in rows.items()
            if row and (row.tenant, row.project) == (tenant, project)
        ),
        key=lambda item: item[1].place,
    )
    waiting = [
        Waiting(
            run_id=run_id,
            scopes=row.scopes,
            waits_for=row.waits_for,
            start_at=row.start_at,
            supersedes=row.supersedes,
            overtakes=row.overtakes,
        )
        for run_id, row in line[: LINE_MAX + 1]
    ]
    return waiting, session.now


def join_line(session: Session, tenant: str, project: str, waiting: Waiting) -> None:
    """A run gets in line, behind everybody."""
    session.lock("queue", waiting.run_id)
    if session.view.scope_queue.get(waiting.run_id) is not None:
        raise RowRefused(f"scope_queue: {waiting.run_id} is in line")
    session.view.scope_queue.put(
        waiting.run_id,
        QueuedRun(
            tenant=tenant,
            project=project,
            scopes=waiting.scopes,
            place=session.position(),
            waits_for=waiting.waits_for,
            supersedes=waiting.supersedes,
            start_at=waiting.start_at,
            overtakes=waiting.overtakes,
        ),
    )


def leave_line(session: Session, run_id: uuid.UUID) -> None:
    """A run gives up its place."""
    session.lock("queue", run_id)
    session.view.scope_queue.drop(run_id)


def wait_for(session: Session, run_id: uuid.UUID, runs: Sequence[uuid.UUID]) -> None:
    """A run in line begins after these have ended."""
    session.lock("queue", run_id)
    if (row := session.view.scope_queue.own(run_id)) is not None:
        row.waits_for = tuple(runs)


def active_runs(session: Session, tenant: str, run_ids: Sequence[uuid.UUID]) -> frozenset[uuid.UUID]:
    """Which of them have not ended."""
    found = [(run_id, session.view.runs.get(run_id)) for run_id in run_ids]
    return frozenset(id_ for id_, run in found if run and run.tenant == tenant and run.ended_at is None)


def grant_scopes(session: Session, tenant: str, project: str, waiting: Waiting) -> None:
    """A run leaves the line and owns its scopes."""
    session.lock("queue", waiting.run_id)
    take_scopes(session, tenant, project, waiting.scopes)
    session.view.scope_queue.drop(waiting.run_id)
    for scope in waiting.scopes:
        session.view.scopes.put((tenant, project, scope), waiting.run_id)


def take_scopes(session: Session, tenant: str, project: str, scopes: Sequence[str]) -> None:
    """Lock scopes that nobody holds. Raises RowRefused when somebody does."""
    if not session.defences.scopes_unique:
        return
    for scope in scopes:
        session.lock("scope", tenant, project, scope)
        if session.view.scopes.get((tenant, project, scope)) is not None:
            raise RowRefused(f"scopes: {scope} has a holder")


def tell(session: Session, tenant: str, fact: Outgoing) -> None:
    """Write a fact for another run; one of that id stands once."""
    session.lock("signal", fact.id)
    if session.view.signals.get(fact.id) is None:
        session.view.signals.put(
            fact.id,
            SignalRow(
                id=fact.id, tenant=tenant, run_id=fact.run_id, kind=fact.kind, payload=to_json(fact.payload),
                created_at=session.now,
            ),
        )  # fmt: skip


class MemoryErrandStore:
    """Implements `ErrandStore`."""

    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database

    async def open_errands(self, limit: int) -> list[Errand]:
        """What is asked for, oldest first. Raises AuthorityUnavailable."""

        def read(session: Session) -> list[Errand]:
            tables = session.tables
            found = [
                row
                for row in tables.errands.values()
                if row.settled_at is None and not session.hides("errands_open", row.run_id)
            ]
            found.sort(key=lambda row: (row.created_at, row.id))
            closed = {row.run_id for row in tables.signals.values() if row.kind == "parent_closed"}
            return [
                Errand(
                    id=row.id,
                    tenant=row.tenant,
                    run_id=row.run_id,
                    kind=row.kind,
                    payload=row.payload,
                    traceparent=row.traceparent,
                    parent_closed=row.kind == "start_child" and row.run_id in closed,
                )
                for row in found[:limit]
            ]

        return await self._database.run("errands_open", read)

    async def settle_errands(self, ids: list[uuid.UUID], reason: str) -> None:
        """These are done."""

        def write(session: Session) -> None:
            for id_ in sorted(set(ids)):
                _settle(session, id_, reason)

        await self._database.run("errands_settle", write)

    async def answer_errand(self, errand: Errand, reason: str, answer: Outgoing) -> None:
        """This one is done, and its answer is a fact for a run."""

        def write(session: Session) -> None:
            if _settle(session, errand.id, reason):
                tell(session, errand.tenant, answer)

        await self._database.run("errand_answer", write)

    async def waiting_projects(self, limit: int) -> list[tuple[str, str]]:
        """(tenant, project) in which somebody in line may begin, or is to tell others to make room."""

        def read(session: Session) -> list[tuple[str, str]]:
            line = sorted(session.tables.scope_queue.values(), key=lambda row: row.place)
            moves = dict.fromkeys((row.tenant, row.project) for row in line if _may_move(session, row))
            return list(moves)[:limit]

        return await self._database.run("queue_projects", read)


def _may_move(session: Session, row: QueuedRun) -> bool:
    tables = session.tables
    if row.start_at is not None and row.start_at > session.now:
        return False
    places = ((row.tenant, row.project, scope) for scope in row.scopes)
    holders = {tables.scopes[place] for place in places if place in tables.scopes}
    if holders:
        return row.supersedes and not holders <= set(row.waits_for)
    awaited = (tables.runs.get(run_id) for run_id in row.waits_for)
    return not any(run is not None and run.ended_at is None for run in awaited)


def _settle(session: Session, id: uuid.UUID, reason: str) -> bool:
    row = session.view.errands.get(id)
    if row is None or row.settled_at is not None:
        return False
    mine = session.view.errands.own(id)
    assert mine is not None, "it was found"
    mine.settled_at, mine.reason = session.now, reason
    return True
