"""The summary: one answer to "how is my run and what may I do", made from the state's counters (design.md 8, P20).

Leaves to others: which actions stand (actions.py); the ETag and the clock at the time of reading (api).
"""

from datetime import datetime, timedelta

import msgspec

from longtake.contracts.summary import (
    TERMINAL,
    Blocker,
    Cost,
    CurrentStep,
    Failure,
    Progress,
    RunStatus,
    Summary,
    Timing,
)
from longtake.workflow.actions import available_actions
from longtake.workflow.moves import next_wake
from longtake.workflow.run_state import NEEDS_INPUT, Queued, RunState
from longtake.workflow.timers import current_position

POLL_FLOOR_MS = 1000
POLL_CEILING_MS = 60_000
POLL_USUAL_MS = 5000
"""When the next durable deadline is not known, or has passed and its answer is on the way."""


def summarize(state: RunState, *, now: datetime) -> Summary:
    """The run's summary as read at a time."""
    summary = stored_summary(state)
    wait = poll_after_ms(poll_at(state), summary.status, now)
    return msgspec.structs.replace(summary, timing=Timing(poll_after_ms=wait))


def stored_summary(state: RunState) -> Summary:
    """The part of the summary that does not depend on when it is read."""
    status = status_of(state)
    position = current_position(state)
    step, plan = state.steps[position], state.plan.steps[position]
    under_way = not state.terminal
    return Summary(
        run_id=str(state.run_id),
        workflow=state.workflow,
        workflow_version=state.workflow_version,
        revision=state.revision,
        status=status,
        phase=plan.phase,
        label=_label(state, status, position),
        progress=_progress(state),
        current_step=CurrentStep(
            key=plan.key, attempt=step.attempt, max_attempts=max(step.attempt, step.attempts_allowed)
        )
        if under_way
        else None,
        blockers=blockers_of(state),
        available_actions=available_actions(state),
        cost=Cost(
            quoted_credits=state.quoted,
            charged_credits=state.charged,
            refunded_credits=state.refunded,
            net_credits=state.charged - state.refunded,
        ),
        timing=Timing(poll_after_ms=None),
        failure=_failure(state) or msgspec.UNSET,
    )


def status_of(state: RunState) -> RunStatus:
    """The one status: the first that holds of ended, cancelling, compensating, paused, blocked, needs_input, running (P19)."""
    if state.ended is not None:
        return state.ended
    if state.ending is not None:
        return "cancelling" if state.undoing is None else "compensating"
    if state.paused_at is not None:
        return "paused"
    if any(blocker.type not in NEEDS_INPUT for blocker in state.blockers.values()):
        return "blocked"
    if state.blockers:
        return "needs_input"
    if state.queued is not None:
        return "accepted"
    return "running" if state.begun else "accepted"


def blockers_of(state: RunState) -> tuple[Blocker, ...]:
    """All blockers: those of the run first, then those of steps in plan order."""
    position = state.plan.position
    return tuple(
        state.blockers[key] for key in sorted(state.blockers, key=lambda key: (position.get(key, -1), key))
    )


def poll_at(state: RunState) -> datetime | None:
    """When something may next be known: the first due time of what is open; None when nothing is."""
    if state.terminal:
        return None
    dues = [_answer_at(effect.kind, effect.due_at) for effect in state.open.values()]
    wake = None if state.paused_at is not None else next_wake(state)
    if wake is not None:
        dues.append(wake + timedelta(milliseconds=POLL_FLOOR_MS))
    if state.queued is not None and state.queued.start_at is not None:
        dues.append(state.queued.start_at)
    elif not dues and state.updated_at is not None and (state.queued is not None or state.children):
        # Other runs are waited for: nobody knows when, and there is something to wait for.
        dues.append(state.updated_at)
    if state.ending is not None and dues:
        dues.append(state.ending.settle_until)
    return min(dues, default=None)


def poll_after_ms(poll_at: datetime | None, status: str, now: datetime) -> int | None:
    """How long a client should wait before it looks again; None when there is nothing to wait for (P20)."""
    if poll_at is None or status in TERMINAL:
        return None
    if poll_at <= now:
        return POLL_USUAL_MS
    return min(max((poll_at - now) // timedelta(milliseconds=1), POLL_FLOOR_MS), POLL_CEILING_MS)


def _answer_at(kind: str, due_at: datetime) -> datetime:
    # A poll answers at once; other work takes its time after it is due.
    return due_at + timedelta(milliseconds=POLL_FLOOR_MS if kind == "poll" else POLL_USUAL_MS)


def _progress(state: RunState) -> Progress:
    total = len(state.steps)
    percent = (200 * state.completed + total) // (2 * total)
    if state.completed < total:
        percent = min(percent, 99)
    return Progress(completed=state.completed, total=total, percent=percent)


def _label(state: RunState, status: RunStatus, position: int) -> str:
    title = state.plan.steps[position].title
    if state.queued is not None:
        return _waits_to_begin(state.queued)
    match status:
        case "completed":
            return "Completed"
        case "failed":
            return f"Failed: {state.ending.message}" if state.ending is not None else "Failed"
        case "cancelled":
            return "Cancelled"
        case "superseded":
            return f"Superseded by run {state.superseded_by}"
        case "cancelling":
            return "Cancelling" if state.ending is None or state.ending.outcome == "cancelled" else "Stopping"
        case "compensating":
            return f"Undoing: {title}"
        case "paused":
            return f"Paused: {title}"
        case "blocked" if not state.open:
            return f"{title}: waiting for a decision"
        case _:
            pass
    step = state.steps[position]
    if step.status == "needs_input":
        return f"{title}: waiting for {'a larger cap' if position not in state.gates else 'an answer'}"
    if step.status == "waiting_event":
        return f"{title}: waiting for the event {state.plan.steps[position].event!r}"
    if step.status == "waiting_external" and position in state.gates:
        return f"{title}: done by run {state.gates[position].child}"
    if step.status == "retry_scheduled":
        return f"{title}: trying again, attempt {step.attempt}"
    if step.status == "reconciling":
        return f"{title}: asking the provider what became of it"
    return title


def _waits_to_begin(queued: Queued) -> str:
    """What an accepted run waits for."""
    if queued.start_at is not None:
        return f"Begins at {queued.start_at.isoformat(timespec='seconds')}"
    others = "" if len(queued.holders) < 2 else f" and {len(queued.holders) - 1} more"
    return f"Waits for run {queued.holders[0]}{others}" if queued.holders else "Waits to begin"


def _failure(state: RunState) -> Failure | None:
    """Why the run failed or is blocked, told so that lost execution and bad content differ (G08)."""
    ending = state.ending
    if ending is not None:
        if ending.outcome != "failed":
            return None
        return Failure(
            error_class=ending.error_class,
            origin=ending.origin,
            step=ending.step,
            attempt=ending.attempt,
            message=ending.message,
            inputs_intact=ending.origin in ("infrastructure", "provider"),
            money=_money(state),
        )
    first = next((blocker for blocker in blockers_of(state) if blocker.type not in NEEDS_INPUT), None)
    if first is None:
        return None  # what waits for input has not failed
    if first.step is None:
        details = "; ".join(f"{name}: {text}" for name, text in first.details.items())
        return Failure(
            error_class=first.type,
            origin="infrastructure",
            step=None,
            attempt=None,
            message=f"the whole run waits ({details})",
            inputs_intact=True,
            money=_money(state),
        )
    step = state.steps[state.plan.position[first.step]]
    origin = step.error_origin or "infrastructure"
    return Failure(
        error_class=step.error_class or first.type,
        origin=origin,
        step=first.step,
        attempt=first.attempt,
        message=step.error_message or first.type,
        inputs_intact=origin in ("infrastructure", "provider"),
        money=_money(state),
    )


def _money(state: RunState) -> str:
    if state.charged == 0:
        return "Nothing was charged."
    if state.refunded == 0:
        kept = "" if state.terminal else " while the outcome is open"
        return f"{state.charged} credits were charged, none were given back{kept}."
    return f"{state.charged} credits were charged, {state.refunded} were given back."
