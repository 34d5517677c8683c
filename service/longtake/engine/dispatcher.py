"""The dispatcher: batches of pointers become decisions (design.md 2.7, P21).

Read the facts behind the pointers, bring their runs into memory, decide, write everything in one statement, publish.
The number of statements does not depend on the size of the batch. Together with admission it is the only writer of
events. Leaves to others: where pointers come from (dispatch_loop.py), the rules (workflow/).
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec
import structlog

from longtake.contracts.signals import (
    CallbackArrived,
    DeadlinePassed,
    LeaseExpired,
    OutcomeReported,
    PlanChecked,
)
from longtake.crash_points import reach
from longtake.engine.deciding import LiveRun, RunCache, blocked_commit, commit_of
from longtake.engine.hints import Hints
from longtake.engine.relatives import tell_relatives
from longtake.engine.telling import tell
from longtake.engine.waking import DOORBELL_RELAY, ring_when_due
from longtake.engine.windows import Windows
from longtake.errors import DecisionRefused
from longtake.ports import Doorbell
from longtake.store import CommitResult, DecisionStore, Fact, RunCommit
from longtake.telemetry.attributes import (
    BATCH_SIZE,
    RUN_ID,
    RUN_REVISION,
    SPAN_DISPATCH_BATCH,
    SPAN_RUN_DECIDE,
)
from longtake.telemetry.tracing import span, traces_of

ROUNDS_MAX = 5
"""How often runs that moved under our hands are decided again in one batch."""
DOORBELL_PLANS = "plans"

log = structlog.get_logger("longtake.engine.dispatcher")


class Decide(Protocol):
    """Facts of one run in, everything to write of it out."""

    def __call__(self, run: LiveRun, facts: Sequence[Fact], *, traceparent: str | None) -> RunCommit: ...


class Pointers(msgspec.Struct, kw_only=True):
    """What a batch asks to look at; ordered sets."""

    effects: dict[uuid.UUID, None] = {}
    inbox: dict[uuid.UUID, None] = {}
    runs: dict[uuid.UUID, None] = {}

    def __len__(self) -> int:
        return len(self.effects) + len(self.inbox) + len(self.runs)

    def ids(self) -> Iterable[uuid.UUID]:
        """All ids, whatever they name."""
        yield from self.effects
        yield from self.inbox
        yield from self.runs


class BatchOutcome(msgspec.Struct, kw_only=True):
    """What became of a batch."""

    committed: int = 0
    blocked: int = 0
    deferred: int = 0
    """Facts that must come again: their plan is not checked yet, or their run would not hold still."""
    unknown: set[uuid.UUID] = set()


class Dispatcher:
    """Decides batches of signals."""

    def __init__(
        self,
        store: DecisionStore,
        hints: Hints,
        doorbell: Doorbell,
        *,
        store_epoch: int,
        decide: Decide = commit_of,
        windows: Windows | None = None,
    ) -> None:
        """`windows`: how much may be published directly; without them all of it."""
        self._store = store
        self._hints = hints
        self._doorbell = doorbell
        self._decide_run = decide
        self._windows = windows
        self._is_holding_back = False
        self.cache = RunCache(store_epoch=store_epoch)

    async def handle(self, pointers: Pointers) -> BatchOutcome:
        """Decide everything behind the pointers. Raises AuthorityUnavailable; the batch can then come again."""
        outcome = BatchOutcome()
        remaining = pointers
        for _ in range(ROUNDS_MAX):
            remaining = await self._round(remaining, outcome)
            if not len(remaining):
                return outcome
        outcome.deferred += len(remaining)
        return outcome

    async def _round(self, pointers: Pointers, outcome: BatchOutcome) -> Pointers:
        batch = await self._store.facts(
            effects=list(pointers.effects), inbox=list(pointers.inbox), runs=list(pointers.runs)
        )
        outcome.unknown |= {id_ for id_ in pointers.ids() if id_ not in batch.known}
        by_run = self._checked(batch.facts, outcome)
        if not by_run:
            return Pointers()
        with span(
            SPAN_DISPATCH_BATCH, links=traces_of(batch.facts), attributes={BATCH_SIZE: len(batch.facts)}
        ) as hop:
            runs = await self._runs(by_run)
            moved = [run_id for run_id, run in runs.items() if _has_moved(run, by_run[run_id])]
            for run_id in moved:
                del runs[run_id]
            commits, broken = self._decide_all(runs, by_run, hop.traceparent)
            commits += await self._block(broken, by_run)
            outcome.blocked += len(broken)
            await self._hold_back(commits)
            reach("decided.before_commit")
            try:
                result = await self._store.commit(commits)
            except DecisionRefused:
                # Rows of one run must not hold up the others: each on its own, and the refused ones are blocked.
                self._forget(commits)
                commits, result = await self._commit_apart(commits, by_run, outcome)
            except BaseException:
                self._forget(commits)
                raise
            reach("committed.before_hint")
            outcome.committed += len(result.committed)
            self._keep(commits, result)
            tell(commits, result.committed)
            self._hints.effects_soon(result.pointers)
            standing = (c for c in commits if c.run_id in result.committed)
            tell_relatives((fact for c in standing for fact in c.outgoing), self._hints, self._doorbell)
        ring_when_due((c for c in commits if c.run_id in result.committed), self._doorbell)
        again = _again(by_run, commits, result)
        for run_id in moved:
            _point_at(again, by_run[run_id])
        return again

    async def _hold_back(self, commits: Sequence[RunCommit]) -> None:
        """Leave to the relay what the windows do not take; every batch that follows may have made room (P12)."""
        if self._windows is None:
            return
        held = await self._windows.hold_back(commits)
        if held or self._is_holding_back:
            self._doorbell.ring(DOORBELL_RELAY)
        self._is_holding_back = held > 0

    def _forget(self, commits: Iterable[RunCommit]) -> None:
        """What was decided in memory is not what stands: fold those runs again."""
        for commit in commits:
            self.cache.forget(commit.run_id)

    async def _commit_apart(
        self, commits: Sequence[RunCommit], by_run: Mapping[uuid.UUID, list[Fact]], outcome: BatchOutcome
    ) -> tuple[list[RunCommit], CommitResult]:
        """Write a batch run by run; a run whose decision is refused is blocked, or set aside if even that is refused."""
        written: list[RunCommit] = []
        results: list[CommitResult] = []
        refused: dict[uuid.UUID, str] = {}

        async def write(commit: RunCommit) -> str | None:
            try:
                results.append(await self._store.commit([commit]))
            except DecisionRefused as error:
                log.error("longtake.decision_refused", run_id=str(commit.run_id), error=str(error))
                return str(error)
            written.append(commit)
            return None

        for commit in commits:
            if (reason := await write(commit)) is not None:
                refused[commit.run_id] = reason
        outcome.blocked += len(refused)
        for commit in await self._block(refused, by_run):
            if await write(commit) is not None:
                await self._store.set_aside(commit.run_id)
        self._forget(commits)
        return written, CommitResult(
            committed=frozenset().union(*(result.committed for result in results)),
            pointers=tuple(pointer for result in results for pointer in result.pointers),
            withdrawn=tuple(id_ for result in results for id_ in result.withdrawn),
        )

    def _checked(self, facts: Sequence[Fact], outcome: BatchOutcome) -> dict[uuid.UUID, list[Fact]]:
        """Facts by run; those of runs whose plan was not compared with the deployed code wait (P15)."""
        by_run: dict[uuid.UUID, list[Fact]] = {}
        waiting = 0
        for fact in facts:
            checked = fact.ended or fact.application is None or fact.plan_checked == fact.application
            if checked or isinstance(fact.signal, PlanChecked):
                by_run.setdefault(fact.run_id, []).append(fact)
            else:
                waiting += 1
        if waiting:
            outcome.deferred += waiting
            self._doorbell.ring(DOORBELL_PLANS)
        return by_run

    async def _runs(self, by_run: Mapping[uuid.UUID, list[Fact]]) -> dict[uuid.UUID, LiveRun]:
        """Every run of the batch in memory, at the revision its facts were read at or later."""
        behind: dict[uuid.UUID, int] = {}
        for run_id, facts in by_run.items():
            cached = self.cache.revision(run_id)
            if cached > facts[0].revision:
                self.cache.forget(run_id)
                cached = 0
            if cached != facts[0].revision:
                behind[run_id] = cached
        found = {run_id: self.cache.get(run_id) for run_id in by_run if run_id not in behind}
        if behind:
            for loaded in await self._store.load(behind):
                try:
                    found[loaded.run_id] = self.cache.catch_up(loaded)
                except Exception as error:  # noqa: BLE001 - it must not hold up the others
                    # Such a run cannot even be folded to be blocked by a decision; it is set aside as it is (F57).
                    reason = f"{type(error).__name__}: {error}"
                    log.error("longtake.history_unreadable", run_id=str(loaded.run_id), reason=reason)
                    self.cache.forget(loaded.run_id)
                    await self._store.set_aside(loaded.run_id)
        return found

    def _decide_all(
        self,
        runs: Mapping[uuid.UUID, LiveRun],
        by_run: Mapping[uuid.UUID, list[Fact]],
        batch_trace: str | None,
    ) -> tuple[list[RunCommit], dict[uuid.UUID, str]]:
        commits: list[RunCommit] = []
        broken: dict[uuid.UUID, str] = {}
        for run_id, run in runs.items():
            facts = by_run[run_id]
            try:
                commits.append(self._decide(run, facts, batch_trace))
            except Exception as error:  # noqa: BLE001 - one run's defect must not hold up the others (F56)
                log.error(
                    "longtake.reducer_failed", run_id=str(run_id), error=f"{type(error).__name__}: {error}"
                )
                self.cache.forget(run_id)
                broken[run_id] = f"{type(error).__name__}: {error}"
        return commits, broken

    def _decide(self, run: LiveRun, facts: list[Fact], batch_trace: str | None) -> RunCommit:
        with span(
            SPAN_RUN_DECIDE,
            parent=next((fact.traceparent for fact in facts if fact.traceparent), None),
            links=[batch_trace] if batch_trace else [],
            attributes={RUN_ID: str(run.head.run_id)},
        ) as hop:
            commit = self._decide_run(run, facts, traceparent=hop.traceparent)
            hop.set(RUN_REVISION, commit.row.revision if commit.row else 0)
            return commit

    async def _block(
        self, broken: Mapping[uuid.UUID, str], by_run: Mapping[uuid.UUID, list[Fact]]
    ) -> list[RunCommit]:
        """Block the runs whose reducer raised, from their stored state; their facts stay where they are."""
        if not broken:
            return []
        loaded = await self._store.load(dict.fromkeys(broken, 0))
        return [
            blocked_commit(self.cache.catch_up(run), by_run[run.run_id][0], broken[run.run_id])
            for run in loaded
        ]

    def _keep(self, commits: Sequence[RunCommit], result: CommitResult) -> None:
        for commit in commits:
            if commit.run_id not in result.committed or (
                commit.row is not None and commit.row.ended_at is not None
            ):
                self.cache.forget(commit.run_id)


def _again(
    by_run: Mapping[uuid.UUID, list[Fact]], commits: Sequence[RunCommit], result: CommitResult
) -> Pointers:
    """What must be looked at once more: facts of runs that moved, and work that was withdrawn by this batch."""
    pointers = Pointers(effects=dict.fromkeys(result.withdrawn))
    for commit in commits:
        if commit.run_id in result.committed:
            continue
        # What it wanted to end may have been answered meanwhile: that is then decided together with it (P1).
        pointers.effects.update(dict.fromkeys(closing.id for closing in commit.closings))
        _point_at(pointers, by_run[commit.run_id])
    return pointers


def _has_moved(run: LiveRun, facts: Sequence[Fact]) -> bool:
    """Whether somebody decided between the reading of the facts and of the run: some of them may be settled by now."""
    return any(fact.revision != run.revision for fact in facts)


def _point_at(pointers: Pointers, facts: Sequence[Fact]) -> None:
    for fact in facts:
        match fact.signal:
            case OutcomeReported() | LeaseExpired() | DeadlinePassed():
                pointers.effects[fact.signal.effect_id] = None
            case CallbackArrived():
                pointers.inbox[fact.signal.inbox_id] = None
            case _:
                pointers.runs[fact.run_id] = None
