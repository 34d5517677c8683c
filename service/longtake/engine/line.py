"""The line of a project: runs in it begin when it is their turn, or tell those in their way to make room (P5, P6, H54 to H57).

lock the project -> who may begin -> give it its scopes and decide its beginning, in one transaction, in the order project,
then run. Leaves to others: when to look (starter.py), the rules (queueing.py), getting in line (placing.py).
"""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from longtake.contracts.principal import Principal
from longtake.contracts.signals import BeginRun, MakeRoom, Outgoing
from longtake.crash_points import reach
from longtake.engine.deciding import LiveRun, add_decision, empty_commit, finish, revive
from longtake.engine.hints import Hints
from longtake.engine.relatives import tell_relatives
from longtake.engine.waking import DOORBELL_RELAY, ring_when_due
from longtake.engine.windows import Windows
from longtake.ports import Doorbell
from longtake.store import AdmissionStore, AdmissionTransaction, EffectPointer, RunCommit
from longtake.workflow.decision import Decision
from longtake.workflow.queueing import Waiting, grantable, obstacles, untold
from longtake.workflow.reducer import decide

GRANTS_PER_PROJECT_MAX = 100
"""Runs of one project that begin in one pass, or that tell others of themselves."""
ACTOR = "starter"


class Line:
    """Moves the lines of projects on."""

    def __init__(
        self,
        store: AdmissionStore,
        hints: Hints,
        doorbell: Doorbell,
        *,
        store_epoch: int,
        windows: Windows | None = None,
    ) -> None:
        """`windows`: how much of what begins may be published directly; without them all of it."""
        self._store = store
        self._hints = hints
        self._doorbell = doorbell
        self._store_epoch = store_epoch
        self._windows = windows

    async def move(self, tenant: str, project: str) -> tuple[int, int]:
        """Let everybody in the project's line begin who may; (how many began, how many were put off for the moment).

        Raises AuthorityUnavailable.
        """
        for begun in range(GRANTS_PER_PROJECT_MAX):
            granted = await self._move_once(tenant, project)
            if granted is not True:
                return begun, granted is None
        return GRANTS_PER_PROJECT_MAX, 0

    async def _move_once(self, tenant: str, project: str) -> bool | None:
        """One transaction: True when somebody began or left, False when nobody may, None when it must be tried again."""
        principal = Principal(tenant=tenant, actor=ACTOR)
        async with self._store.transaction(principal, channel="local", traceparent=None) as transaction:
            await transaction.lock_project(project)
            line, now = await transaction.line(project)
            wanted = sorted({scope for waiting in line for scope in waiting.scopes})
            held = {item.scope: item.run_id for item in await transaction.held_scopes(project, wanted)}
            before = sorted({run for waiting in line for run in waiting.waits_for})
            may = grantable(line, held, await transaction.active_runs(before), now)
            if may:
                waiting = next(item for item in line if item.run_id == may[0])
                moved = await self._begin(transaction, project, waiting)
            else:
                moved = await self._make_room(transaction, project, line, held, now)
        self._hints.effects_soon(moved.pointers)
        tell_relatives(moved.facts, self._hints, self._doorbell)
        if moved.put_off:
            return None
        return bool(may)

    async def _begin(self, transaction: AdmissionTransaction, project: str, waiting: Waiting) -> "_Moved":
        """Give a run its scopes and decide its beginning, unless that has to wait for its plan check."""
        run = await self._locked(transaction, waiting.run_id)
        if run is None:
            await transaction.leave_line(waiting.run_id)
            return _Moved()
        if isinstance(run, _Unchecked):
            return _Moved(put_off=True)
        decision = decide(run.live.state, BeginRun(), run.now)
        if decision.ignored is not None:
            # It has ended while it was in line.
            await transaction.leave_line(waiting.run_id)
            return _Moved()
        await transaction.grant_scopes(project, waiting)
        reach("scopes_granted.before_commit")
        return await self._write(transaction, project, [(run, decision)])

    async def _make_room(
        self,
        transaction: AdmissionTransaction,
        project: str,
        line: Sequence[Waiting],
        held: Mapping[str, uuid.UUID],
        now: datetime,
    ) -> "_Moved":
        """Runs whose time has come tell whoever is in their way; both histories say so (P10)."""
        decided: list[tuple[_Locked, Decision]] = []
        put_off = False
        by_id = {waiting.run_id: waiting for waiting in line}
        for run_id in sorted(untold(line, held, now)[:GRANTS_PER_PROJECT_MAX]):
            run = await self._locked(transaction, run_id)
            if run is None:
                await transaction.leave_line(run_id)
                continue
            if isinstance(run, _Unchecked):
                put_off = True
                continue
            if run.live.state.queued is None:
                await transaction.leave_line(run_id)
                continue
            waiting = by_id[run_id]
            found = obstacles(waiting.scopes, held, (), now)
            holders = tuple(dict.fromkeys(item.run_id for item in found))
            signal = MakeRoom(holders=holders, scopes=tuple(item.scope for item in found))
            decision = decide(run.live.state, signal, run.now)
            if decision.ignored is None:
                decided.append((run, decision))
            await transaction.wait_for(run_id, tuple(dict.fromkeys((*waiting.waits_for, *holders))))
        moved = await self._write(transaction, project, decided) if decided else _Moved()
        return msgspec.structs.replace(moved, put_off=put_off)

    async def _locked(
        self, transaction: AdmissionTransaction, run_id: uuid.UUID
    ) -> "_Locked | _Unchecked | None":
        locked = await transaction.lock_run(run_id)
        if locked is None:
            return None
        loaded, now, checked, application = locked
        if application is not None and checked != application:
            return _Unchecked()
        run = revive(loaded, store_epoch=self._store_epoch)
        return _Locked(live=run, now=now if run.clock is None else max(now, run.clock))

    async def _write(
        self,
        transaction: AdmissionTransaction,
        project: str,
        decided: "Sequence[tuple[_Locked, Decision]]",
    ) -> "_Moved":
        commits: list[RunCommit] = []
        for run, decision in decided:
            commit = empty_commit(run.live, traceparent=None)
            add_decision(
                commit, run.live, decision, causation=f"line:{project}", traceparent=None, now=run.now
            )
            commits.append(finish(commit, run.live, dict.fromkeys(decision.touched)))
        held = 0 if self._windows is None else await self._windows.hold_back(commits)
        if held:
            self._doorbell.ring(DOORBELL_RELAY)
        written = await transaction.commit_run(commits[0], None, also=commits[1:])
        ring_when_due(commits, self._doorbell)
        facts = [fact for commit in commits for fact in commit.outgoing]
        return _Moved(pointers=written.pointers, facts=facts)


class _Locked(msgspec.Struct, frozen=True, kw_only=True):
    """A run under lock, and the time it is decided at."""

    live: LiveRun
    now: datetime


class _Unchecked(msgspec.Struct, frozen=True):
    """A run whose plan the deployed code has not checked yet (P15)."""


class _Moved(msgspec.Struct, frozen=True, kw_only=True):
    """What one transaction brought about."""

    pointers: tuple[EffectPointer, ...] = ()
    facts: list[Outgoing] = []
    put_off: bool = False
