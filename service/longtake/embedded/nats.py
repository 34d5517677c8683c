"""One local nats-server: its configuration file, its port and token, and what a killed one left behind.

The port is chosen once for a data directory and kept while it is free, so clients and notes stay right. The
token matters on loopback too: any local account can reach a TCP port.
"""

import asyncio
import hashlib
import json
import os
import secrets
import signal
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from .errors import DataDirUnusable
from .process import alive, arguments, die_with_parent, end_stranger
from .profile import Profile

HOST = "127.0.0.1"
PAYLOAD_BYTES_MAX = 262_144
INFO_BYTES_MAX = 65_536
CONNECT_SECONDS = 2.0
PORTS_FROM = 20_000  # below the range from which systems hand out ports for outgoing connections
PORTS = 10_000
PORT_TRIES = 32

STOP_SIGNALS = ((signal.SIGTERM, 10.0), (signal.SIGINT, 2.0))


class NatsServer:
    """A `Server` for the keeper."""

    name = "nats"
    stop_signals = STOP_SIGNALS

    def __init__(self, program: Path, home: Path, profile: Profile, log_file: Path) -> None:
        self.log_file = log_file
        self._program = program
        self._home = home
        self._profile = profile
        self._config = home / "nats.conf"
        self.token = ""
        self.port = 0

    @property
    def url(self) -> str:
        """The address without the token."""
        return f"nats://{HOST}:{self.port}"

    def connect_kwargs(self) -> dict[str, Any]:
        """The address as keyword arguments of `nats.connect`."""
        return {"servers": [self.url], "token": self.token}

    async def prepare(self) -> None:
        """Choose port and token, or take those of last time, and write the configuration."""
        try:
            self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._home / "jetstream").mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise DataDirUnusable(
                self._home, error.strerror or str(error), "Choose a directory of yours."
            ) from error
        await self._end_orphan()
        self.token = self._kept_token()
        self.port = self._kept_port()
        write_private(self._home / "port", str(self.port))
        write_private(self._config, self._configuration())

    async def heal(self) -> None:
        """Before a start: end a live orphan, or two servers would write one store."""
        await self._end_orphan()

    def command(self) -> list[str]:
        """The command line of the server."""
        return [*die_with_parent(), str(self._program), "--config", str(self._config)]

    async def answers(self) -> bool:
        """Whether our server greets with JetStream on; a stranger on the port has another name."""
        try:
            reader, writer = await asyncio.wait_for(
                asyncio.open_connection(HOST, self.port, limit=INFO_BYTES_MAX), CONNECT_SECONDS
            )
        except (OSError, TimeoutError):
            return False
        try:
            line = await asyncio.wait_for(reader.readline(), CONNECT_SECONDS)
            info = json.loads(line.removeprefix(b"INFO "))
        except (OSError, TimeoutError, ValueError):
            return False
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        return bool(info.get("jetstream")) and info.get("server_name") == self._server_name()

    def clean(self) -> None:
        """Nothing to remove: everything lies in the data directory."""

    def _configuration(self) -> str:
        quoted = {name: json.dumps(value, ensure_ascii=False) for name, value in self._texts().items()}
        return (
            "# Written by longtake at every start; edits are lost.\n"
            f"server_name: {quoted['name']}\n"
            f"host: {json.dumps(HOST)}\n"
            f"port: {self.port}\n"
            f"pid_file: {quoted['pid_file']}\n"
            f"max_payload: {PAYLOAD_BYTES_MAX}\n"
            'write_deadline: "5s"\n'
            f"authorization {{ token: {quoted['token']} }}\n"
            "jetstream {\n"
            f"  store_dir: {quoted['store']}\n"
            f"  max_memory_store: {self._profile.nats_memory_bytes_max}\n"
            f"  max_file_store: {self._profile.nats_file_bytes_max}\n"
            f"  sync_interval: {json.dumps(self._profile.nats_sync_interval)}\n"
            "}\n"
        )

    def _texts(self) -> dict[str, str]:
        return {
            "name": self._server_name(),
            "pid_file": str(self._home / "nats.pid"),
            "store": str(self._home / "jetstream"),
            "token": self.token,
        }

    def _server_name(self) -> str:
        return f"longtake-{_number(self._home):012x}"

    def _kept_token(self) -> str:
        path = self._home / "token"
        with suppress(FileNotFoundError):
            if token := path.read_text().strip():
                return token
        token = f"lt_{secrets.token_hex(24)}"
        write_private(path, token)
        return token

    def _kept_port(self) -> int:
        kept: list[int] = []
        with suppress(OSError, ValueError):
            kept.append(int((self._home / "port").read_text()))
        first = _number(self._home)
        return choose_port((*kept, *(PORTS_FROM + (first + step * 7) % PORTS for step in range(PORT_TRIES))))

    async def _end_orphan(self) -> None:
        with suppress(OSError, ValueError):
            pid = int((self._home / "nats.pid").read_text())
            if alive(pid) and str(self._config) in arguments(pid):
                await end_stranger([pid], STOP_SIGNALS)


def port_is_free(port: int, host: str = HOST) -> bool:
    """Whether a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except (OSError, OverflowError):
            return False
    return True


def choose_port(wanted: Iterable[int], is_free: Callable[[int], bool] = port_is_free) -> int:
    """The first free port of `wanted`, else any that the system gives."""
    for port in wanted:
        if 1024 <= port <= 65_535 and is_free(port):
            return port
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step, readable by its owner alone."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    partial.replace(path)


def _number(home: Path) -> int:
    return int.from_bytes(hashlib.sha256(os.fsencode(home)).digest()[:6], "big")
