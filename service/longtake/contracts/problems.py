"""Problem details (RFC 9457): one object for HTTP bodies, NATS replies and stored refusals.

The catalogue is closed: each slug has one title and one status. `status` travels in the object, as the RFC asks, also
where no HTTP is involved; only api/problems.py turns it into a response.
"""

import msgspec

PROBLEM_BASE = "https://longtake.dev/problems/"

CATALOGUE: dict[str, tuple[str, int]] = {
    "malformed": ("The body is not readable", 400),
    "idempotency-key-missing": ("A command needs an idempotency key", 400),
    "invalid-parameter": ("A parameter of the request is not valid", 400),
    "bad-cursor": ("The cursor belongs to another query", 400),
    "unauthenticated": ("No valid key was sent", 401),
    "bad-signature": ("The signature does not verify", 401),
    "forbidden": ("The key may not do this", 403),
    "bad-host": ("The Host header is not one of ours", 403),
    "not-found": ("There is no such thing", 404),
    "method-not-allowed": ("This address does not take that method", 405),
    "command-in-progress": ("The same command is being accepted right now", 409),
    "action-not-available": ("The run does not offer this action now", 409),
    "scope-conflict": ("Another active run holds a scope", 409),
    "insufficient-funds": ("The account cannot pay", 409),
    "stale-revision": ("The run has moved on", 412),
    "too-large": ("The body is too large", 413),
    "unsupported-media-type": ("The content type is not taken here", 415),
    "range-not-satisfiable": ("The range lies outside the artifact", 416),
    "invalid-command": ("The command is not valid", 422),
    "invalid-plan": ("The workflow's plan is not valid", 422),
    "command-conflict": ("The idempotency key was used with another body", 422),
    "unknown-workflow": ("No such workflow is deployed", 422),
    "precondition-missing": ("The action needs a revision", 428),
    "internal": ("Something broke on our side", 500),
    "unavailable": ("The authority is not reachable", 503),
}


class ProblemError(msgspec.Struct, frozen=True):
    """One thing that is wrong: where (JSON pointer), what, and what would be right."""

    pointer: str
    message: str
    remedy: str


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A refusal as data (RFC 9457, section 3)."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    trace_id: str | None = None
    retry_after_seconds: int | None = None
    errors: tuple[ProblemError, ...] = ()

    @property
    def slug(self) -> str:
        """The last part of the type, which is the catalogue's key."""
        return self.type.removeprefix(PROBLEM_BASE)


def problem(
    slug: str,
    detail: str,
    *errors: ProblemError,
    instance: str | None = None,
    retry_after_seconds: int | None = None,
) -> Problem:
    """Make a problem of the catalogue; KeyError for a slug that is not in it."""
    title, status = CATALOGUE[slug]
    return Problem(
        type=PROBLEM_BASE + slug,
        title=title,
        status=status,
        detail=detail,
        instance=instance,
        retry_after_seconds=retry_after_seconds,
        errors=errors,
    )
