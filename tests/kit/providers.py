"""Runs the real synthetic providers for a test and gives it their control plane and a webhook receiver.

Nothing here waits by the clock: a test asks the control plane to answer when something has happened.
"""

import asyncio
import json
import os
import secrets
import signal
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import httpx2

from videoads.providers.launch import SyntheticProviders, start_providers, stop_providers
from videoads.providers.witness import WitnessLine, read_witness

SERVICE = Path(__file__).parents[2] / "service"
QUICK_MAKER = Path(__file__).parents[1] / "contract" / "providers" / "quick_maker.py"
# Plain HTTP on this machine: loading the certificate list would be most of a test's time.
NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
COUNTS = ("requests", "creates", "accepted", "cost")
KINDS = ("clip", "still", "voice", "music", "film")


class ProviderBench:
    """The providers under test, with what a test orders from them.

    Several benches may stand before the same running program, one after another: each counts from its own
    beginning and its tokens are its own.
    """

    def __init__(self, data: Path, *, arguments: Sequence[str] = (), real_media: bool = False) -> None:
        self.data = data
        # Should the test run itself be killed, its providers end too.
        self._arguments = ["--parent-pid", str(os.getpid()), *arguments]
        if not real_media:
            recipes = data.with_name(data.name + "-recipes.json")
            command = [sys.executable, str(QUICK_MAKER), "{request}", "{out}"]
            recipes.write_text(json.dumps({kind: command for kind in KINDS}))
            self._arguments += ["--recipes", str(recipes)]
        self.running: SyntheticProviders | None = None
        self._name = secrets.token_hex(4)
        self._lines_before = 0
        self._stats_before: dict[str, dict[str, int]] = {}
        self._control = httpx2.AsyncClient(trust_env=False, timeout=60, verify=NOBODY)

    @property
    def base_url(self) -> str:
        assert self.running is not None
        return self.running.base_url

    async def start(self) -> None:
        self.running = await start_providers(self.data, arguments=self._arguments, import_path=SERVICE)

    async def begin(self) -> None:
        """Take over a running program: no rules, nothing forgotten, counts from here."""
        await self.start()
        await self.control("DELETE", "rules")
        await self.control("POST", "mode", {"amnesiac": []})
        self._lines_before = len(read_witness(self.data / "witness.ndjson"))
        self._stats_before = (await self.control("GET", "stats"))["providers"]

    async def leave(self) -> None:
        """Let everything that is held back end, so that the next one finds free slots."""
        await self.control("POST", "release", {"token": "*"})
        await self.wait(settled=True)
        await self._control.aclose()

    def token(self, number: object = 1) -> str:
        """A token that no other bench uses."""
        return f"{self._name}-{number}"

    async def kill(self) -> None:
        """kill -9, as a power cut would."""
        assert self.running is not None
        watcher = os.pidfd_open(self.running.pid)
        gone = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(watcher, lambda: gone.done() or gone.set_result(None))
        os.kill(self.running.pid, signal.SIGKILL)
        await asyncio.wait_for(gone, 10)
        asyncio.get_running_loop().remove_reader(watcher)
        os.close(watcher)

    async def stop(self) -> None:
        if self.running is not None:
            await stop_providers(self.running)
        await self._control.aclose()

    async def control(self, method: str, path: str, document: object = None) -> Any:
        response = await self._control.request(method, f"{self.base_url}/control/{path}", json=document)
        assert response.status_code == 200, response.text
        return response.json()

    async def order(self, fault: str, *, error: str = "transient", **conditions: Any) -> None:
        """Put a rule in force; `seconds`, `spread`, `retry_after_seconds` belong to the fault."""
        own = {
            name: conditions.pop(name)
            for name in ("seconds", "spread", "retry_after_seconds")
            if name in conditions
        }
        await self.control("POST", "rules", {"fault": {"kind": fault, "error": error, **own}, **conditions})

    async def wait(self, **conditions: Any) -> None:
        """Return when it has happened."""
        before = self._stats_before.get(conditions.get("style", ""), {})
        counted = {name: count + before.get(name, 0) for name, count in conditions.items() if name in COUNTS}
        answer = await self.control("POST", "wait", {"timeout_seconds": 50, **conditions, **counted})
        assert answer["held"], f"never happened: {conditions}; {await self.control('GET', 'jobs')}"

    async def release(self, token: str) -> None:
        await self.control("POST", "release", {"token": token})

    async def numbers(self, style: str) -> dict[str, Any]:
        stats = await self.control("GET", "stats")
        before = self._stats_before.get(style, {})
        return {
            name: number - (before.get(name, 0) if name in COUNTS else 0)
            for name, number in stats["providers"][style].items()
        }

    def witness(self) -> list[WitnessLine]:
        return read_witness(self.data / "witness.ndjson")[self._lines_before :]

    def creates(self, token: str) -> list[WitnessLine]:
        return [line for line in self.witness() if line.request == "create" and line.token == token]


class WebhookReceiver:
    """An HTTP server that takes webhooks, answers with `status`, and hands them to the test."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue()
        self.status = 204
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/callbacks/render/token"

    async def next(self) -> tuple[dict[str, str], bytes]:
        return await asyncio.wait_for(self.received.get(), 50)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[1:]
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        writer.write(
            f"HTTP/1.1 {self.status} Taken\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()
        )
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        await self.received.put((headers, body))
