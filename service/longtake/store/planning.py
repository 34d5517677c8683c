"""Plans of deployed code, and the runs that must be compared with it (P15)."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A validated plan with what is frozen beside it."""

    workflow: str
    workflow_version: int
    plan: Any
    plan_document: bytes
    input: bytes
    policy: bytes
    fingerprint: str
    quoted: int
    cap: int
    price_list: str
    scopes: tuple[str, ...]
    application: str
    starts: tuple[str, ...] = ("generation",)
    """Command kinds that the workflow declares to be started by."""


class Planner(Protocol):
    """The deployed application's builders. Lives where user code lives, never in the dispatcher (P15)."""

    @property
    def application(self) -> str: ...
    def plan(self, workflow: str, input: Any, policy: Mapping[str, Any]) -> PlannedRun:
        """Build twice, compare, validate. Raises Refused with the places that are wrong."""
        ...

    def claims(self, workflow: str, version: int) -> bool: ...


class UncheckedRun(msgspec.Struct, frozen=True, kw_only=True):
    """An active run with everything its plan was made of."""

    run_id: uuid.UUID
    tenant: str
    workflow: str
    workflow_version: int
    fingerprint: str
    plan: bytes
    input: bytes
    policy: bytes
    drift_blocked: bool
    """The run is blocked by an earlier drift; the return of a matching build unblocks it."""
    revision: int = 0
    price_list: str | None = None
    """The price list it was accepted under; None where the reader does not need it by name."""


class PlanCheckStore(Protocol):
    """Where unchecked runs are found and verdicts are kept."""

    async def deploy(self, application: str) -> None: ...
    async def unchecked_runs(self, application: str, limit: int) -> list[UncheckedRun]: ...
    async def mark_checked(self, run_ids: Sequence[uuid.UUID], application: str) -> None: ...
    async def signal(
        self, *, id: uuid.UUID, tenant: str, run_id: uuid.UUID, kind: str, payload: bytes
    ) -> None: ...
