"""What a provider said, in longtake's words: one translation for every provider.

A refused connection sent nothing and is a failure that another attempt may cure; anything after bytes were sent
without a whole answer is unknown.
"""

import math
from datetime import UTC, datetime, timedelta

import longtake
from longtake import Outcome
from videoads.outsiders import Outsiders
from videoads.providers import contract

SUBMIT_SECONDS_MAX = 60.0
HELD_SECONDS_MAX = 120.0
MEDIA_BYTES_MAX = 512 * 1024 * 1024
REQUEST_FAULTS = {"invalid_input", "moderation_input"}


def deadline_in(seconds: float) -> datetime:
    """A moment that many seconds from now."""
    return datetime.now(UTC) + timedelta(seconds=seconds)


async def submitted(answer: contract.SubmitOutcome, outsiders: Outsiders) -> Outcome:
    """The outcome of a submit that did not come back with the work itself."""
    match answer:
        case contract.Accepted(ref=ref, poll_after_seconds=seconds, cost_estimate=cost):
            return longtake.Submitted(
                external_ref=ref, poll_after_seconds=max(1, math.ceil(seconds)), provider_cost=cost
            )
        case contract.Rejected(nothing_sent=True, message=message):
            await outsiders.forget()
            return longtake.Failed(error_class="transient", origin="infrastructure", message=message)
        case contract.Rejected(error=error, message=message):
            return failed(error, message)
        case contract.Throttled(retry_at=moment, scope=scope):
            seconds = max(1, math.ceil((moment - datetime.now(UTC)).total_seconds()))
            return longtake.Throttled(retry_after_seconds=seconds, scope=scope)
        case contract.Unknown(evidence=evidence):
            return longtake.Unknown(evidence=evidence)
        case contract.Completed():
            raise AssertionError("a completed answer is taken by its own activity")


def polled(answer: contract.Pending | contract.Failed | contract.Gone) -> Outcome:
    """The outcome of a poll that found no finished work."""
    match answer:
        case contract.Pending(poll_after_seconds=seconds, progress=progress):
            percent = None if progress is None else max(0, min(100, round(progress * 100)))
            return longtake.Pending(poll_after_seconds=max(1, math.ceil(seconds)), progress=percent)
        case contract.Failed(error=error, message=message, cost=cost):
            return failed(error, message, cost=cost)
        case contract.Gone(evidence=evidence):
            return longtake.Failed(error_class="not_found", message=f"the provider lost the job: {evidence}")


def reconciled(answer: contract.ReconcileOutcome) -> Outcome:
    """The outcome of a look-up by our token."""
    match answer:
        case contract.Found(ref=ref):
            return longtake.Submitted(external_ref=ref, poll_after_seconds=1, adopted=True)
        case contract.NotFound(authoritative=True, evidence=evidence):
            return longtake.NotFound(evidence=evidence)
        case contract.NotFound(evidence=evidence):
            return longtake.Failed(error_class="transient", message=f"the look-up gave no answer: {evidence}")
        case contract.Impossible(evidence=evidence):
            return longtake.Impossible(evidence=evidence)


def cancelled(answer: contract.CancelOutcome) -> Outcome:
    """The outcome of asking a provider to stop."""
    match answer:
        case contract.Stopped(cost=cost):
            return longtake.Cancelled(answer="stopped", provider_cost=cost)
        case contract.TooLate():
            return longtake.Cancelled(answer="too_late")
        case contract.Unsupported():
            return longtake.Cancelled(answer="unsupported")
        case contract.Unknown():
            return longtake.Cancelled(answer="unknown")


def failed(error: contract.ErrorClass, message: str, *, cost: int | None = None) -> longtake.Failed:
    """A definite failure."""
    return longtake.Failed(
        error_class=error.value,
        origin="request" if error.value in REQUEST_FAULTS else "provider",
        message=message,
        provider_cost=cost,
    )
