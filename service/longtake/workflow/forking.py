"""Forking: running again from a step on, with the committed receipts of an ended run taken over (P9, T52).

Taken over is what succeeded and does not follow from the step. A receipt is free when the run it comes from has paid
for it and can get nothing back any more; otherwise its price is taken again. What the fork costs is known before it is
admitted: a trial plays its first decision and counts what may still run.
Leaves to others: admission (the fork's own id, hold and scopes), charging (charging.py).
"""

import uuid
from collections.abc import Iterable, Iterator

import msgspec

from longtake.contracts.codec import to_json
from longtake.contracts.events import (
    Event,
    Money,
    PlanExpanded,
    ReusedStep,
    RunAccepted,
    StepsReused,
    StepsSkipped,
    StepSucceeded,
)
from longtake.contracts.problems import Problem, ProblemError, problem
from longtake.workflow.draft import Draft
from longtake.workflow.joins import waiters
from longtake.workflow.plan import Plan
from longtake.workflow.run_state import RunState, initial
from longtake.workflow.scheduling import advance

STEPS_PER_EVENT_MAX = 250
RECEIPTS_BYTES_MAX = 256 * 1024
"""Keep an event below its size limit."""


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """What a fork takes over, and what it costs."""

    source: uuid.UUID
    step: str
    """This step and all that follows from it is done anew."""
    fragments: tuple[PlanExpanded, ...] = ()
    """Expansions of the source that stand."""
    reused: tuple[ReusedStep, ...] = ()
    idle: tuple[str, ...] = ()
    """Steps that did not succeed and on which only steps wait that are taken over: nobody needs them."""
    anew: tuple[str, ...] = ()
    """Steps that may run."""
    quoted: int = 0
    """What is charged: receipts that are paid again, and the steps that may run."""
    extra: int = 0
    """The price that the client approves: the quote, and what an expansion that is done anew may add again."""

    @property
    def repriced(self) -> tuple[str, ...]:
        """Steps that are taken over and paid again."""
        return tuple(item.step for item in self.reused if not item.free)


def plan_fork(source: RunState, history: Iterable[Event], step: str) -> Fork | Problem:
    """What a fork of an ended run from a step on would be, or why there can be none."""
    if not source.terminal:
        return problem(
            "action-not-available",
            "Only a run that has ended can be forked.",
            ProblemError("/targets/0", "the run has not ended", "cancel it, or wait for its end"),
        )
    if step not in source.plan.position:
        return problem(
            "invalid-command",
            f"The run has no step {step!r}.",
            ProblemError("/payload/step", f"there is no step {step!r}", "name a step of the run's plan"),
        )
    receipts, fragments = _committed(history)
    undone = [index for index, known in enumerate(source.steps) if known.compensation in ("done", "failed")]
    anew = _following(source, [source.plan.position[step], *undone])
    standing = tuple(item for item in fragments if source.plan.position[item.step] not in anew)
    again = [item for item in fragments if source.plan.position[item.step] in anew]
    reused = tuple(
        msgspec.structs.replace(receipts[source.plan.steps[index].key], free=_is_paid(source, index))
        for index in source.plan.order
        if source.steps[index].status == "succeeded" and index not in anew
    )
    fork = Fork(
        source=source.run_id,
        step=step,
        fragments=standing,
        reused=reused,
        idle=_idle(source, anew, {item.step for item in reused}),
    )
    trial = _trial(source, fork, added=sum(len(item.steps) for item in fragments))
    may_run = [
        index
        for index, known in enumerate(trial.steps)
        if not known.ended and not known.abandoned and known.reused is None
    ]
    quoted = sum(source.plan_of(key).price for key in fork.repriced) + sum(
        trial.plan.steps[index].price for index in may_run
    )
    return msgspec.structs.replace(
        fork,
        anew=tuple(trial.plan.steps[index].key for index in may_run),
        quoted=quoted,
        extra=quoted + sum(source.plan_of(item["key"]).price for made in again for item in made.steps),
    )


def price_refusal(fork: Fork, approved: int | None) -> Problem | None:
    """The problem with a fork that costs more than its client has seen."""
    if approved is None or fork.extra <= approved:
        return None
    return problem(
        "invalid-command",
        f"The fork costs {fork.extra} extra credits, and {approved} were approved.",
        ProblemError(
            "/payload/max_extra_credits",
            f"is {approved}, the fork costs {fork.extra}",
            f"approve {fork.extra}, or fork from a later step",
        ),
    )


def take_over(draft: Draft, fork: Fork) -> None:
    """Let the accepted run begin with what it takes over."""
    for made in fork.fragments:
        draft.record(msgspec.structs.replace(made, quoted=draft.state.quoted))
    for part in _parts(fork.reused):
        draft.record(StepsReused(from_run=fork.source, steps=part))
    for start in range(0, len(fork.idle), STEPS_PER_EVENT_MAX):
        part_of_idle = fork.idle[start : start + STEPS_PER_EVENT_MAX]
        draft.record(StepsSkipped(steps=part_of_idle, reason="dependencies"))


def _committed(history: Iterable[Event]) -> tuple[dict[str, ReusedStep], list[PlanExpanded]]:
    """The last receipt of every step that has one, and all expansions."""
    receipts: dict[str, ReusedStep] = {}
    fragments: list[PlanExpanded] = []
    for event in history:
        match event:
            case StepSucceeded():
                receipts[event.step] = ReusedStep(
                    step=event.step,
                    result=event.result,
                    artifacts=event.artifacts,
                    external_ref=event.external_ref,
                )
            case StepsReused():
                receipts.update((item.step, item) for item in event.steps)
            case PlanExpanded():
                fragments.append(event)
            case _:
                continue
    return receipts, fragments


def _following(source: RunState, starts: Iterable[int]) -> set[int]:
    """The steps themselves and everything that waits for them, however far away."""
    found: set[int] = set()
    look = list(starts)
    while look:
        index = look.pop()
        if index not in found:
            found.add(index)
            look.extend(waiters(source, index))
    return found


def _is_paid(source: RunState, index: int) -> bool:
    """Whether the receipt costs nothing again: it had no price, or its price was kept and cannot be given back (P9)."""
    step, price = source.steps[index], source.plan.steps[index].price
    if price == 0 or step.reused == "free":
        return True
    if source.billing == "pay_as_you_go":
        return step.charged > 0
    return source.ended != "failed"


def _idle(source: RunState, anew: set[int], reused: set[str]) -> tuple[str, ...]:
    served = {source.plan.position[key] for key in reused}
    idle: set[int] = set()
    for index in reversed(source.plan.order):
        needed_by = waiters(source, index)
        key = source.plan.steps[index].key
        if index in anew or index in served or not needed_by or key == source.plan.plan.delivers:
            continue
        if all(waiter in served or waiter in idle for waiter in needed_by):
            idle.add(index)
    return tuple(source.plan.steps[index].key for index in sorted(idle))


def _trial(source: RunState, fork: Fork, *, added: int) -> RunState:
    """The state after the fork's first decision, as if nothing had a price."""
    steps = source.plan.plan.steps
    plan: Plan = msgspec.structs.replace(
        source.plan.plan, steps=steps[: len(steps) - added], billing="prepaid"
    )
    trial = initial(source.run_id, source.tenant, plan)
    assert source.ended_at is not None, "the run has ended"
    draft = Draft(trial, source.ended_at)
    draft.record(
        RunAccepted(
            workflow=source.workflow,
            workflow_version=source.workflow_version,
            project=source.project,
            actor=source.actor,
            command_id=source.command_id,
            plan_fingerprint=source.fingerprint,
            application=source.application,
            money=Money(account=source.account, quoted=0, cap=0, held=0, price_list=source.price_list),
            forked_from=source.run_id,
            forked_step=fork.step,
        )
    )
    take_over(draft, fork)
    advance(draft)
    return trial


def _parts(reused: tuple[ReusedStep, ...]) -> Iterator[tuple[ReusedStep, ...]]:
    part: list[ReusedStep] = []
    size = 0
    for item in reused:
        bytes_ = len(to_json(item))
        if part and (len(part) == STEPS_PER_EVENT_MAX or size + bytes_ > RECEIPTS_BYTES_MAX):
            yield tuple(part)
            part, size = [], 0
        part.append(item)
        size += bytes_
    if part:
        yield tuple(part)
