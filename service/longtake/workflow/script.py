"""Given, when, then: play a run by hand, with no store and no clock but the one you set.

A script keeps what a store would: the history, the effect rows and the timers. After every decision it holds the
decision to the laws that a store relies on.
Leaves to others: worlds that answer by themselves (the simulator).
"""

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from longtake.contracts.effects import EffectIntent, EffectKind
from longtake.contracts.events import Event
from longtake.contracts.outcomes import Artifact, Failed, Outcome, Submitted, Succeeded
from longtake.contracts.signals import (
    CallbackArrived,
    CancelRun,
    DeadlinePassed,
    LeaseExpired,
    OutcomeReported,
    RetryRun,
    Signal,
    TimerFired,
)
from longtake.contracts.summary import Summary
from longtake.workflow.decision import Decision, LedgerEntry
from longtake.workflow.plan import Plan, compile_plan
from longtake.workflow.reducer import AcceptedFacts, accept, decide
from longtake.workflow.state import RunState, dump, fold, initial
from longtake.workflow.step import ExpectedArtifact
from longtake.workflow.summary import summarize

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
RUN = uuid.UUID("00000000-0000-8000-8000-00000000f1f1")

FACTS = AcceptedFacts(
    workflow="short.generation",
    workflow_version=1,
    project="p",
    actor="ann",
    account="acme",
    command_id="c-1",
    fingerprint="f" * 64,
    application="app-1",
    price_list="2026-01",
)


class LawBroken(AssertionError):
    """A decision contradicts the state it leaves."""


class Script:
    """One run, played signal by signal."""

    def __init__(
        self, plan: Plan, *, run_id: uuid.UUID = RUN, tenant: str = "t", now: datetime = START
    ) -> None:
        self.plan = plan
        self.now = now
        self.state: RunState = initial(run_id, tenant, compile_plan(plan))
        self.history: list[tuple[Event, datetime]] = []
        self.rows: dict[uuid.UUID, EffectIntent] = {}
        """Open effects, as a store would hold them."""
        self.all_rows: dict[uuid.UUID, EffectIntent] = {}
        self.timers: dict[str, datetime] = {}
        self.ledger: list[LedgerEntry] = []
        self.decisions: list[Decision] = []

    # --- when ---

    def accept(self, **changes: Any) -> Decision:
        """Open the run; `changes` are facts of admission that are not those of every script."""
        return self._keep(accept(self.state, msgspec.structs.replace(FACTS, **changes), self.now))

    def tell(self, signal: Signal) -> Decision:
        """Give the reducer a fact."""
        return self._keep(decide(self.state, signal, self.now))

    def wait(self, seconds: float) -> "Script":
        """Let time pass."""
        self.now += timedelta(seconds=seconds)
        return self

    def report(self, step: str, outcome: Outcome, *, kind: EffectKind | None = None) -> Decision:
        """Report an outcome of the step's open effect (or of its last effect of a kind)."""
        row = self.row(step, kind)
        return self.tell(
            OutcomeReported(effect_id=row.id, step=step, attempt=row.attempt, kind=row.kind, outcome=outcome)
        )

    def succeed(self, step: str, **result: Any) -> Decision:
        """Report success with every artifact that the plan expects."""
        plan = self.state.plan_of(step)
        return self.report(step, Succeeded(result=result, artifacts=artifacts(plan.artifacts)))

    def fail(
        self, step: str, error_class: Any = "transient", message: str = "it broke", **fields: Any
    ) -> Decision:
        """Report a failure."""
        return self.report(step, Failed(error_class=error_class, message=message, **fields))

    def submit(self, step: str, external_ref: str = "job-1", **fields: Any) -> Decision:
        """Report that the provider has the request."""
        return self.report(step, Submitted(external_ref=external_ref, **fields))

    def lose_lease(self, step: str, *, call_opened: bool, leases: int = 5) -> Decision:
        """Let the lease of the step's open effect end."""
        row = self.row(step)
        return self.tell(
            LeaseExpired(
                effect_id=row.id,
                step=step,
                attempt=row.attempt,
                kind=row.kind,
                call_opened=call_opened,
                leases=leases,
            )
        )

    def pass_deadline(self, step: str, *, call_opened: bool = True) -> Decision:
        """Let the deadline of the step's open effect pass."""
        row = self.row(step)
        return self.tell(
            DeadlinePassed(
                effect_id=row.id, step=step, attempt=row.attempt, kind=row.kind, call_opened=call_opened
            )
        )

    def call_back(
        self, step: str, *, attempt: int | None = None, external_ref: str | None = None
    ) -> Decision:
        """Let the provider call back."""
        current = self.state.step_of(step)
        made = 0 if current is None else current.attempt
        return self.tell(
            CallbackArrived(
                inbox_id=uuid.UUID(int=len(self.decisions)),
                step=step,
                attempt=made if attempt is None else attempt,
                external_ref=external_ref,
            )
        )

    def cancel(self, *, revision: int | None = None, reason: str | None = None) -> Decision:
        """Cancel the run, as a person who has just looked."""
        seen = self.state.revision if revision is None else revision
        return self.tell(CancelRun(command_id="c-2", actor="ann", expected_revision=seen, reason=reason))

    def retry(
        self, step: str | None = None, *, revision: int | None = None, accept_double_cost: bool = False
    ) -> Decision:
        """Ask to go on with what is blocked."""
        seen = self.state.revision if revision is None else revision
        return self.tell(
            RetryRun(
                command_id="c-3",
                actor="ann",
                expected_revision=seen,
                step=step,
                accept_double_cost=accept_double_cost,
            )
        )

    def fire(self, key: Any) -> Decision:
        """Let a timer go off at its time."""
        self.now = max(self.now, self.timers.get(key, self.now))
        return self.tell(TimerFired(key=key))

    # --- then ---

    def row(self, step: str, kind: EffectKind | None = None) -> EffectIntent:
        """The step's open effect, or with a kind its last of that kind, open or not."""
        rows = self.rows if kind is None else self.all_rows
        return [row for row in rows.values() if row.step == step and kind in (None, row.kind)][-1]

    def status(self, step: str) -> str:
        """The step's status."""
        found = self.state.step_of(step)
        if found is None:
            raise KeyError(step)
        return found.status

    @property
    def summary(self) -> Summary:
        """What people read now."""
        return summarize(self.state, now=self.now)

    @property
    def events(self) -> list[str]:
        """The types of all events so far."""
        return [event.TYPE for event, _ in self.history]

    def replayed(self) -> RunState:
        """The state that the history alone leaves."""
        return fold(self.state.run_id, self.state.tenant, self.plan, self.history)

    def _keep(self, decision: Decision) -> Decision:
        self.decisions.append(decision)
        self.history.extend((event, self.now) for event in decision.events)
        for closing in decision.closings:
            self.rows.pop(closing.id, None)
        for row in decision.effects:
            if row.id in self.all_rows:
                raise LawBroken(f"the effect {row.kind} {row.ordinal} of {row.step} is written twice")
            self.rows[row.id] = self.all_rows[row.id] = row
        for timer in decision.timers:
            self.timers[timer.key] = timer.due_at
        for key in decision.timers_cancelled:
            self.timers.pop(key, None)
        self.ledger.extend(decision.ledger)
        self._check(decision)
        return decision

    def _check(self, decision: Decision) -> None:
        if set(self.rows) != set(self.state.open):
            raise LawBroken("the open rows are not the open effects of the state")
        if len(self.history) != self.state.revision:
            raise LawBroken("the revision is not the number of events")
        if (decision.ignored or decision.refusal) and decision.events:
            raise LawBroken("an ignored fact or a refused command has events")
        if dump(self.replayed()) != dump(self.state):
            raise LawBroken("the history does not leave the live state")


def artifacts(expected: Iterable[ExpectedArtifact], *, size: int = 10) -> tuple[Artifact, ...]:
    """Artifacts that satisfy what a step expects."""
    return tuple(
        Artifact(
            name=item.name,
            kind=item.kind,
            object_key=f"made/{item.name}",
            sha256="0" * 64,
            bytes=size,
            content_type="application/octet-stream",
        )
        for item in expected
    )
