"""One HTTP call to a provider, made exactly once, with a precise answer to "did bytes leave?".

No retries, no kept-alive connections (a dead one would turn a refused call into an unknown one) and no proxy
or netrc from the environment. What an answer *means* is left to each provider's client.
"""

import asyncio
import hashlib
import os
import ssl
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import msgspec

from videoads.providers.contract import (
    Document,
    ErrorClass,
    Fetched,
    FetchFailed,
    FetchOutcome,
    Rejected,
    Throttled,
    Unknown,
)

ANSWER_BYTES_MAX = 64 * 1024 * 1024
CONNECT_TIMEOUT_SECONDS = 5.0
QUERY_TIMEOUT_SECONDS = 15.0
FETCH_TIMEOUT_SECONDS = 300.0
UPLOAD_TIMEOUT_SECONDS = 60.0
RETRY_AFTER_SECONDS_DEFAULT = 2.0
RETRY_AFTER_SECONDS_MAX = 3600.0
EVIDENCE_CHARACTERS_MAX = 300


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A full answer: nothing of it is missing."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def document(self) -> Document | None:
        """The body as a JSON object, or None when it is not one."""
        try:
            value = msgspec.json.decode(self.body)
        except msgspec.DecodeError:
            return None
        return value if isinstance(value, dict) else None

    def evidence(self) -> str:
        """The answer in one short line."""
        text = self.body[:EVIDENCE_CHARACTERS_MAX].decode("utf-8", "replace")
        return f"HTTP {self.status}: {text}"


class NotSent(msgspec.Struct, frozen=True, kw_only=True):
    """No byte of the request left this machine."""

    reason: str
    timed_out: bool


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of the request left and no full answer came back."""

    reason: str


Exchanged: TypeAlias = Answer | NotSent | Lost


class _Departure:
    """Watches the connection and remembers whether the request began to leave."""

    def __init__(self) -> None:
        self.begun = False

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith("send_request_headers.started"):
            self.begun = True


traceparent: ContextVar[str | None] = ContextVar("traceparent", default=None)
"""The W3C trace context that calls of this task carry on; set by whoever works for a traced run."""


def _headers(content_type: str | None) -> dict[str, str]:
    named = {"content-type": content_type, "traceparent": traceparent.get()}
    return {name: value for name, value in named.items() if value is not None}


class Exchange:
    """Calls one provider at one address."""

    def __init__(self, base_url: str) -> None:
        self._client = httpx2.AsyncClient(
            base_url=base_url,
            trust_env=False,
            follow_redirects=False,
            transport=httpx2.AsyncHTTPTransport(
                verify=_trust(base_url),
                retries=0,
                trust_env=False,
                limits=httpx2.Limits(max_keepalive_connections=0),
            ),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def call(
        self,
        method: str,
        path: str,
        *,
        timeout_seconds: float = QUERY_TIMEOUT_SECONDS,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> Exchanged:
        """Send the request once and read the whole answer, within the time given."""
        if timeout_seconds <= 0:
            return NotSent(reason="the deadline had passed before the call", timed_out=True)
        departure = _Departure()
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._send(method, path, departure, body, content_type)
        except (httpx2.HTTPError, httpx2.StreamError, TimeoutError, _AnswerTooLarge) as error:
            reason = f"{method} {path}: {type(error).__name__}: {error}".rstrip(": ")
            if departure.begun:
                return Lost(reason=reason)
            timed_out = isinstance(error, (TimeoutError, httpx2.TimeoutException))
            return NotSent(reason=reason, timed_out=timed_out)

    async def _send(
        self, method: str, path: str, departure: _Departure, body: bytes | None, content_type: str
    ) -> Answer:
        request = self._client.build_request(
            method,
            path,
            content=body,
            headers=_headers(None if body is None else content_type),
            extensions={"trace": departure, "timeout": {"connect": CONNECT_TIMEOUT_SECONDS}},
        )
        response = await self._client.send(request, stream=True)
        try:
            received = bytearray()
            async for part in response.aiter_bytes():
                received += part
                if len(received) > ANSWER_BYTES_MAX:
                    raise _AnswerTooLarge(f"the answer is larger than {ANSWER_BYTES_MAX} bytes")
        finally:
            await response.aclose()
        return Answer(status=response.status_code, headers=dict(response.headers), body=bytes(received))

    async def download(self, path: str, target: Path, *, size_bytes_max: int) -> FetchOutcome:
        """Stream a file to `target`; it appears there whole and synced, or not at all."""
        partial = target.with_name(target.name + ".partial")
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_SECONDS):
                outcome = await self._stream_to(path, partial, target, size_bytes_max)
        except (httpx2.HTTPError, httpx2.StreamError, TimeoutError) as error:
            outcome = FetchFailed(
                error=ErrorClass.TRANSIENT, message=f"{path}: {type(error).__name__}: {error}"
            )
        finally:
            partial.unlink(missing_ok=True)
        return outcome

    async def _stream_to(self, path: str, partial: Path, target: Path, size_bytes_max: int) -> FetchOutcome:
        async with self._client.stream("GET", path, timeout=QUERY_TIMEOUT_SECONDS) as response:
            if response.status_code != 200:
                error = ErrorClass.NOT_FOUND if response.status_code in (404, 410) else ErrorClass.TRANSIENT
                return FetchFailed(error=error, message=f"{path}: HTTP {response.status_code}")
            digest = hashlib.sha256()
            size = 0
            with partial.open("wb") as sink:
                async for part in response.aiter_bytes():
                    size += len(part)
                    if size > size_bytes_max:
                        return FetchFailed(
                            error=ErrorClass.BAD_OUTPUT, message=f"{path}: more than {size_bytes_max} bytes"
                        )
                    digest.update(part)
                    sink.write(part)
                sink.flush()
                os.fsync(sink.fileno())
            announced = response.headers.get("x-content-sha256")
            media_type = response.headers.get("content-type", "application/octet-stream")
        if size == 0:
            return FetchFailed(error=ErrorClass.BAD_OUTPUT, message=f"{path}: the file is empty")
        if announced not in (None, digest.hexdigest()):
            return FetchFailed(
                error=ErrorClass.BAD_OUTPUT,
                message=f"{path}: the bytes have digest {digest.hexdigest()}, announced was {announced}",
            )
        partial.replace(target)
        return Fetched(path=target, size_bytes=size, sha256=digest.hexdigest(), media_type=media_type)


def _trust(base_url: str) -> ssl.SSLContext:
    """Whose certificates count. Loading the list takes longer than a call on this machine, and plain HTTP,
    which never follows a redirect, has no use for it; an empty list trusts nobody."""
    if base_url.startswith("http://"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx2.create_ssl_context(trust_env=False)


class _AnswerTooLarge(Exception):
    """An answer passed the limit; it is dropped and counts as lost."""


def seconds_until(deadline: datetime) -> float:
    """How long there is; refuses a deadline without a time zone."""
    if deadline.tzinfo is None:
        raise ValueError(f"a deadline needs a time zone: {deadline.isoformat()}")
    return (deadline - datetime.now(UTC)).total_seconds()


class UploadFailed(Exception):
    """An input could not be given to the provider; nothing was ordered yet, so trying again is safe."""


async def upload(exchange: Exchange, shelf: str, path: Path) -> str:
    """Put a file on the provider's shelf under its own digest, and answer the digest."""
    content = await asyncio.to_thread(path.read_bytes)
    sha256 = hashlib.sha256(content).hexdigest()
    answer = await exchange.call(
        "PUT",
        f"{shelf}/{sha256}",
        body=content,
        content_type="application/octet-stream",
        timeout_seconds=UPLOAD_TIMEOUT_SECONDS,
    )
    match answer:
        case Answer(status=200):
            return sha256
        case Answer():
            raise UploadFailed(f"{path.name}: {answer.evidence()}")
        case missing:
            raise UploadFailed(f"{path.name}: {missing.reason}")


def without_answer(missing: NotSent | Lost) -> Rejected | Unknown:
    """What a submit that got no answer means."""
    match missing:
        case NotSent(reason=reason, timed_out=timed_out):
            error = ErrorClass.TIMEOUT if timed_out else ErrorClass.TRANSIENT
            return Rejected(error=error, code="nothing_sent", message=reason, nothing_sent=True)
        case Lost(reason=reason):
            return Unknown(evidence=reason)


def throttled(answer: Answer, scope: str, message: str) -> Throttled:
    """A 429 with the time the provider asked for, read with suspicion."""
    seconds = retry_after_seconds(answer)
    return Throttled(
        retry_at=datetime.fromtimestamp(datetime.now(UTC).timestamp() + seconds, UTC),
        scope=scope,
        message=message,
    )


def retry_after_seconds(answer: Answer) -> float:
    """`Retry-After` in seconds; absent, odd or huge values become ours."""
    text = answer.headers.get("retry-after", "")
    try:
        seconds = float(text)
    except ValueError:
        return RETRY_AFTER_SECONDS_DEFAULT
    if not 0 <= seconds <= RETRY_AFTER_SECONDS_MAX:
        return RETRY_AFTER_SECONDS_DEFAULT
    return seconds
