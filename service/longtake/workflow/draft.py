"""A decision in the making: events are recorded, and everything else of the decision follows from them.

Recording an event evolves the state at once, so the next rule sees it. What the state holds open before and after
gives the effects to write and to close, the timers and the releases; so no rule can forget one of them.
Leaves to others: which events a signal leads to.
"""

import uuid
from datetime import datetime, timedelta
from typing import Any

from longtake.contracts.codec import canonical
from longtake.contracts.commands import CommandStatus
from longtake.contracts.effects import Disposition, EffectClosing, EffectIntent
from longtake.contracts.events import Event, StepsReused, StepSucceeded
from longtake.contracts.problems import Problem
from longtake.contracts.signals import Outgoing
from longtake.workflow import money
from longtake.workflow.decision import Decision, Ignored, PublishedArtifact, TimerIntent
from longtake.workflow.families import frees_scopes, relatives
from longtake.workflow.refs import Reference, resolve_references
from longtake.workflow.state import OpenEffect, RunState, evolve

LOOK_UP_SECONDS_MAX = 300
"""How long one look-up may run."""


class Draft:
    """One decision about one run, from its first event to what is handed back."""

    def __init__(self, state: RunState, now: datetime) -> None:
        money.check(state)
        self.state = state
        self.now = now
        self._events: list[Event] = []
        self._closings: dict[uuid.UUID, EffectClosing] = {}
        self._expedited: dict[uuid.UUID, None] = {}
        self._touched: dict[str, None] = {}
        self._timers_changed: dict[str, datetime | None] = {}
        self._withdrawn: dict[uuid.UUID, None] = {}
        self._outgoing: list[Outgoing] = []
        self._raise_hold_by = 0
        self._inputs: dict[int, bytes] = {}
        self._before = frozenset(state.open)
        self._blocked_until = state.blocked_until
        self._deadline_at = state.deadline_at if state.revision else None
        self._losers_until = state.losers_until
        self._paused = state.paused_at is not None
        self._forsaken: list[tuple[int, uuid.UUID]] = []
        self._children_over: set[uuid.UUID] = set()
        self._start_at = None if state.queued is None else state.queued.start_at
        self._ending = state.ending is not None
        self._ended = state.terminal

    def record(self, event: Event) -> None:
        """Let an event happen."""
        evolve(self.state, event, at=self.now)
        self._events.append(event)
        for index in self.state.changed:
            self._touched[self.state.plan.steps[index].key] = None
        self._timers_changed.update(self.state.timer_changes)
        self._forsaken += self.state.forsaken

    def close(self, effect_id: uuid.UUID, disposition: Disposition, *, expect_receipt: bool) -> None:
        """Say how an effect ended. Effects that merely stop being open are closed as cancelled."""
        self._closings[effect_id] = EffectClosing(
            id=effect_id, disposition=disposition, expect_receipt=expect_receipt
        )

    def expedite(self, effect_id: uuid.UUID | None) -> None:
        """Make an open effect due now."""
        if effect_id is not None:
            self._expedited[effect_id] = None

    def withdraw(self, effect_id: uuid.UUID) -> None:
        """Take back an open execute effect if nobody has claimed it; it is answered by Cancelled(stopped) then."""
        self._withdrawn[effect_id] = None

    def send(self, fact: Outgoing) -> None:
        """Tell another run, or admission (P5)."""
        self._outgoing.append(fact)

    def child_is_over(self, child: uuid.UUID) -> None:
        """A child has ended, or never began: it need not be told that nobody waits for it."""
        self._children_over.add(child)

    def raise_hold(self, by: int) -> None:
        """Say how much more the account has promised; admission has asked it before (P8)."""
        self._raise_hold_by += by

    def input_of(self, position: int) -> bytes:
        """Canonical JSON of a step's input, its references resolved."""
        made = self._inputs.get(position)
        if made is None:
            made = self._inputs[position] = canonical(self._resolved(position))
        return made

    def ignored(self, reason: str) -> Decision:
        """The decision that the fact changes nothing."""
        return Decision(
            ignored=Ignored(reason=reason),
            closings=tuple(self._closings.values()),
            expedited=tuple(self._expedited),
        )

    def refused(self, problem: Problem) -> Decision:
        """The decision that the command cannot be taken."""
        return Decision(refusal=problem, command_status="rejected")

    def decision(self, *, command_status: CommandStatus = "applied") -> Decision:
        """Everything that was decided."""
        state = self.state
        money.check(state)
        opened = [
            (effect_id, item) for effect_id, item in state.open.items() if effect_id not in self._before
        ]
        if len(opened) > 1:
            opened.sort(key=lambda pair: pair[1].step)
        for effect_id in self._before:
            if effect_id not in state.open and effect_id not in self._closings:
                self.close(effect_id, "cancelled", expect_receipt=False)
        begins_ending = state.ending is not None and not self._ending
        ends = state.terminal and not self._ended
        return Decision(
            events=tuple(self._events),
            effects=tuple(self._intent(effect_id, item) for effect_id, item in opened),
            closings=tuple(sorted(self._closings.values(), key=lambda item: item.id)),
            withdrawn=tuple(
                sorted(
                    effect_id
                    for effect_id, item in state.open.items()
                    if item.kind == "execute"
                    and (effect_id in self._withdrawn or (begins_ending and effect_id in self._before))
                )
            ),
            expedited=tuple(effect_id for effect_id in self._expedited if effect_id in state.open),
            ledger=money.ledger_entries(state, self._events),
            timers=self._timers(begins_ending=begins_ending, ends=ends),
            timers_cancelled=self._timers_cancelled(ends=ends),
            artifacts=tuple(
                PublishedArtifact(step=event.step, attempt=event.attempt, artifact=artifact)
                for event in self._events
                if isinstance(event, StepSucceeded)
                for artifact in event.artifacts
            )
            + tuple(
                PublishedArtifact(step=item.step, attempt=0, artifact=artifact)
                for event in self._events
                if isinstance(event, StepsReused)
                for item in event.steps
                for artifact in item.artifacts
            ),
            outgoing=(
                *self._outgoing,
                *relatives(
                    state,
                    forsaken=self._forsaken,
                    over=self._children_over,
                    begins_ending=begins_ending,
                    ends=ends,
                ),
            ),
            raise_hold_by=self._raise_hold_by,
            scopes_released=frees_scopes(state, begins_ending=begins_ending, ends=ends),
            hold_released=ends,
            touched=tuple(self._touched),
            command_status=command_status,
        )

    def _resolved(self, position: int) -> Any:
        plan, results = self.state.plan, self.state.results

        def look_up(reference: Reference) -> Any:
            # A step that a join or an option let pass without success has nothing to refer to.
            if reference.group is not None:
                members = plan.groups[reference.group]
                return [
                    results[index][reference.pointer]
                    for index in members
                    if reference.pointer in results.get(index, {})
                ]
            return results.get(plan.position[str(reference.step)], {}).get(reference.pointer)

        return resolve_references(plan.steps[position].input, look_up)

    def _intent(self, effect_id: uuid.UUID, effect: OpenEffect) -> EffectIntent:
        step, plan = self.state.steps[effect.step], self.state.plan.steps[effect.step]
        due_at, deadline = effect.due_at, None
        activity, pool = plan.activity, plan.pool
        match effect.kind:
            case "execute":
                content = self.input_of(effect.step)
                if plan.timeout_seconds is not None:
                    deadline = due_at + timedelta(seconds=plan.timeout_seconds)
            case "poll":
                content = canonical({"external_ref": step.external_ref})
                deadline = step.external_until
            case "reconcile":
                # A look-up may go by what was asked for, such as the name of an output.
                content = canonical({"external_ref": step.external_ref, "input": self._resolved(effect.step)})
                deadline = due_at + timedelta(seconds=LOOK_UP_SECONDS_MAX)
            case "cancel":
                content = canonical({"external_ref": step.external_ref})
                ending = self.state.ending
                deadline = self.state.losers_until if ending is None else ending.settle_until
            case "compensate":
                content = canonical(
                    {"step": plan.key, "attempt": step.attempt, **self.state.made[effect.step]}
                )
                activity, pool = str(plan.compensate), plan.compensate_pool
                deadline = due_at + timedelta(seconds=plan.timeout_seconds or LOOK_UP_SECONDS_MAX)
        if effect.kind in ("execute", "poll") and step.deadline_at is not None:
            deadline = step.deadline_at if deadline is None else min(deadline, step.deadline_at)
        return EffectIntent(
            id=effect_id,
            step=plan.key,
            attempt=effect.attempt,
            kind=effect.kind,
            ordinal=effect.ordinal,
            activity=activity,
            pool=pool,
            input=content,
            not_before=due_at if due_at > self.now else None,
            deadline=deadline,
            priority=plan.priority,
        )

    def _timers(self, *, begins_ending: bool, ends: bool) -> tuple[TimerIntent, ...]:
        state = self.state
        # What is opened while the run is paused is armed when it goes on, as all its gates are then.
        rests = state.paused_at is not None and state.ending is None
        timers = [
            TimerIntent(key=key, due_at=due_at)
            for key, due_at in self._timers_changed.items()
            if due_at is not None and not (rests and key.startswith("step:"))
        ]
        resumes = self._paused and state.paused_at is None and state.ending is None
        if state.deadline_at is not None and not ends and (resumes or state.deadline_at != self._deadline_at):
            timers.append(TimerIntent(key="run_deadline", due_at=state.deadline_at))
        start_at = None if state.queued is None else state.queued.start_at
        if start_at is not None and start_at != self._start_at:
            timers.append(TimerIntent(key="start_at", due_at=start_at))
        if state.losers_until is not None and state.losers_until != self._losers_until:
            timers.append(TimerIntent(key="losers", due_at=state.losers_until))
        waits = state.blocked_until is not None and state.paused_at is None
        if (
            state.blocked_until is not None
            and waits
            and (resumes or state.blocked_until != self._blocked_until)
        ):
            timers.append(TimerIntent(key="blocked_deadline", due_at=state.blocked_until))
        if begins_ending and not ends and state.ending is not None:
            timers.append(TimerIntent(key="settlement", due_at=state.ending.settle_until))
        return tuple(timers)

    def _timers_cancelled(self, *, ends: bool) -> tuple[str, ...]:
        state = self.state
        cancelled = [key for key, due_at in self._timers_changed.items() if due_at is None]
        # A paused run has no such time; it is armed anew, and later, when the run goes on.
        pauses = state.paused_at is not None and not self._paused
        begins_ending = state.ending is not None and not self._ending
        if (ends or pauses or begins_ending) and state.deadline_at is not None:
            cancelled.append("run_deadline")
        if self._start_at is not None and (state.queued is None or state.queued.start_at is None):
            cancelled.append("start_at")
        if self._losers_until is not None and state.losers_until is None:
            cancelled.append("losers")
        if self._blocked_until is not None and (pauses or state.blocked_until is None):
            cancelled.append("blocked_deadline")
        if ends and self._ending:
            cancelled.append("settlement")
        return tuple(cancelled)
