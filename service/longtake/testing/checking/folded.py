"""Folds: the projection is what the events say, by the auditor's own comparison (I5, I6)."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from longtake.contracts.envelope import StoredEvent
from longtake.engine.audit import Audit
from longtake.errors import BrokenChain
from longtake.store import ProjectionRows
from longtake.testing.checking.found import Evidence, Violation
from longtake.testing.checking.log import stored
from longtake.testing.checking.store import StoreDump
from longtake.testing.resting import finish
from longtake.workflow.projection import RunRow, StepRow

DIFFERENCES_MAX = 3
"""Printed of one run."""


class DumpedAudits:
    """An `AuditStore` over a dump."""

    def __init__(self, store: StoreDump) -> None:
        self._runs = {run.run: run for run in store.runs}
        self._events = store.histories()
        self._plans = {(plan.tenant, plan.fingerprint): plan.plan.encode() for plan in store.plans}
        self._steps: dict[str, list[dict[str, Any]]] = {}
        for step in store.steps:
            row = msgspec.structs.asdict(step)
            self._steps.setdefault(row.pop("run"), []).append(row)
        self._money: dict[tuple[str, str], int] = {}
        for entry in store.ledger:
            self._money[entry.run, entry.kind] = self._money.get((entry.run, entry.kind), 0) + entry.amount

    async def run_ids(self, after: uuid.UUID, limit: int) -> list[tuple[uuid.UUID, str]]:
        """A page of all runs."""
        ids = sorted((uuid.UUID(run.run), run.tenant) for run in self._runs.values())
        return [pair for pair in ids if pair[0] > after][:limit]

    async def history(self, run_id: uuid.UUID) -> list[StoredEvent]:
        """All events of a run."""
        return [stored(event) for event in self._events.get(str(run_id), [])]

    async def plan_document(self, tenant: str, run_id: uuid.UUID) -> bytes | None:
        """The frozen plan of a run."""
        return self._plans.get((tenant, self._runs[str(run_id)].fingerprint))

    async def projection(self, run_id: uuid.UUID) -> ProjectionRows | None:
        """A run's rows as they stood."""
        run = self._runs.get(str(run_id))
        if run is None:
            return None
        row = msgspec.structs.asdict(run)
        row |= {
            "summary": None if run.summary is None else run.summary.encode(),
            "head_hash": run.head_hash.hex(),
        }
        return ProjectionRows(
            run=row,
            steps=tuple(self._steps.get(run.run, ())),
            charged=self._money.get((run.run, "charge"), 0),
            refunded=self._money.get((run.run, "refund"), 0),
        )

    async def replace_projection(
        self, run_id: uuid.UUID, tenant: str, row: RunRow, steps: Sequence[StepRow], *, poisoned: bool
    ) -> bool:
        """A dump is only read."""
        raise NotImplementedError("a dump is only read")


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every run's projection."""
    audit = Audit(DumpedAudits(evidence.store))
    for run in evidence.store.runs:
        try:
            differences = finish(audit.prove(uuid.UUID(run.run), run.tenant))
        except BrokenChain as error:
            yield Violation(invariant="I5", what=error.reason, where=f"run {run.run} seq {error.seq}")
            continue
        for difference in differences[:DIFFERENCES_MAX]:
            yield Violation(
                invariant="I6",
                what=f"{difference.place} is stored as {difference.stored[:200]}, folds to {difference.folded[:200]}",
                where=f"run {run.run} seq {difference.seq}",
            )
