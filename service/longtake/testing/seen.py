"""What the observer remembers of a run, and a promise that does not hold."""

from datetime import datetime

import msgspec

from longtake.contracts.envelope import GENESIS
from longtake.workflow.plan import CompiledPlan
from longtake.workflow.step import Step


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A promise that does not hold."""

    invariant: str
    message: str
    at: float

    def __str__(self) -> str:
        return f"{self.invariant} at {self.at:.3f} s: {self.message}"


class SeenRun(msgspec.Struct, kw_only=True):
    """The observer's own memory of one run."""

    plan: CompiledPlan
    fingerprint: str
    seq: int = 0
    hash: bytes = GENESIS
    last_at: datetime | None = None
    ended: str | None = None
    charged: int = 0
    refunded: int = 0
    cap: int = 0
    application: str = ""
    attempts: dict[str, int] = {}
    status: dict[str, str] = {}
    applied: dict[tuple[str, int], str] = {}
    retries: int = 0
    was_blocked: bool = False
    fragments: dict[str, Step] = {}
    releases_scopes: bool = False
    queued: bool = False
    scopes: tuple[str, ...] = ()
    callbacks: set[str] = set()
    called_back: set[tuple[str, int]] = set()
    """Attempts that an authentic callback was believed of."""
    submitted: set[tuple[str, int]] = set()
    verdicts: set[tuple[str, int]] = set()
    """Attempts whose truth a look-up has told, or has said that it cannot."""
    now: datetime | None = None
    """When the event that is being judged was recorded."""
