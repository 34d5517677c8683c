"""One face for two authorities: the clauses work on a `Bench` and cannot tell whether Postgres stands behind it.

Time passes by moving every moment in the tables back (Postgres), or the clock on (memory).
"""

import uuid
from abc import ABC, abstractmethod
from types import SimpleNamespace
from typing import Any

import asyncpg

from kit.servers import ADMIN_DATABASE
from longtake.contracts.envelope import StoredEvent
from longtake.contracts.principal import Principal
from longtake.memory import (
    Defences,
    ManualClock,
    MemoryAdmissionStore,
    MemoryAuditStore,
    MemoryDatabase,
    MemoryDecisionStore,
    MemoryEffectStore,
    MemoryErrandStore,
    MemoryInboxStore,
    MemoryLeaseKeeper,
    MemoryMoneyAuditStore,
    MemoryPlanCheckStore,
    MemorySweepStore,
    Strike,
)
from longtake.memory.tables import AccountRow, QueuedRun
from longtake.postgres.admissions import PostgresAdmissionStore
from longtake.postgres.audits import PostgresAuditStore
from longtake.postgres.callbacks import PostgresInboxStore
from longtake.postgres.decisions import PostgresDecisionStore
from longtake.postgres.effects import PostgresEffectStore, PostgresLeaseKeeper
from longtake.postgres.errands import PostgresErrandStore
from longtake.postgres.keys import PostgresKeyStore
from longtake.postgres.plan_checks import PostgresPlanCheckStore
from longtake.postgres.pool import open_pool
from longtake.postgres.sweeps import PostgresSweepStore
from longtake.store import (
    AdmissionStore,
    AuditStore,
    DecisionStore,
    EffectStore,
    ErrandStore,
    InboxStore,
    LeaseKeeper,
    MoneyAuditStore,
    PlanCheckStore,
    SweepStore,
)

ALICE = Principal(tenant="acme", actor="alice")
BOB = Principal(tenant="acme", actor="bob")
STRANGER = Principal(tenant="other", actor="alice")
INCARNATION = uuid.UUID(int=0xA11CE)
BACKUP = "contract_of_the_store_kept"
OTHER_INCARNATION = uuid.UUID(int=0xB0B)


class Bench(ABC):
    """An authority with its ports, and a look into its tables."""

    admission: AdmissionStore
    decisions: DecisionStore
    effects: EffectStore
    sweeper: SweepStore
    """Of the process that decisions are made in."""
    other_sweeper: SweepStore
    inbox: InboxStore
    plans: PlanCheckStore
    audit: AuditStore
    errands: ErrandStore
    money_laws: MoneyAuditStore

    @abstractmethod
    def keeper(self, owner: str) -> LeaseKeeper: ...
    @abstractmethod
    def effects_of_epoch(self, store_epoch: int) -> EffectStore:
        """A worker's side after the store's epoch was raised."""

    @abstractmethod
    async def fund(self, credits: int, account: str = "main") -> None: ...
    @abstractmethod
    async def pass_seconds(self, seconds: float) -> None: ...
    @abstractmethod
    async def rows(self, table: str) -> list[SimpleNamespace]:
        """Every row of a table, in no order that means anything."""

    @abstractmethod
    async def crash(self) -> None:
        """The server dies and comes back."""

    @abstractmethod
    async def back_up(self) -> None:
        """Keep everything as it is now."""

    @abstractmethod
    async def restore(self) -> int:
        """Go back to what was kept, as after a disaster; returns the store's new epoch."""

    @abstractmethod
    def strike(self, statement: str, how: Strike) -> None:
        """What becomes of the next statement of that name."""

    @abstractmethod
    async def enqueue(self, run_id: uuid.UUID) -> None:
        """Put a run into the queue for scopes."""

    @abstractmethod
    async def promise_to_nobody(self, credits: int) -> None:
        """Break the books from outside: the account promises more than its runs hold."""

    async def row(self, table: str, **wanted: Any) -> SimpleNamespace:
        """The one row with these values."""
        found = [
            row
            for row in await self.rows(table)
            if all(getattr(row, name) == value for name, value in wanted.items())
        ]
        assert len(found) == 1, f"{len(found)} rows of {table} with {wanted}"
        return found[0]

    async def count(self, table: str) -> int:
        """How many rows a table has."""
        return len(await self.rows(table))

    async def effect(self, id: uuid.UUID) -> SimpleNamespace:
        """One effect."""
        return await self.row("effects", id=id)

    async def run(self, run_id: uuid.UUID) -> SimpleNamespace:
        """One run."""
        return await self.row("runs", run_id=run_id)

    async def money(self, account: str = "main") -> tuple[int, int]:
        """(balance, held)."""
        row = await self.row("accounts", account=account)
        return row.balance, row.held

    async def history(self, run_id: uuid.UUID) -> list[StoredEvent]:
        """Events of a run."""
        return await self.audit.history(run_id)


_MOMENTS = {
    "effects": (
        "created_at", "not_before", "deadline", "published_at", "lease_until", "claimed_at", "call_opened_at",
        "heartbeat_at", "reported_at", "closed_at",
    ),
    "timers": ("due_at",),
    "signals": ("created_at",),
    "errands": ("created_at",),
    "scope_queue": ("start_at",),
    "inbox": ("received_at",),
    "incarnations": ("alive_until",),
    "commands": ("accepted_at",),
}  # fmt: skip


async def empty(connection: Any) -> None:
    """Take every row out, append-only or not, and give the store its first identity back."""
    names = await connection.fetch("select tablename from pg_tables where schemaname = 'longtake'")
    kept = ("store", "schema_file")
    async with connection.transaction():
        # As a replica the server runs no trigger, so that even the append-only tables let go.
        await connection.execute("set local session_replication_role = replica")
        for row in names:
            if row["tablename"] not in kept:
                await connection.execute(f'delete from longtake."{row["tablename"]}"')
        await connection.execute(
            "update longtake.store set store_epoch = 1, transport_epoch = 1, application = null"
        )


class _Losing:
    """A pool that loses a statement, or its answer, when it is told to; `-- name` is a statement's first line."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self.strikes: dict[str, Strike] = {}

    async def replace(self, pool: Any) -> None:
        """Go on over another pool."""
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    async def fetch(self, sql: str, *arguments: Any) -> Any:
        strike = self.strikes.pop(sql.partition("\n")[0].removeprefix("-- "), None)
        if strike == "not_executed":
            raise asyncpg.ConnectionDoesNotExistError("struck")
        rows = await self._pool.fetch(sql, *arguments)
        if strike == "executed_and_lost":
            raise asyncpg.ConnectionDoesNotExistError("struck")
        return rows


class PostgresBench(Bench):
    """The real authority."""

    def __init__(self, real: Any, address: dict[str, Any]) -> None:
        self.pool = pool = _Losing(real)
        self._address = address
        self._keepers: list[PostgresLeaseKeeper] = []
        self.admission = PostgresAdmissionStore(pool, store_epoch=1, incarnation=INCARNATION)
        self.decisions = PostgresDecisionStore(pool, store_epoch=1, incarnation=INCARNATION)
        self.effects = PostgresEffectStore(pool, store_epoch=1)
        self.sweeper = PostgresSweepStore(pool, incarnation=INCARNATION, owner="alpha")
        self.other_sweeper = PostgresSweepStore(pool, incarnation=OTHER_INCARNATION, owner="beta")
        self.inbox = PostgresInboxStore(pool)
        self.plans = PostgresPlanCheckStore(pool)
        self.audit = self.money_laws = PostgresAuditStore(pool)
        self.errands = PostgresErrandStore(pool)

    @classmethod
    async def open(cls, address: dict[str, Any]) -> "PostgresBench":
        return cls(await open_pool(address, size=4, name="contract"), address)

    async def close(self) -> None:
        for keeper in self._keepers:
            await keeper.close()
        await self.pool.close()

    def keeper(self, owner: str) -> LeaseKeeper:
        keeper = PostgresLeaseKeeper(self._address, owner=owner)
        self._keepers.append(keeper)
        return keeper

    def effects_of_epoch(self, store_epoch: int) -> EffectStore:
        return PostgresEffectStore(self.pool, store_epoch=store_epoch)

    async def fund(self, credits: int, account: str = "main") -> None:
        await PostgresKeyStore(self.pool).fund(tenant=ALICE.tenant, account=account, credits=credits)

    async def pass_seconds(self, seconds: float) -> None:
        for table, columns in _MOMENTS.items():
            changes = ", ".join(f"{column} = {column} - make_interval(secs => $1)" for column in columns)
            await self.pool.execute(f"update longtake.{table} set {changes}", float(seconds))

    async def rows(self, table: str) -> list[SimpleNamespace]:
        found = await self.pool.fetch(f"select *, xmin::text as writer from longtake.{table}")
        return [SimpleNamespace(**dict(row)) for row in found]

    async def crash(self) -> None:
        connection = await asyncpg.connect(**self._address)
        try:
            await connection.execute(
                "select pg_terminate_backend(pid, 1000) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            )
        finally:
            await connection.close()

    async def back_up(self) -> None:
        await self._copy(self._address["database"], BACKUP)

    async def restore(self) -> int:
        await self._copy(BACKUP, self._address["database"])
        await self._administer(f'drop database "{BACKUP}"')
        epoch: int = await self.pool.fetchval(
            "update longtake.store set store_epoch = store_epoch + 1 returning store_epoch"
        )
        return epoch

    async def _copy(self, source: str, target: str) -> None:
        """A database can be copied while nobody is connected to it."""
        await self.pool.close()
        await self._administer(f'drop database if exists "{target}" with (force)')
        await self._administer(f'create database "{target}" template "{source}"')
        await self.pool.replace(await open_pool(self._address, size=4, name="contract"))

    async def _administer(self, statement: str) -> None:
        connection = await asyncpg.connect(**{**self._address, "database": ADMIN_DATABASE})
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    def strike(self, statement: str, how: Strike) -> None:
        self.pool.strikes[statement] = how

    async def enqueue(self, run_id: uuid.UUID) -> None:
        await self.pool.execute(
            "insert into longtake.scope_queue (run_id, tenant_id, project, scopes) values ($1, $2, 'film', '{}')",
            run_id,
            ALICE.tenant,
        )

    async def promise_to_nobody(self, credits: int) -> None:
        await self.pool.execute("update longtake.accounts set held = held + $1", credits)


class Scripted:
    """Faults as they are told; `turned` makes a fake that confuses them."""

    def __init__(self, turned: dict[Strike, Strike] | None = None) -> None:
        self.strikes: dict[str, Strike] = {}
        self._turned = turned or {}

    def strike(self, statement: str) -> Strike | None:
        how = self.strikes.pop(statement, None)
        return None if how is None else self._turned.get(how, how)

    def hides(self, statement: str, run_id: uuid.UUID) -> bool:
        return False


class MemoryBench(Bench):
    """The fake, or one that is wrong on purpose."""

    def __init__(
        self, defences: Defences | None = None, faults: Scripted | None = None, **stores: type
    ) -> None:
        self.clock = ManualClock()
        self.faults = faults or Scripted()
        self.database = stores.get("database", MemoryDatabase)(
            self.clock, defences=defences, faults=self.faults
        )
        self._stores = stores
        database = self.database
        self.admission = stores.get("admission", MemoryAdmissionStore)(
            database, store_epoch=1, incarnation=INCARNATION
        )
        self.decisions = stores.get("decisions", MemoryDecisionStore)(
            database, store_epoch=1, incarnation=INCARNATION
        )
        self.effects = self.effects_of_epoch(1)
        sweeps = stores.get("sweeps", MemorySweepStore)
        self.sweeper = sweeps(database, incarnation=INCARNATION, owner="alpha")
        self.other_sweeper = sweeps(database, incarnation=OTHER_INCARNATION, owner="beta")
        self.inbox = stores.get("inbox", MemoryInboxStore)(database)
        self.plans = stores.get("plans", MemoryPlanCheckStore)(database)
        self.audit = stores.get("audit", MemoryAuditStore)(database)
        self.money_laws = stores.get("money", MemoryMoneyAuditStore)(database)
        self.errands = stores.get("errands", MemoryErrandStore)(database)
        self.clock.advance(3600)

    async def close(self) -> None:
        """Nothing is open."""

    def keeper(self, owner: str) -> LeaseKeeper:
        return self._stores.get("keeper", MemoryLeaseKeeper)(self.database, owner=owner)

    def effects_of_epoch(self, store_epoch: int) -> EffectStore:
        return self._stores.get("effects", MemoryEffectStore)(self.database, store_epoch=store_epoch)

    async def fund(self, credits: int, account: str = "main") -> None:
        self.database.fund(tenant=ALICE.tenant, account=account, credits=credits)

    async def pass_seconds(self, seconds: float) -> None:
        self.clock.advance(seconds)

    async def rows(self, table: str) -> list[SimpleNamespace]:
        tables = self.database.tables
        match table:
            case "accounts":
                return [
                    SimpleNamespace(account=account, balance=row.balance, held=row.held)
                    for (_, account), row in tables.accounts.items()
                ]
            case "scopes":
                return [
                    SimpleNamespace(scope=scope, run_id=run_id)
                    for (_, _, scope), run_id in tables.scopes.items()
                ]
            case "timers" | "steps":
                return [
                    SimpleNamespace(**{**_members(row), "run_id": run_id, "key": key})
                    for (run_id, key), row in getattr(tables, table).items()
                ]
            case "holds" | "scope_queue":
                return [
                    SimpleNamespace(run_id=run_id, **_members(row))
                    for run_id, row in getattr(tables, table).items()
                ]
            case "events":
                rows = [event for events in tables.events.values() for event in events]
            case "dead_letters":
                rows = tables.dead_letters
            case _:
                names = {"effect_claims": "claims", "ledger_entries": "ledger"}
                rows = list(getattr(tables, names.get(table, table)).values())
        return [SimpleNamespace(**_members(row)) for row in rows]

    async def crash(self) -> None:
        self.database.crash()

    async def back_up(self) -> None:
        self._kept = self.database.snapshot()

    async def restore(self) -> int:
        self.database.restore(self._kept)
        return self.database.raise_store_epoch()

    def strike(self, statement: str, how: Strike) -> None:
        self.faults.strikes[statement] = how

    async def enqueue(self, run_id: uuid.UUID) -> None:
        self.database.tables.scope_queue[run_id] = QueuedRun(
            tenant=ALICE.tenant, project="film", scopes=(), place=1
        )

    async def promise_to_nobody(self, credits: int) -> None:
        accounts = self.database.tables.accounts
        for place, row in list(accounts.items()):
            accounts[place] = AccountRow(balance=row.balance, held=row.held + credits)


def _members(row: Any) -> dict[str, Any]:
    members = {name: getattr(row, name) for name in row.__struct_fields__}
    members["writer"] = str(members.get("tx_id", ""))
    members["blockers"] = list(members.get("blockers", ()))
    return members
