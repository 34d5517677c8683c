"""The little web framework under the synthetic providers: routes, whole bodies, files, and hanging up.

Hanging up is why this is not a full framework: a provider that loses a response closes the socket without one
byte, and the server below offers that only to those who ask its protocol.
"""

import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

import msgspec

BODY_BYTES_MAX = 64 * 1024 * 1024
FILE_PART_BYTES = 256 * 1024

# The shapes of the ASGI specification; their values are open by definition.
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request with its whole body."""

    method: str
    path: str
    parts: dict[str, str]
    query: dict[str, str]
    body: bytes

    def document(self) -> dict[str, Any]:
        """The body as a JSON object; Malformed says what it is instead."""
        try:
            value = msgspec.json.decode(self.body)
        except msgspec.DecodeError as error:
            raise Malformed(f"the body is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise Malformed("the body must be a JSON object")
        return value


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """An answer; `file` is streamed when given."""

    status: int = 200
    body: bytes = b""
    file: Path | None = None
    media_type: str = "application/json"
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class Malformed(ValueError):
    """The client sent something that can not be read; the message says what and where."""


class HangUp(Exception):
    """Raised to close the connection without an answer."""


Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


def answer(value: object, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(status=status, body=msgspec.json.encode(value), headers=headers or {})


class Router:
    """The whole application: finds the handler and speaks ASGI for it."""

    def __init__(self) -> None:
        self._routes: list[tuple[str, re.Pattern[str], Handler]] = []

    def add(self, method: str, pattern: str, handler: Handler) -> None:
        """`{name}` in the pattern stands for one segment of the path."""
        expression = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern)
        self._routes.append((method, re.compile(expression), handler))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry."""
        if scope["type"] != "http":
            raise RuntimeError(f"only http is spoken here, not {scope['type']}")
        body = await _body(receive)
        if body is None:
            await _send(send, answer({"message": f"more than {BODY_BYTES_MAX} bytes"}, status=413))
            return
        try:
            await _send(send, await self._respond(scope, body))
        except HangUp:
            scope["state"]["hang_up"]()
            # The server learns of the closed connection through its own callback; leaving earlier would
            # make it answer 500 on our behalf.
            while (await receive())["type"] != "http.disconnect":
                pass

    async def _respond(self, scope: Scope, body: bytes) -> Response:
        path, method = scope["path"], scope["method"]
        for candidate, pattern, handler in self._routes:
            found = pattern.fullmatch(path)
            if found is None or candidate != method:
                continue
            query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
            request = Request(method=method, path=path, parts=found.groupdict(), query=query, body=body)
            return await handler(request)
        return answer({"message": f"there is no {method} {path}"}, status=404)


async def _body(receive: Receive) -> bytes | None:
    received = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return bytes(received)
        received += message.get("body", b"")
        if len(received) > BODY_BYTES_MAX:
            return None
        if not message.get("more_body", False):
            return bytes(received)


async def _send(send: Send, response: Response) -> None:
    size = len(response.body) if response.file is None else response.file.stat().st_size
    headers = {"content-type": response.media_type, "content-length": str(size), **response.headers}
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": response.status, "headers": encoded})
    if response.file is None:
        await send({"type": "http.response.body", "body": response.body})
        return
    with response.file.open("rb") as source:
        while part := source.read(FILE_PART_BYTES):
            await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def header_json(value: object) -> str:
    """A JSON value that may travel in a header: ASCII only, on one line."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
