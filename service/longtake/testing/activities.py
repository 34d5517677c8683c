"""Activities of a simulated world: they look to a plan like those they stand for, and ask the fake provider for everything.

What they make satisfies whatever the plan refers to, so that any valid plan can be simulated without the code behind it.
"""

import uuid
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from longtake.contracts.outcomes import (
    Artifact,
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
from longtake.testing.faults import Faults
from longtake.testing.provider import Job, ProviderError
from longtake.testing.world import World
from longtake.worker.activity import Activity, Call
from longtake.workflow.plan import ActivityFacts, CompiledPlan

Style = Literal["quick", "call", "held", "job", "blind", "callback"]
"""quick: nothing leaves the worker; call: an unpaid request; held: answered when done; job: an id to poll by, look-up and
cancel; blind: an id to poll by and nothing else; callback: an id, and only a callback tells of the end."""


class Stage:
    """Where the activities play: set before each run of a seed, so that one application serves all of them."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.faults: Faults | None = None
        self.plan_of: Callable[[uuid.UUID], CompiledPlan] | None = None

    def set(self, world: World, faults: Faults, plan_of: Callable[[uuid.UUID], CompiledPlan]) -> None:
        """Play in this world from now on."""
        self.world, self.faults, self.plan_of = world, faults, plan_of


class SimulatedActivity(Activity):
    """Stands for an activity with these facts."""

    name = "simulated@1"

    def __init__(self, stage: Stage, style: Style, facts: ActivityFacts) -> None:
        self._stage = stage
        self._style = style
        self._facts = facts
        # The base class has these by class; here they are of the one object.
        vars(self).update(
            name=f"{facts.name}@{facts.version}", paid=facts.paid, calls_out=style != "quick", pool=facts.pool
        )

    def facts(self) -> ActivityFacts:
        """What a plan must know."""
        return self._facts

    @property
    def _world(self) -> World:
        assert self._stage.world is not None, "a stage is set before a world runs"
        return self._stage.world

    @property
    def _faults(self) -> Faults:
        assert self._stage.faults is not None, "a stage is set before a world runs"
        return self._stage.faults

    def _provider(self) -> Any:
        current = self._world.current
        assert current is not None, "an activity runs in an actor"
        return current.process.memory["provider"]

    async def execute(self, call: Call) -> Outcome:
        """Do the work, or hand it to the provider."""
        provider, faults = self._provider(), self._faults
        if self._style == "quick":
            await self._world.sleep(faults.number("quick.seconds", 0.01, 2))
            if faults.happens("bad_output", "quick"):
                return Failed(error_class="transient", message="it broke", origin="infrastructure")
            return self._made(call, None)
        url = call.callback_url("fake") if self._style in ("job", "callback") else None
        asked: dict[str, Any] = {
            "token": call.token,
            "run_id": call.run_id,
            "step": call.step,
            "attempt": call.attempt,
            "url": url,
            "lookup": self._facts.lookup,
        }
        try:
            if self._style in ("held", "call"):
                return self._end_of(call, await provider.hold(**asked))
            ref = await provider.submit(**asked)
        except ProviderError as error:
            return _refusal(error)
        except TimeoutError as error:
            return Unknown(evidence=str(error))
        return Submitted(external_ref=ref, poll_after_seconds=None if self._style == "callback" else 3)

    async def poll(self, call: Call) -> Outcome:
        """Look at a submitted request."""
        try:
            job = await self._provider().look(
                ref=call.external_ref, run_id=call.run_id, step=call.step, attempt=call.attempt
            )
        except ProviderError as error:
            return _refusal(error, seconds=5)
        except TimeoutError as error:
            return Failed(error_class="timeout", message=str(error), origin="infrastructure")
        if job is None:
            return Failed(error_class="not_found", message="the provider knows no such request")
        if job.state(self._world.monotonic()) == "working":
            return Pending(poll_after_seconds=4, progress=50)
        return self._end_of(call, job)

    async def reconcile(self, call: Call) -> Outcome:
        """Tell whether the provider took the request."""
        if not self._facts.lookup:
            return Impossible(evidence="the provider has no look-up")
        try:
            job = await self._provider().find(
                token=call.token, run_id=call.run_id, step=call.step, attempt=call.attempt
            )
        except (ProviderError, TimeoutError) as error:
            return Failed(error_class="transient", message=str(error), origin="infrastructure")
        if job is None:
            return NotFound(evidence="no request has this token")
        if job.state(self._world.monotonic()) == "working":
            if not self._facts.external:
                return Failed(error_class="overloaded", message="still at work", origin="provider")
            return Submitted(external_ref=job.ref, poll_after_seconds=3, adopted=True)
        made = self._end_of(call, job)
        return msgspec.structs.replace(made, adopted=True) if isinstance(made, Succeeded | Failed) else made

    async def cancel(self, call: Call) -> Outcome:
        """Ask the provider to stop."""
        if not self._facts.cancellable:
            return Cancelled(answer="unsupported")
        try:
            answer = await self._provider().cancel(
                token=call.token, run_id=call.run_id, step=call.step, attempt=call.attempt
            )
        except (ProviderError, TimeoutError):
            return Cancelled(answer="unknown")
        return Cancelled(answer=answer)

    def _end_of(self, call: Call, job: Job) -> Outcome:
        match job.state(self._world.monotonic()):
            case "failed":
                return Failed(error_class="provider_bug", message=f"{job.ref} failed", provider_cost=3)
            case "cancelled":
                return Failed(error_class="cancelled", message=f"{job.ref} was cancelled")
            case _:
                return self._made(call, job.ref)

    def _made(self, call: Call, ref: str | None) -> Outcome:
        assert self._stage.plan_of is not None, "a stage is set before a world runs"
        if self._faults.happens("bad_output", f"made.{self._style}"):
            return Failed(error_class="bad_output", message="it is not what was asked for")
        made = made_for(self._stage.plan_of(call.run_id), call.step, ref)
        if self._facts.name.endswith("expand"):
            drawn = int(self._faults.number("expand", 0, 6))
            return msgspec.structs.replace(
                made, result={**made.result, "count": drawn // 2, "paid": drawn % 2}
            )
        return made


def made_for(plan: CompiledPlan, key: str, ref: str | None) -> Succeeded:
    """A success with every artifact and every value that the plan wants of a step."""
    position = plan.position.get(key)
    if position is None:
        return Succeeded(result={"made": key}, external_ref=ref)
    step = plan.steps[position]
    result: dict[str, Any] = {"made": key}
    for pointer in plan.wanted[position]:
        tokens = pointer.split("/")[1:]
        if len(tokens) > 1 and tokens[0] == "result":
            _put(result, tokens[1:], f"{key}{pointer}")
    artifacts = tuple(
        Artifact(
            name=item.name,
            kind=item.kind,
            object_key=f"made/{key}/{item.name}",
            sha256="0" * 64,
            bytes=10,
            content_type="application/octet-stream",
        )
        for item in step.artifacts
    )
    return Succeeded(
        result=result, artifacts=artifacts, external_ref=ref, provider_cost=None if ref is None else 5
    )


def _put(document: dict[str, Any], tokens: list[str], value: str) -> None:
    for token in tokens[:-1]:
        inner = document.get(token)
        if not isinstance(inner, dict):
            inner = document[token] = {}
        document = inner
    document.setdefault(tokens[-1], value)


def _refusal(error: ProviderError, *, seconds: int = 2) -> Outcome:
    match error.kind:
        case "throttled":
            return Throttled(retry_after_seconds=seconds)
        case "unreachable":
            return Unknown(evidence="no answer")
        case _:
            return Failed(error_class="overloaded", message="the provider is overloaded")
