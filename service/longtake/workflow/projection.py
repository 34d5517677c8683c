"""Projection rows: what is stored of a run and its steps for reading, made from the state alone.

The same functions serve the deciding transaction, a rebuild, and `prove`, which compares the two.
Leaves to others: writing rows (postgres), the summary's words (summary.py).
"""

from datetime import datetime

import msgspec

from longtake.contracts.codec import to_json
from longtake.contracts.summary import Blocker, RunStatus
from longtake.workflow.run_state import RunState, StepStatus
from longtake.workflow.summary import poll_at, status_of, stored_summary


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run as lists show it."""

    status: RunStatus
    phase: str | None
    label: str
    revision: int
    charged: int
    refunded: int
    quoted: int
    cap: int
    blockers: tuple[Blocker, ...]
    ended_at: datetime | None
    accepted_at: datetime | None
    updated_at: datetime | None
    summary: bytes
    """JSON of the stored summary, its poll_after_ms null until it is read (P20)."""
    poll_at: datetime | None


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """One step as lists show it."""

    key: str
    ordinal: int
    """Place in the plan, from 1."""
    attempt: int
    max_attempts: int
    status: StepStatus
    phase: str
    label: str
    external_ref: str | None
    error_class: str | None
    error_message: str | None
    provider_cost: int | None
    artifacts: tuple[str, ...]
    started_at: datetime | None
    updated_seq: int


def run_row(state: RunState) -> RunRow:
    """The run's row after its last event."""
    summary = stored_summary(state)
    return RunRow(
        status=status_of(state),
        phase=summary.phase,
        label=summary.label,
        revision=state.revision,
        charged=state.charged,
        refunded=state.refunded,
        quoted=state.quoted,
        cap=state.cap,
        blockers=summary.blockers,
        ended_at=state.ended_at,
        accepted_at=state.accepted_at,
        updated_at=state.updated_at,
        summary=to_json(summary),
        poll_at=poll_at(state),
    )


def step_row(state: RunState, key: str) -> StepRow:
    """A step's row after the run's last event; KeyError for a key that is not in the plan."""
    position = state.plan.position[key]
    step, plan = state.steps[position], state.plan.steps[position]
    return StepRow(
        key=key,
        ordinal=position + 1,
        attempt=step.attempt,
        max_attempts=step.attempts_allowed,
        status=step.status,
        phase=plan.phase,
        label=plan.title,
        external_ref=step.external_ref,
        error_class=step.error_class,
        error_message=step.error_message,
        provider_cost=step.provider_cost,
        artifacts=step.artifacts,
        started_at=step.started_at,
        updated_seq=step.updated_seq,
    )
