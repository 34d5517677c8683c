"""The wire of the client: one request, its patience with a server that is away for a moment, and its problems.

Every request of ours can be repeated, because commands carry an id. Leaves to others: what is asked (client.py).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx2
import msgspec

from longtake.client.errors import ProblemReceived, ServerUnreachable
from longtake.contracts.problems import Problem, problem
from longtake.telemetry.tracing import inject

TIMEOUT_SECONDS = 30.0
PAUSE_SECONDS_MAX = 2.0
BUSY = frozenset({"unavailable", "command-in-progress"})
"""Problems that time cures."""

_problems = msgspec.json.Decoder(Problem)


def token(text: str) -> str:
    """An id as one segment of a path, whatever somebody typed in its place."""
    quoted = quote(text, safe="")
    return quoted if quoted.strip(".") else "-"


class Wire:
    """Requests to one server with one key. Proxies of the environment are not used."""

    def __init__(self, url: str, key: str | None, *, patience_seconds: float) -> None:
        self.url = url.rstrip("/")
        self._patience_seconds = patience_seconds
        headers = {"User-Agent": "longtake-client"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self._http = httpx2.AsyncClient(
            base_url=self.url,
            headers=headers,
            trust_env=False,
            timeout=httpx2.Timeout(TIMEOUT_SECONDS, connect=5.0),
        )

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        patient: bool = True,
    ) -> httpx2.Response:
        """Ask; again after a while when the server is away. Raises ProblemReceived, ServerUnreachable."""
        deadline = time.monotonic() + (self._patience_seconds if patient else 0.0)
        pause = 0.1
        while True:
            try:
                response = await self._once(method, path, params, content, headers)
                if response.is_success or response.status_code == 304:
                    return response
                refused = read_problem(response)
                if refused.problem.slug not in BUSY or time.monotonic() >= deadline:
                    raise refused
            except httpx2.TransportError as error:
                if time.monotonic() >= deadline:
                    raise ServerUnreachable(self.url, _reason(error)) from error
            await asyncio.sleep(pause)
            pause = min(pause * 2, PAUSE_SECONDS_MAX)

    @asynccontextmanager
    async def streaming(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, endless: bool = False
    ) -> AsyncIterator[httpx2.Response]:
        """An answer that is read in pieces. Raises httpx2's errors: the reader knows where it was."""
        timeout = httpx2.Timeout(TIMEOUT_SECONDS * (2 if endless else 1), connect=5.0)
        async with self._http.stream(
            method, path, headers=self._traced(headers), timeout=timeout
        ) as response:
            if not response.is_success:
                await response.aread()
                raise read_problem(response)
            yield response

    async def _once(
        self,
        method: str,
        path: str,
        params: Mapping[str, Any] | None,
        content: bytes | None,
        headers: Mapping[str, str] | None,
    ) -> httpx2.Response:
        return await self._http.request(
            method, path, params=params, content=content, headers=self._traced(headers)
        )

    @staticmethod
    def _traced(headers: Mapping[str, str] | None) -> dict[str, str]:
        sent = dict(headers or {})
        inject(sent)
        return sent


def read_problem(response: httpx2.Response) -> ProblemReceived:
    """The problem of an answer; one made up for an answer that is none of ours."""
    try:
        return ProblemReceived(_problems.decode(response.content))
    except msgspec.DecodeError:
        said = f"The server answered {response.status_code} without saying why; is it a longtake?"
        return ProblemReceived(
            msgspec.structs.replace(problem("internal", said), status=response.status_code)
        )


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
