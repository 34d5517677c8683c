"""The sweeper: finds what an arrow was about when the arrow was lost (design.md 4).

Leases that ended, receipts and callbacks that nobody looked at, deadlines, timers, signals. It decides nothing: it
puts work back into the queue, or asks the dispatcher to look. Any number may run.
"""

import asyncio
import itertools
import random
import time
from collections.abc import Callable
from datetime import datetime

import structlog

from longtake.contracts.ids import signal_id_for
from longtake.contracts.signals import Outgoing
from longtake.crash_points import reach
from longtake.engine.hints import CALLBACK_PARTS, Hints
from longtake.engine.pace import Pace
from longtake.engine.waking import DOORBELL_RELAY, DOORBELL_SWEEPER
from longtake.errors import AuthorityUnavailable, TransportUnavailable
from longtake.lifecycle import LoopService
from longtake.ports import Doorbell, OldestMessage
from longtake.store import StalledWork, SweepStore
from longtake.telemetry.attributes import BATCH_SIZE, SPAN_SWEEP_BATCH
from longtake.telemetry.tracing import span, traces_of

LEASES_MAX = 5
"""Leases an effect may lose before its call was opened; then the attempt counts as failed."""
DOORBELLS_PER_PASS_MAX = 512
STALL_SECONDS = 600.0
"""How long work may be due that nobody can take, before its run says so."""
STALL_LOOKS = 10
"""Looks for such work in that time."""
STALLS_PER_PASS_MAX = 100

log = structlog.get_logger("longtake.engine.sweeper")


class Sweeper(LoopService):
    """The sweeper role of one process."""

    def __init__(
        self,
        store: SweepStore,
        hints: Hints,
        oldest: OldestMessage,
        doorbell: Doorbell,
        *,
        pace: Pace,
        lease_seconds: int,
        stall_seconds: float = STALL_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
        first_salt: int | None = None,
    ) -> None:
        """`monotonic` and `first_salt` (a number that no other sweeper begins with) are for worlds without a clock."""
        super().__init__("sweeper", self._work)
        self._store = store
        self._hints = hints
        self._oldest = oldest
        self._doorbell = doorbell
        self._pace = pace
        self._lease_seconds = lease_seconds
        self._stall_seconds = stall_seconds
        self._stalls_looked_at = float("-inf")
        self._connected_since: float | None = None
        self._looked_since: float | None = None
        self._believes_in_doorbells = False
        self._monotonic = monotonic
        self._salt = itertools.count(random.getrandbits(40) if first_salt is None else first_salt)

    async def _work(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            try:
                busy = await self.pass_once()
                seconds = 0.0 if busy else await self._pace.seconds(self._store)
            except (AuthorityUnavailable, TransportUnavailable) as error:
                log.warning("longtake.sweep_delayed", reason=str(error))
                if isinstance(error, AuthorityUnavailable):
                    self.forget_connection()
                seconds = self._pace.away_seconds
            if seconds > 0:
                await self._pace.sleep(self._doorbell, DOORBELL_SWEEPER, seconds, stopping)

    def forget_connection(self) -> None:
        """The authority was away: leases end only when it has been there for one lease again (P18)."""
        self._connected_since = None

    async def pass_once(self) -> bool:
        """Look once at everything; True when there may be more at once."""
        now = self._monotonic()
        if self._connected_since is None:
            self._connected_since = now
        ended = await self._store.expire_leases(
            leases_max=LEASES_MAX,
            authority_up_seconds=float(self._lease_seconds),
            connected=now - self._connected_since >= self._lease_seconds,
        )
        lost = await self._store.lost_doorbells(
            grace_seconds=self._pace.grace_seconds,
            limit=DOORBELLS_PER_PASS_MAX,
            oldest=await self._oldest_doorbells(now),
        )
        for _ in ended:
            reach("expired.before_requeue")
        expired = [lease for lease in ended if lease.state == "expired"]
        asked = [(lease.id, lease.run_id) for lease in expired]
        if ended:
            log.warning("longtake.leases_ended", leases=len(ended), unknown_or_exhausted=len(asked))
            self._doorbell.ring(DOORBELL_RELAY)
        if lost:
            reach("scan.before_fire")
        if asked or lost:
            with span(
                SPAN_SWEEP_BATCH,
                links=traces_of([*expired, *lost]),
                attributes={BATCH_SIZE: len(asked) + len(lost)},
            ):
                await self._hints.look_at(
                    effects=asked + [(bell.id, bell.run_id) for bell in lost if bell.what == "effect"],
                    inbox=[(bell.id, bell.run_id) for bell in lost if bell.what == "inbox"],
                    runs=dict.fromkeys(bell.run_id for bell in lost if bell.what == "run"),
                    salt=next(self._salt),
                )
        await self._tell_stalls(now)
        return len(lost) >= DOORBELLS_PER_PASS_MAX

    async def _tell_stalls(self, now: float) -> None:
        """Say of work that nobody takes what it waits for, and of work that somebody takes after all that it does not."""
        if now - self._stalls_looked_at < self._stall_seconds / STALL_LOOKS:
            return
        self._stalls_looked_at = now
        for work in await self._store.stalled_work(
            stall_seconds=self._stall_seconds, limit=STALLS_PER_PASS_MAX
        ):
            fact = _stall_of(work)
            await self._store.tell(work.tenant, fact)
            self._hints.runs_soon([(fact.run_id, fact.id)])

    async def _oldest_doorbells(self, now: float) -> list[datetime | None]:
        """By part, the time of the oldest doorbell that still stands; none at first.

        What stood before our start may have been taken by a dispatcher that died with its doorbells in its hands: the
        stream shows them as standing until they are delivered again, half a minute later. So everything that was
        reported before our start is told once more.
        """
        if self._looked_since is None:
            self._looked_since = now
        if not self._believes_in_doorbells:
            # A pass that comes a grace after our start sees all of it.
            self._believes_in_doorbells = now - self._looked_since >= self._pace.grace_seconds
            return [None] * CALLBACK_PARTS
        return [await self._oldest.oldest_callback(part) for part in range(CALLBACK_PARTS)]


def _stall_of(work: StalledWork) -> Outgoing:
    """The fact, under an id by which it stands once for each time that the work was leased and given up."""
    about = f"{work.id}:{work.leases}:{'stalled' if work.stalled else 'taken'}"
    waits_for = f"a worker with {work.activity}" if work.stalled else ""
    return Outgoing(
        id=signal_id_for(work.run_id, kind="work_stalled", about=about),
        run_id=work.run_id,
        kind="work_stalled",
        payload={"step": work.step, "attempt": work.attempt, "waits_for": waits_for},
    )
