"""Invariants that can be judged when a world has come to rest: nothing lost, nothing twice, all money accounted for (4.5).

Histories are folded and compared to the rows; ledger, holds, inbox, effects and the provider's witness are added up.
"""

import itertools
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from longtake.contracts.ids import provider_token_for
from longtake.contracts.upcasters import decode_event
from longtake.engine.audit import Audit
from longtake.errors import BrokenChain
from longtake.memory.store_session import MemoryDatabase
from longtake.memory.tables import StoredRun
from longtake.store import AuditStore
from longtake.testing.observing import Observer
from longtake.testing.provider import FakeProvider
from longtake.workflow.plan import compile_document
from longtake.workflow.reducer import available_actions
from longtake.workflow.state import evolve, initial

T = TypeVar("T")

TERMINAL = frozenset({"completed", "failed", "cancelled", "superseded"})
PATIENT = frozenset({"blocked", "needs_input", "paused"})
"""States in which a run waits for a person."""


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits."""
    try:
        while True:
            work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value


class Judge:
    """Adds up a world at rest. `funded` is what was put on each account."""

    def __init__(
        self,
        database: MemoryDatabase,
        audits: AuditStore,
        observer: Observer,
        provider: FakeProvider,
        *,
        funded: dict[tuple[str, str], int],
    ) -> None:
        self._database = database
        self._audit = Audit(audits)
        self._observer = observer
        self._provider = provider
        self._funded = funded
        self._offered: dict[uuid.UUID, list[frozenset[str]]] = {}
        self.broken: Callable[[str, str], None] = observer.broken

    def judge(self) -> None:
        """Judge everything."""
        self._observer.look()
        for run_id, row in self._database.tables.runs.items():
            self._history(run_id, row)
            self._ledger(run_id, row)
            self._callbacks_told(run_id)
        self._accounts()
        self._effects()
        self._inbox()
        self._jobs()
        if self._observer.lost_past == 0:
            self._witness()

    # --- histories ----------------------------------------------------------------------------------------------------

    def _history(self, run_id: uuid.UUID, row: StoredRun) -> None:
        try:
            finish(self._audit.verify(run_id))
            differences = finish(self._audit.prove(run_id, row.tenant))
        except BrokenChain as error:
            self.broken("I1", str(error))
            return
        for difference in differences[:3]:
            self.broken(
                "I6",
                f"{difference.place} of {run_id} is stored as {difference.stored[:200]}, folds to "
                f"{difference.folded[:200]}",
            )
        events = self._database.tables.events.get(run_id, [])
        ends = [
            event.type
            for event in events
            if event.type in ("run_completed", "run_failed", "run_cancelled", "run_superseded")
        ]
        if (row.status in TERMINAL) != bool(ends) or len(ends) > 1:
            self.broken("I3", f"{run_id} is {row.status} with {len(ends)} terminal events")

    def offered_at(self, run_id: uuid.UUID) -> list[frozenset[str]]:
        """What a run offered at each of its revisions, from 0."""
        found = self._offered.get(run_id)
        if found is None:
            tables = self._database.tables
            row = tables.runs[run_id]
            document = tables.plans[row.tenant, row.fingerprint].plan
            state = initial(run_id, row.tenant, compile_document(bytes(document)))
            found = self._offered[run_id] = [frozenset()]
            for event in tables.events[run_id]:
                evolve(state, decode_event(event.type, event.version, event.data), at=event.recorded_at)
                found.append(frozenset(available_actions(state)))
        return found

    # --- money --------------------------------------------------------------------------------------------------------

    def _ledger(self, run_id: uuid.UUID, row: StoredRun) -> None:
        tables = self._database.tables
        entries = [entry for entry in tables.ledger.values() if entry.run_id == run_id]
        charged = sum(entry.amount for entry in entries if entry.kind == "charge")
        refunded = sum(entry.amount for entry in entries if entry.kind == "refund")
        if (charged, refunded) != (row.charged, row.refunded):
            self.broken(
                "I21",
                f"the ledger of {run_id} says {charged} and {refunded}, the run {row.charged} and {row.refunded}",
            )
        events = tables.events.get(run_id, [])
        for entry in entries:
            if entry.account != row.account or entry.tenant != row.tenant:
                self.broken("I21", f"entry {entry.key} is not on the account of its run")
            if not 0 < entry.seq <= len(events) or events[entry.seq - 1].tx_id != entry.tx_id:
                self.broken(
                    "I23", f"entry {entry.key} was not written with its event {entry.seq} of {run_id}"
                )
            named = (
                f"{entry.kind}:{run_id}"
                if entry.step is None
                else f"{entry.kind}:{run_id}:{entry.step}:{entry.cycle}"
            )
            if entry.key != named:
                self.broken("I22", f"the ledger key {entry.key} should be {named}")
        hold = tables.holds.get(run_id)
        if hold is not None and (row.status in TERMINAL) != (hold.released_at is not None):
            self.broken(
                "P8", f"the hold of {run_id}, which is {row.status}, was released at {hold.released_at}"
            )
        if row.status == "failed" and row.charged != row.refunded and self._billing(run_id) == "prepaid":
            self.broken("I24", f"{run_id} has failed and still costs {row.charged - row.refunded}")

    def _billing(self, run_id: uuid.UUID) -> str:
        return str(getattr(self._observer.runs[run_id].plan.plan, "billing", "prepaid"))

    def _accounts(self) -> None:
        tables = self._database.tables
        for (tenant, account), row in tables.accounts.items():
            held = sum(
                hold.amount
                for hold in tables.holds.values()
                if (hold.tenant, hold.account) == (tenant, account) and hold.released_at is None
            )
            spent = sum(
                run.charged - run.refunded
                for run_id, run in tables.runs.items()
                if (run.tenant, run.account) == (tenant, account)
                and (found := tables.holds.get(run_id)) is not None
                and found.released_at is not None
            )
            if held != row.held:
                self.broken("P8", f"account {account} promises {row.held}, its open holds are {held}")
            if row.balance != self._funded.get((tenant, account), 0) - spent:
                self.broken("I21", f"account {account} has {row.balance} after spending {spent}")

    # --- effects ------------------------------------------------------------------------------------------------------

    def _effects(self) -> None:
        tables = self._database.tables
        fences: dict[uuid.UUID, list[int]] = {}
        for claim in tables.claims.values():
            fences.setdefault(claim.effect_id, []).append(claim.fence)
        for effect_id, numbers in fences.items():
            if any(later <= earlier for earlier, later in itertools.pairwise(numbers)):
                self.broken("I16", f"the fences of {effect_id} do not rise: {numbers}")
        for effect in tables.effects.values():
            if (effect.closed_at is None) != (effect.id in tables.open_effects.get(effect.run_id, {})):
                self.broken("I29", f"effect {effect.id} is lost to the index of open ones")
            if effect.closed_at is not None and effect.disposition is None:
                self.broken("I29", f"effect {effect.id} is closed and nobody says how")
            if effect.disposition == "applied" and effect.receipt is None:
                self.broken("I15", f"effect {effect.id} is applied without a receipt")
            claimed = [claim for claim in tables.claims.values() if claim.effect_id == effect.id]
            if not self._observer.clock_stepped and any(
                claim.claimed_at < effect.created_at for claim in claimed
            ):
                self.broken("I32", f"effect {effect.id} was claimed before it was written")

    # --- callbacks ----------------------------------------------------------------------------------------------------

    def _inbox(self) -> None:
        tables = self._database.tables
        keys = [(row.tenant, row.provider, row.dedupe_key) for row in tables.inbox.values()]
        if len(keys) != len(set(keys)):
            self.broken("I26", "a callback is stored twice")
        known = {
            (callback.run_id, callback.step, callback.attempt, callback.delivery)
            for callback in self._provider.callbacks
        }
        for row in tables.inbox.values():
            run = tables.runs[row.run_id]
            if row.status == "pending" and not run.poisoned:
                self.broken(
                    "I27", f"callback {row.id} of {row.step} was never looked at; its run is {run.status}"
                )
            place = (row.run_id, row.step, row.attempt, row.dedupe_key.rpartition("/")[2])
            if place not in known:
                self.broken(
                    "I28", f"callback {row.id} was stored and never sent by the provider: {row.dedupe_key}"
                )

    def strays(self, settled: list[bytes]) -> None:
        """What named nothing was kept as a dead letter before it was settled (I30)."""
        kept = {letter.body for letter in self._database.tables.dead_letters}
        for body in settled:
            if body not in kept:
                self.broken("I30", f"a message that names nothing was settled and is nowhere: {body[:80]!r}")

    def _callbacks_told(self, run_id: uuid.UUID) -> None:
        told = self._observer.runs[run_id].callbacks
        for id_ in told:
            row = self._database.tables.inbox.get(uuid.UUID(id_))
            if row is None or row.status != "dispatched":
                self.broken("I27", f"the event of callback {id_} has no dispatched row")

    # --- the outside --------------------------------------------------------------------------------------------------

    def _jobs(self) -> None:
        """Not even a restored store makes the provider do one attempt twice (F70)."""
        taken: dict[tuple[uuid.UUID, str, int], str] = {}
        for job in self._provider.jobs.values():
            place = (job.run_id, job.step, job.attempt)
            if place in taken:
                self.broken(
                    "I18", f"{job.step}/{job.attempt} is at the provider as {taken[place]} and as {job.ref}"
                )
            taken[place] = job.ref

    def _witness(self) -> None:
        tables = self._database.tables
        jobs: dict[tuple[uuid.UUID, str, int], int] = {}
        for request in self._provider.witness:
            expected = provider_token_for(request.run_id, step=request.step, attempt=request.attempt)
            if request.token and request.token != expected:
                self.broken(
                    "I18", f"{request.step}/{request.attempt} was asked under a token that is not its own"
                )
            if request.verb not in ("submit", "hold"):
                continue
            place = (request.run_id, request.step, request.attempt)
            jobs[place] = jobs.get(place, 0) + 1
            run = tables.runs.get(request.run_id)
            if run is None:
                self.broken("I25", f"{request.step} of a run that does not exist was paid for")
        for (run_id, step, attempt), count in jobs.items():
            if count > 1:
                self.broken(
                    "I25",
                    f"{step}/{attempt} of {run_id} was asked of the provider {count} times on one attempt",
                )
            run = tables.runs.get(run_id)
            seen = self._observer.runs.get(run_id)
            if run is None or seen is None:
                continue
            plan = self._observer.steps_of(seen, step)
            if plan is not None and plan.price > 0 and run.charged == 0:
                self.broken("I25", f"{step} of {run_id} costs outside and nothing was charged")
