"""Starts the synthetic providers for the demo and for tests, or finds the ones that run already.

They are started in a session of their own: whatever kills the service does not kill its outsiders.
"""

import asyncio
import http.client
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

ASK_SECONDS_MAX = 2.0
START_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 15.0
LOOK_SECONDS = 0.05


class SyntheticProviders(msgspec.Struct, frozen=True, kw_only=True):
    """Running providers."""

    base_url: str
    data: Path
    pid: int

    @property
    def witness(self) -> Path:
        """Where they write down what they were asked."""
        return self.data / "witness.ndjson"


class ProvidersDidNotStart(Exception):
    """The program ended or stayed silent; the message holds its last words."""


async def start_providers(
    data: Path, *, arguments: Sequence[str] = (), import_path: Path | None = None
) -> SyntheticProviders:
    """Start the program on this data directory, or join the one that owns it. Answers when it serves."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    if running := await find_providers(data):
        return running
    environment = dict(os.environ)
    if import_path is not None:
        environment["PYTHONPATH"] = str(import_path)
    log = data / "providers.log"
    with log.open("ab") as sink:
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "videoads.providers.synthetic",
                "--data",
                str(data),
                "--detach",
                *arguments,
            ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            env=environment,
            start_new_session=True,
        )
    expires = time.monotonic() + START_SECONDS_MAX
    # The program puts itself in the background once it owns the directory and has a port.
    # It refuses a directory that another one owns: that one may be starting still, and is the one to join.
    if await process.wait() == 0 or _owner_lives(data):
        while time.monotonic() < expires:
            if running := await find_providers(data):
                return running
            await asyncio.sleep(LOOK_SECONDS)
    words = log.read_text("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
    raise ProvidersDidNotStart(f"the synthetic providers did not start: {words[0]}")


async def find_providers(data: Path) -> SyntheticProviders | None:
    """The providers that own this data directory and answer, if any."""
    try:
        port = int((data / "port").read_text())
        owner = int((data / "lock").read_text())
        os.kill(owner, 0)
    except (OSError, ValueError):
        return None
    health = await asyncio.to_thread(_health, port)
    if not isinstance(health, dict) or health.get("pid") != owner:
        # The port or the number belongs to another process by now.
        return None
    return SyntheticProviders(base_url=f"http://127.0.0.1:{port}", data=data, pid=owner)


def _owner_lives(data: Path) -> bool:
    try:
        return _runs(int((data / "lock").read_text()))
    except (OSError, ValueError):
        return False


async def stop_providers(providers: SyntheticProviders) -> None:
    """End the program and wait until it is gone; its open jobs go on at the next start."""
    expires = time.monotonic() + STOP_SECONDS_MAX
    try:
        os.kill(providers.pid, signal.SIGTERM)
        while time.monotonic() < expires and _runs(providers.pid):
            await asyncio.sleep(LOOK_SECONDS)
        if _runs(providers.pid):
            os.kill(providers.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _health(port: int) -> object:
    """What the program says of itself, or None. The standard library asks: no proxy, no certificates."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASK_SECONDS_MAX)
    try:
        connection.request("GET", "/control/health")
        return msgspec.json.decode(connection.getresponse().read())
    except (OSError, http.client.HTTPException, msgspec.DecodeError):
        return None
    finally:
        connection.close()


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        # No /proc on this system: the signal alone must do.
        return not Path("/proc/self/stat").exists()
    return state != "Z"
