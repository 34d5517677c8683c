"""Activities: what authors write to touch the outside world, and the call they are given.

An activity executes; one that talks to a provider also knows how to poll, to look up whether a request was taken
(`reconcile`), and to cancel. What it does not override tells the reducer what cannot be known.
"""

import asyncio
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec

from longtake.contracts.effects import EffectKind
from longtake.contracts.outcomes import Artifact, Cancelled, Failed, Impossible, Outcome
from longtake.worker.leases import LeaseProfile
from longtake.workflow.plan import ActivityFacts


class ArtifactStore(Protocol):
    """Where a call puts files and finds those of other steps."""

    async def put(self, content: bytes | Path, *, name: str, kind: str, content_type: str) -> Artifact: ...
    async def fetch(self, key: str, path: Path) -> None: ...


class Call(msgspec.Struct, kw_only=True):
    """One claimed effect, as an activity sees it."""

    run_id: uuid.UUID
    step: str
    attempt: int
    kind: EffectKind
    input: Mapping[str, Any]
    token: str
    """Give this to the provider as our own id: it is of the attempt, never of the lease (P1)."""
    external_ref: str | None
    """The provider's id of the request, once there is one."""
    artifacts: ArtifactStore
    callback_url: Callable[[str], str]
    """Address for a provider's webhook, by provider name; it carries the signed run, step and attempt (P4)."""
    traceparent: str | None = None
    lost: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Set when the lease is gone: stop; what was learned is still worth reporting."""
    progress: int | None = None
    """Percent, shown in the run's steps; set it as you like."""


class Activity(ABC):
    """Base of activities. `name` is "what@version"; versions are never edited in place (H89)."""

    name: ClassVar[str]
    paid: ClassVar[bool] = False
    """The outside charges for a call: it needs a price, and a lost answer is looked up before a repeat."""
    calls_out: ClassVar[bool] = True
    """Bytes leave on execute, so that a lease lost afterwards is an unknown outcome (P18)."""
    pool: ClassVar[str] = "default"
    lease: ClassVar[LeaseProfile] = "default"
    """`long`: the call takes minutes in which nothing can be heard of it; its lease forgives more and ends later (P18)."""

    @abstractmethod
    async def execute(self, call: Call) -> Outcome:
        """Do the work, or hand it to a provider. What it raises after the call was opened is an unknown outcome."""

    async def poll(self, call: Call) -> Outcome:
        """Look at a submitted request: Pending, Succeeded or Failed."""
        return Failed(
            error_class="provider_bug",
            origin="infrastructure",
            message=f"{self.name} submitted, but cannot poll",
        )

    async def reconcile(self, call: Call) -> Outcome:
        """Tell whether the provider took the request of this token: Succeeded, Submitted, NotFound or Impossible."""
        return Impossible(evidence=f"{self.name} has no look-up")

    async def cancel(self, call: Call) -> Outcome:
        """Ask the provider to stop."""
        return Cancelled(answer="unsupported")

    def facts(self) -> ActivityFacts:
        """What a plan must know of this activity."""
        kind = type(self)
        return ActivityFacts(
            name=self.name.rpartition("@")[0],
            version=int(self.name.rpartition("@")[2]),
            paid=self.paid,
            pool=self.pool,
            external=kind.poll is not Activity.poll,
            cancellable=kind.cancel is not Activity.cancel,
            lookup=kind.reconcile is not Activity.reconcile,
        )
