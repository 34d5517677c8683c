"""Parameters of requests: read by hand, so that every wrong one is told with its name and what would be right."""

import uuid
from collections.abc import Collection
from typing import Any

from litestar import Request

from longtake.api.problems import bad_parameter, not_found

TEXT_CHARACTERS_MAX = 256


def integer(request: Request[Any, Any, Any], name: str, *, default: int, low: int, high: int) -> int:
    """A whole number of the query, inside bounds."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 18) or not low <= int(text) <= high:
        raise bad_parameter(name, f"is {text[:40]!r}", f"use a whole number from {low} to {high}")
    return int(text)


def choice(request: Request[Any, Any, Any], name: str, allowed: Collection[str]) -> str | None:
    """One of a closed set, or None when absent."""
    text = request.query_params.get(name)
    if text is not None and text not in allowed:
        raise bad_parameter(name, f"is {text[:40]!r}", f"use one of: {', '.join(sorted(allowed))}")
    return text


def text(request: Request[Any, Any, Any], name: str) -> str | None:
    """A text that a database can hold, or None when absent."""
    value = request.query_params.get(name)
    if value is not None and ("\x00" in value or not 0 < len(value) <= TEXT_CHARACTERS_MAX):
        raise bad_parameter(name, "is empty, too long or has U+0000", "use 1 to 256 ordinary characters")
    return value


def identifier(text: str, what: str) -> uuid.UUID:
    """An id of a path; what is not one names nothing."""
    try:
        if len(text) not in (32, 36):
            raise ValueError(text)
        return uuid.UUID(text)
    except ValueError as error:
        raise not_found(f"{what} {text[:64]!r}") from error
