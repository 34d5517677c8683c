"""Opening a run: accepted, paid for and its first steps handed out by one decision (P9).

Leaves to others: whether the command may be admitted at all (engine), the validity of the plan (validation.py).
"""

from datetime import datetime

import msgspec

from longtake.contracts.events import Charged, RunAccepted
from longtake.workflow import money
from longtake.workflow.decision import Decision
from longtake.workflow.draft import Draft
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


def open_run(state: RunState, facts: AcceptedFacts, now: datetime) -> Decision:
    """Accept the run, take the whole price, and hand out what waits for nothing."""
    if state.revision != 0:
        raise money.InvariantBroken(f"run {state.run_id} is already open, at revision {state.revision}")
    draft = Draft(state, now)
    quoted = state.plan.quoted
    draft.record(
        RunAccepted(
            workflow=facts.workflow,
            workflow_version=facts.workflow_version,
            project=facts.project,
            actor=facts.actor,
            account=facts.account,
            command_id=facts.command_id,
            conversation=facts.conversation,
            plan_fingerprint=facts.fingerprint,
            application=facts.application,
            quoted=quoted,
            cap=state.plan.plan.cap,
            price_list=facts.price_list,
            scopes=state.plan.plan.scopes,
        )
    )
    if quoted > 0:
        draft.record(Charged(key=money.charge_key(state), amount=quoted))
    advance(draft)
    return draft.decision(command_status="running")
