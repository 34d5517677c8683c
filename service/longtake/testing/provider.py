"""A paid provider with honest and less honest habits, and the witness of everything it was ever asked (ecosystem.md 3).

It takes a request by our token and answers at once with an id to poll by, or holds the request until the work is done; it
calls back late, twice, early or with a lie; its look-up may find, not find, fail or not exist. Every request is a line of
the witness, from which the invariants read whether anybody was charged without cause.
Leaves to others: what an answer means (activities.py), how a callback reaches the inbox (nodes.py).
"""

import uuid
from typing import Literal

import msgspec

from longtake.testing.faults import Faults
from longtake.testing.world import World

Verb = Literal["submit", "hold", "look", "find", "cancel"]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the witness."""

    at: float
    verb: Verb
    run_id: uuid.UUID
    step: str
    attempt: int
    token: str
    taken: bool
    """The provider did it; for submit and hold a job that it charges for."""


class Job(msgspec.Struct, kw_only=True):
    """Work that the provider has taken."""

    ref: str
    token: str
    run_id: uuid.UUID
    step: str
    attempt: int
    begun_at: float
    done_at: float
    fails: bool
    cancelled: bool = False

    def state(self, now: float) -> Literal["working", "done", "failed", "cancelled"]:
        """What the provider says of it."""
        if self.cancelled:
            return "cancelled"
        if now < self.done_at:
            return "working"
        return "failed" if self.fails else "done"


class ProviderError(Exception):
    """The provider answered with an error that says what it is."""

    def __init__(self, kind: Literal["throttled", "refused", "overloaded", "unreachable"]) -> None:
        super().__init__(kind)
        self.kind = kind


class Callback(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider wants told."""

    run_id: uuid.UUID
    step: str
    attempt: int
    url: str
    delivery: str
    type: str
    ref: str | None


class FakeProvider:
    """The outside world: survives every crash of ours, and never takes back what it has done."""

    def __init__(self, world: World, faults: Faults) -> None:
        self._world = world
        self._faults = faults
        self.jobs: dict[str, Job] = {}
        """By our token: it knows its own idempotency keys."""
        self.by_ref: dict[str, Job] = {}
        self.witness: list[Request] = []
        self.callbacks: list[Callback] = []
        """All that were sent."""
        self.send: list[tuple[float, Callback]] = []
        """To be sent after so many seconds; taken by whoever carries them."""
        self._number = 0

    def job_of(self, run_id: uuid.UUID, step: str, attempt: int) -> Job | None:
        """The job that was taken for an attempt, by whatever token."""
        return next(
            (
                job
                for job in self.jobs.values()
                if (job.run_id, job.step, job.attempt) == (run_id, step, attempt)
            ),
            None,
        )

    async def submit(
        self, *, token: str, run_id: uuid.UUID, step: str, attempt: int, url: str | None, lookup: bool
    ) -> str:
        """Take a request and answer with its id. Raises ProviderError; TimeoutError when no answer comes."""
        return self._take("submit", token, run_id, step, attempt, url, lookup).ref

    async def hold(
        self, *, token: str, run_id: uuid.UUID, step: str, attempt: int, url: str | None, lookup: bool
    ) -> Job:
        """Take a request and answer when it is done."""
        job = self._take("hold", token, run_id, step, attempt, url, lookup)
        await self._world.sleep(max(0.001, job.done_at - self._world.monotonic()))
        return job

    async def look(self, *, ref: str, run_id: uuid.UUID, step: str, attempt: int) -> Job | None:
        """Tell how a request stands."""
        self._refuse_sometimes()
        job = self.by_ref.get(ref)
        self._write("look", run_id, step, attempt, "" if job is None else job.token, taken=job is not None)
        return job

    async def find(self, *, token: str, run_id: uuid.UUID, step: str, attempt: int) -> Job | None:
        """Tell whether a request with that token was ever taken."""
        if self._faults.happens("look_up_fails", "provider.find"):
            raise ProviderError("unreachable")
        job = self.jobs.get(token)
        self._write("find", run_id, step, attempt, token, taken=job is not None)
        return job

    async def cancel(
        self, *, token: str, run_id: uuid.UUID, step: str, attempt: int
    ) -> Literal["stopped", "too_late", "unknown"]:
        """Stop a request."""
        self._refuse_sometimes()
        job = self.jobs.get(token)
        self._write("cancel", run_id, step, attempt, token, taken=job is not None)
        if job is None:
            return "unknown"
        if job.state(self._world.monotonic()) in ("done", "failed"):
            return "too_late"
        job.cancelled = True
        return "stopped"

    def _take(
        self,
        verb: Verb,
        token: str,
        run_id: uuid.UUID,
        step: str,
        attempt: int,
        url: str | None,
        lookup: bool,
    ) -> Job:
        faults = self._faults
        self._refuse_sometimes()
        if lookup and faults.happens("never_arrived", f"provider.{verb}"):
            # Only where a look-up can tell: without one the two cases look alike, and nothing is proved.
            self._write(verb, run_id, step, attempt, token, taken=False)
            raise TimeoutError("no answer")
        known = self.jobs.get(token)
        self._write(verb, run_id, step, attempt, token, taken=known is None)
        job = known or self._begin(token, run_id, step, attempt)
        if known is None and url is not None:
            self._promise_callbacks(job, url)
        if faults.happens("timeout_after_success", f"provider.{verb}"):
            raise TimeoutError("no answer")
        return job

    def _begin(self, token: str, run_id: uuid.UUID, step: str, attempt: int) -> Job:
        self._number += 1
        now = self._world.monotonic()
        seconds = self._faults.number("provider.seconds", 0.5, 8)
        if self._faults.happens("slow", "provider.seconds"):
            seconds *= 8
        job = Job(
            ref=f"job-{self._number}",
            token=token,
            run_id=run_id,
            step=step,
            attempt=attempt,
            begun_at=now,
            done_at=now + seconds,
            fails=self._faults.happens("job_fails", "provider.job"),
        )
        self.jobs[token] = self.by_ref[job.ref] = job
        return job

    def _refuse_sometimes(self) -> None:
        if self._faults.happens("throttled", "provider"):
            raise ProviderError("throttled")
        if self._faults.happens("refused", "provider"):
            raise ProviderError("overloaded")

    def _write(
        self, verb: Verb, run_id: uuid.UUID, step: str, attempt: int, token: str, *, taken: bool
    ) -> None:
        self.witness.append(
            Request(
                at=self._world.monotonic(),
                verb=verb,
                run_id=run_id,
                step=step,
                attempt=attempt,
                token=token,
                taken=taken,
            )
        )

    def _promise_callbacks(self, job: Job, url: str) -> None:
        faults = self._faults
        seconds = job.done_at - job.begun_at
        if faults.happens("callback_late", "callback"):
            seconds += faults.number("callback.late", 1, 90)
        if faults.happens("callback_early", "callback"):
            self._send(0.0, job, url, "processing", f"{job.ref}-processing")
        if faults.happens("callback_contradicts", "callback"):
            self._send(seconds + 0.5, job, url, "failed", f"{job.ref}-lie")
        self._send(seconds, job, url, "succeeded" if not job.fails else "failed", f"{job.ref}-end")
        if faults.happens("callback_twice", "callback"):
            self._send(
                seconds + faults.number("callback.twice", 0, 20), job, url, "succeeded", f"{job.ref}-end"
            )

    def _send(self, seconds: float, job: Job, url: str, type_: str, delivery: str) -> None:
        callback = Callback(
            run_id=job.run_id,
            step=job.step,
            attempt=job.attempt,
            url=url,
            delivery=delivery,
            type=type_,
            ref=job.ref,
        )
        self.callbacks.append(callback)
        self.send.append((seconds, callback))
        self._world.sound("provider.callbacks")
