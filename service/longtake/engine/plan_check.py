"""The plan check: active runs are compared with what the deployed code would plan today (P15, H17).

It runs where user code lives. A run whose plan is the same, or whose workflow version this code no longer claims, is
marked as checked; a drifted one gets a signal and is blocked by the reducer. Nothing of a run is decided before.
"""

import asyncio
import hashlib
import uuid

import structlog

from longtake.contracts.codec import to_json
from longtake.crash_points import reach
from longtake.engine.dispatcher import DOORBELL_PLANS
from longtake.engine.hints import Hints
from longtake.engine.plan_comparison import compare_plan
from longtake.errors import AuthorityUnavailable
from longtake.lifecycle import LoopService
from longtake.ports import Doorbell
from longtake.store import PlanCheckStore, Planner, UncheckedRun

RUNS_PER_PASS_MAX = 200
IDLE_SECONDS = 30.0
AWAY_SECONDS = 0.5

log = structlog.get_logger("longtake.engine.plan_check")


class PlanCheck(LoopService):
    """Compares plans when the code has changed, and whenever a dispatcher meets an unchecked run."""

    def __init__(self, store: PlanCheckStore, planner: Planner, hints: Hints, doorbell: Doorbell) -> None:
        super().__init__("plan-check", self._work)
        self._store = store
        self._planner = planner
        self._hints = hints
        self._doorbell = doorbell

    async def _work(self, stopping: asyncio.Event) -> None:
        stop = asyncio.create_task(stopping.wait())
        try:
            while not stopping.is_set():
                try:
                    while await self.pass_once() == RUNS_PER_PASS_MAX:
                        continue
                    seconds = IDLE_SECONDS
                except AuthorityUnavailable as error:
                    log.warning("longtake.plan_check_delayed", reason=str(error))
                    seconds = AWAY_SECONDS
                rung = asyncio.create_task(self._doorbell.wait(DOORBELL_PLANS, timeout_seconds=seconds))
                await asyncio.wait({rung, stop}, return_when=asyncio.FIRST_COMPLETED)
                rung.cancel()
                await asyncio.gather(rung, return_exceptions=True)
        finally:
            stop.cancel()

    async def pass_once(self) -> int:
        """Check a page of runs; returns how many there were. Raises AuthorityUnavailable."""
        application = self._planner.application
        runs = await self._store.unchecked_runs(application, RUNS_PER_PASS_MAX)
        same: list[uuid.UUID] = []
        drifted: list[uuid.UUID] = []
        for run in runs:
            drift = self.drift_of(run)
            reach("plan_checked.before_mark")
            await asyncio.sleep(0)  # a page of large plans must not hold up the loop
            if drift is None and not run.drift_blocked:
                same.append(run.run_id)
                continue
            await self._store.signal(
                id=plan_signal_id(run.run_id, application, run.revision),
                tenant=run.tenant,
                run_id=run.run_id,
                kind="plan_checked",
                payload=to_json({"application": application, "drift": drift}),
            )
            drifted.append(run.run_id)
        if same:
            await self._store.mark_checked(same, application)
        if drifted:
            log.error(
                "longtake.plans_drifted", runs=[str(id_) for id_ in drifted], application=application[:12]
            )
            await self._hints.look_at(runs=drifted, salt=int(application[:8], 16))
        return len(runs)

    def drift_of(self, run: UncheckedRun) -> tuple[str, str] | None:
        """(field, price effect) of the first difference; None when same, or when the code does not claim the version."""
        return compare_plan(self._planner, run).drift


def plan_signal_id(run_id: uuid.UUID, application: str, revision: int) -> uuid.UUID:
    """One verdict a state of the run: two processes that check it at once tell it once.

    The revision is in it because a deployment may come back after another one: its second verdict is news.
    """
    said = f"{application}/{revision}".encode()
    return uuid.UUID(bytes=hashlib.sha256(run_id.bytes + said).digest()[:16])
