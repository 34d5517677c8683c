"""Cursors of pages: opaque, signed, and good for one query only.

A cursor names the last row of the page it follows (keyset), so a page costs the same wherever it is.
"""

import hashlib
import hmac
import uuid
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime

import msgspec

from longtake.contracts.codec import canonical
from longtake.contracts.problems import ProblemError, problem
from longtake.errors import Refused

_MAC_BYTES = 16
CURSOR_CHARACTERS_MAX = 512


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Where the next page begins: after this row."""

    accepted_at: datetime
    run_id: uuid.UUID


def write_cursor(secret: bytes, cursor: Cursor, *, query: dict[str, str | None]) -> str:
    """Sign a cursor for a query."""
    body = msgspec.json.encode(cursor)
    return urlsafe_b64encode(_mac(secret, body, query) + body).rstrip(b"=").decode()


def read_cursor(secret: bytes, text: str, *, query: dict[str, str | None]) -> Cursor:
    """Read a cursor that was made for this query. Raises Refused: bad-cursor."""
    try:
        if len(text) > CURSOR_CHARACTERS_MAX:
            raise ValueError("too long")
        raw = urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
        mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, _mac(secret, body, query)):
            raise ValueError("signature")
        return msgspec.json.decode(body, type=Cursor)
    except (ValueError, msgspec.DecodeError) as error:
        raise Refused(
            problem(
                "bad-cursor",
                "The cursor was not given out for this query.",
                ProblemError("/query/cursor", "is not of this query", "start again without a cursor"),
            )
        ) from error


def _mac(secret: bytes, body: bytes, query: dict[str, str | None]) -> bytes:
    return hmac.new(b"cursor|" + secret, canonical(query) + body, hashlib.sha256).digest()[:_MAC_BYTES]
