"""Which reported outcome counts, and for what: the attempt is the fence, not the lease (P1).

An outcome of the current attempt is applied, also when its effect was already given up and the truth is being looked
up: it is the best evidence there is. Everything else is kept on its row and ignored.
Leaves to others: what an outcome that counts does (settling.py, reconciling.py, ending.py).
"""

from datetime import timedelta

from longtake.contracts.effects import Disposition
from longtake.contracts.events import Work
from longtake.contracts.outcomes import (
    RETRYABLE,
    Cancelled,
    Failed,
    Impossible,
    NotFound,
    Outcome,
    Pending,
    Submitted,
    Succeeded,
    Throttled,
    Unknown,
)
from longtake.contracts.signals import OutcomeReported
from longtake.workflow.compensating import apply_compensation
from longtake.workflow.decision import Decision
from longtake.workflow.draft import Draft
from longtake.workflow.ending import late_words, learn_late, settle_when_known
from longtake.workflow.passing import settle_abandoned
from longtake.workflow.pausing import take_back
from longtake.workflow.reconciling import BLOCKER, OVERDUE_MAX, apply_look_up, look
from longtake.workflow.retry import LOOK_UP, delay_ms
from longtake.workflow.run_state import RunState, StepState
from longtake.workflow.scheduling import advance
from longtake.workflow.settling import AttemptFailure, fail, failure_of, poll_again, submitted, succeed

POLLS_LOST_MAX = 20
"""Polls of one attempt that may get lost or fail before the request is looked up instead."""


def on_outcome(draft: Draft, signal: OutcomeReported) -> Decision:
    """Apply a receipt, or ignore it."""
    state = draft.state
    step = state.step_of(signal.step)
    if step is None:
        return _ignore(draft, signal, "unknown_step")
    if isinstance(signal.outcome, (Pending, Throttled)):
        # Such a row goes back to its queue; it is not over, so it is not closed either.
        return draft.ignored("nothing_new")
    if state.terminal:
        return _ignore(draft, signal, "run_ended")
    is_open = step.effect == signal.effect_id
    if signal.kind == "compensate":
        return _on_compensation(draft, signal) if is_open else _ignore(draft, signal, "attempt_closed")
    if signal.attempt != step.attempt:
        return _ignore(draft, signal, "late_attempt")
    if state.ending is not None or step.abandoned:
        return _on_late_outcome(draft, signal, step, is_open=is_open)
    if step.ended or not (is_open or _is_evidence(state, signal, step)):
        return _ignore(draft, signal, "attempt_closed")
    disposition: Disposition = "unknown" if isinstance(signal.outcome, Unknown) else "applied"
    draft.close(signal.effect_id, disposition, expect_receipt=True)
    _apply(draft, signal, step)
    return draft.decision()


def work_of(signal: OutcomeReported) -> Work:
    """Who did the work, for the record (P25)."""
    return Work(
        effect_id=signal.effect_id,
        owner=signal.owner,
        fence=signal.fence,
        claimed_at=signal.claimed_at,
        started_at=signal.started_at,
    )


def is_truth_open(state: RunState, key: str, step: StepState) -> bool:
    """Whether the step waits to learn what became of its attempt, by a look-up or by a person."""
    if step.status == "reconciling":
        return True
    blocker = state.blockers.get(key)
    return step.status == "blocked" and blocker is not None and blocker.type == BLOCKER


def _is_evidence(state: RunState, signal: OutcomeReported, step: StepState) -> bool:
    """Whether a receipt of an effect that was given up still decides the current attempt."""
    outcome = signal.outcome
    if step.status == "waiting_external":
        # The provider has it: only its end is news, and of failures only one seen by a poll is the request's own.
        return isinstance(outcome, Succeeded) or (signal.kind == "poll" and _is_request_failure(outcome))
    if not is_truth_open(state, signal.step, step):
        return False
    match signal.kind:
        case "execute":
            return isinstance(outcome, (Succeeded, Submitted, Failed))
        case "poll":
            return isinstance(outcome, Succeeded) or _is_request_failure(outcome)
        case "reconcile":
            if isinstance(outcome, Submitted):
                # Once that was too often, it says nothing new.
                return step.overdue < OVERDUE_MAX
            return isinstance(outcome, (Succeeded, NotFound)) or (
                isinstance(outcome, Failed) and outcome.adopted
            )
        case "cancel" | "compensate":
            return False


def _is_request_failure(outcome: Outcome) -> bool:
    """Whether a poll says that the request failed, rather than that the poll did."""
    return isinstance(outcome, Failed) and not (
        outcome.origin == "infrastructure" and outcome.error_class in RETRYABLE
    )


def _apply(draft: Draft, signal: OutcomeReported, step: StepState) -> None:
    key, outcome, work = signal.step, signal.outcome, work_of(signal)
    if signal.kind == "reconcile":
        apply_look_up(draft, key, outcome, work)
        return
    match outcome:
        case Succeeded():
            succeed(draft, key, outcome, work)
        case Submitted():
            submitted(draft, key, outcome, work)
        case Failed() if signal.kind == "execute" or _is_request_failure(outcome):
            fail(draft, key, failure_of(outcome), work)
        case Failed():
            lose_poll(draft, key, step, f"the poll failed ({outcome.error_class}): {outcome.message}", work)
        case NotFound() if signal.kind == "execute":
            fail(draft, key, _not_taken(outcome.evidence), work)
        case Unknown() if signal.kind == "poll":
            lose_poll(draft, key, step, f"the poll got no answer: {outcome.evidence}", work)
        case Unknown() | NotFound() | Impossible():
            look(draft, key, outcome.evidence, work)
        case Cancelled() if step.recalled and signal.kind == "execute":
            take_back(draft, key)
        case Cancelled():
            fail(draft, key, _stopped(outcome), work)
        case _:
            raise AssertionError(f"{type(outcome).__name__} was taken for an answer")


def lose_poll(draft: Draft, key: str, step: StepState, evidence: str, work: Work | None) -> None:
    """A poll found out nothing: poll again a little later, or look the request up when that happens too often."""
    if step.polls >= POLLS_LOST_MAX or step.external_ref is None or step.external_until is None:
        look(draft, key, evidence, work)
        return
    delay = delay_ms(
        LOOK_UP,
        tries=step.polls,
        run_id=draft.state.run_id,
        step=f"{key}#poll-{step.polls}",
        attempt=step.attempt,
    )
    poll_again(
        draft,
        key,
        external_ref=step.external_ref,
        poll_at=draft.now + timedelta(milliseconds=delay),
        external_until=step.external_until,
        work=work,
    )


def _on_late_outcome(draft: Draft, signal: OutcomeReported, step: StepState, *, is_open: bool) -> Decision:
    """The run is ending: a receipt tells how an attempt ended, and no more (P10)."""
    ends_for_sure = isinstance(signal.outcome, (Succeeded, Failed)) and signal.kind in ("execute", "poll")
    # Once the step is being undone its end is known, whatever else is told of it.
    waits = step.effect is not None and draft.state.open[step.effect].kind != "compensate"
    if not is_open and not (waits and ends_for_sure):
        return _ignore(draft, signal, "attempt_closed")
    draft.close(signal.effect_id, "applied", expect_receipt=True)
    learn_late(
        draft,
        signal.step,
        late_words(signal.kind, signal.outcome),
        external_ref=getattr(signal.outcome, "external_ref", None),
        provider_cost=signal.outcome.provider_cost,
        work=work_of(signal),
    )
    after_late_outcome(draft, signal.step)
    return draft.decision()


def after_late_outcome(draft: Draft, key: str) -> None:
    """An abandoned step may be settled now, and the run that goes on may be complete."""
    if draft.state.ending is None:
        settle_abandoned(draft, key)
        advance(draft)


def _on_compensation(draft: Draft, signal: OutcomeReported) -> Decision:
    draft.close(signal.effect_id, "applied", expect_receipt=True)
    apply_compensation(draft, signal.step, signal.outcome, work_of(signal))
    settle_when_known(draft)
    return draft.decision()


def _ignore(draft: Draft, signal: OutcomeReported, reason: str) -> Decision:
    draft.close(signal.effect_id, "ignored", expect_receipt=True)
    return draft.ignored(reason)


def _not_taken(evidence: str) -> AttemptFailure:
    return AttemptFailure(
        error_class="transient",
        origin="infrastructure",
        message=f"the provider did not take the request: {evidence}",
        retryable=True,
    )


def _stopped(outcome: Cancelled) -> AttemptFailure:
    return AttemptFailure(
        error_class="cancelled",
        origin="provider",
        message="the work was stopped by somebody else",
        retryable=False,
        provider_cost=outcome.provider_cost,
    )
