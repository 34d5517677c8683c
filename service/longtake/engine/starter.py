"""The starter: starts child runs that decisions asked for, and lets runs in line begin when their scopes are free (P5).

errand -> admit the child, or tell its parent why not. project with a line -> let begin who may (line.py). Any number of
starters may do this at once and die anywhere in it: ids are derived, and an errand is settled after it was done.
"""

import asyncio
from typing import Protocol

import msgspec
import structlog

from longtake.contracts.commands import Command
from longtake.contracts.events import Parent
from longtake.contracts.ids import child_command_id_for, signal_id_for
from longtake.contracts.principal import Principal
from longtake.contracts.problems import Problem, problem
from longtake.contracts.signals import Outgoing
from longtake.crash_points import reach
from longtake.engine.admission import Answer
from longtake.engine.hints import Hints
from longtake.engine.line import Line
from longtake.engine.pace import Pace
from longtake.engine.relatives import DOORBELL_STARTER, tell_relatives
from longtake.errors import AuthorityUnavailable, Refused
from longtake.lifecycle import LoopService
from longtake.ports import Doorbell
from longtake.store import Channel, Errand, ErrandStore, SweepStore
from longtake.workflow.families import DEPTH_MAX

ERRANDS_PER_PASS_MAX = 100
PROJECTS_PER_PASS_MAX = 100
AGAIN_SECONDS = 1.0
"""Until what could not be done for the moment is tried again."""

log = structlog.get_logger("longtake.engine.starter")


class Admits(Protocol):
    """Admission, as far as the starter knows it."""

    async def admit(
        self,
        principal: Principal,
        command: Command,
        *,
        channel: Channel,
        traceparent: str | None,
        strict: bool = False,
        parent: Parent | None = None,
    ) -> Answer: ...


class ChildOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Payload of `start_child`."""

    tenant: str
    actor: str
    project: str
    account: str
    workflow: str
    input: dict[str, object]
    policy: dict[str, object]
    parent: Parent


_orders = msgspec.json.Decoder(ChildOrder)


class Starter(LoopService):
    """The starter of one process."""

    def __init__(
        self,
        errands: ErrandStore,
        admission: Admits,
        line: Line,
        sweep: SweepStore,
        hints: Hints,
        doorbell: Doorbell,
        *,
        pace: Pace,
    ) -> None:
        super().__init__("starter", self._work)
        self._errands = errands
        self._admission = admission
        self._line = line
        self._sweep = sweep
        self._hints = hints
        self._doorbell = doorbell
        self._pace = pace

    async def _work(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            try:
                done, postponed = await self.pass_once()
                if done:
                    continue
                seconds = await self._pace.seconds(self._sweep)
                seconds = min(seconds, AGAIN_SECONDS) if postponed else seconds
            except AuthorityUnavailable as error:
                log.warning("longtake.starter_delayed", reason=str(error))
                seconds = self._pace.away_seconds
            await self._pace.sleep(self._doorbell, DOORBELL_STARTER, seconds, stopping)

    async def pass_once(self) -> tuple[int, int]:
        """One pass; returns how much was done, and how much was put off for the moment. Raises AuthorityUnavailable."""
        done = postponed = 0
        errands = await self._errands.open_errands(ERRANDS_PER_PASS_MAX)
        for errand in errands:
            if errand.kind == "start_child":
                started = await self._start_child(errand)
                done, postponed = done + started, postponed + (not started)
        # Whoever rings for a project is done when its line was looked at; so is a line for which nobody rang.
        rings = [errand for errand in errands if errand.kind != "start_child"]
        projects = dict.fromkeys(await self._errands.waiting_projects(PROJECTS_PER_PASS_MAX))
        projects |= dict.fromkeys((ring.tenant, _project_of(ring)) for ring in rings)
        for tenant, project in projects:
            try:
                begun, blocked = await self._line.move(tenant, project)
            except AuthorityUnavailable:
                raise
            except Exception:
                # One run that cannot be decided holds up its own line and no other.
                log.exception("longtake.line_broken", tenant=tenant, project=project)
                begun, blocked = 0, 1
            done, postponed = done + begun, postponed + blocked
        if rings:
            await self._errands.settle_errands([ring.id for ring in rings], "looked")
            done += len(rings)
        return done, postponed

    # --- children ------------------------------------------------------------------------------------------------------

    async def _start_child(self, errand: Errand) -> bool:
        """Admit a child, or tell its parent why not; False when it has to be tried again."""
        try:
            order = _orders.decode(errand.payload)
        except msgspec.DecodeError as error:
            # Nobody writes such an errand; one that is there anyway must not hold up the others (F56).
            log.error("longtake.errand_unreadable", errand=str(errand.id), reason=str(error))
            await self._errands.settle_errands([errand.id], "unreadable")
            return True
        refusal = await self._refusal(errand, order)
        if refusal is None:
            reach("child_admitted.before_settle")
            await self._errands.settle_errands([errand.id], "started")
        elif refusal.retry_after_seconds is not None:
            return False
        else:
            answer = _refused(errand, order, refusal)
            await self._errands.answer_errand(errand, f"refused: {refusal.slug}", answer)
            tell_relatives([answer], self._hints, None)
        return True

    async def _refusal(self, errand: Errand, order: ChildOrder) -> Problem | None:
        parent = order.parent
        if errand.parent_closed:
            return problem(
                "action-not-available", f"The parent run {parent.run_id} is no longer waiting for it."
            )
        if len(parent.above) + 2 > DEPTH_MAX:
            return problem(
                "invalid-command",
                f"The run would stand {len(parent.above) + 2} deep in its family; at most {DEPTH_MAX} generations are "
                f"taken. Does {order.workflow} start itself?",
            )
        command = Command(
            kind="generation",
            project=order.project,
            client_command_id=child_command_id_for(parent.run_id, step=parent.step, attempt=parent.attempt),
            payload={
                "workflow": order.workflow,
                "input": order.input,
                "policy": order.policy,
                "account": order.account,
            },
        )
        try:
            answer = await self._admission.admit(
                Principal(tenant=order.tenant, actor=order.actor),
                command,
                channel="local",
                traceparent=errand.traceparent,
                parent=parent,
            )
        except AuthorityUnavailable:
            raise
        except Refused as refused:
            return refused.problem
        except Exception as error:
            # One builder with a fault must not hold up everybody's children.
            log.exception("longtake.child_broken", parent=str(parent.run_id), step=parent.step)
            return problem("internal", f"Admission broke: {type(error).__name__}: {error}.")
        return answer.receipt.problem


def _project_of(errand: Errand) -> str:
    return str(msgspec.json.decode(errand.payload, type=dict[str, str])["project"])


def _refused(errand: Errand, order: ChildOrder, refusal: Problem) -> Outgoing:
    parent = order.parent
    return Outgoing(
        id=signal_id_for(errand.run_id, kind="child_refused", about=str(errand.id)),
        run_id=parent.run_id,
        kind="child_refused",
        payload={
            "step": parent.step,
            "attempt": parent.attempt,
            "child": str(errand.run_id),
            "problem": refusal.slug,
            "message": refusal.detail,
        },
    )
