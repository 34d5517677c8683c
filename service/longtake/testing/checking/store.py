"""The store as the checker sees it: every row of the authority at one moment, plain values, ids as text.

A dump can be written and read as JSON, so that a bad one is kept. Leaves to others: what the rows must say.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

import asyncpg
import msgspec
from asyncpg.pool import PoolConnectionProxy

from longtake.postgres.statements import statement


class EventRow(msgspec.Struct, kw_only=True):
    """One event; data and meta are the exact stored texts."""

    run: str
    seq: int
    tenant: str
    id: str
    type: str
    version: int
    data: str
    meta: str
    tx: int
    position: int
    epoch: int
    recorded_at: datetime
    hash: bytes

    @property
    def body(self) -> Mapping[str, Any]:
        """The decoded data."""
        return _decoded(self.data)

    @property
    def cause(self) -> tuple[str, str]:
        """Kind and name of what caused it, as in ("command", "c-1")."""
        kind, _, name = str(_decoded(self.meta).get("causation", "")).partition(":")
        return kind, name

    @property
    def actor(self) -> str:
        """Who caused it."""
        return str(_decoded(self.meta).get("actor", ""))


class CommandRow(msgspec.Struct, kw_only=True):
    """One accepted command."""

    tenant: str
    actor: str
    id: str
    kind: str
    project: str
    channel: str
    status: str
    run: str | None
    receipt: str | None
    accepted_at: datetime
    tx: int

    @property
    def answer(self) -> Mapping[str, Any]:
        """The stored receipt, empty when there is none."""
        return _decoded(self.receipt) if self.receipt else {}


class RunRow(msgspec.Struct, kw_only=True):
    """One run's projection."""

    run: str
    tenant: str
    project: str
    actor: str
    account: str
    command: str
    fingerprint: str
    epoch: int
    revision: int
    head_hash: bytes
    status: str
    phase: str | None
    label: str
    quoted: int
    cap: int
    charged: int
    refunded: int
    blockers: list[str]
    poisoned: bool
    poll_at: datetime | None
    summary: str | None
    accepted_at: datetime
    ended_at: datetime | None


class PlanRow(msgspec.Struct, kw_only=True):
    """One frozen plan."""

    tenant: str
    fingerprint: str
    plan: str


class StepRow(msgspec.Struct, kw_only=True):
    """One step's projection."""

    run: str
    key: str
    ordinal: int
    attempt: int
    max_attempts: int
    status: str
    phase: str | None
    label: str
    external_ref: str | None
    error_class: str | None
    error_message: str | None
    provider_cost: int | None
    artifacts: list[str]
    started_at: datetime | None
    updated_seq: int


class EffectRow(msgspec.Struct, kw_only=True):
    """One effect."""

    id: str
    tenant: str
    run: str
    step: str
    attempt: int
    kind: str
    ordinal: int
    pool: str
    created_at: datetime
    not_before: datetime
    state: str
    generation: int
    published_at: datetime | None
    lease_owner: str | None
    lease_until: datetime | None
    fence: int
    leases: int
    receipt: str | None
    report_fence: int | None
    disposition: str | None
    closed_at: datetime | None


class ClaimRow(msgspec.Struct, kw_only=True):
    """One claim."""

    effect: str
    fence: int
    run: str
    step: str
    attempt: int
    kind: str
    owner: str
    claim: str
    claimed_at: datetime


class LateReceiptRow(msgspec.Struct, kw_only=True):
    """A receipt that came when its effect had one."""

    effect: str
    fence: int
    owner: str
    receipt: str


class LedgerRow(msgspec.Struct, kw_only=True):
    """One entry of the ledger, in whole credits."""

    key: str
    tenant: str
    run: str
    account: str
    kind: str
    debit: str
    credit: str
    amount: int
    step: str | None
    cycle: int | None
    seq: int
    tx: int


class HoldRow(msgspec.Struct, kw_only=True):
    """One hold, in whole credits."""

    run: str
    tenant: str
    account: str
    amount: int
    released_at: datetime | None


class AccountRow(msgspec.Struct, kw_only=True):
    """One account, in whole credits."""

    tenant: str
    account: str
    balance: int
    held: int


class InboxRow(msgspec.Struct, kw_only=True):
    """One callback."""

    id: str
    tenant: str
    provider: str
    key: str
    run: str
    step: str
    attempt: int
    status: str
    reason: str | None
    copies: int


class TimerRow(msgspec.Struct, kw_only=True):
    """One timer that has not fired."""

    run: str
    key: str
    due_at: datetime


class SignalRow(msgspec.Struct, kw_only=True):
    """One durable signal."""

    id: str
    run: str
    kind: str
    created_at: datetime
    settled_at: datetime | None
    reason: str | None


class DeadLetterRow(msgspec.Struct, kw_only=True):
    """One dead letter."""

    source: str
    subject: str
    reason: str
    body: bytes


class MoneyLawRow(msgspec.Struct, kw_only=True):
    """A law of money that the database itself finds broken."""

    law: str
    tenant: str
    run: str | None
    message: str


class StoreDump(msgspec.Struct, kw_only=True):
    """All of it, read in one transaction."""

    now: datetime
    environment: str = "default"
    store_epoch: int = 1
    transport_epoch: int = 1
    events: list[EventRow] = []
    commands: list[CommandRow] = []
    runs: list[RunRow] = []
    plans: list[PlanRow] = []
    steps: list[StepRow] = []
    effects: list[EffectRow] = []
    claims: list[ClaimRow] = []
    late_receipts: list[LateReceiptRow] = []
    ledger: list[LedgerRow] = []
    holds: list[HoldRow] = []
    accounts: list[AccountRow] = []
    inbox: list[InboxRow] = []
    timers: list[TimerRow] = []
    signals: list[SignalRow] = []
    dead_letters: list[DeadLetterRow] = []
    money_laws: list[MoneyLawRow] = []

    def histories(self) -> dict[str, list[EventRow]]:
        """Events by run, in the order in which they are stored."""
        found: dict[str, list[EventRow]] = {run.run: [] for run in self.runs}
        for event in self.events:
            found.setdefault(event.run, []).append(event)
        return found


_decode = msgspec.json.Decoder()


@cache
def _decoded(text: str) -> Mapping[str, Any]:
    value: Mapping[str, Any] = _decode.decode(text)
    return value


ROWS: dict[str, type[msgspec.Struct]] = {
    "events": EventRow, "commands": CommandRow, "runs": RunRow, "plans": PlanRow, "steps": StepRow, "effects": EffectRow,
    "claims": ClaimRow, "late_receipts": LateReceiptRow, "ledger": LedgerRow, "holds": HoldRow, "accounts": AccountRow,
    "inbox": InboxRow, "timers": TimerRow, "signals": SignalRow, "dead_letters": DeadLetterRow,
}  # fmt: skip

STATEMENTS = {
    "events": "dump_events", "commands": "dump_commands", "runs": "dump_runs", "plans": "dump_plans", "steps": "dump_steps",
    "effects": "dump_effects", "claims": "dump_claims", "late_receipts": "dump_late_receipts", "ledger": "dump_ledger",
    "holds": "dump_holds", "accounts": "dump_accounts", "inbox": "dump_inbox", "timers": "dump_timers", "signals": "dump_signals",
    "dead_letters": "dump_dead_letters",
}  # fmt: skip


async def read_store(connection: asyncpg.Connection | PoolConnectionProxy) -> StoreDump:
    """Read everything as it stood at one moment. Raises what asyncpg raises."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        head = await connection.fetchrow(statement("dump_store"))
        assert head is not None, "a migrated store has its row"
        tables: dict[str, Any] = {}
        for name, row_type in ROWS.items():
            tables[name] = [
                row_type(**dict(row)) for row in await connection.fetch(statement(STATEMENTS[name]))
            ]
        laws = await connection.fetch(statement("money_violations"), None, None)
    money_laws = [
        MoneyLawRow(
            law=row["law"],
            tenant=row["tenant_id"] or "",
            run=None if row["run_id"] is None else str(row["run_id"]),
            message=row["message"],
        )
        for row in laws
    ]
    return StoreDump(**dict(head), money_laws=money_laws, **tables)
