"""What every provider client answers: a closed set of outcomes, each a frozen value made for `match`.

The rule behind the shapes: an outcome says what is *known*. `Rejected` means the provider certainly did not
take the job (or finished it with a verdict), `Unknown` means it may have, and only `reconcile` may resolve
that. Retrying, paying and waiting are decided elsewhere; nothing here repeats a call.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec

# A JSON object from outside: its shape is the provider's, so its values have no type of ours.
Document: TypeAlias = Mapping[str, Any]

TOKEN_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ErrorClass(StrEnum):
    """The closed set of reasons; a provider's own code is always translated to one of these."""

    THROTTLED = "throttled"
    OVERLOADED = "overloaded"
    TRANSIENT = "transient"
    TIMEOUT = "timeout"
    INVALID_INPUT = "invalid_input"
    MODERATION_INPUT = "moderation_input"
    MODERATION_OUTPUT = "moderation_output"
    QUOTA_EXHAUSTED = "quota_exhausted"
    AUTH = "auth"
    NOT_FOUND = "not_found"
    CANCELLED = "cancelled"
    BAD_OUTPUT = "bad_output"
    PROVIDER_BUG = "provider_bug"
    UNKNOWN = "unknown"


class Outcome(msgspec.Struct, frozen=True, kw_only=True, tag_field="outcome"):
    """The root of all outcomes; the tag names the outcome in JSON."""


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a provider's answer: its request id, its own status word, its body without media."""

    request_id: str
    status: str
    payload: Document


# --- submit


class Accepted(Outcome, frozen=True, kw_only=True, tag="accepted"):
    """The provider has the job; `ref` is its name for it."""

    ref: str
    cost_estimate: int
    poll_after_seconds: float
    receipt: Receipt


class Completed(Outcome, frozen=True, kw_only=True, tag="completed"):
    """An inline provider finished the job while the request was open; the media is here."""

    ref: str
    cost: int
    content: bytes
    media_type: str
    report: Document
    receipt: Receipt


class Rejected(Outcome, frozen=True, kw_only=True, tag="rejected"):
    """The provider certainly is not working on this request. `nothing_sent`: it has not even heard of it."""

    error: ErrorClass
    code: str
    message: str
    nothing_sent: bool = False
    ref: str | None = None


class Throttled(Outcome, frozen=True, kw_only=True, tag="throttled"):
    """No job was made; the same request may be offered again at `retry_at`."""

    retry_at: datetime
    scope: str
    message: str


class Unknown(Outcome, frozen=True, kw_only=True, tag="unknown"):
    """Bytes left and no full answer came back: the job may exist."""

    evidence: str


# --- poll


class Pending(Outcome, frozen=True, kw_only=True, tag="pending"):
    """Nothing final yet. `trouble` says why when the provider could not be asked."""

    poll_after_seconds: float
    progress: float | None = None
    trouble: str | None = None


class Succeeded(Outcome, frozen=True, kw_only=True, tag="succeeded"):
    """The provider says the media is ready to be fetched; whether it is good is for others to measure."""

    ref: str
    cost: int
    size_bytes: int | None
    report: Document
    receipt: Receipt


class Failed(Outcome, frozen=True, kw_only=True, tag="failed"):
    """The provider ended the job without media."""

    error: ErrorClass
    code: str
    message: str
    cost: int


class Gone(Outcome, frozen=True, kw_only=True, tag="gone"):
    """The provider no longer knows the reference."""

    evidence: str


# --- reconcile


class Found(Outcome, frozen=True, kw_only=True, tag="found"):
    """The provider has a job that carries our token; `jobs` > 1 means that it was asked more than once."""

    ref: str
    jobs: int
    evidence: str


class NotFound(Outcome, frozen=True, kw_only=True, tag="not_found"):
    """No job carries the token. Not authoritative: the look-up itself gave no answer, ask again."""

    authoritative: bool
    evidence: str


class Impossible(Outcome, frozen=True, kw_only=True, tag="impossible"):
    """The provider offers no look-up: whether the job exists can not be learnt."""

    evidence: str


# --- cancel


class Stopped(Outcome, frozen=True, kw_only=True, tag="stopped"):
    """The job will not produce media; `cost` is what the provider keeps."""

    cost: int


class TooLate(Outcome, frozen=True, kw_only=True, tag="too_late"):
    """The job had already ended."""

    evidence: str


class Unsupported(Outcome, frozen=True, kw_only=True, tag="unsupported"):
    """The provider has no cancel."""


# --- fetch and verify


class Fetched(Outcome, frozen=True, kw_only=True, tag="fetched"):
    """The media was written whole to `path` and synced."""

    path: Path
    size_bytes: int
    sha256: str
    media_type: str


class FetchFailed(Outcome, frozen=True, kw_only=True, tag="fetch_failed"):
    """No file was left behind."""

    error: ErrorClass
    message: str


class Authentic(Outcome, frozen=True, kw_only=True, tag="authentic"):
    """The callback was signed with one of our secrets, recently, over exactly these bytes."""

    dedupe_key: str
    sent_at: datetime
    body: bytes


class Forged(Outcome, frozen=True, kw_only=True, tag="forged"):
    """The callback proves nothing; `reason` is for our log, never for the sender."""

    reason: str


SubmitOutcome: TypeAlias = Accepted | Completed | Rejected | Throttled | Unknown
PollOutcome: TypeAlias = Pending | Succeeded | Failed | Gone
ReconcileOutcome: TypeAlias = Found | NotFound | Impossible
CancelOutcome: TypeAlias = Stopped | TooLate | Unsupported | Unknown
FetchOutcome: TypeAlias = Fetched | FetchFailed
VerifyOutcome: TypeAlias = Authentic | Forged


class Adapter(Protocol):
    """One provider as the activities see it."""

    async def submit(self, request: Document, token: str, deadline: datetime) -> SubmitOutcome:
        """Offer the job once. `token` is what a later `reconcile` will look for."""
        ...

    async def poll(self, ref: str) -> PollOutcome:
        """Ask how the job is doing."""
        ...

    async def reconcile(self, token: str) -> ReconcileOutcome:
        """Ask whether a job with this token exists."""
        ...

    async def cancel(self, ref: str) -> CancelOutcome:
        """Ask the provider to stop."""
        ...

    async def fetch(self, ref: str, path: Path, *, size_bytes_max: int) -> FetchOutcome:
        """Stream the media to `path`."""
        ...

    async def close(self) -> None:
        """Release the connections."""
        ...


def require_token(token: str) -> str:
    """The token itself, or a ValueError that says what a token looks like."""
    if TOKEN_PATTERN.fullmatch(token) is None:
        raise ValueError(f"a provider token is 1 to 64 characters of A-Z a-z 0-9 _ -, not {token!r}")
    return token
