"""Invariants that are held after every commit: what a run's new events may say, judged without the reducer (4.5).

The observer reads the rows that were committed, as an auditor would, and keeps a model of its own, much simpler than the
reducer's: which attempt a step is at, which outcomes were applied, what was charged. It calls nothing of workflow/ but the
plan's words.
Leaves to others: what can only be said at rest (resting.py) and what clients were told (sessions.py).
"""

import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from longtake.contracts.envelope import GENESIS, chain
from longtake.contracts.ids import event_id_for
from longtake.memory.store_session import MemoryDatabase
from longtake.memory.tables import EventRow
from longtake.testing.provider import FakeProvider
from longtake.testing.world import World
from longtake.workflow.plan import CompiledPlan, compile_document
from longtake.workflow.refs import GroupName
from longtake.workflow.step import Step

ENDS = frozenset({"run_completed", "run_failed", "run_cancelled", "run_superseded"})
STEP_ENDS = {
    "step_succeeded": "succeeded", "step_failed": "failed", "step_skipped": "skipped", "step_timed_out": "failed",
}  # fmt: skip
GRACE_MAX = 3


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A promise that does not hold."""

    invariant: str
    message: str
    at: float

    def __str__(self) -> str:
        return f"{self.invariant} at {self.at:.3f} s: {self.message}"


class SeenRun(msgspec.Struct, kw_only=True):
    """The observer's own memory of one run."""

    plan: CompiledPlan
    fingerprint: str
    seq: int = 0
    hash: bytes = GENESIS
    last_at: datetime | None = None
    ended: str | None = None
    charged: int = 0
    refunded: int = 0
    cap: int = 0
    application: str = ""
    attempts: dict[str, int] = {}
    status: dict[str, str] = {}
    applied: dict[tuple[str, int], str] = {}
    retries: int = 0
    was_blocked: bool = False
    fragments: dict[str, Step] = {}
    releases_scopes: bool = False
    queued: bool = False
    scopes: tuple[str, ...] = ()
    callbacks: set[str] = set()
    called_back: set[tuple[str, int]] = set()
    """Attempts that an authentic callback was believed of."""
    submitted: set[tuple[str, int]] = set()
    verdicts: set[tuple[str, int]] = set()
    """Attempts whose truth a look-up has told, or has said that it cannot."""
    now: datetime | None = None
    """When the event that is being judged was recorded."""


class Observer:
    """Looks at every commit of one world."""

    def __init__(self, world: World, database: MemoryDatabase, provider: FakeProvider) -> None:
        self._world = world
        self._database = database
        self._provider = provider
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
        self._looks_back = False
        self.drifted: frozenset[str] = frozenset()
        """Deployments whose code plans otherwise than the runs were accepted with."""
        self.clock_stepped = False
        self.lost_past = 0
        """How often the store was taken back to an earlier moment."""

    def broken(self, invariant: str, message: str) -> None:
        """Note a violation."""
        self.violations.append(
            Violation(invariant=invariant, message=message, at=self._world.monotonic())
        )

    def rewound(self) -> None:
        """The store was taken back: what was seen of the lost past is forgotten."""
        self.runs.clear()
        self._timers.clear()
        self._rows = 0
        self._mark = (-1, 0, 0, 0)
        self.lost_past += 1
        self._looks_back = True
        self.look()
        self._looks_back = False

    def look(self) -> None:
        """Judge what was committed since the last look."""
        database = self._database
        tables = database.tables
        mark = (database.last_position, len(database.locks), len(tables.effects), len(self._provider.witness))
        if mark == self._mark:
            return
        self._mark = mark
        if len(tables.effects) != self._rows:
            self._rows = len(tables.effects)
            now = self._world.monotonic()
            for id_, row in tables.effects.items():
                if id_ not in self.effects:
                    self.effects[id_] = now
                    self.attempts_ever.setdefault((row.run_id, row.step, row.attempt), now)
        if len(self._provider.witness) != self._witnessed:
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
        row = self._database.tables.runs[run_id]
        document = self._database.tables.plans[row.tenant, row.fingerprint].plan
        seen = self.runs[run_id] = SeenRun(
            plan=compile_document(bytes(document)), fingerprint=row.fingerprint, cap=row.cap
        )
        return seen

    # --- requests to the outside --------------------------------------------------------------------------------------

    def _judge_requests(self) -> None:
        for request in self._provider.witness[self._witnessed :]:
            known = self.attempts_ever.get((request.run_id, request.step, request.attempt))
            if known is None:
                # A transaction may have been merged since the last look, in this very step.
                if any(
                    (row.run_id, row.step, row.attempt) == (request.run_id, request.step, request.attempt)
                    for row in self._database.tables.effects.values()
                ):
                    continue
                self.broken(
                    "I13", f"{request.verb} of {request.step}/{request.attempt} without a committed effect"
                )
        self._witnessed = len(self._provider.witness)

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
        handler = _HANDLERS.get(event.type)
        if handler is not None:
            handler(self, run_id, seen, data)
        if event.type in ENDS:
            seen.ended = event.type
        seen.seq, seen.hash, seen.last_at = event.seq, event.hash, event.recorded_at

    def _judge_cause(self, run_id: uuid.UUID, seen: SeenRun, event: EventRow, causation: str) -> None:
        kind, _, name = causation.partition(":")
        tables = self._database.tables
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
        tables = self._database.tables
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
                busy.add(effect.step)  # what was blocked may be looked at beyond the slots: late evidence, or a person
        for step, count in live.items():
            if count > 1:
                self.broken("I16", f"{count} effects of {step} of {run_id} are under way at once")
        if len(busy) > seen.plan.plan.max_parallel and not seen.releases_scopes:
            self.broken("I19", f"{len(busy)} steps of {run_id} at once, {seen.plan.plan.max_parallel} allowed")
        for (run, key), timer in tables.timers.items():
            if run == run_id:
                self._timers[run, key] = timer.due_at
        self._judge_scopes(run_id, seen)

    def _judge_scopes(self, run_id: uuid.UUID, seen: SeenRun) -> None:
        if not _holds(seen):
            return
        mine = self._database.tables.runs[run_id]
        for other_id, other in self.runs.items():
            row = self._database.tables.runs.get(other_id)
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

    def _begins(self, run_id: uuid.UUID, seen: SeenRun, step: str, attempt: int, *, again: bool = False) -> None:
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


Handler = Callable[[Observer, uuid.UUID, SeenRun, dict[str, Any]], None]


def _accepted(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    money = data.get("money", data)
    seen.cap = money["cap"]
    seen.application = data["application"]
    seen.scopes = tuple(data.get("scopes", ()))
    if data["plan_fingerprint"] != seen.fingerprint:
        observer.broken("I7", f"{run_id} was accepted with another plan than its row names")


def _charged(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.charged += data["amount"]


def _refunded(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.refunded += data["amount"]


def _cap_raised(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.cap = data["cap"]


def _scheduled(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    row = observer._database.tables.runs[run_id]
    deployed = None if observer._looks_back else observer._database.tables.store[0].application
    if deployed in observer.drifted and row.plan_checked == deployed and seen.application not in observer.drifted:
        observer.broken("H17", f"{run_id} goes on under code that plans it otherwise")
    if seen.releases_scopes:
        observer.broken("I19", f"{run_id} hands out work although it is on its way out")
    for item in data["steps"]:
        observer._begins(run_id, seen, item["step"], item["attempt"], again=item.get("ordinal", 1) > 1)


def _gates(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    for item in data["gates"]:
        observer._begins(run_id, seen, item["step"], item["attempt"])


def _applied(word: str) -> Handler:
    def apply(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
        step, attempt = data["step"], data.get("attempt", 0)
        if attempt != seen.attempts.get(step, 0):
            observer.broken(
                "I15", f"{word} of {step}/{attempt} applied, the attempt is {seen.attempts.get(step, 0)}"
            )
        if (step, attempt) in seen.applied and word != "ended":
            observer.broken(
                "I15", f"{word} of {step}/{attempt} applied after {seen.applied[step, attempt]} in {run_id}"
            )
        seen.applied[step, attempt] = word

    return apply


def _failed_attempt(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    place = (data["step"], data["attempt"])
    job = observer._provider.job_of(run_id, *place)
    if (
        data["error_class"] in ("timeout", "unknown", "transient")
        and job is not None
        and not job.fails
        and not job.cancelled
        and place not in seen.verdicts
        and observer.lost_past == 0
    ):
        observer.broken(
            "I25", f"{place[0]}/{place[1]} is given up while {job.ref} does the work, and nobody has looked"
        )
    _applied("failure")(observer, run_id, seen, data)
    if data.get("next_effect_id") is not None:
        observer._begins(run_id, seen, data["step"], data["attempt"] + 1)


def _succeeded(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    if data.get("source", "work") != "work" and data["attempt"] == seen.attempts.get(data["step"], 0) + 1:
        # A gate whose answer was there before it: it never stood open.
        observer._begins(run_id, seen, data["step"], data["attempt"])
    _applied("success")(observer, run_id, seen, data)
    seen.status[data["step"]] = "succeeded"


def _step_ended(status: str) -> Handler:
    def end(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
        for key in data["steps"] if "steps" in data else [data["step"]]:
            name = key["step"] if isinstance(key, dict) else key
            if seen.status.get(name) == "succeeded":
                observer.broken("I15", f"{name} of {run_id} is {status} after it has succeeded")
            seen.status[name] = status

    return end


def _retried(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.retries += 1
    for key in data["steps"]:
        seen.status.pop(key, None)


def _blocked(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.was_blocked = True


def _leaving(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.releases_scopes = True


def _step_failed(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.status[data["step"]] = "failed"
    if not data.get("contained"):
        seen.releases_scopes = True


def _queued(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.queued = True


def _started(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.queued = False


def _expanded(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    for item in data["steps"]:
        step = msgspec.convert(item, Step)
        seen.fragments[step.key] = step


def _reused(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    for item in data["steps"]:
        seen.status[item["step"]] = "succeeded"


def _submitted(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    poll_at = datetime.fromisoformat(data["poll_at"])
    place = (data["step"], data["attempt"])
    if place in seen.called_back and not data.get("adopted") and seen.now is not None and poll_at > seen.now:
        seen.called_back.discard(place)
        observer.broken("P4", f"the callback of {place} came first, and nobody looks before {poll_at}")
    seen.called_back.discard(place)
    seen.submitted.add(place)


def _told(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.verdicts.add((data["step"], data["attempt"]))


def _called_back(observer: Observer, run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    row = observer._database.tables.inbox.get(uuid.UUID(data["inbox_id"]))
    if row is not None and row.attempt != data["attempt"]:
        observer.broken("I17", f"a callback of attempt {row.attempt} hastened attempt {data['attempt']} of {row.step}")
    if (data["step"], data["attempt"]) not in seen.submitted:
        seen.called_back.add((data["step"], data["attempt"]))
    for id_ in observer._database.tables.open_effects.get(run_id, ()):
        effect = observer._database.tables.effects[id_]
        if (
            effect.kind == "poll"
            and effect.step == data["step"]
            and effect.state == "queued"
            and effect.leases == 0
            and not observer.clock_stepped
            and not observer._looks_back
            and effect.not_before > observer._world.now() + timedelta(seconds=1)
        ):
            observer.broken("P4", f"{effect.step} was called back, and its poll waits until {effect.not_before}")
    if data["inbox_id"] in seen.callbacks:
        observer.broken("I27", f"callback {data['inbox_id']} became two events of {run_id}")
    seen.callbacks.add(data["inbox_id"])


_HANDLERS: dict[str, Handler] = {
    "run_accepted": _accepted,
    "charged": _charged,
    "refunded": _refunded,
    "cap_raised": _cap_raised,
    "steps_scheduled": _scheduled,
    "gates_opened": _gates,
    "attempt_failed": _failed_attempt,
    "step_succeeded": _succeeded,
    "step_failed": _step_failed,
    "steps_skipped": _step_ended("skipped"),
    "step_skipped": _step_ended("skipped"),
    "steps_cancelled": _step_ended("cancelled"),
    "retry_requested": _retried,
    "step_blocked": _blocked,
    "run_blocked": _blocked,
    "cancel_requested": _leaving,
    "supersede_requested": _leaving,
    "run_queued": _queued,
    "run_started": _started,
    "plan_expanded": _expanded,
    "steps_reused": _reused,
    "callback_received": _called_back,
    "attempt_submitted": _submitted,
    "attempt_reconciled": _told,
}
