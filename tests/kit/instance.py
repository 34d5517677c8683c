"""A whole instance of longtake in a process of its own, to be killed: `async with instance(...) as started`.

The program, `python -m kit.instance FACTS`, starts the roles, admits a command when one was asked for, prints one JSON line,
and stops in good order when its input ends.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog

from kit.runtimes import settings_for, start_run
from kit.witnessing import WITNESS
from longtake.bootstrap import Addresses, Runtime
from longtake.settings import ROLES
from longtake.worker.registry import load_app

APP = "kit.witnessing:app"
ROOT = Path(__file__).parents[2]
START_SECONDS = 60.0


class Instance:
    """A running instance."""

    def __init__(self, process: asyncio.subprocess.Process, facts: dict[str, Any]) -> None:
        self._process = process
        self.pid = process.pid
        self.run_id: str | None = facts["run_id"]
        """Of the command that it was asked to admit."""
        self.url: str | None = facts["url"]
        """Where its API is, when it has that role."""

    async def kill(self) -> None:
        """SIGKILL, as the kernel's memory killer would."""
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()

    async def ended(self, seconds: float) -> int:
        """Wait for its end, however it comes; the exit status, a signal's number below zero."""
        return await asyncio.wait_for(self._process.wait(), seconds)


@asynccontextmanager
async def instance(
    database,
    broker,
    data_dir: Path,
    *,
    witness: Path,
    roles: Sequence[str] = ROLES,
    nats_url: str | None = None,
    start: str | None = None,
    app: str = APP,
    **settings: object,
) -> AsyncIterator[Instance]:  # type: ignore[no-untyped-def]
    """Another process with these roles; it is killed at the end of the block if it still runs."""
    asked = {
        "postgres": database.connect_kwargs,
        "nats_url": nats_url or broker.url,
        "nats_token": broker.token,
        "data_dir": str(data_dir),
        "roles": list(roles),
        "start": start,
        "app": app,
        "settings": settings,
    }
    path = os.pathsep.join([str(ROOT / "service"), str(ROOT / "tests")])
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "kit.instance", json.dumps(asked)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, WITNESS: str(witness)},
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), START_SECONDS)
        assert line, "the instance ended before it was ready"
        yield Instance(process, json.loads(line))
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _main(asked: dict[str, Any]) -> None:
    addresses = Addresses(asked["postgres"], asked["nats_url"], asked["nats_token"])
    settings = settings_for(Path(asked["data_dir"]), **asked["settings"])
    process = Runtime(settings, addresses, roles=asked["roles"], app=load_app(asked["app"]))
    await process.start()
    run_id = None
    if asked["start"] is not None:
        run_id = (await start_run(process, asked["start"], "chain@1")).run_id
    url = None if process.api_server is None else process.api_server.url
    print(json.dumps({"run_id": run_id, "url": url}), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await process.stop()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(_main(json.loads(sys.argv[1])))
