"""What the API is made of: explicit collaborators, handed over once by bootstrap.

Leaves to others: making them, and every setting.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Protocol

from litestar.connection import Request
from litestar.datastructures import State
from litestar.params import Dependency

from longtake.contracts.principal import Principal
from longtake.engine.admission import Admission
from longtake.engine.inbox import Inbox

Row = Mapping[str, Any]
"""One row as the authority returns it, by column name; json columns are bytes."""


class Reads(Protocol):
    """What is read of the authority; every question carries the caller's tenant (P13)."""

    async def ready(self) -> None: ...
    async def runs(
        self,
        tenant: str,
        *,
        project: str | None,
        status: str | None,
        workflow: str | None,
        before: tuple[datetime, uuid.UUID] | None,
        limit: int,
    ) -> Sequence[Row]: ...
    async def run(self, tenant: str, run_id: uuid.UUID) -> Row | None: ...
    async def summary(self, tenant: str, run_id: uuid.UUID) -> Row | None: ...
    async def steps(self, tenant: str, run_id: uuid.UUID) -> Sequence[Row]: ...
    async def effects(self, tenant: str, run_id: uuid.UUID) -> Sequence[Row]: ...
    async def claims(self, tenant: str, run_id: uuid.UUID) -> Sequence[Row]: ...
    async def events(self, tenant: str, run_id: uuid.UUID, *, after: int, limit: int) -> Sequence[Row]: ...
    async def ledger(self, tenant: str, run_id: uuid.UUID) -> Sequence[Row]: ...
    async def plan(self, tenant: str, run_id: uuid.UUID) -> Row | None: ...
    async def artifact(self, tenant: str, artifact_id: uuid.UUID) -> Row | None: ...
    async def artifacts(self, tenant: str, run_id: uuid.UUID) -> Sequence[Row]: ...
    async def command(self, tenant: str, actor: str, command_id: str) -> Row | None: ...


class Keys(Protocol):
    """Who holds a key."""

    async def principal(self, text: str) -> Principal | None: ...


class ObjectStore(Protocol):
    """Where artifacts lie. LookupError when an object is not there."""

    async def size(self, key: str) -> int: ...
    def stream(self, key: str, *, start: int, end: int) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True, kw_only=True)
class ApiContext:
    """Everything the routes use."""

    admission: Admission
    inbox: Inbox
    reads: Reads
    keys: Keys
    objects: ObjectStore
    store_epoch: int
    cursor_secret: bytes
    """Signs the cursors of pages."""
    hosts: tuple[str, ...] = ()
    """Host names that requests may name besides loopback; `*` takes any."""
    nats_health: Callable[[], str] = lambda: "up"
    """Whether NATS is connected now; told by /health/ready, needed by nothing."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server stops: endless answers end."""


Api = Annotated[ApiContext, Dependency(skip_validation=True)]
"""The context as a handler asks for it; the parameter is called `api`."""

Caller = Request[Principal, Any, State]
"""A request whose `user` is the authenticated caller (auth.py)."""
