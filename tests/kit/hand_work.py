"""Doing by hand what relay, worker and dispatcher do, one exact step at a time."""

import uuid

import msgspec

from kit.counting import CountingPool
from longtake.bootstrap import Runtime
from longtake.contracts.effects import ClaimedEffect, Report
from longtake.contracts.outcomes import Outcome, Succeeded
from longtake.engine.dispatcher import BatchOutcome, Dispatcher, Pointers
from longtake.postgres.decisions import PostgresDecisionStore
from longtake.postgres.effects import PostgresEffectStore
from longtake.postgres.pool import open_pool


class Bench:
    """A worker's and a dispatcher's hands over the test's database; nothing runs by itself."""

    def __init__(self, process: Runtime, pool) -> None:  # type: ignore[no-untyped-def]
        self.process = process
        self.pool = pool
        self.counting = CountingPool(pool)
        self.effects = PostgresEffectStore(pool, store_epoch=1)
        self.dispatcher = self.new_dispatcher()

    @classmethod
    async def open(cls, process: Runtime) -> "Bench":
        return cls(process, await open_pool(process.addresses.postgres, size=4, name="test"))

    def new_dispatcher(self, **options) -> Dispatcher:  # type: ignore[no-untyped-def]
        store = PostgresDecisionStore(self.counting, store_epoch=1, incarnation=self.process.incarnation)  # type: ignore[arg-type]
        return Dispatcher(store, self.process.hints, self.process.doorbell, store_epoch=1, **options)

    async def close(self) -> None:
        await self.pool.close()

    async def open_effects(self, *, state: str = "queued") -> list[tuple[uuid.UUID, int]]:
        rows = await self.pool.fetch(
            "select id, attempt from longtake.effects where closed_at is null and state = $1 order by id",
            state,
        )
        return [(row["id"], row["attempt"]) for row in rows]

    async def claim(self, owner: str = "hand", lease_seconds: int = 30) -> list[ClaimedEffect]:
        """Lease everything that is due."""
        return await self.effects.claim(
            claim_id=uuid.uuid4(), effects=await self.open_effects(), limit=10_000, owner=owner,
            lease_seconds=lease_seconds,
        )  # fmt: skip

    async def report(
        self, effects: list[ClaimedEffect], outcome: Outcome | None = None, owner: str = "hand"
    ) -> None:
        """Store one outcome for each of the effects."""
        encoded = msgspec.json.encode(outcome if outcome is not None else Succeeded())
        await self.effects.report(
            [Report(effect_id=e.id, fence=e.fence, owner=owner, outcome=encoded) for e in effects]
        )

    async def decide(self, ids: list[uuid.UUID]) -> BatchOutcome:
        """One batch of the dispatcher."""
        return await self.dispatcher.handle(Pointers(effects=dict.fromkeys(ids)))

    async def settle(self, outcome: Outcome | None = None) -> list[ClaimedEffect]:
        """Claim, report and decide everything that is due, once."""
        claimed = await self.claim()
        await self.report(claimed, outcome)
        await self.decide([effect.id for effect in claimed])
        return claimed
