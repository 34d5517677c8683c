"""The reporter: outcomes that are ready at the same time are stored by one statement, then the dispatcher is rung.

A receipt is stored whatever its fence (P1). Storing it is tried until it stands: the work behind it may have cost money.
"""

import asyncio
import random
import uuid

import msgspec
import structlog

from longtake.contracts.effects import Report
from longtake.crash_points import reach
from longtake.engine.hints import Hints
from longtake.errors import AuthorityUnavailable
from longtake.lifecycle import LoopService
from longtake.store import EffectStore
from longtake.telemetry.attributes import BATCH_SIZE, SPAN_EFFECT_REPORT
from longtake.telemetry.tracing import span, traces_of

REPORTS_PER_STATEMENT_MAX = 256
REPORTS_WAITING_MAX = 4096
AWAY_SECONDS = 0.5

log = structlog.get_logger("longtake.worker")


class _Waiting(msgspec.Struct, kw_only=True):
    report: Report
    stored: asyncio.Future[None]


class Reporter(LoopService):
    """Stores reports of one process in batches."""

    def __init__(self, store: EffectStore, hints: Hints) -> None:
        super().__init__("reporter", self._work, stop_seconds=30.0)
        self._store = store
        self._hints = hints
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue(REPORTS_WAITING_MAX)

    async def report(self, report: Report) -> None:
        """Return when the receipt stands."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self._queue.put(_Waiting(report=report, stored=stored))
        await asyncio.shield(stored)

    async def _work(self, stopping: asyncio.Event) -> None:
        stop = asyncio.create_task(stopping.wait())
        try:
            while not (stopping.is_set() and self._queue.empty()):
                taking = asyncio.create_task(self._queue.get())
                await asyncio.wait({taking, stop}, return_when=asyncio.FIRST_COMPLETED)
                if not taking.done():
                    taking.cancel()
                    await asyncio.gather(taking, return_exceptions=True)
                    continue
                batch = [taking.result()]
                while len(batch) < REPORTS_PER_STATEMENT_MAX and not self._queue.empty():
                    batch.append(self._queue.get_nowait())
                looked_at = await self._store_patiently(batch)
                reach("reported.before_hint")
                self._hints.look_at_soon(looked_at)
        finally:
            stop.cancel()

    async def _store_patiently(self, batch: list[_Waiting]) -> list[tuple[uuid.UUID, uuid.UUID]]:
        # One row an effect: a zombie's and our own report of one effect go one after the other.
        first = {waiting.report.effect_id: waiting for waiting in reversed(batch)}
        later = [waiting for waiting in batch if first[waiting.report.effect_id] is not waiting]
        while True:
            try:
                reports = [waiting.report for waiting in first.values()]
                reach("receipt.before_report")
                with span(
                    SPAN_EFFECT_REPORT, links=traces_of(reports), attributes={BATCH_SIZE: len(reports)}
                ):
                    looked_at = await self._store.report(reports)
                break
            except AuthorityUnavailable as error:
                log.warning("longtake.report_delayed", receipts=len(first), reason=str(error))
                await asyncio.sleep(random.uniform(AWAY_SECONDS / 2, AWAY_SECONDS))
        for waiting in first.values():
            if not waiting.stored.done():
                waiting.stored.set_result(None)
        return looked_at + (await self._store_patiently(later) if later else [])
