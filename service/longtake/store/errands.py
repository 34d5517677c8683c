"""What the starter asks of the authority: starts that decisions asked for, and projects in which somebody may begin.

Leaves to others: the transactions in which runs start and begin (admitting.py).
"""

import uuid
from typing import Literal, Protocol

import msgspec

from longtake.contracts.signals import Outgoing

ErrandKind = Literal["start_child", "scopes_freed", "start_due"]


class Errand(msgspec.Struct, frozen=True, kw_only=True):
    """One row that a decision left for admission."""

    id: uuid.UUID
    tenant: str
    run_id: uuid.UUID
    kind: ErrandKind
    payload: bytes
    traceparent: str | None = None
    parent_closed: bool = False
    """Of `start_child`: the parent has ended, and the child is no longer wanted."""


class ErrandStore(Protocol):
    """Errands and the line for scopes, as the starter finds them."""

    async def open_errands(self, limit: int) -> list[Errand]:
        """Oldest first."""
        ...

    async def settle_errands(self, ids: list[uuid.UUID], reason: str) -> None: ...
    async def answer_errand(self, errand: Errand, reason: str, answer: Outgoing) -> None:
        """Settle an errand and write the fact that answers it, in one statement."""
        ...

    async def waiting_projects(self, limit: int) -> list[tuple[str, str]]:
        """(tenant, project) in which somebody in line may begin, or is to tell others to make room, as far as one look tells."""
        ...
