"""Where all providers accept work: a create becomes a job on disk and a witness line, then the job is carried out.

The order of a create is the point of this file: faults that refuse, the free slot, the job on disk, the witness
line on disk, the work begun, faults that spoil the answer, the answer. The faces translate to and from HTTP.
"""

import asyncio
import hashlib
import logging
import time
import uuid
from collections import defaultdict
from datetime import UTC, datetime

import msgspec

from videoads.providers.synthetic.asgi import HangUp
from videoads.providers.synthetic.callbacks import Courier
from videoads.providers.synthetic.faults import ErrorName, Fault, RuleBook, Style
from videoads.providers.synthetic.jobs import Job, JobStore, WebhookOrder
from videoads.providers.synthetic.ledger import WitnessFile
from videoads.providers.synthetic.making import Made, MakingFailed, Workshop
from videoads.providers.synthetic.orders import KINDS, Order, Shelf, maker_request
from videoads.providers.synthetic.profiles import Profile
from videoads.providers.witness import RequestKind, WitnessLine

EARLY_WEBHOOK_WAIT_SECONDS_MAX = 30.0
EMPTY_MEDIA = "empty"
_log = logging.getLogger(__name__)


class Refusal(Exception):
    """A create that is not answered with a job. `job` is set when there is one all the same."""

    def __init__(self, error: ErrorName, message: str, *, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.error = error
        self.message = message
        self.retry_after_seconds = retry_after_seconds


class Broken(Exception):
    """The job was accepted and the answer is a 500 (`garbled` False) or a 200 without sense."""

    def __init__(self, *, garbled: bool) -> None:
        super().__init__("the answer is spoilt")
        self.garbled = garbled


class Desk:
    """Accepts creates and carries jobs out; one for all providers of this program."""

    def __init__(
        self,
        *,
        store: JobStore,
        witness: WitnessFile,
        rules: RuleBook,
        workshop: Workshop,
        shelf: Shelf,
        courier: Courier,
        profile: Profile,
        speed: float,
        tiny: bool,
    ) -> None:
        self.store, self.witness, self.rules = store, witness, rules
        self.workshop, self.shelf, self.courier = workshop, shelf, courier
        self.profile = profile
        self._speed = speed
        self._tiny = tiny
        self._accepting: defaultdict[Style, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._work: dict[str, asyncio.Task[None]] = {}

    async def resume(self) -> None:
        """Go on where a kill interrupted: complete the witness, restart open jobs and owed webhooks."""
        for job in self.store.all():
            if job.id not in self.witness.jobs:
                await self._witness_create(job, accepted=True, note="recovered after a kill")
            if job.open or _owes_webhook(job):
                self._begin(job)

    async def stop(self) -> None:
        """Stop working; open jobs stay open on disk."""
        tasks = list(self._work.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.workshop.close()
        await self.courier.close()
        await self.witness.close()

    # --- accepting

    async def create(self, order: Order) -> Job:
        """Accept the order. Raises Refusal, Broken or HangUp when the answer is something else than a job."""
        faults = self.rules.strike(style=order.style, token=order.token, content=order.content_digest)
        for fault in faults:
            await self._refuse(order, fault)
        job = await self._accept(order, faults)
        await self._witness_create(job, accepted=True, note=" ".join(fault.kind for fault in faults))
        await self.store.announce()
        self._begin(job)
        await self._spoil_answer(job)
        return job

    async def _refuse(self, order: Order, fault: Fault) -> None:
        match fault.kind:
            case "throttle":
                refusal = Refusal(
                    "throttled", "ordered by the control plane", retry_after_seconds=fault.retry_after_seconds
                )
            case "reject":
                refusal = Refusal(fault.error, f"ordered by the control plane: {fault.error}")
            case "lose_request":
                await self._witness_refused(order, note=fault.kind)
                raise HangUp
            case _:
                return
        await self._witness_refused(order, note=fault.kind)
        raise refusal

    async def _accept(self, order: Order, faults: tuple[Fault, ...]) -> Job:
        limit = self.profile.limits[order.style]
        async with self._accepting[order.style]:
            if self.store.open_count(order.style) < limit:
                return await self.store.put(
                    Job(
                        id=f"{order.style[:2]}_{uuid.uuid4().hex[:20]}",
                        style=order.style,
                        token=order.token,
                        request=order.request,
                        content_digest=order.content_digest,
                        body_sha256=order.body_sha256,
                        accepted_at=time.time(),
                        cost=order.cost,
                        faults=faults,
                        webhook=self._webhook(order, faults),
                    )
                )
        await self._witness_refused(order, note="no free slot")
        raise Refusal("throttled", f"{limit} jobs are open, no slot is free", retry_after_seconds=1)

    def _webhook(self, order: Order, faults: tuple[Fault, ...]) -> WebhookOrder | None:
        if order.webhook is None:
            return None
        kinds = {fault.kind for fault in faults}
        mood = hashlib.sha256(order.token.encode()).digest()[0] % 4 if self.profile.moody_webhooks else None
        copies = 2 if "webhook_twice" in kinds or mood == 1 else 1
        return msgspec.structs.replace(
            order.webhook,
            copies=0 if "webhook_never" in kinds else copies,
            early="webhook_early" in kinds or mood == 0,
        )

    async def _spoil_answer(self, job: Job) -> None:
        if job.webhook is not None and job.webhook.early:
            await self.store.wait_until(
                lambda: _webhook_went_out(self.current(job)), timeout_seconds=EARLY_WEBHOOK_WAIT_SECONDS_MAX
            )
        if job.fault("hold_response"):
            await self.store.wait_until(lambda: self.rules.is_released(job.token))
        if job.fault("lose_response"):
            raise HangUp
        if job.fault("server_error"):
            raise Broken(garbled=False)
        if job.fault("garble_response"):
            raise Broken(garbled=True)

    # --- asking

    def current(self, job: Job) -> Job:
        """The newest version of a job."""
        return self.store.get(job.style, job.id) or job

    async def ended(self, job: Job) -> Job:
        """The job when it is over."""
        await self.store.wait_until(lambda: not self.current(job).open)
        return self.current(job)

    async def note(
        self, style: Style, request: RequestKind, token: str, *, body: bytes = b"", job: str | None = None
    ) -> None:
        """Write the witness line of a request that is not a create."""
        line = WitnessLine(
            time=datetime.now(UTC).isoformat(),
            provider=style,
            request=request,
            token=token,
            body_sha256=hashlib.sha256(body).hexdigest(),
            accepted=False,
            cost=0,
            job=job,
            open_jobs=self.store.open_count(style),
        )
        await self.witness.record(line)
        await self.store.announce()

    async def cancel(self, job: Job) -> Job:
        """Stop a job that has not ended; what was begun is paid."""
        begun = self.current(job).state == "running"
        task = self._work.get(job.id)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        job = self.current(job)
        if not job.open:
            return job
        return await self.store.put(
            msgspec.structs.replace(
                job,
                state="cancelled",
                error="cancelled",
                message="cancelled on request",
                cost=job.cost if begun else 0,
            )
        )

    # --- working

    def _begin(self, job: Job) -> None:
        self._work[job.id] = task = asyncio.create_task(self._carry_out(job))
        task.add_done_callback(lambda ended: self._forget(job.id, ended))

    def _forget(self, job_id: str, ended: asyncio.Task[None]) -> None:
        self._work.pop(job_id, None)
        if not ended.cancelled() and (error := ended.exception()) is not None:
            # The job stays open on disk, as it does in a kill, and goes on at the next start.
            _log.error("the work on %s was interrupted", job_id, exc_info=error)

    async def _carry_out(self, job: Job) -> None:
        if job.open:
            job = await self._work_on(job)
        if _owes_webhook(job):
            await self._hold_webhook(job)
            await self.courier.deliver(job)

    async def _work_on(self, job: Job) -> Job:
        if stall := job.fault("stall"):
            seconds = stall.seconds / self._speed if stall.seconds else None
            await self.store.wait_until(lambda: self.rules.is_released(job.token), timeout_seconds=seconds)
        job = await self.store.put(msgspec.structs.replace(job, state="running"))
        if failure := job.fault("fail"):
            share = int(job.content_digest[:4], 16) / 0xFFFF if failure.spread else 1.0
            await self._until(job, failure.seconds * share)
            return await self._fail(job, failure.error, f"ordered by the control plane: {failure.error}")
        try:
            made = await self.workshop.make(KINDS[job.style], maker_request(job, self.shelf, tiny=self._tiny))
        except MakingFailed as error:
            return await self._fail(job, "invalid_input" if error.refused else "provider_bug", str(error))
        await self._until(job, self.profile.seconds[job.style])
        return await self._succeed(job, self._emptied(made) if job.fault("empty") else made)

    def _emptied(self, made: Made) -> Made:
        (self.workshop.folder / EMPTY_MEDIA).write_bytes(b"")
        return msgspec.structs.replace(
            made, name=EMPTY_MEDIA, size_bytes=0, sha256=hashlib.sha256().hexdigest()
        )

    async def _until(self, job: Job, seconds: float) -> None:
        # The wall clock, because the job may have been accepted by a process that was killed since.
        await asyncio.sleep(max(0.0, job.accepted_at + seconds / self._speed - time.time()))

    async def _fail(self, job: Job, error: ErrorName, message: str) -> Job:
        return await self.store.put(
            msgspec.structs.replace(job, state="failed", error=error, message=message)
        )

    async def _succeed(self, job: Job, made: Made) -> Job:
        return await self.store.put(
            msgspec.structs.replace(
                job,
                state="succeeded",
                media=made.name,
                media_type=made.media_type,
                size_bytes=made.size_bytes,
                sha256=made.sha256,
                report=made.report,
            )
        )

    async def _hold_webhook(self, job: Job) -> None:
        if delay := job.fault("webhook_delay"):
            seconds = delay.seconds / self._speed if delay.seconds else None
            await self.store.wait_until(lambda: self.rules.is_released(job.token), timeout_seconds=seconds)

    # --- witnessing

    async def _witness_create(self, job: Job, *, accepted: bool, note: str) -> None:
        await self.witness.record(
            WitnessLine(
                time=datetime.now(UTC).isoformat(),
                provider=job.style,
                request="create",
                token=job.token,
                body_sha256=job.body_sha256,
                accepted=accepted,
                cost=job.cost,
                job=job.id,
                open_jobs=self.store.open_count(job.style),
                note=note,
            )
        )

    async def _witness_refused(self, order: Order, *, note: str) -> None:
        await self.witness.record(
            WitnessLine(
                time=datetime.now(UTC).isoformat(),
                provider=order.style,
                request="create",
                token=order.token,
                body_sha256=order.body_sha256,
                accepted=False,
                cost=0,
                job=None,
                open_jobs=self.store.open_count(order.style),
                note=note,
            )
        )
        await self.store.announce()


def _owes_webhook(job: Job) -> bool:
    webhook = job.webhook
    return (
        not job.open
        and job.state != "cancelled"
        and webhook is not None
        and not webhook.given_up
        and webhook.delivered < webhook.copies
    )


def _webhook_went_out(job: Job) -> bool:
    return job.webhook is None or job.webhook.attempts > 0 or job.webhook.copies == 0
