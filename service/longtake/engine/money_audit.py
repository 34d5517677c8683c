"""The money audit: every minute, the laws of money are asked of the runs whose money has moved of late (H52).

Constraints and the reducer keep the laws as they write; this looks at what stands there, whoever wrote it. It changes
nothing: a broken law is an error in the log and a figure in the metrics, and people decide. Any number may run.
Leaves to others: the laws (queries/money.sql), the audit of everything (`longtake ledger check`).
"""

import asyncio
import contextlib

import structlog

from longtake.errors import AuthorityUnavailable
from longtake.lifecycle import LoopService
from longtake.store import MoneyAuditStore, MoneyViolation
from longtake.telemetry.metrics import count

EVERY_SECONDS = 60.0
"""How often it looks, and at least how far back; one that dies leaves the rest to the next."""
BACK_SECONDS = 10 * EVERY_SECONDS

log = structlog.get_logger("longtake.engine.money_audit")


class MoneyAudit(LoopService):
    """The money audit of one process."""

    def __init__(self, store: MoneyAuditStore, *, every_seconds: float = EVERY_SECONDS) -> None:
        super().__init__("money-audit", self._work)
        self._store = store
        self._every_seconds = every_seconds

    async def _work(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), self._every_seconds)
                return
            try:
                await self.pass_once()
            except AuthorityUnavailable as error:
                log.warning("longtake.money_audit_delayed", reason=str(error))

    async def pass_once(self) -> list[MoneyViolation]:
        """Look once; returns what was found, which is in the log by then."""
        found = await self._store.recent_money_violations(BACK_SECONDS)
        for item in found:
            count("longtake.money.violations", labels={"law": item.law})
            log.error(
                "longtake.money_law_broken",
                law=item.law,
                tenant=item.tenant,
                run_id=None if item.run_id is None else str(item.run_id),
                details=item.message,
            )
        return found
