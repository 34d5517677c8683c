"""Outcomes: what a worker reports of an effect, stored as its receipt before it is applied (G36, P1).

The set is closed. "Exhausted" is not an outcome: the reducer derives it from attempts.
"""

from typing import Any, Literal

import msgspec

OUTCOME_BYTES_MAX = 64 * 1024
"""Limit of one encoded outcome (P17); larger results belong into artifacts."""

ErrorClass = Literal[
    "throttled", "overloaded", "transient", "timeout", "invalid_input", "moderation_input", "moderation_output",
    "quota_exhausted", "auth", "not_found", "cancelled", "bad_output", "provider_bug", "dependency", "unknown",
]  # fmt: skip

Origin = Literal["infrastructure", "provider", "content", "request"]
"""Where a failure comes from, so that lost execution and bad content can be told apart (G08)."""

RETRYABLE: frozenset[str] = frozenset(
    {"throttled", "overloaded", "transient", "timeout", "bad_output", "provider_bug"}
)
"""Error classes that another attempt may cure."""


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A stored object: its identity is key + digest; URLs are made at the edge and never stored (H88)."""

    name: str
    kind: str
    object_key: str
    sha256: str
    bytes: int
    content_type: str


class _Outcome(msgspec.Struct, frozen=True, kw_only=True, tag_field="outcome", omit_defaults=True):
    provider_cost: int | None = None
    """What the provider says it cost, in its own minor units; kept beside the user's price (H50)."""


class Succeeded(_Outcome, frozen=True, kw_only=True, tag="succeeded"):
    """The work is done; results are JSON, files are artifacts."""

    result: dict[str, Any] = {}
    artifacts: tuple[Artifact, ...] = ()
    external_ref: str | None = None
    adopted: bool = False
    """Found by a look-up rather than answered to our own call."""
    fragment: tuple[dict[str, Any], ...] | None = None
    """Of an `expand` step: the steps that its builder made of the result, as JSON (P15)."""


class Submitted(_Outcome, frozen=True, kw_only=True, tag="submitted"):
    """The provider owns a request now (H33); we poll, or wait for its callback, until the deadline."""

    external_ref: str
    poll_after_seconds: int | None = None
    """First poll after this many seconds; None: only the callback and the deadline speak."""
    external_seconds_max: int = 3600
    adopted: bool = False


class Pending(_Outcome, frozen=True, kw_only=True, tag="pending"):
    """A poll found nothing new: the effect is put back quietly, no event is written (G41)."""

    poll_after_seconds: int
    progress: int | None = None


class Failed(_Outcome, frozen=True, kw_only=True, tag="failed"):
    """A definite failure of this attempt."""

    error_class: ErrorClass
    message: str
    origin: Origin = "provider"
    retry_after_seconds: int | None = None
    adopted: bool = False
    """Of a look-up: the request was found, and it had failed. Otherwise a failed look-up has found out nothing."""


class Throttled(_Outcome, frozen=True, kw_only=True, tag="throttled"):
    """The provider took nothing and says when to come back; costs no attempt."""

    retry_after_seconds: int
    scope: str = "account"


class Unknown(_Outcome, frozen=True, kw_only=True, tag="unknown"):
    """The request may or may not have been taken: bytes were sent and no full answer came."""

    evidence: str


class NotFound(_Outcome, frozen=True, kw_only=True, tag="not_found"):
    """A look-up says with authority that the provider never took the request."""

    evidence: str


class Impossible(_Outcome, frozen=True, kw_only=True, tag="impossible"):
    """No look-up can tell whether the provider took the request."""

    evidence: str


class Cancelled(_Outcome, frozen=True, kw_only=True, tag="cancelled"):
    """The provider's answer to a cancel effect, or work that was stopped before it began."""

    answer: Literal["stopped", "too_late", "unsupported", "unknown"] = "stopped"


Outcome = Succeeded | Submitted | Pending | Failed | Throttled | Unknown | NotFound | Impossible | Cancelled

_decoder: msgspec.json.Decoder[Outcome] = msgspec.json.Decoder(Outcome)


def decode_outcome(raw: bytes | str) -> Outcome:
    """Read a stored receipt; msgspec.ValidationError when it is none."""
    return _decoder.decode(raw)
