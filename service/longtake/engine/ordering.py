"""Orders: what a command starts, made of its payload and of the run that it names.

A steer is planned from what the run was made from and what is different now; a fork takes the plan of its run and the
receipts that stand. Leaves to others: starting (starting.py), what a fork takes over and costs (workflow/forking.py).
"""

import msgspec

from longtake.contracts.command_table import TABLE, ForkBody
from longtake.contracts.commands import Command
from longtake.contracts.events import Parent
from longtake.contracts.ids import RunId, run_id_for
from longtake.contracts.principal import Principal
from longtake.contracts.problems import Problem, ProblemError, problem
from longtake.contracts.upcasters import decode_event
from longtake.engine.commands import payload_of, start_of, target_of
from longtake.engine.deciding import revive
from longtake.engine.receipts import no_such_run, wrong_project
from longtake.engine.starting import Order
from longtake.errors import Refused
from longtake.store import AdmissionStore, AdmissionTransaction, Channel, PlannedRun, Planner, RunOrigin
from longtake.workflow.forking import plan_fork, price_refusal
from longtake.workflow.plan import compile_document


class Orders:
    """Makes orders of commands."""

    def __init__(self, store: AdmissionStore, planner: Planner | None, *, store_epoch: int) -> None:
        self._store = store
        self._planner = planner
        self._store_epoch = store_epoch

    async def planned(
        self, principal: Principal, command: Command, channel: Channel, parent: Parent | None
    ) -> Order:
        """Plan what the payload says, and for a successor what the run it names was made from. Raises Refused."""
        if self._planner is None:
            raise Refused(
                problem("unavailable", "This process has no application loaded.", retry_after_seconds=5)
            )
        origin: RunOrigin | None = None
        if TABLE[command.kind].needs_run:
            async with self._store.transaction(principal, channel=channel, traceparent=None) as transaction:
                origin = await _origin(transaction, command)
        body = start_of(command, origin)
        return Order(
            run_id=_run_id(principal, command),
            tenant=principal.tenant,
            actor=principal.actor,
            command_id=str(command.client_command_id),
            kind=command.kind,
            project=command.project,
            conversation=command.conversation,
            planned=self._planner.plan(body.workflow, body.input, body.policy),
            account=body.account,
            max_credits=body.max_credits,
            start_at=body.start_at,
            on_conflict=body.on_conflict,
            parent=parent,
            follows=origin.run_id if origin is not None and command.kind == "follow_up" else None,
            supersedes=(origin.run_id,) if origin is not None and command.kind == "steer" else (),
        )

    async def forked(
        self, transaction: AdmissionTransaction, principal: Principal, command: Command
    ) -> Order | Problem:
        """What a fork starts, or why there can be none. Raises Refused for a run that is not there."""
        body = payload_of(command, ForkBody)
        origin = await _origin(transaction, command)
        await transaction.lock_project(command.project)
        locked = await transaction.lock_run(origin.run_id)
        if locked is None:
            raise Refused(no_such_run(origin.run_id))
        loaded, _, checked, deployed = locked
        source = revive(loaded, store_epoch=self._store_epoch)
        history = [decode_event(event.type, event.version, event.data) for event in loaded.events]
        fork = plan_fork(source.state, history, body.step)
        if isinstance(fork, Problem):
            return fork
        refused = price_refusal(fork, body.max_extra_credits)
        if refused is None and deployed is not None and deployed != checked:
            refused = self._drifted(origin)
            checked = deployed
        if refused is not None:
            return refused
        return Order(
            run_id=_run_id(principal, command),
            tenant=principal.tenant,
            actor=principal.actor,
            command_id=str(command.client_command_id),
            kind="fork",
            project=command.project,
            conversation=command.conversation or source.state.conversation,
            planned=_like(origin, price_list=source.state.price_list, application=checked),
            account=body.account or origin.account,
            fork=fork,
        )

    def _drifted(self, origin: RunOrigin) -> Problem | None:
        """Why the plan of an ended run cannot be run again under the code that is deployed now (P15)."""
        name = f"{origin.workflow}@{origin.workflow_version}"
        if self._planner is None:
            raise Refused(
                problem("unavailable", "This process has no application loaded.", retry_after_seconds=5)
            )
        if not self._planner.claims(origin.workflow, origin.workflow_version):
            return _not_as_it_was(name, "the deployed code does not have it")
        planned = self._planner.plan(
            name, msgspec.json.decode(origin.input), msgspec.json.decode(origin.policy)
        )
        if planned.fingerprint == origin.fingerprint:
            return None
        return _not_as_it_was(name, "the deployed code plans something else for the same input")


def _not_as_it_was(name: str, why: str) -> Problem:
    return problem(
        "action-not-available",
        f"The run was planned by another {name}: {why}.",
        ProblemError("/targets/0", why, "start a new run instead of forking this one"),
    )


async def _origin(transaction: AdmissionTransaction, command: Command) -> RunOrigin:
    """What the run was made from that the command names."""
    run_id = target_of(command)
    origin = await transaction.origin(run_id)
    if origin is None:
        raise Refused(no_such_run(run_id))
    if origin.project != command.project:
        raise Refused(wrong_project(origin.project, command.project))
    return origin


def _run_id(principal: Principal, command: Command) -> RunId:
    return run_id_for(
        tenant=principal.tenant, actor=principal.actor, client_command_id=str(command.client_command_id)
    )


def _like(origin: RunOrigin, *, price_list: str, application: str) -> PlannedRun:
    """The frozen plan of a run that is there, for another run of it."""
    compiled = compile_document(origin.plan)
    return PlannedRun(
        workflow=origin.workflow,
        workflow_version=origin.workflow_version,
        plan=compiled.plan,
        plan_document=origin.plan,
        input=origin.input,
        policy=origin.policy,
        fingerprint=origin.fingerprint,
        quoted=compiled.quoted,
        cap=compiled.plan.cap,
        price_list=price_list,
        scopes=compiled.plan.scopes,
        application=application,
    )
