"""What the outside may answer a worker in a small world, given what the provider has done so far.

The provider takes a request as often as it is asked for it: whether it is asked twice is for the protocol to prevent.
Leaves to others: that jobs end and call back (exhaustive_moves.py).
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from longtake.contracts.effects import ClaimedEffect
from longtake.contracts.outcomes import (
    Cancelled,
    Failed,
    Impossible,
    NotFound,
    Outcome,
    Pending,
    Submitted,
    Succeeded,
    Unknown,
)
from longtake.testing.exhaustive_machine import Broken, ref_of
from longtake.testing.exhaustive_state import Job, JobState, Node
from longtake.workflow.plan import ActivityFacts

POLL_SECONDS = 10


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One way that a call may end."""

    label: str
    outcome: Outcome
    jobs: tuple[Job, ...]
    taken: Job | None = None
    """The provider took this with the call."""
    costs: Literal["lost", "failure"] | None = None
    """The budget it is drawn from."""


def answers(node: Node, effect: ClaimedEffect, facts: ActivityFacts, *, calls_out: bool) -> Iterator[Said]:
    """Every way that the call for an effect may end."""
    found = next((job for job in node.jobs if (job.step, job.attempt) == (effect.step, effect.attempt)), None)
    match effect.kind:
        case "execute" if facts.external:
            yield from _submit(node, effect, found)
        case "execute" | "compensate":
            yield from _held(node, effect, calls_out=calls_out)
        case "poll":
            yield from _poll(node, effect, found)
        case "reconcile":
            yield from _look_up(node, effect, facts, found)
        case "cancel":
            yield from _stop(node, facts, found)


def _submit(node: Node, effect: ClaimedEffect, found: Job | None) -> Iterator[Said]:
    if found is not None:
        raise Broken("I25", f"{effect.step}/{effect.attempt} is asked of the provider twice")
    job = Job(step=effect.step, attempt=effect.attempt)
    jobs = tuple(sorted((*node.jobs, job), key=lambda job: (job.step, job.attempt)))
    submitted = Submitted(external_ref=ref_of(job.step, job.attempt), poll_after_seconds=POLL_SECONDS)
    yield Said(label="taken", outcome=submitted, jobs=jobs, taken=job)
    unknown = Unknown(evidence="no answer came")
    yield Said(label="taken, no answer", outcome=unknown, jobs=jobs, taken=job, costs="lost")
    yield Said(label="never arrived, no answer", outcome=unknown, jobs=node.jobs, costs="lost")
    yield Said(label="refused", outcome=_failed("overloaded"), jobs=node.jobs, costs="failure")


def _held(node: Node, effect: ClaimedEffect, *, calls_out: bool) -> Iterator[Said]:
    yield Said(label="done", outcome=_made(effect), jobs=node.jobs)
    yield Said(label="fails", outcome=_failed("transient"), jobs=node.jobs, costs="failure")
    if calls_out:
        unknown = Unknown(evidence="no answer came")
        yield Said(label="no answer", outcome=unknown, jobs=node.jobs, costs="lost")


def _poll(node: Node, effect: ClaimedEffect, found: Job | None) -> Iterator[Said]:
    if found is None:
        raise Broken("I13", f"{effect.step}/{effect.attempt} is polled and was never taken")
    match found.state:
        case "working":
            yield Said(
                label="still at work", outcome=Pending(poll_after_seconds=POLL_SECONDS), jobs=node.jobs
            )
        case _:
            yield Said(label=found.state, outcome=_end_of(effect, found.state, adopted=False), jobs=node.jobs)
    timeout = Failed(error_class="timeout", message="no answer came", origin="infrastructure")
    yield Said(label="no answer", outcome=timeout, jobs=node.jobs, costs="lost")


def _look_up(node: Node, effect: ClaimedEffect, facts: ActivityFacts, found: Job | None) -> Iterator[Said]:
    if not facts.lookup:
        evidence = "the provider has no look-up"
        yield Said(label="cannot be told", outcome=Impossible(evidence=evidence), jobs=node.jobs)
        return
    if found is None:
        yield Said(label="not found", outcome=NotFound(evidence="no request has this token"), jobs=node.jobs)
    elif found.state == "working":
        submitted = Submitted(
            external_ref=ref_of(found.step, found.attempt), poll_after_seconds=POLL_SECONDS, adopted=True
        )
        yield Said(label="found at work", outcome=submitted, jobs=node.jobs)
    else:
        yield Said(
            label=f"found {found.state}", outcome=_end_of(effect, found.state, adopted=True), jobs=node.jobs
        )
    unclear = Failed(error_class="timeout", message="no answer came", origin="infrastructure")
    yield Said(label="no answer", outcome=unclear, jobs=node.jobs, costs="lost")


def _stop(node: Node, facts: ActivityFacts, found: Job | None) -> Iterator[Said]:
    if not facts.cancellable:
        yield Said(label="cannot be stopped", outcome=Cancelled(answer="unsupported"), jobs=node.jobs)
        return
    if found is None or found.state == "stopped":
        yield Said(label="nothing to stop", outcome=Cancelled(answer="stopped"), jobs=node.jobs)
        return
    if found.state != "working":
        yield Said(label="too late", outcome=Cancelled(answer="too_late"), jobs=node.jobs)
        return
    stopped = msgspec.structs.replace(found, state="stopped")
    jobs = tuple(stopped if job is found else job for job in node.jobs)
    yield Said(label="stopped", outcome=Cancelled(answer="stopped"), jobs=jobs)
    yield Said(label="stopped, no answer", outcome=Cancelled(answer="unknown"), jobs=jobs, costs="lost")


def _end_of(effect: ClaimedEffect, state: JobState, *, adopted: bool) -> Outcome:
    match state:
        case "failed":
            return Failed(error_class="provider_bug", message="the job failed", adopted=adopted)
        case "stopped":
            return Failed(error_class="cancelled", message="the job was stopped", adopted=adopted)
        case _:
            return _made(effect, adopted=adopted, ref=ref_of(effect.step, effect.attempt))


def _made(effect: ClaimedEffect, *, adopted: bool = False, ref: str | None = None) -> Outcome:
    return Succeeded(result={"made": effect.step}, external_ref=ref, adopted=adopted)


def _failed(error_class: Literal["overloaded", "transient"]) -> Outcome:
    return Failed(error_class=error_class, message="it did not work")
