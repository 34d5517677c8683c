"""The edge: what happens to every request before it is routed - its host, its span, its last resort.

An ASGI application around the routes, so that it holds for addresses that do not exist too.
"""

import ipaddress
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from litestar.types import ASGIApp, Message, Receive, Send

from longtake.api.problems import PROBLEM_MEDIA_TYPE, internal, problem_body, problem_headers
from longtake.contracts.codec import to_json
from longtake.contracts.problems import Problem, ProblemError, problem
from longtake.telemetry.tracing import extract, span

_SAFE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)


class Edge:
    """Wraps the routes."""

    def __init__(self, routes: ASGIApp, *, hosts: Collection[str]) -> None:
        self._routes = routes
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one request. The scope is ASGI's open mapping."""
        if scope["type"] != "http":
            await self._routes(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        method, path = str(scope["method"]), str(scope["path"])
        status = 0
        begun = False

        async def send_on(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                begun, status = True, message["status"]
                present = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *((name, value) for name, value in _SAFE_HEADERS if name not in present),
                ]
            await send(message)

        attributes = {"http.request.method": method, "url.path": path}
        with span(method, kind="server", parent=extract(headers), attributes=attributes) as hop:
            try:
                if not self._is_ours(headers.get("host")):
                    await _answer(send_on, _foreign(headers.get("host")), path)
                else:
                    await self._routes(scope, receive, send_on)
            except Exception as error:
                if begun:
                    raise
                await _answer(send_on, internal(error, method=method, path=path), path)
            finally:
                if template := scope.get("path_template"):
                    # The routes are known by now; an address that does not exist has the method alone as its name.
                    hop.rename(f"{method} {template}")
                    hop.set("http.route", str(template))
                if status:
                    hop.set("http.response.status_code", status)
                if status >= 500:
                    hop.fail(str(status))

    def _is_ours(self, host: str | None) -> bool:
        """Loopback, or a name from the settings: a page of another site cannot reach us by its own name."""
        if "*" in self._hosts:
            return True
        name = _name_of(host)
        return name is not None and (name in self._hosts or _is_loopback(name))


def _name_of(host: str | None) -> str | None:
    if not host or any(character in host for character in "/@\\ ,#?"):
        return None
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    return None if parts.hostname is None else parts.hostname.rstrip(".").lower()


def _is_loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _foreign(host: str | None) -> Problem:
    return problem(
        "bad-host",
        f"This server does not answer to the name {(host or '')[:80]!r}.",
        ProblemError(
            "/header/Host", "is not one of ours", "use 127.0.0.1, or name the host in LONGTAKE_ALLOWED_HOSTS"
        ),
    )


async def _answer(send: Any, found: Problem, path: str) -> None:
    body = to_json(problem_body(found, instance=path))
    headers = [(name.lower().encode(), value.encode()) for name, value in problem_headers(found).items()]
    headers += [
        (b"content-type", PROBLEM_MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": found.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
