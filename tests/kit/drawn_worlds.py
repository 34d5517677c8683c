"""A world that plays a run at random: facts of every kind, to the point, doubled, late, stale and out of place.

Leaves to others: the plans (drawn_plans.py) and the laws (tests/unit/workflow/test_laws.py).
"""

import uuid
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from kit.drawn_plans import EVENTS, fragment
from longtake.contracts.events import Parent, RunQueued
from longtake.contracts.outcomes import (
    Cancelled,
    Failed,
    Impossible,
    NotFound,
    Pending,
    Submitted,
    Succeeded,
    Throttled,
    Unknown,
)
from longtake.contracts.signals import (
    BeginRun,
    CallbackArrived,
    CancelRun,
    ChildEnded,
    ChildRefused,
    DeadlinePassed,
    LeaseExpired,
    MakeRoom,
    OutcomeReported,
    ParentClosed,
    PauseRun,
    PlanChecked,
    ProvideInput,
    ReducerFailed,
    ResumeRun,
    RetryRun,
    SendEvent,
    Signal,
    SupersedeRun,
    TimerFired,
    WorkStalled,
)
from longtake.workflow.script import Script, artifacts

OTHER = uuid.UUID(int=77)

OUTCOMES = st.sampled_from(
    [
        *[Succeeded()] * 7,
        Succeeded(result={"url": "u"}, provider_cost=2),
        Submitted(external_ref="job"),
        Submitted(external_ref="job", poll_after_seconds=0, external_seconds_max=5),
        Pending(poll_after_seconds=1),
        Throttled(retry_after_seconds=3),
        Failed(error_class="transient", message="m", provider_cost=1),
        Failed(error_class="transient", message="m", origin="infrastructure"),
        Failed(error_class="transient", message="m", adopted=True),
        Failed(error_class="throttled", message="m", retry_after_seconds=50),
        Failed(error_class="moderation_output", message="m"),
        Unknown(evidence="e"),
        NotFound(evidence="e"),
        Impossible(evidence="e"),
        Cancelled(answer="stopped"),
        Cancelled(answer="too_late"),
        Cancelled(answer="unsupported"),
        Cancelled(answer="unknown"),
    ]
)

FACTS = (
    ["answer"] * 12 + ["lapse"] * 2 + ["late"] * 2 + ["callback"] * 2 + ["timer"] * 3 + ["gate"] * 8 + ["retry"] * 3
    + ["pause", "resume", "resume", "input", "input", "event", "begin", "begin", "room", "child", "stalled", "again", "rare"]
)  # fmt: skip


class World:
    """Draws facts, most of them to the point, and plays them."""

    def __init__(self, draw: Any, plan: Any) -> None:
        self.draw = draw
        self.script = Script(plan)
        self.told: list[Signal] = []

    def accept(self, **facts: Any) -> Any:
        """Open the run: sometimes as a child, sometimes in line or for later."""
        sort = self.draw(st.sampled_from(["now"] * 6 + ["later", "line", "child"]))
        if sort == "child":
            facts["parent"] = Parent(run_id=OTHER, step="p", attempt=1)
        elif sort == "later":
            facts["queued"] = RunQueued(start_at=self.script.now + timedelta(seconds=30))
        elif sort == "line":
            facts["queued"] = RunQueued(holders=(OTHER,), scopes=("render",))
        return self.script.accept(**facts)

    def signal(self) -> Signal:
        """A fact: about what is open most of the time, else about anything."""
        make = getattr(self, f"_{self.draw(st.sampled_from(FACTS))}")
        made: Signal = make()
        return made

    def helpful(self) -> Signal | None:
        """The fact that brings the run on, of those that can come now; None when only a person or nobody helps."""
        script, state = self.script, self.script.state
        if script.rows:
            row = next(iter(script.rows.values()))
            outcome = self.draw(OUTCOMES.filter(lambda item: not isinstance(item, Pending | Throttled)))
            return self._report(row, outcome, good=True)
        if script.timers:
            key = min(script.timers, key=lambda name: (script.timers[name], name))
            script.now = max(script.now, script.timers[key])
            return TimerFired(key=key)
        if state.queued is not None:
            return BeginRun(signal_id=OTHER)
        return self._gate() if state.gates else None

    # --- the outside ---

    def _row(self, *, late: bool = False) -> Any:
        script = self.script
        rows = list((script.all_rows if late or not script.rows else script.rows).values())
        return self.draw(st.sampled_from(rows)) if rows else None

    def _answer(self, *, late: bool = False) -> Signal:
        row = self._row(late=late)
        if row is None:
            return self._gate()
        return self._report(row, self.draw(OUTCOMES), good=bool(self.draw(st.integers(0, 9))))

    def _report(self, row: Any, outcome: Any, *, good: bool) -> Signal:
        plan = self.script.state.plan_of(row.step)
        if isinstance(outcome, Succeeded) and good:
            result = {"url": "u", "score": self.draw(st.integers(0, 6))}
            outcome = Succeeded(result=result, artifacts=artifacts(plan.artifacts))
        if isinstance(outcome, Succeeded) and plan.kind == "expand" and row.kind != "compensate":
            outcome = Succeeded(result=outcome.result, fragment=fragment(self.draw, plan.key))
        return OutcomeReported(
            effect_id=row.id, step=row.step, attempt=row.attempt, kind=row.kind, outcome=outcome
        )

    def _late(self) -> Signal:
        return self._answer(late=True)

    def _lapse(self) -> Signal:
        row = self._row(late=not self.draw(st.integers(0, 4)))
        if row is None:
            return self._gate()
        opened = self.draw(st.booleans())
        where = {"effect_id": row.id, "step": row.step, "attempt": row.attempt, "kind": row.kind}
        if self.draw(st.booleans()):
            return LeaseExpired(**where, call_opened=opened, leases=5)
        return DeadlinePassed(**where, call_opened=opened)

    def _callback(self) -> Signal:
        row = self._row(late=self.draw(st.booleans()))
        if row is None:
            return self._gate()
        return CallbackArrived(
            inbox_id=uuid.UUID(int=len(self.told)), step=row.step, attempt=row.attempt, external_ref=None
        )

    def _timer(self) -> Signal:
        script = self.script
        key = self.draw(
            st.sampled_from(
                [
                    *script.timers,
                    *script.timers,
                    "run_deadline",
                    "blocked_deadline",
                    "settlement",
                    "losers",
                    "start_at",
                ]
            )
        )
        if self.draw(st.integers(0, 4)) and key in script.timers:
            script.now = max(script.now, script.timers[key])
        return TimerFired(key=key)

    def _stalled(self) -> Signal:
        row = self._row(late=not self.draw(st.integers(0, 4)))
        step, attempt = (self._key(), 1) if row is None else (row.step, row.attempt)
        return WorkStalled(
            signal_id=OTHER, step=step, attempt=attempt, waits_for=self.draw(st.sampled_from(["w", ""]))
        )

    # --- gates ---

    def _gate(self) -> Signal:
        """Give one open gate what it waits for."""
        state = self.script.state
        if not state.gates:
            return self._timer() if self.script.timers else self._begin()
        position = self.draw(st.sampled_from(sorted(state.gates)))
        key, gate = state.plan.steps[position].key, state.gates[position]
        if gate.kind == "input":
            return self._input(key)
        if gate.kind == "wait":
            return self._event(str(state.plan.steps[position].event))
        if gate.kind == "run":
            return self._child(position)
        self.script.now = max(self.script.now, self.script.timers.get(f"step:{key}", self.script.now))
        return TimerFired(key=f"step:{key}")

    def _input(self, key: str | None = None) -> Signal:
        answer = self.draw(st.sampled_from([{"take": 2}, {"take": 2}, {"take": 2}, {"take": "x"}, None]))
        blockers = self.script.state.blockers
        spending = [name for name, item in blockers.items() if item.type == "spend_cap"]
        cap = None
        if key is None and spending:
            key, answer, cap = self.draw(st.sampled_from(spending)), None, self.draw(st.integers(0, 80))
        return ProvideInput(
            command_id="c-4", actor="ann", expected_revision=self._revision(), step=key or self._key(),
            answer=answer, cap=cap if answer is None else None,
        )  # fmt: skip

    def _event(self, name: str | None = None) -> Signal:
        name = name or self.draw(st.sampled_from([*EVENTS, "nobody"]))
        payload = {"url": "v", "score": self.draw(st.integers(0, 6))}
        command_id = f"c-{len(self.told)}"
        return SendEvent(
            command_id=command_id, actor="ann", expected_revision=self._revision(), name=name, payload=payload
        )

    def _child(self, position: int | None = None) -> Signal:
        state = self.script.state
        runs = [index for index, plan in enumerate(state.plan.steps) if plan.kind == "run"]
        if not runs:
            return self._begin()
        index = position if position is not None else self.draw(st.sampled_from(runs))
        gate, step = state.gates.get(index), state.steps[index]
        child = gate.child if gate is not None and gate.child is not None else OTHER
        where = {
            "signal_id": OTHER,
            "step": state.plan.steps[index].key,
            "attempt": step.attempt,
            "child": child,
        }
        if not self.draw(st.integers(0, 4)):
            return ChildRefused(**where, problem="no-funds", message="m")
        outcome = self.draw(st.sampled_from(["completed", "completed", "failed", "cancelled", "superseded"]))
        result = {"result": {"url": "w", "score": 5}, "artifacts": {}} if outcome == "completed" else {}
        return ChildEnded(**where, outcome=outcome, result=result, message="m")

    def _parent(self) -> Signal:
        return ParentClosed(signal_id=OTHER, parent=OTHER, outcome="is ending as cancelled")

    def _begin(self) -> Signal:
        return BeginRun(signal_id=OTHER)

    def _room(self) -> Signal:
        return MakeRoom(holders=(OTHER,), scopes=("render",))

    # --- people and operators ---

    def _key(self) -> str:
        return self.draw(st.sampled_from(list(self.script.state.plan.position)))

    def _revision(self) -> int:
        current = self.script.state.revision
        return current if self.draw(st.integers(0, 3)) else self.draw(st.integers(0, current + 2))

    def _cancel(self) -> Signal:
        return CancelRun(command_id="c-2", actor="ann", expected_revision=self._revision())

    def _retry(self) -> Signal:
        return RetryRun(
            command_id="c-3",
            actor="ann",
            expected_revision=self._revision(),
            step=self._key() if self.draw(st.booleans()) else None,
            accept_double_cost=self.draw(st.booleans()),
        )

    def _pause(self) -> Signal:
        return PauseRun(command_id="c-5", actor="ann", expected_revision=self._revision())

    def _resume(self) -> Signal:
        return ResumeRun(command_id="c-6", actor="ann", expected_revision=self._revision())

    def _steer(self) -> Signal:
        seen = self._revision() if self.draw(st.booleans()) else None
        return SupersedeRun(by_run=OTHER, command_id="c-7", actor="ann", expected_revision=seen)

    def _check(self) -> Signal:
        drift = ("/plan/steps/0", "the price stays") if self.draw(st.booleans()) else None
        return PlanChecked(signal_id=uuid.UUID(int=len(self.told)), application="app-2", drift=drift)

    def _crash(self) -> Signal:
        return ReducerFailed(causation="effect:1", error="boom")

    def _rare(self) -> Signal:
        """What would end or hold most runs too early, were it as frequent as the rest."""
        make = getattr(
            self, f"_{self.draw(st.sampled_from(['cancel', 'steer', 'parent', 'check', 'check', 'crash']))}"
        )
        made: Signal = make()
        return made

    def _again(self) -> Signal:
        return self.draw(st.sampled_from(self.told)) if self.told else self._check()
