"""Invariants that are held after every commit: what a run's new events may say, judged without the reducer (4.5).

The observer reads the rows that were committed, as an auditor would, and keeps a model of its own, much simpler than the
reducer's: which attempt a step is at, which outcomes were applied, what was charged. It calls nothing of workflow/ but the
plan's words.
Leaves to others: what can only be said at rest (resting.py) and what clients were told (sessions.py).
"""

import uuid
from collections.abc import Iterator
from datetime import datetime

import msgspec

from longtake.contracts.envelope import chain
from longtake.contracts.ids import event_id_for
from longtake.memory.store_session import MemoryDatabase
from longtake.memory.tables import EventRow
from longtake.testing.meanings import HANDLERS
from longtake.testing.provider import FakeProvider
from longtake.testing.seen import SeenRun, Violation
from longtake.testing.world import World
from longtake.workflow.plan import compile_document
from longtake.workflow.refs import GroupName
from longtake.workflow.step import Step

ENDS = frozenset({"run_completed", "run_failed", "run_cancelled", "run_superseded"})
STEP_ENDS = {
    "step_succeeded": "succeeded", "step_failed": "failed", "step_skipped": "skipped", "step_timed_out": "failed",
}  # fmt: skip
GRACE_MAX = 3


class Observer:
    """Looks at every commit of one world."""

    def __init__(self, world: World, database: MemoryDatabase, provider: FakeProvider) -> None:
        self.world = world
        self.database = database
        self.provider = provider
        self.violations: list[Violation] = []
        self.runs: dict[uuid.UUID, SeenRun] = {}
        self.effects: dict[uuid.UUID, float] = {}
        """When each effect row was first seen committed; a restore does not take that back."""
        self.attempts_ever: dict[tuple[uuid.UUID, str, int], float] = {}
        """When an effect of an attempt was first seen committed."""
        self._witnessed = 0
        self._rows = 0
        self._mark = (-1, 0, 0, 0)
        self._timers: dict[tuple[uuid.UUID, str], datetime] = {}
        self.event_types: dict[str, int] = {}
        self.looks_back = False
        self.drifted: frozenset[str] = frozenset()
        """Deployments whose code plans otherwise than the runs were accepted with."""
        self.clock_stepped = False
        self.lost_past = 0
        """How often the store was taken back to an earlier moment."""

    def broken(self, invariant: str, message: str) -> None:
        """Note a violation."""
        self.violations.append(Violation(invariant=invariant, message=message, at=self.world.monotonic()))

    def rewound(self) -> None:
        """The store was taken back: what was seen of the lost past is forgotten."""
        self.runs.clear()
        self._timers.clear()
        self._rows = 0
        self._mark = (-1, 0, 0, 0)
        self.lost_past += 1
        self.looks_back = True
        self.look()
        self.looks_back = False

    def look(self) -> None:
        """Judge what was committed since the last look."""
        database = self.database
        tables = database.tables
        mark = (database.last_position, len(database.locks), len(tables.effects), len(self.provider.witness))
        if mark == self._mark:
            return
        self._mark = mark
        if len(tables.effects) != self._rows:
            self._rows = len(tables.effects)
            now = self.world.monotonic()
            for id_, row in tables.effects.items():
                if id_ not in self.effects:
                    self.effects[id_] = now
                    self.attempts_ever.setdefault((row.run_id, row.step, row.attempt), now)
        if len(self.provider.witness) != self._witnessed:
            self._judge_requests()
        for run_id, events in tables.events.items():
            seen = self.runs.get(run_id)
            if seen is None:
                seen = self._meet(run_id)
            if len(events) != seen.seq:
                for event in events[seen.seq :]:
                    self._judge(run_id, seen, event)
                self._judge_run(run_id, seen)

    def _meet(self, run_id: uuid.UUID) -> SeenRun:
        row = self.database.tables.runs[run_id]
        document = self.database.tables.plans[row.tenant, row.fingerprint].plan
        seen = self.runs[run_id] = SeenRun(
            plan=compile_document(bytes(document)), fingerprint=row.fingerprint, cap=row.cap
        )
        return seen

    # --- requests to the outside --------------------------------------------------------------------------------------

    def _judge_requests(self) -> None:
        for request in self.provider.witness[self._witnessed :]:
            known = self.attempts_ever.get((request.run_id, request.step, request.attempt))
            if known is None:
                # A transaction may have been merged since the last look, in this very step.
                if any(
                    (row.run_id, row.step, row.attempt) == (request.run_id, request.step, request.attempt)
                    for row in self.database.tables.effects.values()
                ):
                    continue
                self.broken(
                    "I13", f"{request.verb} of {request.step}/{request.attempt} without a committed effect"
                )
        self._witnessed = len(self.provider.witness)

    # --- events -------------------------------------------------------------------------------------------------------

    def _judge(self, run_id: uuid.UUID, seen: SeenRun, event: EventRow) -> None:
        self.event_types[event.type] = self.event_types.get(event.type, 0) + 1
        if event.seq != seen.seq + 1:
            self.broken("I1", f"run {run_id} has event {event.seq} after {seen.seq}")
        if event.id != event_id_for(run_id, seq=event.seq, store_epoch=event.store_epoch):
            self.broken("I1", f"event {event.seq} of {run_id} has an id that is not of its place")
        expected = chain(
            seen.hash,
            store_epoch=event.store_epoch,
            seq=event.seq,
            type_=event.type,
            version=event.version,
            recorded_at=event.recorded_at,
            data=event.data,
            meta=event.meta,
        )
        if expected != event.hash:
            self.broken("I1", f"event {event.seq} of {run_id} does not continue the chain")
        if seen.ended is not None:
            self.broken("I3", f"{event.type} after {seen.ended} in {run_id}")
        if seen.last_at is not None and event.recorded_at < seen.last_at:
            self.broken("I2", f"event {event.seq} of {run_id} is recorded before the one that precedes it")
        data = msgspec.json.decode(event.data)
        seen.now = event.recorded_at
        self._judge_cause(run_id, seen, event, msgspec.json.decode(event.meta).get("causation", ""))
        handler = HANDLERS.get(event.type)
        if handler is not None:
            handler(self, run_id, seen, data)
        if event.type in ENDS:
            seen.ended = event.type
        seen.seq, seen.hash, seen.last_at = event.seq, event.hash, event.recorded_at

    def _judge_cause(self, run_id: uuid.UUID, seen: SeenRun, event: EventRow, causation: str) -> None:
        kind, _, name = causation.partition(":")
        tables = self.database.tables
        match kind:
            case "command":
                known = any(key[2] == name for key in tables.commands)
            case "effect":
                known = uuid.UUID(name) in tables.effects
            case "inbox":
                known = uuid.UUID(name) in tables.inbox
            case "signal":
                known = uuid.UUID(name) in tables.signals
            case "line":
                known = name == tables.runs[run_id].project
            case "timer":
                known = True
                due = self._timers.get((run_id, name.rpartition("/")[2] if "/" in name else name))
                if due is not None and event.recorded_at < due:
                    self.broken("I32", f"timer {name} of {run_id} fired {due - event.recorded_at} early")
            case _:
                known = False
        if not known:
            self.broken("I4", f"event {event.seq} {event.type} of {run_id} has no known cause: {causation!r}")

    def _judge_run(self, run_id: uuid.UUID, seen: SeenRun) -> None:
        """What holds of a run after its new events."""
        if not seen.charged >= seen.refunded >= 0:
            self.broken("I20", f"{run_id}: charged {seen.charged}, refunded {seen.refunded}")
        if seen.charged - seen.refunded > seen.cap:
            self.broken("I20", f"{run_id}: net {seen.charged - seen.refunded} is above the cap {seen.cap}")
        tables = self.database.tables
        row = tables.runs[run_id]
        if row.fingerprint != seen.fingerprint:
            self.broken("I7", f"{run_id} has another plan than it was accepted with")
        if row.revision != seen.seq:
            self.broken("I2", f"{run_id} is at revision {row.revision} with {seen.seq} events")
        if row.poisoned or "history_unreadable" in row.blockers or "reducer_error" in row.blockers:
            summary = (row.summary or b"").decode()
            self.broken("F56", f"the reducer failed on {run_id}: {row.blockers} {summary[-400:]}")
        live: dict[str, int] = {}
        busy: set[str] = set()
        for id_ in tables.open_effects.get(run_id, ()):
            effect = tables.effects[id_]
            if effect.kind in ("execute", "poll", "reconcile"):
                live[effect.step] = live.get(effect.step, 0) + (effect.receipt is None)
            if effect.receipt is None and (effect.kind == "execute" or not seen.was_blocked):
                busy.add(
                    effect.step
                )  # what was blocked may be looked at beyond the slots: late evidence, or a person
        for step, count in live.items():
            if count > 1:
                self.broken("I16", f"{count} effects of {step} of {run_id} are under way at once")
        if len(busy) > seen.plan.plan.max_parallel and not seen.releases_scopes:
            self.broken(
                "I19", f"{len(busy)} steps of {run_id} at once, {seen.plan.plan.max_parallel} allowed"
            )
        for (run, key), timer in tables.timers.items():
            if run == run_id:
                self._timers[run, key] = timer.due_at
        self._judge_scopes(run_id, seen)

    def _judge_scopes(self, run_id: uuid.UUID, seen: SeenRun) -> None:
        if not _holds(seen):
            return
        mine = self.database.tables.runs[run_id]
        for other_id, other in self.runs.items():
            row = self.database.tables.runs.get(other_id)
            if other_id == run_id or row is None or (row.tenant, row.project) != (mine.tenant, mine.project):
                continue
            shared = set(other.scopes) & set(seen.scopes)
            if shared and _holds(other):
                self.broken("I19", f"{run_id} and {other_id} both own {sorted(shared)}")

    # --- what events mean to the observer ---------------------------------------------------------------------------

    def steps_of(self, seen: SeenRun, key: str) -> Step | None:
        """A step of the plan, or of what it was expanded by."""
        position = seen.plan.position.get(key)
        return seen.fragments.get(key) if position is None else seen.plan.steps[position]

    def begins(
        self, run_id: uuid.UUID, seen: SeenRun, step: str, attempt: int, *, again: bool = False
    ) -> None:
        before = seen.attempts.get(step, 0)
        if attempt != before + 1 and not (again and attempt == before):
            self.broken("I16", f"{step} of {run_id} goes from attempt {before} to {attempt}")
        seen.attempts[step] = attempt
        if seen.status.get(step) in ("succeeded", "skipped"):
            self.broken("I19", f"{step} of {run_id} begins although it is {seen.status[step]}")
        plan = self.steps_of(seen, step)
        if plan is None:
            self.broken("I19", f"{step} of {run_id} is in no plan")
            return
        allowed = (plan.retry.max_attempts + GRACE_MAX) * (seen.retries + 1)
        if attempt > allowed:
            self.broken("I19", f"{step} of {run_id} is at attempt {attempt}, {allowed} are allowed")
        if attempt == 1:
            self._judge_join(run_id, seen, plan)

    def _judge_join(self, run_id: uuid.UUID, seen: SeenRun, step: Step) -> None:
        waits = list(self._waits(seen, step))
        rule = getattr(step, "join", "all_succeeded")
        won = sum(1 for key in waits if seen.status.get(key) == "succeeded")
        if rule == "at_least":
            needed = getattr(step, "need", None) or 1
            if won < needed:
                self.broken("I19", f"{step.key} of {run_id} began with {won} of the {needed} it needs")
            return
        for key in waits:
            status = seen.status.get(key)
            if status is None:
                self.broken("I19", f"{step.key} of {run_id} began before {key} had ended")
            elif rule == "all_succeeded" and status != "succeeded":
                self.broken("I19", f"{step.key} of {run_id} began although {key} is {status}")

    def _waits(self, seen: SeenRun, step: Step) -> Iterator[str]:
        for wait in step.depends_on:
            if isinstance(wait, GroupName):
                for position in seen.plan.groups.get(wait.group, ()):
                    yield seen.plan.steps[position].key
            else:
                yield wait


def _holds(seen: SeenRun) -> bool:
    return bool(seen.scopes) and seen.ended is None and not seen.releases_scopes and not seen.queued
