"""The runner: pulls pointers of one pool, claims, acks, executes, reports (P1, P11, P18).

The message is acked as soon as the claim stands: from there the lease is the one authority on who works.
"""

import asyncio
import random
import time
import uuid
from collections.abc import Collection

import structlog

from longtake.contracts.effects import ClaimedEffect, Report
from longtake.contracts.outcomes import Pending, Throttled
from longtake.contracts.pointers import decode_effect_pointers
from longtake.crash_points import reach
from longtake.engine.dispatcher import DOORBELL_PLANS
from longtake.engine.hints import pack_factor
from longtake.engine.suspects import sift
from longtake.engine.waking import DOORBELL_RELAY
from longtake.errors import AuthorityUnavailable, LeaseLost, PoisonMessage, TransportUnavailable
from longtake.lifecycle import LoopService
from longtake.ports import Delivery, Doorbell, Transport
from longtake.store import EffectStore, SweepStore
from longtake.telemetry.attributes import BATCH_SIZE, EFFECT_POOL, SPAN_EFFECT_CLAIM
from longtake.telemetry.tracing import extract, is_enabled, span, traces_of
from longtake.worker.executor import Executor, Finished
from longtake.worker.heartbeat import Heartbeat, Held
from longtake.worker.leases import Lease, Trust, lease_of
from longtake.worker.reporter import Reporter

FETCH_SECONDS = 5.0
AWAY_SECONDS = 0.5
UNKNOWN_ACTIVITY_SECONDS = 10.0
POINTERS_PER_CLAIM_MAX = 256

log = structlog.get_logger("longtake.worker")


class Runner(LoopService):
    """The worker of one pool in one process; at most `slots` effects at once."""

    def __init__(
        self,
        pool: str,
        *,
        slots: int,
        owner: str,
        lease: Lease,
        stop_seconds: float,
        transport: Transport,
        effects: EffectStore,
        sweep: SweepStore,
        executor: Executor,
        heartbeat: Heartbeat,
        reporter: Reporter,
        doorbell: Doorbell,
    ) -> None:
        super().__init__(f"worker-{pool}", self._work, stop_seconds=stop_seconds + 5.0)
        self.pool = pool
        self._slots = slots
        self._owner = owner
        self._lease = lease
        self._grace_seconds = stop_seconds
        self._transport = transport
        self._effects = effects
        self._sweep = sweep
        self._executor = executor
        self._heartbeat = heartbeat
        self._reporter = reporter
        self._doorbell = doorbell
        self._running: dict[asyncio.Task[None], ClaimedEffect] = {}
        self._freed = asyncio.Event()

    async def _work(self, stopping: asyncio.Event) -> None:
        subscription = await self._transport.effects(self.pool)
        stop = asyncio.create_task(stopping.wait())
        pack = pack_factor(self.pool)
        try:
            while not stopping.is_set():
                free = self._slots - len(self._running)
                if free < min(pack, self._slots):
                    self._freed.clear()
                    waiting = asyncio.create_task(self._freed.wait())
                    await asyncio.wait({waiting, stop}, return_when=asyncio.FIRST_COMPLETED)
                    waiting.cancel()
                    continue
                fetching = asyncio.create_task(
                    subscription.fetch(
                        limit=max(1, min(free, POINTERS_PER_CLAIM_MAX) // pack), wait_seconds=FETCH_SECONDS
                    )
                )
                await asyncio.wait({fetching, stop}, return_when=asyncio.FIRST_COMPLETED)
                if not fetching.done():
                    fetching.cancel()
                    await asyncio.gather(fetching, return_exceptions=True)
                    break
                try:
                    await self._take(fetching.result(), free, stopping)
                except TransportUnavailable:
                    await asyncio.sleep(AWAY_SECONDS)
        finally:
            stop.cancel()
            await subscription.close()
            await self._wind_down()

    async def _take(self, deliveries: list[Delivery], free: int, stopping: asyncio.Event) -> None:
        """Claim what the messages point at, ack them, begin the work; told to stop meanwhile, give it back (F74)."""
        if not deliveries:
            return
        pointers: list[tuple[uuid.UUID, int]] = []
        readable: list[Delivery] = []
        try:
            safe, deadly = await sift(self._sweep, deliveries)
        except AuthorityUnavailable as error:
            await self._claim_later(deliveries, error)
            return
        for delivery, deadliness in deadly:
            await self._bury(delivery, deadliness)
        for delivery in safe:
            try:
                body = decode_effect_pointers(delivery.body)
            except PoisonMessage as error:
                await self._bury(delivery, error)
                continue
            readable.append(delivery)
            pointers += [(id_, attempt) for id_, attempt, _ in body.effects]
        reach("pulled.before_claim")
        try:
            with span(
                SPAN_EFFECT_CLAIM,
                kind="consumer",
                links=_traces_of(readable),
                attributes={EFFECT_POOL: self.pool, BATCH_SIZE: len(pointers)},
            ) as hop:
                asked_at = time.monotonic()
                claimed = await self._effects.claim(
                    claim_id=uuid.uuid4(),
                    effects=pointers,
                    limit=free,
                    owner=self._owner,
                    lease_seconds=self._lease.seconds,
                )
                # A message carries one trace and many pointers.
                hop.link(traces_of(claimed))
        except AuthorityUnavailable as error:
            await self._claim_later(readable, error)
            return
        reach("claimed.before_ack")
        if pointers and not claimed:
            # Perhaps nobody has compared the plan of its run with the code that runs now: older code took it on (P15).
            self._doorbell.ring(DOORBELL_PLANS)
        if stopping.is_set():
            await self._release(claimed)
            claimed = []
        for effect in claimed:
            task = asyncio.create_task(self._attend(effect, Trust(self._lease.seconds, since=asked_at)))
            self._running[task] = effect
            task.add_done_callback(self._ended)
        for delivery in readable:
            await delivery.ack()

    async def _claim_later(self, deliveries: list[Delivery], error: AuthorityUnavailable) -> None:
        log.warning("longtake.claim_delayed", pool=self.pool, reason=str(error))
        for delivery in deliveries:
            await delivery.nak(delay_seconds=random.uniform(0.2, 1.0))
        await asyncio.sleep(random.uniform(0, AWAY_SECONDS))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        self._freed.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("longtake.worker_defect", pool=self.pool, error=f"{type(error).__name__}: {error}")

    async def _attend(self, effect: ClaimedEffect, trust: Trust) -> None:
        """Execute one effect under its lease and see its outcome stored."""
        if not self._executor.knows(effect.activity):
            log.error("longtake.activity_unknown", activity=effect.activity, run_id=str(effect.run_id))
            await self._put_back(effect, UNKNOWN_ACTIVITY_SECONDS, None)
            return
        call = self._executor.call_of(effect)
        profile = self._executor.lease_profile(effect.activity)
        self._heartbeat.hold(
            Held(
                effect_id=effect.id,
                fence=effect.fence,
                lease=lease_of(profile, effect.kind, default=self._lease),
                on_lost=call.lost.set,
                progress=lambda: call.progress,
                trust=trust,
            )
        )
        try:
            finished = await self._executor.run(
                effect, call, trusted=lambda: trust.holds and not call.lost.is_set()
            )
            match finished.outcome:
                case Pending(poll_after_seconds=seconds, progress=progress):
                    await self._put_back(effect, seconds, progress)
                case Throttled(retry_after_seconds=seconds):
                    await self._put_back(effect, seconds, None)
                case _:
                    await self._report(effect, finished)
        except LeaseLost as error:
            log.warning("longtake.lease_lost", effect_id=str(error.effect_id), fence=error.fence)
        except AuthorityUnavailable as error:
            # Nothing was sent: the lease runs out and the work comes again.
            log.warning("longtake.call_not_opened", effect_id=str(effect.id), reason=str(error))
        finally:
            self._heartbeat.let_go(effect.id)

    async def _report(self, effect: ClaimedEffect, finished: Finished) -> None:
        await self._reporter.report(
            Report(
                effect_id=effect.id,
                fence=effect.fence,
                owner=self._owner,
                outcome=finished.encoded,
                traceparent=finished.traceparent,
            )
        )

    async def _put_back(self, effect: ClaimedEffect, delay_seconds: float, progress: int | None) -> None:
        due = await self._effects.put_back(
            effect_id=effect.id, fence=effect.fence, delay_seconds=delay_seconds, progress=progress
        )
        reach("put_back.before_bell")
        if due is not None:
            self._doorbell.ring(DOORBELL_RELAY, due_at=due)

    async def _bury(self, delivery: Delivery, error: PoisonMessage) -> None:
        log.error("longtake.dead_letter", subject=delivery.subject, reason=error.reason)
        try:
            await self._sweep.dead_letter(
                tenant=None,
                source="worker",
                subject=delivery.subject,
                reason=f"poison: {error.reason}",
                body=delivery.body,
                headers=delivery.headers,
            )
        except AuthorityUnavailable:
            await delivery.nak(delay_seconds=1.0)
            return
        await delivery.term()

    async def _wind_down(self) -> None:
        """Give running work its grace; give back what had not opened its call; leave the rest to its lease."""
        if self._running:
            reach("sigterm.mid_effect")
            await asyncio.wait(self._running, timeout=self._grace_seconds)
        left = dict(self._running)
        for task in left:
            task.cancel()
        if left:
            await asyncio.gather(*left, return_exceptions=True)
            await self._release(left.values())

    async def _release(self, effects: Collection[ClaimedEffect]) -> None:
        """Give back at once what has not opened its call, and have it published again; nobody waits for its lease (F74)."""
        if not effects:
            return
        try:
            await self._effects.release(
                leases=sorted((effect.id, effect.fence) for effect in effects), owner=self._owner
            )
        except AuthorityUnavailable as error:
            log.warning("longtake.release_unsaid", leases=len(effects), reason=str(error))
            return
        self._doorbell.ring(DOORBELL_RELAY)


def _traces_of(deliveries: list[Delivery]) -> list[str]:
    """The traces that messages carry; nothing while tracing is off."""
    if not is_enabled():
        return []
    return [trace for delivery in deliveries if (trace := extract(delivery.headers)) is not None]
