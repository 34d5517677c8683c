"""Starting a run inside the transaction of its admission: scopes, hold, and the first decision (H16, H54, P6, P8, P9).

lock the project -> who is in the way -> lay down plan, row, scopes and hold -> accept. Nothing is written of a start that
is refused. Leaves to others: the command (admission.py), the plan (the planner), writing the decision (admission.py).
"""

import uuid
from datetime import datetime

import msgspec

from longtake.contracts.command_table import CommandKind, OnConflict
from longtake.contracts.events import Parent
from longtake.contracts.problems import Problem, ProblemError, problem
from longtake.engine.deciding import LiveRun
from longtake.engine.history import Head
from longtake.engine.placing import Wish, place
from longtake.engine.receipts import cannot_pay
from longtake.store import AdmissionTransaction, NewRun, PlannedRun
from longtake.workflow.admission import AcceptedFacts
from longtake.workflow.decision import Decision
from longtake.workflow.forking import Fork
from longtake.workflow.plan import compile_document
from longtake.workflow.reducer import accept
from longtake.workflow.state import initial


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is to start, and what is known of it before the transaction."""

    run_id: uuid.UUID
    tenant: str
    actor: str
    command_id: str
    kind: CommandKind
    project: str
    conversation: str | None = None
    planned: PlannedRun
    account: str
    max_credits: int | None = None
    """The cap that the client approves; None: what the plan says, or what the fork costs."""
    start_at: datetime | None = None
    on_conflict: OnConflict | None = None
    parent: Parent | None = None
    follows: uuid.UUID | None = None
    supersedes: tuple[uuid.UUID, ...] = ()
    """Runs that this one takes the place of; it begins when they have ended."""
    fork: Fork | None = None

    @property
    def quoted(self) -> int:
        """What the run costs when all goes well."""
        return self.planned.quoted if self.fork is None else self.fork.quoted

    @property
    def cap(self) -> int:
        """What it may cost at most."""
        if self.max_credits is not None:
            return self.max_credits
        return self.planned.cap if self.fork is None else self.fork.extra


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was laid down and accepted; its decision is still to be written."""

    run: LiveRun
    decision: Decision
    now: datetime
    """When it was decided, as the locks that it took tell."""


async def start_run(
    transaction: AdmissionTransaction, order: Order, *, store_epoch: int, now: datetime
) -> Started | Problem:
    """Lay down a run and accept it, or say why it cannot start. The project is locked from here on."""
    refused = refuse_order(order)
    if refused is not None:
        return refused
    planned = order.planned
    compiled = compile_document(planned.plan_document)
    parent = order.parent
    placed = await place(
        transaction,
        Wish(
            run_id=order.run_id,
            project=order.project,
            scopes=planned.scopes,
            policy=order.on_conflict or compiled.plan.on_conflict,
            start_at=order.start_at,
            supersedes=order.supersedes,
            family=() if parent is None else (*parent.above, parent.run_id),
        ),
        now=now,
    )
    if isinstance(placed, Problem):
        return placed
    now = max(now, placed.now)
    new = NewRun(
        run_id=order.run_id,
        project=order.project,
        workflow=planned.workflow,
        workflow_version=planned.workflow_version,
        account=order.account,
        fingerprint=planned.fingerprint,
        plan=planned.plan_document,
        input=planned.input,
        policy=planned.policy,
        quoted=order.quoted,
        cap=order.cap,
        held=order.quoted if compiled.plan.hold == "quote" else order.cap,
        scopes=planned.scopes if placed.queued is None else (),
        application=planned.application,
    )
    if not await transaction.lay_down(new, command_id=order.command_id, now=now):
        return cannot_pay(order.account, await transaction.funds(order.account), new.hold)
    if placed.waiting is not None:
        await transaction.join_line(order.project, placed.waiting)
    run = LiveRun(
        state=initial(order.run_id, order.tenant, compiled),
        head=Head(
            run_id=order.run_id,
            tenant=order.tenant,
            store_epoch=store_epoch,
            seq=0,
            hash=bytes(32),
            actor=order.actor,
            correlation=order.command_id,
        ),
    )
    facts = AcceptedFacts(
        workflow=planned.workflow,
        workflow_version=planned.workflow_version,
        project=order.project,
        actor=order.actor,
        account=order.account,
        command_id=order.command_id,
        conversation=order.conversation,
        fingerprint=planned.fingerprint,
        application=planned.application,
        price_list=planned.price_list,
        kind=order.kind,
        cap=order.max_credits,
        parent=order.parent,
        supersedes=(*order.supersedes, *placed.tells),
        tells=placed.tells,
        follows=order.follows,
        forked_from=None if order.fork is None else order.fork.source,
        forked_step=None if order.fork is None else order.fork.step,
        queued=placed.queued,
        fork=order.fork,
    )
    return Started(run=run, decision=accept(run.state, facts, now), now=now)


def refuse_order(order: Order) -> Problem | None:
    """What is wrong with a start, whatever the state of the world."""
    kind, planned = order.kind, order.planned
    declared = kind in planned.starts or (kind == "follow_up" and "generation" in planned.starts)
    if order.parent is None and kind not in ("steer", "fork") and not declared:
        name = f"{planned.workflow}@{planned.workflow_version}"
        allowed = ", ".join(planned.starts)
        return problem(
            "invalid-command",
            f"The workflow {name} is not started by a {kind} command.",
            ProblemError("/kind", f"is {kind!r}, which {name} does not declare", f"use one of: {allowed}"),
        )
    if kind == "utility" and (order.quoted > 0 or order.cap > 0):
        return problem(
            "invalid-command",
            f"A utility costs nothing, and this run may cost up to {max(order.quoted, order.cap)} credits.",
            ProblemError("/kind", "is 'utility' for a plan with a price", "start it as a generation"),
        )
    if order.cap < order.quoted:
        return problem(
            "invalid-command",
            f"The run is quoted at {order.quoted} credits; at most {order.cap} were allowed.",
            ProblemError(
                "/payload/max_credits", f"is {order.cap}", f"allow {order.quoted} or more, or leave it out"
            ),
        )
    return None
