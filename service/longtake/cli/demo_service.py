"""The service of a demo: `longtake up` as a child process, started, awaited, stopped, and killed when that is the show."""

import asyncio
import hashlib
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import httpx2
import msgspec

from longtake.cli.place import UP_FILE
from longtake.client import Client
from longtake.embedded.nats import choose_port
from longtake.errors import LongtakeError

READY_SECONDS_MAX = 120.0
STOP_SECONDS_MAX = 40.0
PORTS_FROM = 30_000  # above those of NATS, below the range for outgoing connections
PORTS = 2_700
COMPLAINT_LINES = 6


class ServiceDidNotStart(LongtakeError):
    """`longtake up` ended before it was ready; the message is its own."""


class UpLine(msgspec.Struct, frozen=True):
    """What `longtake up --json` prints once it is ready."""

    url: str
    pid: int
    key_file: str


class DemoService:
    """One data directory, one port, and the process that serves them at the moment."""

    def __init__(
        self,
        data_dir: Path,
        *,
        app: str,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.data_dir = data_dir
        self.port = choose_port([*_port_of_last_time(data_dir), port or _port_of_its_own(data_dir)])
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = dict(environment or {})
        self._app = app
        self._process: asyncio.subprocess.Process | None = None
        self._complaints: asyncio.Task[bytes] | None = None
        self.key = ""

    async def start(self) -> float:
        """Start it and return the seconds until it was ready. Raises ServiceDidNotStart."""
        begun = time.monotonic()
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "longtake", "up", "--json"),
            *("--data-dir", str(self.data_dir), "--port", str(self.port), "--app", self._app),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **self.environment},
            # Ctrl-C is for us: we end the service in good order.
            start_new_session=True,
        )
        assert self._process.stdout is not None and self._process.stderr is not None
        self._complaints = asyncio.create_task(self._process.stderr.read())
        try:
            async with asyncio.timeout(READY_SECONDS_MAX):
                line = await self._process.stdout.readline()
        except TimeoutError:
            await self.stop()
            raise ServiceDidNotStart(
                f"`longtake up` was not ready within {READY_SECONDS_MAX:.0f} s; its log is {self.data_dir / 'log'}"
            ) from None
        except BaseException:
            # Ctrl-C while we wait: nobody else would end it in good order.
            await self.stop()
            raise
        if not line:
            await self._process.wait()
            raise ServiceDidNotStart(_message((await self._complaints).decode("utf-8", "replace")))
        told = msgspec.json.decode(line, type=UpLine)
        self.url = told.url
        self.key = Path(told.key_file).read_text().strip()
        return time.monotonic() - begun

    def client(self) -> Client:
        """A client that is patient while the service is away."""
        return Client(self.url, self.key, patience_seconds=60.0)

    async def metrics(self) -> str:
        """The page of counters; empty when nobody answers."""
        async with httpx2.AsyncClient(trust_env=False, timeout=5.0) as http:
            try:
                return str((await http.get(f"{self.url}/metrics")).text)
            except httpx2.HTTPError:
                return ""

    @property
    def pid(self) -> int | None:
        """The process, while there is one."""
        return None if self._process is None or self._process.returncode is not None else self._process.pid

    async def kill(self) -> None:
        """SIGKILL, as a power cut would; returns when it is gone."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            await self._forget()

    async def stop(self) -> float:
        """Stop it in good order and return the seconds that took; nothing happens the second time."""
        begun = time.monotonic()
        process = self._process
        if process is None:
            return 0.0
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        await self._forget()
        return time.monotonic() - begun

    async def _forget(self) -> None:
        self._process = None
        if self._complaints is not None:
            self._complaints.cancel()
            await asyncio.gather(self._complaints, return_exceptions=True)
            self._complaints = None


def _port_of_last_time(data_dir: Path) -> list[int]:
    """The port of a service that was killed: providers may still call it back there."""
    with suppress(OSError, msgspec.DecodeError, ValueError):
        told = msgspec.json.decode((data_dir / UP_FILE).read_bytes(), type=UpLine)
        return [int(told.url.rpartition(":")[2])]
    return []


def _port_of_its_own(data_dir: Path) -> int:
    """A port that another demo hardly takes while our service is down for a moment."""
    return PORTS_FROM + int.from_bytes(hashlib.sha256(os.fsencode(data_dir)).digest()[:4], "big") % PORTS


def _message(complained: str) -> str:
    lines = [line for line in complained.strip().splitlines() if line.strip()]
    text = "\n".join(lines[-COMPLAINT_LINES:]) or "`longtake up` ended without a word"
    with suppress(msgspec.DecodeError):
        text = msgspec.json.decode(lines[-1] if lines else "", type=dict[str, str]).get("error", text)
    return text.removeprefix("longtake: ")
