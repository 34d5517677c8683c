"""Who may write when: the one database in memory, its transactions, their locks, and what goes wrong with them.

A statement runs in one piece: nobody else acts before it has ended. Only an admission is a transaction of several
statements; what it has written is seen by nobody, and what it has locked is held, until it ends. A statement that
meets such a lock waits through the given hooks and begins anew.
Leaves to others: what the statements do (the stores).
"""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from longtake.errors import AuthorityUnavailable, DecisionRefused, LockTimeout
from longtake.memory.clock import Clock
from longtake.memory.faults import COMMIT, Defences, Faults, Hooks, LoopHooks
from longtake.memory.store_tables import Tables, View
from longtake.memory.tables import AccountRow, EffectRow, StoreRow

T = TypeVar("T")

LOCK_SECONDS_MAX = 1.0
"""How long a statement waits for a lock."""
LOCK_WAITS_MAX = 10_000
"""How often it waits when the clock stands still."""

Lock = tuple[object, ...]
"""Kind and key of what is locked, for example ("run", run_id)."""


class RowRefused(DecisionRefused):
    """A row breaks a rule of its table."""


class Snapshot(msgspec.Struct, frozen=True):
    """The database at one moment."""

    tables: Tables
    tx_id: int
    position: int


class _Blocked(Exception):
    def __init__(self, lock: Lock) -> None:
        super().__init__(lock)
        self.lock = lock


class Session:
    """One transaction, or the autocommit of single statements."""

    __slots__ = ("_database", "_held", "alive", "contended", "lasting", "later", "tx_id", "view")

    def __init__(self, database: "MemoryDatabase", *, lasting: bool) -> None:
        self._database = database
        self._held: list[Lock] = []
        self.view = View(database.tables)
        self.lasting = lasting
        """Whether it has more than one statement, and so holds what it locks."""
        self.contended = False
        self.alive = True
        self.tx_id = 0
        self.later: list[EffectRow] = []
        """Effects that are written after the decision, when that defence is off."""

    @property
    def now(self) -> datetime:
        """The authority's time."""
        return self._database.clock.now()

    @property
    def defences(self) -> Defences:
        """The rules that are up."""
        return self._database.defences

    @property
    def tables(self) -> Tables:
        """What is committed."""
        return self.view.tables

    def lock(self, *lock: object) -> None:
        """Lock a row, waiting for whoever holds it. Call it before the first write of a statement."""
        locks = self._database.locks
        if not locks and not self.lasting:
            return
        holder = locks.get(lock)
        if holder is None:
            if self.lasting:
                locks[lock] = self
                self._held.append(lock)
        elif holder is not self:
            raise _Blocked(lock)

    def take(self, *lock: object) -> bool:
        """Lock a row unless somebody else holds it."""
        if self.contended:
            return False
        if (holder := self._database.locks.get(lock)) is not None and holder is not self:
            return False
        self.lock(*lock)
        return True

    def position(self) -> int:
        """The next place in the global order of events."""
        self._database.last_position += 1
        return self._database.last_position

    def hides(self, statement: str, run_id: uuid.UUID) -> bool:
        """Whether this reader of many runs is a moment behind with this one."""
        faults = self._database.faults
        return faults is not None and faults.hides(statement, run_id)

    def release(self) -> None:
        """Let go of all locks."""
        for lock in self._held:
            self._database.locks.pop(lock, None)
        self._held.clear()

    def kill(self) -> None:
        """Roll back for ever: the connection is gone."""
        self.alive = False
        self.view.drop()
        self.later.clear()
        self.release()


class MemoryDatabase:
    """The authority in one process. Every store of this package works on one of these."""

    def __init__(
        self,
        clock: Clock,
        *,
        faults: Faults | None = None,
        hooks: Hooks | None = None,
        defences: Defences | None = None,
    ) -> None:
        self.clock = clock
        self.faults = faults
        self.hooks: Hooks = hooks if hooks is not None else LoopHooks()
        self.defences = defences if defences is not None else Defences()
        self.tables = Tables()
        self.locks: dict[Lock, Session] = {}
        self.last_tx_id = 0
        self.last_position = 0
        self.started_at = clock.now()
        self._sessions: dict[int, Session] = {}
        self._auto = Session(self, lasting=False)

    @property
    def store_epoch(self) -> int:
        """The epoch of the store's row."""
        return self.tables.store[0].store_epoch

    # --- statements ------------------------------------------------------------------------------------------------

    async def run(self, statement: str, body: Callable[[Session], T], session: Session | None = None) -> T:
        """Run one statement, in a transaction or on its own. Raises AuthorityUnavailable when a fault says so."""
        acting = self._auto if session is None else session
        if not acting.alive:
            raise AuthorityUnavailable("the connection is closed")
        strike = None if self.faults is None else self.faults.strike(statement)
        if strike == "not_executed":
            self._lose(session)
            raise AuthorityUnavailable(f"{statement} was not executed")
        if strike == "refused" and statement == DECISIONS_COMMIT:
            raise RowRefused(f"{statement} was refused")
        result = await self._patiently(statement, body, session, contended=strike == "conflict")
        if strike == "executed_and_lost":
            self._lose(session)
            raise AuthorityUnavailable(f"the answer of {statement} was lost")
        return result

    async def _patiently(
        self, statement: str, body: Callable[[Session], T], session: Session | None, *, contended: bool
    ) -> T:
        since: datetime | None = None
        waits = 0
        while True:
            # Again each time: the database may have been restored while this waited.
            acting = self._auto if session is None else session
            if not acting.alive:
                raise AuthorityUnavailable("the connection is closed")
            acting.contended = contended
            if session is None:
                self.last_tx_id += 1
                acting.tx_id = self.last_tx_id
            try:
                result = body(acting)
            except _Blocked as blocked:
                if session is None:
                    acting.view.drop()
                now = self.clock.now()
                since = now if since is None else since
                waits += 1
                if waits > LOCK_WAITS_MAX or now - since >= timedelta(seconds=LOCK_SECONDS_MAX):
                    raise LockTimeout(f"{statement} waited too long for {blocked.lock}") from None
                await self.hooks.wait(f"{statement}: {blocked.lock[0]}")
                continue
            except BaseException:
                if session is None:
                    acting.view.drop()
                    acting.later.clear()
                raise
            if session is None:
                acting.view.merge()
                if acting.later:
                    await self._write_later(acting)
            return result

    async def _write_later(self, session: Session) -> None:
        """Write what should have been written with the decision; a crash or fault in between loses it."""
        late, session.later = session.later, []
        await self.hooks.wait("outbox")

        def insert(writing: Session) -> None:
            for effect in late:
                effect.tx_id = writing.tx_id
                writing.view.effects.put(effect.id, effect)

        await self.run("outbox_insert", insert)

    def _lose(self, session: Session | None) -> None:
        if session is not None:
            session.kill()

    # --- transactions ----------------------------------------------------------------------------------------------

    def begin(self) -> Session:
        """Open a transaction."""
        session = Session(self, lasting=True)
        self.last_tx_id += 1
        session.tx_id = self.last_tx_id
        self._sessions[session.tx_id] = session
        return session

    async def commit(self, session: Session) -> None:
        """End a transaction well."""
        strike = None if self.faults is None else self.faults.strike(COMMIT)
        if not session.alive or strike == "not_executed":
            self.roll_back(session)
            raise AuthorityUnavailable("the transaction was not committed")
        session.view.merge()
        self._end(session)
        if session.later:
            await self._write_later(session)
        if strike == "executed_and_lost":
            raise AuthorityUnavailable("the answer of the commit was lost")

    def roll_back(self, session: Session) -> None:
        """End a transaction as if it had never been."""
        session.kill()
        self._end(session)

    def _end(self, session: Session) -> None:
        session.release()
        self._sessions.pop(session.tx_id, None)

    @property
    def oldest_open_tx_id(self) -> int:
        """Everything below is committed or rolled back: how far a reader of the global order may go."""
        return min(self._sessions, default=self.last_tx_id + 1)

    # --- what happens to a database --------------------------------------------------------------------------------

    def crash(self) -> None:
        """The server dies and comes back: open transactions and their locks are gone."""
        for session in list(self._sessions.values()):
            self.roll_back(session)
        self.started_at = self.clock.now()

    def snapshot(self) -> Snapshot:
        """Everything that is committed now."""
        return Snapshot(self.tables.copy(), self.last_tx_id, self.last_position)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a moment in the past, as a restored backup does. Raise the epoch before anybody connects."""
        self.crash()
        self.tables = snapshot.tables.copy()
        self.last_tx_id, self.last_position = snapshot.tx_id, snapshot.position
        self._auto = Session(self, lasting=False)

    def raise_store_epoch(self) -> int:
        """What the restore script does; returns the new epoch."""
        store = msgspec.structs.replace(
            self.tables.store[0], store_epoch=self.tables.store[0].store_epoch + 1
        )
        self.tables.store[0] = store
        return store.store_epoch

    def fund(self, *, tenant: str, account: str, credits: int) -> int:
        """Put credits on an account, as an operator does; returns its balance."""
        before = self.tables.accounts.get((tenant, account), AccountRow())
        after = msgspec.structs.replace(before, balance=before.balance + credits)
        self.tables.accounts[(tenant, account)] = after
        return after.balance

    @property
    def identity(self) -> StoreRow:
        """The row that says which store this is."""
        return self.tables.store[0]


DECISIONS_COMMIT = "decisions_commit"
"""The one statement that writes decisions."""
