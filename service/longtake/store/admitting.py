"""What admission asks of the authority: one transaction, steps in the order of P6."""

import uuid
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from longtake.contracts.commands import Command, Receipt
from longtake.contracts.principal import Principal
from longtake.store.deciding import CommitResult, Fact, LoadedRun, RunCommit
from longtake.workflow.queueing import Waiting

Channel = Literal["http", "nats", "local"]


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """What admission lays down before the first decision of a run."""

    run_id: uuid.UUID
    project: str
    workflow: str
    workflow_version: int
    account: str
    fingerprint: str
    plan: bytes
    input: bytes
    policy: bytes
    quoted: int
    cap: int
    scopes: tuple[str, ...]
    application: str
    held: int | None = None
    """What the account must promise (P8); None: the cap."""

    @property
    def hold(self) -> int:
        """What the account must promise, in credits."""
        return self.cap if self.held is None else self.held


class RunOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """What a run was made from; it never changes, so it is read without a lock."""

    run_id: uuid.UUID
    project: str
    workflow: str
    workflow_version: int
    account: str
    fingerprint: str
    plan: bytes
    input: bytes
    policy: bytes


class StoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer that a command id already has."""

    intent_hash: str
    receipt: Receipt | None


class HeldScope(msgspec.Struct, frozen=True, kw_only=True):
    """A scope that an active run owns, or that one in line wanted first."""

    scope: str
    run_id: uuid.UUID
    phase: str | None
    holds: bool = True


class Funds(msgspec.Struct, frozen=True, kw_only=True):
    """An account's credits; `held` are promised to active runs."""

    balance: int
    held: int


class AdmissionTransaction(Protocol):
    """One transaction of admission, steps in the order of P6."""

    async def insert_command(self, command: Command, *, intent_hash: str) -> datetime | None:
        """Keep the command; None when its id is taken. A concurrent copy waits for the first (P23)."""
        ...

    async def stored_answer(self, client_command_id: str) -> StoredAnswer | None: ...
    async def lock_project(self, project: str) -> None: ...
    async def held_scopes(self, project: str, scopes: Sequence[str]) -> list[HeldScope]: ...
    async def line(self, project: str) -> tuple[list[Waiting], datetime]:
        """The runs in line in a locked project, in the order of acceptance, and the time."""
        ...

    async def join_line(self, project: str, waiting: Waiting) -> None: ...
    async def leave_line(self, run_id: uuid.UUID) -> None: ...
    async def active_runs(self, run_ids: Sequence[uuid.UUID]) -> frozenset[uuid.UUID]:
        """Which of them have not ended."""
        ...

    async def grant_scopes(self, project: str, waiting: Waiting) -> None:
        """Give a run that was in line its scopes."""
        ...

    async def wait_for(self, run_id: uuid.UUID, runs: Sequence[uuid.UUID]) -> None:
        """A run in line begins after these have ended, whatever they hold."""
        ...

    async def lay_down(self, run: NewRun, *, command_id: str, now: datetime) -> bool:
        """Write plan, run row, scopes and hold; False (and nothing written) when the account cannot pay."""
        ...

    async def raise_hold(self, run_id: uuid.UUID, by: int) -> bool:
        """Add to the hold of a run that this transaction has locked; False (and nothing written) when the account
        cannot pay (P8)."""
        ...

    async def funds(self, account: str) -> Funds | None: ...
    async def origin(self, run_id: uuid.UUID) -> RunOrigin | None:
        """What a run of the caller's tenant was made from."""
        ...

    async def lock_run(self, run_id: uuid.UUID) -> tuple[LoadedRun, datetime, str, str | None] | None:
        """Lock a run of the caller's tenant: (run with its events, now, plan_checked, deployed application)."""
        ...

    async def answers(self, effects: Sequence[uuid.UUID]) -> list[Fact]:
        """What workers have answered to these open effects and nobody has decided yet."""
        ...

    async def commit_run(
        self, commit: RunCommit, receipt: Receipt | None, *, also: Sequence[RunCommit] = ()
    ) -> CommitResult:
        """Write the decision, those of other locked runs, and the command's answer if there is one, in one statement."""
        ...

    async def settle_command(self, receipt: Receipt) -> None: ...


class AdmissionStore(Protocol):
    """Opens admission transactions."""

    def transaction(
        self, principal: Principal, *, channel: Channel, traceparent: str | None
    ) -> AbstractAsyncContextManager[AdmissionTransaction]: ...
