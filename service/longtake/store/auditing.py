"""What is kept of callbacks, and what the auditor reads."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from longtake.contracts.envelope import StoredEvent
from longtake.workflow.projection import RunRow, StepRow


class InboxStore(Protocol):
    """Where callbacks are kept."""

    async def insert_callback(
        self,
        *,
        id: uuid.UUID,
        tenant: str,
        provider: str,
        dedupe_key: str,
        run_id: uuid.UUID,
        step: str,
        attempt: int,
        external_ref: str | None,
        type: str,
        payload: bytes,
        traceparent: str | None,
    ) -> int | None:
        """Number of copies received so far; None when there is no such run."""
        ...

    async def callback_run(self, run_id: uuid.UUID, effect_id: uuid.UUID) -> tuple[str, str | None] | None:
        """Whose run it is, and the trace of the effect that the callback answers; None without such a run."""
        ...


class ProjectionRows(msgspec.Struct, frozen=True, kw_only=True):
    """A run's projection as it stands."""

    run: Mapping[str, Any]
    steps: tuple[Mapping[str, Any], ...]
    charged: int
    refunded: int
    """Sums of the ledger."""


class MoneyViolation(msgspec.Struct, frozen=True, kw_only=True):
    """One place where money breaks a law (H52)."""

    law: str
    tenant: str
    message: str
    run_id: uuid.UUID | None = None
    """None: a law of accounts, rather than of one run."""


class MoneyAuditStore(Protocol):
    """Where the laws of money are asked for."""

    async def money_violations(self, run_id: uuid.UUID | None) -> list[MoneyViolation]:
        """Every broken law of money, of one run or, with None, of all runs and accounts: one statement."""
        ...

    async def recent_money_violations(self, seconds: float) -> list[MoneyViolation]:
        """The same of runs whose money has moved in the last seconds, and of all accounts."""
        ...


class AuditStore(Protocol):
    """What the auditor reads."""

    async def run_ids(self, after: uuid.UUID, limit: int) -> list[tuple[uuid.UUID, str]]: ...
    async def history(self, run_id: uuid.UUID) -> list[StoredEvent]: ...
    async def plan_document(self, tenant: str, run_id: uuid.UUID) -> bytes | None: ...
    async def projection(self, run_id: uuid.UUID) -> ProjectionRows | None: ...
    async def replace_projection(
        self, run_id: uuid.UUID, tenant: str, row: RunRow, steps: Sequence[StepRow], *, poisoned: bool
    ) -> bool: ...
