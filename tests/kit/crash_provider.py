"""The provider of the crash matrix: a real HTTP server that writes down each request before it answers, and calls back.

It honours idempotency keys: a key that it knows gives the same job and costs nothing. `hold` keeps answers to submits
back, as a slow provider does; the request is taken all the same.
"""

import asyncio
import hashlib
import hmac
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any, Self

import httpx2
import msgspec

from longtake.testing.checking import WitnessLine

PROVIDER = "LONGTAKE_TEST_PROVIDER_URL"
PRICE = 3
CROWDED_TIMES = 3
SECRET = b"what the provider signs with"
AGAIN_SECONDS = 0.1


def signature(raw: bytes) -> str:
    """How the provider signs what it sends."""
    return hmac.new(SECRET, raw, hashlib.sha256).hexdigest()


def is_authentic(signed: str, raw: bytes) -> bool:
    """Whether the provider signed it."""
    return hmac.compare_digest(signed, signature(raw))


class CrashProvider:
    """`async with CrashProvider(witness) as provider:`"""

    def __init__(self, witness: Path) -> None:
        self._file = witness.open("ab")
        self._jobs: dict[str, str] = {}
        self._crowd: Counter[str] = Counter()
        self._let_go = asyncio.Event()
        self._let_go.set()
        self._server: asyncio.Server | None = None
        self._callers: set[asyncio.Task[None]] = set()
        self.held = 0
        """Submits that wait for their answer."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._http = httpx2.AsyncClient(trust_env=False, timeout=30)
        return self

    async def __aexit__(self, *_error: object) -> None:
        assert self._server is not None
        self._let_go.set()
        self._server.close()
        for caller in self._callers:
            caller.cancel()
        await asyncio.gather(*self._callers, return_exceptions=True)
        await self._http.aclose()
        self._file.close()

    @property
    def url(self) -> str:
        """Where it listens."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def hold(self) -> None:
        """Keep answers to submits back."""
        self._let_go.clear()

    def release(self) -> None:
        """Give them."""
        self._let_go.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split(" ", 2)[1]
            size = next(
                int(line.partition(":")[2])
                for line in head.split("\r\n")
                if line.lower().startswith("content-length:")
            )
            answer = await self._answer(path, msgspec.json.decode(await reader.readexactly(size)))
            body = b"{}" if answer is None else msgspec.json.encode(answer)
            status = "404 Not Found" if answer is None else "200 OK"
            writer.write(
                f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            return  # whoever asked is gone
        finally:
            writer.close()

    async def _answer(self, path: str, said: dict[str, Any]) -> dict[str, Any] | None:
        key = said["key"]
        match path:
            case "/crowd":
                self._crowd[key] += 1
                return {"busy": self._crowd[key] <= CROWDED_TIMES}
            case "/submit":
                is_new = key not in self._jobs
                job = self._jobs.setdefault(key, f"job-{len(self._jobs) + 1}")
                self._write(key, "submit", job, charged=is_new)
                if is_new:
                    caller = asyncio.create_task(self._call_back(key, job, said["callback"]))
                    self._callers.add(caller)
                self.held += 1
                await self._let_go.wait()
                self.held -= 1
                return {"job": job}
            case _:
                job = self._jobs.get(key, "")
                self._write(key, path.removeprefix("/"), job)
                return {"job": job} if job else None

    async def _call_back(self, key: str, job: str, url: str) -> None:
        """Say that the job is done until it is heard, and once more: deliveries are at least once."""
        await self._let_go.wait()
        raw = msgspec.json.encode({"id": f"done-{job}", "job": job})
        self._write(key, "callback", job)
        heard = 0
        while heard < 2:
            try:
                answer = await self._http.post(url, content=raw, headers={"Shots-Signature": signature(raw)})
                heard += answer.status_code == 200
                if answer.status_code == 200:
                    continue
            except httpx2.TransportError:
                """The receiver is away."""
            await asyncio.sleep(AGAIN_SECONDS)

    def _write(self, key: str, kind: str, job: str, *, charged: bool = False) -> None:
        line = WitnessLine(
            t=time.monotonic(), key=key, kind=kind, charged=charged, credits=PRICE if charged else 0, job=job
        )
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
