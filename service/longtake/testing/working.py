"""A worker without an event loop: it follows worker/runner.py step by step, with the production executor in the middle.

Pull pointers, claim, begin, ack; execute under a lease that a heartbeat of its own renews; store the receipt until it stands,
then ring the dispatcher. Its tasks are actors, so that each may be anywhere when its process dies.
"""

import uuid
from typing import Any

from longtake.contracts.effects import ClaimedEffect, Report
from longtake.contracts.outcomes import Pending, Throttled
from longtake.contracts.pointers import decode_effect_pointers
from longtake.engine.hints import Hints, pack_factor
from longtake.engine.waking import DOORBELL_RELAY
from longtake.errors import AuthorityUnavailable, LeaseLost, PoisonMessage, TransportUnavailable
from longtake.ports import Delivery, Doorbell, Transport
from longtake.store import EffectStore, LeaseKeeper, SweepStore
from longtake.testing.world import Process
from longtake.worker.executor import Executor, Finished
from longtake.worker.leases import Lease, lease_of

FETCH_SECONDS = 5.0
AWAY_SECONDS = 0.5
UNKNOWN_ACTIVITY_SECONDS = 10.0


class SimulatedWorker:
    """The worker role of one process: all pools, one heartbeat."""

    def __init__(
        self,
        process: Process,
        *,
        owner: str,
        slots: int,
        lease: Lease,
        transport: Transport,
        effects: EffectStore,
        keeper: LeaseKeeper,
        sweep: SweepStore,
        executor: Executor,
        hints: Hints,
        doorbell: Doorbell,
    ) -> None:
        self._process = process
        self._world = process.world
        self._owner = owner
        self._slots = slots
        self._lease = lease
        self._transport = transport
        self._effects = effects
        self._keeper = keeper
        self._sweep = sweep
        self._executor = executor
        self._hints = hints
        self._doorbell = doorbell
        self._running: dict[str, dict[uuid.UUID, ClaimedEffect]] = {}
        self._held: dict[uuid.UUID, tuple[int, Lease, Any]] = {}
        self._renewed: dict[tuple[uuid.UUID, int], float] = {}
        self._claims = 0

    def begin(self, pools: tuple[str, ...]) -> None:
        """Spawn the actors."""
        for pool in pools:
            self._running[pool] = {}
            self._process.spawn(f"worker-{pool}", self._pull(pool))
        self._process.spawn("heartbeat", self._beat())

    async def _pull(self, pool: str) -> None:
        world = self._world
        subscription = await self._transport.effects(pool)
        pack = pack_factor(pool)
        slots = self._slots * pack
        freed = f"freed.{self._process.name}.{pool}"
        while True:
            free = slots - len(self._running[pool])
            if free < min(pack, slots):
                await world.listen(freed, seconds=FETCH_SECONDS)
                continue
            try:
                deliveries = await subscription.fetch(limit=max(1, free // pack), wait_seconds=FETCH_SECONDS)
                await self._take(pool, deliveries, free)
            except TransportUnavailable:
                await world.sleep(AWAY_SECONDS)

    async def _take(self, pool: str, deliveries: list[Delivery], free: int) -> None:
        if not deliveries:
            return
        pointers: list[tuple[uuid.UUID, int]] = []
        readable: list[Delivery] = []
        for delivery in deliveries:
            try:
                body = decode_effect_pointers(delivery.body)
            except PoisonMessage as error:
                await self._bury(delivery, error)
                continue
            readable.append(delivery)
            pointers += [(id_, attempt) for id_, attempt, _ in body.effects]
        self._claims += 1
        claim_id = uuid.uuid5(uuid.NAMESPACE_OID, f"{self._owner}|{self._claims}")
        try:
            claimed = await self._effects.claim(
                claim_id=claim_id,
                effects=pointers,
                limit=free,
                owner=self._owner,
                lease_seconds=self._lease.seconds,
            )
        except AuthorityUnavailable:
            for delivery in readable:
                await delivery.nak(delay_seconds=self._world.random.uniform(0.2, 1.0))
            await self._world.sleep(self._world.random.uniform(0, AWAY_SECONDS))
            return
        for effect in claimed:
            self._running[pool][effect.id] = effect
            self._process.spawn(f"attend-{effect.step}-{effect.kind}", self._attend(pool, effect))
        for delivery in readable:
            await delivery.ack()

    async def _attend(self, pool: str, effect: ClaimedEffect) -> None:
        try:
            await self._execute(effect)
        finally:
            self._running[pool].pop(effect.id, None)
            if not self._world.dying:
                self._world.sound(f"freed.{self._process.name}.{pool}")

    async def _execute(self, effect: ClaimedEffect) -> None:
        if not self._executor.knows(effect.activity):
            await self._put_back(effect, UNKNOWN_ACTIVITY_SECONDS, None)
            return
        call = self._executor.call_of(effect)
        profile = self._executor.lease_profile(effect.activity)
        self._held[effect.id] = (effect.fence, lease_of(profile, effect.kind, default=self._lease), call)
        try:
            finished = await self._executor.run(effect, call)
            match finished.outcome:
                case Pending(poll_after_seconds=seconds, progress=progress):
                    await self._put_back(effect, seconds, progress)
                case Throttled(retry_after_seconds=seconds):
                    await self._put_back(effect, seconds, None)
                case _:
                    await self._report(effect, finished)
        except (LeaseLost, AuthorityUnavailable):
            return  # the lease runs out, or went on without us
        finally:
            self._held.pop(effect.id, None)

    async def _report(self, effect: ClaimedEffect, finished: Finished) -> None:
        report = Report(effect_id=effect.id, fence=effect.fence, owner=self._owner, outcome=finished.encoded)
        while True:
            try:
                looked_at = await self._effects.report([report])
                break
            except AuthorityUnavailable:
                await self._world.sleep(self._world.random.uniform(AWAY_SECONDS / 2, AWAY_SECONDS))
        self._hints.look_at_soon(looked_at)

    async def _put_back(self, effect: ClaimedEffect, delay_seconds: float, progress: int | None) -> None:
        due = await self._effects.put_back(
            effect_id=effect.id, fence=effect.fence, delay_seconds=delay_seconds, progress=progress
        )
        if due is not None:
            self._doorbell.ring(DOORBELL_RELAY, due_at=due)

    async def _bury(self, delivery: Delivery, error: PoisonMessage) -> None:
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

    async def _beat(self) -> None:
        """Renew what is due, as worker/heartbeat.py does from its own thread."""
        every = self._lease.beat_seconds
        while True:
            await self._world.sleep(every)
            now = self._world.monotonic()
            held = dict(self._held)
            due = [
                (id_, fence, lease.seconds)
                for id_, (fence, lease, _) in held.items()
                if now + every > self._renewed.get((id_, fence), -1e9) + lease.beat_seconds
            ]
            if not due:
                continue
            try:
                ours = await self._keeper.renew(due, {})
            except AuthorityUnavailable:
                continue
            for id_, fence, _ in due:
                if id_ in ours:
                    self._renewed[id_, fence] = now
                elif self._held.get(id_, (None,))[0] == fence:
                    _, _, call = self._held.pop(id_)
                    call.lost.set()
