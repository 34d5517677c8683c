"""Problems as responses: the one place where HTTP codes, headers and errors meet (RFC 9457).

Every answer that is not a success is `application/problem+json` of the closed catalogue; a 500 says nothing of our
inside, and the whole of it is in the log.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.types import ExceptionHandlersMap

from longtake.contracts.codec import to_json
from longtake.contracts.problems import Problem, ProblemError, problem
from longtake.errors import AuthorityUnavailable, Refused
from longtake.telemetry.tracing import current_traceparent, trace_id_of

PROBLEM_MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 1
"""How long a client waits when the authority is away; embedded servers are back within seconds."""

log = structlog.get_logger("longtake.api")

_SLUGS = {
    400: "malformed",
    401: "unauthenticated",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    413: "too-large",
    415: "unsupported-media-type",
}


def problem_body(found: Problem, *, instance: str | None = None) -> Problem:
    """The problem as it is sent: with its place and the trace it belongs to."""
    changes: dict[str, Any] = {}
    if found.instance is None and instance is not None:
        changes["instance"] = instance
    trace_id = trace_id_of(current_traceparent())
    if found.trace_id is None and trace_id is not None:
        changes["trace_id"] = trace_id
    return msgspec.structs.replace(found, **changes) if changes else found


def problem_headers(found: Problem) -> dict[str, str]:
    """Headers that say the same as the body to those who do not read it."""
    headers = {}
    if found.retry_after_seconds is not None:
        headers["Retry-After"] = str(found.retry_after_seconds)
    if found.slug == "unauthenticated":
        headers["WWW-Authenticate"] = 'Bearer realm="longtake"'
    return headers


def answer(
    found: Problem, *, instance: str | None = None, headers: Mapping[str, str] | None = None
) -> Response[bytes]:
    """Make the response of a problem."""
    return Response(
        to_json(problem_body(found, instance=instance)),
        status_code=found.status,
        media_type=PROBLEM_MEDIA_TYPE,
        headers={**problem_headers(found), **(headers or {})},
    )


def unavailable(detail: str = "The authority is not reachable; nothing was changed.") -> Problem:
    """The problem of an authority that is away. Every request of ours can be repeated."""
    return problem("unavailable", detail, retry_after_seconds=RETRY_AFTER_SECONDS)


def not_found(what: str) -> Refused:
    """What is another tenant's is as absent as what never was."""
    return Refused(problem("not-found", f"There is no {what} here."))


def bad_parameter(name: str, message: str, remedy: str) -> Refused:
    """A query parameter or header that makes no sense."""
    return Refused(
        problem(
            "invalid-parameter",
            f"The parameter {name} is not valid.",
            ProblemError(f"/query/{name}", message, remedy),
        )
    )


def exception_handlers() -> ExceptionHandlersMap:
    """How every error becomes a problem."""
    return {
        Refused: _refused,
        AuthorityUnavailable: _away,
        HTTPException: _http,
        Exception: _unexpected,
    }


def internal(error: BaseException, *, method: str, path: str) -> Problem:
    """Log what nobody foresaw and say as much as a stranger may know."""
    log.error("longtake.request_broke", method=method, path=path, exc_info=error)
    return problem("internal", "Something broke on our side. The same request may be sent again.")


def _refused(request: Request[Any, Any, Any], error: Refused) -> Response[bytes]:
    return answer(error.problem, instance=request.url.path)


def _away(request: Request[Any, Any, Any], error: AuthorityUnavailable) -> Response[bytes]:
    log.warning("longtake.authority_unavailable", path=request.url.path, error=str(error))
    return answer(unavailable(), instance=request.url.path)


def _http(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    slug = _SLUGS.get(error.status_code)
    if slug is None:
        return answer(
            internal(error, method=request.method, path=request.url.path), instance=request.url.path
        )
    details = {
        "not-found": "There is no such address.",
        "method-not-allowed": f"{request.method} is not taken here.",
        "too-large": "The body is larger than this address takes.",
    }
    return answer(
        problem(slug, details.get(slug, str(error.detail))),
        instance=request.url.path,
        headers={name: value for name, value in (error.headers or {}).items() if name.lower() == "allow"},
    )


def _unexpected(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    return answer(internal(error, method=request.method, path=request.url.path), instance=request.url.path)
