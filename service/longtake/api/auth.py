"""Authentication: an API key becomes a Principal, here and nowhere else (T45).

A key that was good is believed for a few seconds, so that polling clients cost the authority one look each. Leaves to
others: making and revoking keys (cli), what a principal may see (every query names the tenant).
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from longtake.api.context import Keys
from longtake.contracts.principal import Principal
from longtake.contracts.problems import problem
from longtake.errors import Refused

TTL_SECONDS = 5.0
"""How long a revoked key may still be taken."""
CACHED_MAX = 1024
KEY_CHARACTERS_MAX = 256


class Authenticator:
    """Finds who holds a key; remembers good keys for a moment, by digest."""

    def __init__(
        self, keys: Keys, *, ttl_seconds: float = TTL_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._keys = keys
        self._ttl_seconds = ttl_seconds
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[float, Principal]] = OrderedDict()

    async def principal(self, authorization: str | None) -> Principal:
        """The holder of the key in an Authorization header. Raises Refused: unauthenticated."""
        scheme, _, text = (authorization or "").strip().partition(" ")
        text = text.strip()
        if scheme.lower() != "bearer" or not text:
            raise _unauthenticated("Send the header Authorization: Bearer lt_...")
        if len(text) > KEY_CHARACTERS_MAX or not text.isascii() or not text.isprintable():
            raise _unauthenticated("The key is not one of ours.")
        digest = hashlib.sha256(text.encode()).digest()
        known = self._known.get(digest)
        if known is not None and known[0] > self._clock():
            return known[1]
        found = await self._keys.principal(text)
        if found is None:
            self._known.pop(digest, None)
            raise _unauthenticated("Nobody holds this key, or it was revoked.")
        self._known[digest] = (self._clock() + self._ttl_seconds, found)
        self._known.move_to_end(digest)
        while len(self._known) > CACHED_MAX:
            self._known.popitem(last=False)
        return found


def requires_key(authenticator: Authenticator) -> Any:
    """A guard that lets only holders of a key in; the handler finds them as `request.user`."""

    async def guard(connection: ASGIConnection[Any, Any, Any, Any], _handler: BaseRouteHandler) -> None:
        connection.scope["user"] = await authenticator.principal(connection.headers.get("authorization"))

    return guard


def needs_role(principal: Principal, role: str) -> None:
    """Refuse a caller whose key lacks a role."""
    if role not in principal.roles:
        raise Refused(problem("forbidden", f"This key has not the role {role}."))


def _unauthenticated(detail: str) -> Refused:
    return Refused(problem("unauthenticated", detail))
