"""Opening a run: accepted, paid for and its first steps handed out by one decision (P9).

Leaves to others: whether the command may be admitted at all (engine), the validity of the plan (validation.py).
"""

import uuid
from datetime import datetime

import msgspec

from longtake.contracts.events import Money, Parent, RunAccepted, RunQueued
from longtake.workflow import money
from longtake.workflow.charging import charge_at_beginning
from longtake.workflow.decision import Decision
from longtake.workflow.draft import Draft
from longtake.workflow.forking import Fork, take_over
from longtake.workflow.queueing import supersede_holders
from longtake.workflow.run_state import RunState
from longtake.workflow.scheduling import advance


class AcceptedFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What admission knows of the command that opens a run."""

    workflow: str
    workflow_version: int
    project: str
    actor: str
    account: str
    command_id: str
    conversation: str | None = None
    fingerprint: str
    application: str
    price_list: str
    kind: str = "generation"
    cap: int | None = None
    """What the client approved; None: what the plan says."""
    parent: Parent | None = None
    supersedes: tuple[uuid.UUID, ...] = ()
    tells: tuple[uuid.UUID, ...] = ()
    """Those of them that hear of it by a fact; the others give way in the same transaction."""
    follows: uuid.UUID | None = None
    forked_from: uuid.UUID | None = None
    forked_step: str | None = None
    queued: RunQueued | None = None
    """Set when the run may not begin yet: its time has not come, or others hold its scopes."""
    fork: Fork | None = None
    """What is taken over of the run that this one is forked from."""


def open_run(state: RunState, facts: AcceptedFacts, now: datetime) -> Decision:
    """Accept the run, take what it costs from the start, and hand out what waits for nothing."""
    if state.revision != 0:
        raise money.InvariantBroken(f"run {state.run_id} is already open, at revision {state.revision}")
    draft = Draft(state, now)
    plan, fork = state.plan.plan, facts.fork
    quoted = state.plan.quoted if fork is None else fork.quoted
    cap = facts.cap if facts.cap is not None else plan.cap if fork is None else fork.extra
    held = quoted if plan.hold == "quote" else cap
    draft.record(
        RunAccepted(
            kind=facts.kind,
            workflow=facts.workflow,
            workflow_version=facts.workflow_version,
            project=facts.project,
            actor=facts.actor,
            command_id=facts.command_id,
            conversation=facts.conversation,
            plan_fingerprint=facts.fingerprint,
            application=facts.application,
            money=Money(
                account=facts.account,
                billing=plan.billing,
                quoted=quoted,
                cap=cap,
                held=held,
                price_list=facts.price_list,
            ),
            scopes=plan.scopes,
            parent=facts.parent,
            supersedes=facts.supersedes,
            follows=facts.follows,
            forked_from=facts.forked_from,
            forked_step=facts.forked_step,
        )
    )
    if facts.queued is not None:
        draft.record(facts.queued)
    supersede_holders(draft, facts.tells)
    if fork is not None:
        take_over(draft, fork)
    if state.queued is None:
        charge_at_beginning(draft)
    advance(draft)
    return draft.decision(command_status="running" if state.queued is None else "scheduled")
