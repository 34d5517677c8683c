"""What can go wrong with an authority, and which defences of it are up: both are given from outside.

A `Faults` is asked before every statement and every commit; `Defences` switch single rules of the tables and
statements off, so that a simulator can show that it would notice. Neither exists for the real authority.
"""

import asyncio
import uuid
from typing import Literal, Protocol

import msgspec

Strike = Literal["not_executed", "executed_and_lost", "conflict", "refused"]
"""Nothing was written and nobody answers; it was written and nobody answers; every row that may be skipped is held by
somebody else; the rows are refused (statements that write decisions only)."""

COMMIT = "commit"
"""Name under which the end of a transaction is asked about; all others are names of statements."""


class Faults(Protocol):
    """Asked before each statement; the name is that of the SQL statement."""

    def strike(self, statement: str) -> Strike | None: ...
    def hides(self, statement: str, run_id: uuid.UUID) -> bool:
        """Whether a reader of many runs does not see what was last written of this one yet."""
        ...


class Hooks(Protocol):
    """Where a statement goes that must wait for another transaction's lock."""

    async def wait(self, reason: str) -> None: ...


class LoopHooks:
    """Waits by letting the other tasks of the event loop run."""

    async def wait(self, reason: str) -> None:
        """Return when everybody else had a turn."""
        await asyncio.sleep(0)


class Defences(msgspec.Struct, frozen=True, kw_only=True):
    """Rules of the authority; all are up unless somebody wants to see what happens without one."""

    unique_run_seq: bool = True
    """Two events of a run cannot have the same seq."""
    run_lock: bool = True
    """A decision is written only onto the revision that it was made for, by one writer at a time."""
    command_unique: bool = True
    """A command id is kept once."""
    body_hash_kept: bool = True
    """The intent of a command is kept with it, so that the same id with another intent is seen."""
    claim_fence: bool = True
    """Each claim raises the fence."""
    claim_state: bool = True
    """Only a queued effect can be claimed."""
    claim_attempt: bool = True
    """A pointer to an attempt claims that attempt only."""
    claim_idempotent: bool = True
    """The same claim id gives the same leases again."""
    fence_checked: bool = True
    """Renewing, opening, putting back and releasing need the fence of the lease."""
    fence_floor: bool = True
    """Fences of a restored store are above all fences of its lost past."""
    lease_expiry: bool = True
    """A lease that is not renewed ends."""
    trust_window: bool = True
    """Leases end only when the authority and the sweeper have been up for one lease."""
    call_needs_lease: bool = True
    """A call is opened only while the lease lives."""
    call_opened_asks: bool = True
    """A lease that ends after its call was opened is a question for the reducer, not a retry."""
    plan_checked: bool = True
    """Nothing is executed of a run whose plan was not compared with the deployed code."""
    window_kept: bool = True
    """No more pointers of a pool stand published than its workers can soon take."""
    inbox_unique: bool = True
    """Copies of a callback meet on one row."""
    ledger_unique: bool = True
    """A ledger key is booked once."""
    refund_guard: bool = True
    """Refunds never exceed charges, and the net never the cap."""
    account_covered: bool = True
    """An account promises no more than it has."""
    outbox_in_transaction: bool = True
    """New effects are written with the decision that wants them."""
    generation_raised: bool = True
    """A pointer that is published again has another generation."""
    stored_receipt_first_wins: bool = True
    """The first receipt of an effect stands."""
    receipt_whatever_fence: bool = True
    """A receipt is stored whatever its fence."""
    late_receipt_reopens: bool = True
    """A receipt for an effect that was closed without one is looked at."""
    torn_check: bool = True
    """A decision that closes an effect is taken again when a receipt came meanwhile."""
    scopes_unique: bool = True
    """A scope has one holder."""
    project_lock: bool = True
    """Starts in one project are admitted one after the other."""
    tenant_checked: bool = True
    """A run of another tenant is as absent as none."""


class NoFaults:
    """Nothing goes wrong."""

    def strike(self, statement: str) -> Strike | None:
        """Never."""
        return None

    def hides(self, statement: str, run_id: uuid.UUID) -> bool:
        """Never."""
        return False
