"""Evidence to be spoilt: the histories, the store and the witness of one real campaign, and hands to alter them with.

The campaign is that of tests/integration/checking/test_judged.py (its LONGTAKE_TEST_KEEP wrote it). Runs go by the id of the
command that started them: gated (prepaid, completed), metered (pay as you go, cancelled), bad (prepaid, failed), ordered
(called back) and hard (blocked, tried again).
"""

import copy
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from kit.runtimes import FUNDS, PRINCIPAL
from longtake.contracts.envelope import GENESIS, chain
from longtake.contracts.ids import event_id_for, provider_token_for
from longtake.testing.checking import Op, StoreDump, WitnessLine
from longtake.testing.checking.found import Evidence, Violation
from longtake.testing.checking.kept import read_kept
from longtake.testing.checking.store import EffectRow, EventRow, LedgerRow, RunRow
from longtake.testing.checking.verdict import CHECKERS

REAL = Path(__file__).parents[1] / "unit" / "checking" / "real"
FUNDED = {(PRINCIPAL.tenant, "main"): FUNDS}
OK_FLOOR = 0.5


@cache
def _real() -> tuple[list[Op], StoreDump, list[WitnessLine]]:
    history, store, witness = read_kept(REAL)
    return history, store, list(witness)


class Case:
    """One copy of the evidence."""

    def __init__(self) -> None:
        self.history, self.store, self.witness = copy.deepcopy(_real())
        self.options: dict[str, Any] = {"funded": FUNDED, "ok_floor": OK_FLOOR}

    def judged(self) -> dict[str, list[Violation]]:
        """What each checker says."""
        self.history.sort(key=lambda op: op.t)
        evidence = Evidence(self.history, self.store, self.witness, **self.options)
        return {name: list(check(evidence)) for name, check in CHECKERS.items()}

    # --- runs and events ------------------------------------------------------------------------------------------------

    def run(self, command: str) -> RunRow:
        """The run that a command started."""
        return next(run for run in self.store.runs if run.command == command)

    def events(self, command: str) -> list[EventRow]:
        """Its events."""
        id_ = self.run(command).run
        return [event for event in self.store.events if event.run == id_]

    def event(self, command: str, type_: str) -> EventRow:
        """Its first event of a type."""
        return next(event for event in self.events(command) if event.type == type_)

    def change(self, event: EventRow, **data: Any) -> None:
        """Alter what an event says; None takes a member away."""
        body = {name: value for name, value in {**event.body, **data}.items() if value is not None}
        event.data = msgspec.json.encode(body).decode()

    def insert(self, event: EventRow, after: EventRow) -> EventRow:
        """Put a copy of an event behind another of the same run."""
        twin = copy.deepcopy(event)
        self.store.events.insert(self.store.events.index(after) + 1, twin)
        return twin

    def seal(self, command: str) -> None:
        """Give the events of a run places, ids and hashes that fit, and the run the head and the times that follow."""
        run, previous, at, position = self.run(command), GENESIS, None, 0
        events = self.events(command)
        for seq, event in enumerate(events, start=1):
            event.seq = seq
            event.id = str(event_id_for(uuid.UUID(run.run), seq=seq, store_epoch=event.epoch))
            event.recorded_at = max(at or event.recorded_at, event.recorded_at)
            event.position = max(position + 1, event.position)
            at, position = event.recorded_at, event.position
            previous = event.hash = chain(
                previous,
                store_epoch=event.epoch,
                seq=seq,
                type_=event.type,
                version=event.version,
                recorded_at=event.recorded_at,
                data=event.data.encode(),
                meta=event.meta.encode(),
            )
        run.revision, run.head_hash = len(events), previous

    # --- rows -----------------------------------------------------------------------------------------------------------

    def effect(self, command: str, step: str, kind: str = "execute", attempt: int = 1) -> EffectRow:
        """An effect of a run."""
        id_ = self.run(command).run
        return next(
            effect
            for effect in self.store.effects
            if (effect.run, effect.step, effect.kind, effect.attempt) == (id_, step, kind, attempt)
        )

    def entry(self, command: str, kind: str = "charge") -> LedgerRow:
        """The first ledger entry of a run of a kind."""
        id_ = self.run(command).run
        return next(entry for entry in self.store.ledger if (entry.run, entry.kind) == (id_, kind))

    def token(self, command: str, step: str, attempt: int = 1) -> str:
        """The idempotency key of an attempt."""
        return str(provider_token_for(uuid.UUID(self.run(command).run), step=step, attempt=attempt))

    # --- histories ------------------------------------------------------------------------------------------------------

    def ends(self, f: str, key: str = "", **told: Any) -> Iterator[Op]:
        """Ops that end calls of a name, about a key, that were told so."""
        for op in self.history:
            value = op.value if isinstance(op.value, dict) else {}
            fits = all(value.get(name) == wanted for name, wanted in told.items())
            if op.f == f and op.type != "invoke" and key in ("", op.key) and fits:
                yield op

    def begun(self, end: Op) -> Op:
        """The beginning of a call."""
        return next(op for op in self.history if op.type == "invoke" and op.id == end.id)

    def sent(self, command: str) -> list[Op]:
        """All ops of a command."""
        ids = {
            op.id
            for op in self.history
            if (op.f == "start" and op.key == command)
            or (op.type == "invoke" and isinstance(op.value, dict) and op.value.get("id") == command)
        }
        return [op for op in self.history if op.id in ids]

    def call(
        self, proc: str, f: str, key: str, asked: Any, type_: Any, told: Any, *, at: float | None = None
    ) -> Op:
        """Add a call: at a time of the history's clock, or after everything. Its end is returned, or the beginning."""
        begun = (max(op.t for op in self.history) + 0.01) if at is None else at
        id_ = max(op.id for op in self.history) + 1
        end = Op(t=begun, proc=proc, f=f, type="invoke", key=key, value=asked, id=id_)
        self.history.append(end)
        if type_ is not None:
            end = Op(t=begun + 0.001, proc=proc, f=f, type=type_, key=key, value=told, id=id_)
            self.history.append(end)
        return end

    def remove(self, ops: list[Op]) -> None:
        """Take ops out of the history."""
        ids = {id(op) for op in ops}
        self.history = [op for op in self.history if id(op) not in ids]

    @property
    def first(self) -> float:
        """When the history begins."""
        return min(op.t for op in self.history)


Change = Callable[[Case], None]
