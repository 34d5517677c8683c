"""The audit: histories verify, projections equal a fold of the events, and both are told by run and seq (I1, I6).

`verify` recomputes the chain. `prove` folds every run and compares the projection row by row. `rebuild` puts the fold
in the projection's place. None of them is used to decide.
"""

import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from longtake.contracts.envelope import GENESIS, StoredEvent, chain
from longtake.contracts.ids import event_id_for
from longtake.contracts.upcasters import decode_event
from longtake.errors import BrokenChain, UnreadableHistory
from longtake.store import AuditStore
from longtake.workflow.plan import compile_document
from longtake.workflow.projection import RunRow, StepRow, run_row, step_row
from longtake.workflow.state import RunState, evolve, initial

RUNS_PER_PAGE = 200


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A place where the projection is not what the events say."""

    run_id: uuid.UUID
    seq: int
    """Revision the fold reached."""
    place: str
    stored: str
    folded: str


def verify_history(events: Sequence[StoredEvent]) -> None:
    """Recompute the chain of one run. Raises BrokenChain naming run and seq of the first place that is wrong."""
    previous = GENESIS
    for expected, event in enumerate(events, start=1):
        if event.seq != expected:
            raise BrokenChain(
                event.run_id, expected, f"the event is missing; the next one there is {event.seq}"
            )
        if event.id != event_id_for(event.run_id, seq=event.seq, store_epoch=event.store_epoch):
            raise BrokenChain(event.run_id, event.seq, "the id is not the one of this place")
        previous = chain(
            previous,
            store_epoch=event.store_epoch,
            seq=event.seq,
            type_=event.type,
            version=event.version,
            recorded_at=event.recorded_at,
            data=event.data,
            meta=event.meta,
        )
        if previous != event.hash:
            raise BrokenChain(
                event.run_id, event.seq, "the bytes do not have the hash that was stored with them"
            )


class Audit:
    """Verifies, proves and rebuilds."""

    def __init__(self, store: AuditStore) -> None:
        self._store = store

    async def runs(self) -> AsyncIterator[tuple[uuid.UUID, str]]:
        """Every run with its tenant."""
        after = uuid.UUID(int=0)
        while page := await self._store.run_ids(after, RUNS_PER_PAGE):
            for run_id, tenant in page:
                yield run_id, tenant
            after = page[-1][0]

    async def verify(self, run_id: uuid.UUID) -> int:
        """Verify one run's chain and its head; returns the number of events. Raises BrokenChain."""
        events = await self._store.history(run_id)
        verify_history(events)
        projection = await self._store.projection(run_id)
        if projection is not None:
            head = events[-1].hash.hex() if events else GENESIS.hex()
            if projection.run["revision"] != len(events):
                raise BrokenChain(
                    run_id,
                    len(events),
                    f"the run is at revision {projection.run['revision']}: the end is missing",
                )
            if projection.run["head_hash"] != head:
                raise BrokenChain(run_id, len(events), "the run's head is not the hash of its last event")
        return len(events)

    async def fold(self, run_id: uuid.UUID, tenant: str) -> RunState:
        """Fold one run from its events. Raises BrokenChain when an event cannot be read or applied."""
        document = await self._store.plan_document(tenant, run_id)
        if document is None:
            raise BrokenChain(run_id, 0, "the run's plan is missing")
        state = initial(run_id, tenant, compile_document(bytes(document)))
        for event in await self._store.history(run_id):
            try:
                evolve(state, decode_event(event.type, event.version, event.data), at=event.recorded_at)
            except UnreadableHistory as error:
                raise BrokenChain(run_id, event.seq, str(error)) from error
            except Exception as error:
                # An altered event may break the fold in any way; it is the event's place that is worth knowing.
                reason = f"the event cannot be applied: {type(error).__name__}: {error}"
                raise BrokenChain(run_id, event.seq, reason) from error
        return state

    async def prove(self, run_id: uuid.UUID, tenant: str) -> list[Difference]:
        """Compare one run's projection and ledger with the fold of its events."""
        stored = await self._store.projection(run_id)
        state = await self.fold(run_id, tenant)
        if stored is None:
            return [
                Difference(run_id=run_id, seq=state.revision, place="runs", stored="absent", folded="a run")
            ]
        folded = run_row(state)
        pairs = [(f"runs.{name}", stored.run[name], value) for name, value in run_columns(folded).items()]
        pairs += [
            ("ledger.charged", stored.charged, folded.charged),
            ("ledger.refunded", stored.refunded, folded.refunded),
        ]
        rows = {row["key"]: row for row in stored.steps}
        expected = {row.key: row for row in folded_steps(state)}
        for key in sorted(rows.keys() | expected.keys()):
            if key not in rows or key not in expected:
                pairs.append((f"steps[{key}]", key in rows, key in expected))
                continue
            columns = step_columns(expected[key])
            pairs += [(f"steps[{key}].{name}", rows[key][name], value) for name, value in columns.items()]
        return [
            Difference(run_id=run_id, seq=state.revision, place=place, stored=repr(was), folded=repr(is_))
            for place, was, is_ in pairs
            if was != is_
        ]

    async def rebuild(self, run_id: uuid.UUID, tenant: str) -> bool:
        """Put the fold in the place of one run's projection; False when the run moved meanwhile."""
        state = await self.fold(run_id, tenant)
        poisoned = any(blocker.type == "reducer_error" for blocker in state.run_blockers)
        return await self._store.replace_projection(
            run_id, tenant, run_row(state), folded_steps(state), poisoned=poisoned
        )


def folded_steps(state: RunState) -> list[StepRow]:
    """Rows of all steps that were ever scheduled or settled: those an event has touched."""
    return [
        step_row(state, step.key)
        for step, known in zip(state.plan.steps, state.steps, strict=True)
        if known.updated_seq > 0
    ]


def run_columns(row: RunRow) -> dict[str, Any]:
    """The columns of `runs` that a fold determines."""
    return {
        "status": row.status,
        "phase": row.phase,
        "label": row.label,
        "revision": row.revision,
        "charged": row.charged,
        "refunded": row.refunded,
        "quoted": row.quoted,
        "cap": row.cap,
        "blockers": [blocker.type for blocker in row.blockers],
        "poll_at": row.poll_at,
        "summary": row.summary,
        "ended_at": row.ended_at,
    }


def step_columns(row: StepRow) -> dict[str, Any]:
    """The columns of `steps`."""
    columns = msgspec.structs.asdict(row)
    columns["artifacts"] = list(row.artifacts)
    return columns
