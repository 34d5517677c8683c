"""The provider of the fault bench: a program with a witness, honest about keys and unreliable in everything else (N28).

    python provider.py WITNESS SEED        prints its URL; ends when its input ends

Each request is written down and synced before it is answered. A key that it knows gives the same job and costs nothing.
POST /mode {"rates": {name: share}} sets what goes wrong from now on; GET /struck counts what did.
"""

import asyncio
import hashlib
import hmac
import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from longtake.testing.checking import WitnessLine

URL = "LONGTAKE_BENCH_PROVIDER"
PRICE = 3
SECRET = b"what the provider signs with"
WORK_SECONDS = 0.15
SILENT_SECONDS = 20.0
"""Longer than any client of it waits."""
AGAIN_SECONDS = 0.3

HABITS = (
    "taken_then_silent", "taken_then_500", "refused_500", "throttled_429",
    "callback_early", "callback_late", "callback_twice", "callback_contradicts", "callback_never",
)  # fmt: skip


def signature(raw: bytes) -> str:
    """How the provider signs what it sends."""
    return hmac.new(SECRET, raw, hashlib.sha256).hexdigest()


class _Refused(Exception):
    def __init__(self, status: str, *headers: str) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers


class Provider:
    """One provider and its jobs."""

    def __init__(self, witness: Path, seed: str) -> None:
        self._file = witness.open("ab")
        self._chance = random.Random(f"provider|{seed}")
        self._jobs: dict[str, tuple[str, float]] = {}
        self._rates: dict[str, float] = {}
        self._http = httpx2.AsyncClient(trust_env=False, timeout=10)
        self._callers: set[asyncio.Task[None]] = set()
        self.struck: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split(" ", 2)[1]
            size = next(
                (int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")),
                0,
            )
            body = await reader.readexactly(size)
            status, extra, answer = "200 OK", (), None
            try:
                answer = await self._answer(path, msgspec.json.decode(body) if body else {})
                status = "404 Not Found" if answer is None else status
            except _Refused as refusal:
                status, extra = refusal.status, refusal.headers
            raw = msgspec.json.encode(answer or {})
            lines = (f"HTTP/1.1 {status}", "Connection: close", f"Content-Length: {len(raw)}", *extra)
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + raw)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            return  # whoever asked is gone
        finally:
            writer.close()

    async def _answer(self, path: str, said: dict[str, Any]) -> dict[str, Any] | None:
        match path:
            case "/mode":
                self._rates = said["rates"]
                return {}
            case "/struck":
                return dict(self.struck)
            case "/submit":
                return await self._submit(said)
        known = self._jobs.get(said["key"])
        self._write(said["key"], path.removeprefix("/"), known[0] if known else "")
        if known is None:
            return None
        return {"job": known[0], "done": time.monotonic() >= known[1]}

    async def _submit(self, said: dict[str, Any]) -> dict[str, Any]:
        key = said["key"]
        if key not in self._jobs:
            if self._strikes("refused_500"):
                raise _Refused("500 Internal Server Error")
            if self._strikes("throttled_429"):
                raise _Refused("429 Too Many Requests", "Retry-After: 1")
        is_new = key not in self._jobs
        job, _ = self._jobs.setdefault(key, (f"job-{len(self._jobs) + 1}", time.monotonic() + WORK_SECONDS))
        self._write(key, "submit", job, charged=is_new)
        if is_new and said.get("callback"):
            await self._promise(key, job, said["callback"])
        if is_new and self._strikes("taken_then_silent"):
            await asyncio.sleep(SILENT_SECONDS)
        if is_new and self._strikes("taken_then_500"):
            raise _Refused("500 Internal Server Error")
        return {"job": job}

    async def _promise(self, key: str, job: str, url: str) -> None:
        if self._strikes("callback_never"):
            return
        seconds = 4.0 if self._strikes("callback_late") else WORK_SECONDS
        if self._strikes("callback_early"):
            # It is told before whoever asked knows the job; and the job is as good as done.
            self._jobs[key] = (job, 0.0)
            await self._post(key, job, url, "done", f"{job}-early")
        words = [("done", f"{job}-done")]
        if self._strikes("callback_twice"):
            words *= 2
        if self._strikes("callback_contradicts"):
            words.append(("failed", f"{job}-failed"))
        caller = asyncio.create_task(self._call_back(key, job, url, seconds, words))
        self._callers.add(caller)
        caller.add_done_callback(self._callers.discard)

    async def _call_back(
        self, key: str, job: str, url: str, seconds: float, words: list[tuple[str, str]]
    ) -> None:
        await asyncio.sleep(seconds)
        for type_, delivery in words:
            while not await self._post(key, job, url, type_, delivery):
                await asyncio.sleep(AGAIN_SECONDS)

    async def _post(self, key: str, job: str, url: str, type_: str, delivery: str) -> bool:
        raw = msgspec.json.encode({"id": delivery, "job": job, "type": type_})
        self._write(key, "callback", job)
        try:
            answer = await self._http.post(url, content=raw, headers={"Bench-Signature": signature(raw)})
        except httpx2.TransportError:
            return False
        return answer.status_code in (200, 401, 404)

    def _strikes(self, habit: str) -> bool:
        if self._chance.random() >= self._rates.get(habit, 0.0):
            return False
        self.struck[habit] += 1
        return True

    def _write(self, key: str, kind: str, job: str, *, charged: bool = False) -> None:
        line = WitnessLine(
            t=time.monotonic(), key=key, kind=kind, charged=charged, credits=PRICE if charged else 0, job=job
        )
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


async def _main(witness: str, seed: str) -> None:
    provider = Provider(Path(witness), seed)
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    print(json.dumps({"url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2]))
