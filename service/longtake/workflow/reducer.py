"""The reducer: the one place that decides what a fact means for a run (design.md 2.3).

`accept` opens a run; `decide` takes every later signal. Both own the state they are given and evolve it: the events of
the decision they return are already applied to it, with `now` as the time of recording. Nothing here awaits, reads a
clock, draws a number or writes a log.
Leaves to others: each kind of signal has a module of its own, named below.
"""

from datetime import datetime
from typing import assert_never

from longtake.contracts.signals import (
    BeginRun,
    CallbackArrived,
    CancelRun,
    ChildEnded,
    ChildRefused,
    DeadlinePassed,
    LeaseExpired,
    MakeRoom,
    OutcomeReported,
    ParentClosed,
    PauseRun,
    PlanChecked,
    ProvideInput,
    ReducerFailed,
    ResumeRun,
    RetryRun,
    SendEvent,
    Signal,
    SupersedeRun,
    TimerFired,
    WorkStalled,
)
from longtake.workflow.actions import available_actions
from longtake.workflow.admission import AcceptedFacts, open_run
from longtake.workflow.answering import on_event, on_input
from longtake.workflow.callbacks import on_callback
from longtake.workflow.children import on_child_ended, on_child_refused, on_parent_closed
from longtake.workflow.controlling import (
    on_cancel,
    on_plan_checked,
    on_reducer_failed,
    on_retry,
    on_supersede,
)
from longtake.workflow.decision import Decision
from longtake.workflow.draft import Draft
from longtake.workflow.lapses import on_lapse
from longtake.workflow.outcomes import on_outcome
from longtake.workflow.pausing import on_pause, on_resume
from longtake.workflow.queueing import on_begin, on_make_room
from longtake.workflow.run_state import RunState
from longtake.workflow.stalling import on_stalled
from longtake.workflow.timers import on_timer

__all__ = ["AcceptedFacts", "accept", "available_actions", "decide"]


def accept(state: RunState, facts: AcceptedFacts, now: datetime) -> Decision:
    """Open a run: accept it, take its price, and hand out the first steps, in one decision (P9)."""
    return open_run(state, facts, now)


def decide(state: RunState, signal: Signal, now: datetime) -> Decision:
    """Decide what one fact means for the run."""
    draft = Draft(state, now)
    match signal:
        case OutcomeReported():
            return on_outcome(draft, signal)
        case CallbackArrived():
            return on_callback(draft, signal)
        case LeaseExpired() | DeadlinePassed():
            return on_lapse(draft, signal)
        case TimerFired():
            return on_timer(draft, signal)
        case CancelRun():
            return on_cancel(draft, signal)
        case RetryRun():
            return on_retry(draft, signal)
        case PauseRun():
            return on_pause(draft, signal)
        case ResumeRun():
            return on_resume(draft, signal)
        case ProvideInput():
            return on_input(draft, signal)
        case SendEvent():
            return on_event(draft, signal)
        case SupersedeRun():
            return on_supersede(draft, signal)
        case BeginRun():
            return on_begin(draft, signal)
        case MakeRoom():
            return on_make_room(draft, signal)
        case ChildEnded():
            return on_child_ended(draft, signal)
        case ChildRefused():
            return on_child_refused(draft, signal)
        case ParentClosed():
            return on_parent_closed(draft, signal)
        case WorkStalled():
            return on_stalled(draft, signal)
        case PlanChecked():
            return on_plan_checked(draft, signal)
        case ReducerFailed():
            return on_reducer_failed(draft, signal)
        case _:
            assert_never(signal)
