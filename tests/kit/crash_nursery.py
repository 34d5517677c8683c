"""Role processes that begin in no time: a warm program, `python -m kit.crash_nursery`, that forks one for each line.

    with Nursery() as nursery:
        process = nursery.born(facts)        # a process of its own
        await process.ended()

It has imported everything and runs no loop and no thread, so a fork of it is as good as a fresh process.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import structlog

from kit.runtimes import settings_for
from longtake.bootstrap import Addresses, Runtime, apply_migrations
from longtake.worker.registry import load_app

ROOT = Path(__file__).parents[2]
END_SECONDS = 30.0


class Born:
    """A process that the nursery began."""

    def __init__(self, pid: int, log: Path) -> None:
        self.pid = pid
        self.log = log
        self._death = os.pidfd_open(pid)
        self._dead = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._death, self._has_died)

    def _has_died(self) -> None:
        asyncio.get_running_loop().remove_reader(self._death)
        os.close(self._death)
        self._dead.set()

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return not self._dead.is_set()

    @property
    def stands_still(self) -> bool:
        """Whether SIGSTOP holds it."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def signal(self, number: int) -> None:
        """Send it a signal; nothing happens when it has ended."""
        if self.alive:
            os.kill(self.pid, number)

    async def ended(self) -> None:
        """Return when it has ended."""
        async with asyncio.timeout(END_SECONDS):
            await self._dead.wait()

    async def kill(self) -> None:
        """SIGKILL, and wait."""
        self.signal(signal.SIGKILL)
        await self.ended()


class Nursery:
    """`with Nursery() as nursery: process = nursery.born(facts)`: a warm program, for any number of event loops."""

    def __enter__(self) -> Self:
        path = os.pathsep.join([str(ROOT / "service"), str(ROOT / "tests")])
        self._program = subprocess.Popen(
            [sys.executable, "-m", "kit.crash_nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            text=True,
        )
        return self

    def __exit__(self, *_error: object) -> None:
        assert self._program.stdin is not None and self._program.stdout is not None
        self._program.stdin.close()
        self._program.wait(END_SECONDS)
        self._program.stdout.close()

    def born(self, facts: dict[str, Any]) -> Born:
        """Begin a process; whoever asks sees to its end."""
        assert self._program.stdin is not None and self._program.stdout is not None
        self._program.stdin.write(json.dumps(facts) + "\n")
        self._program.stdin.flush()
        return Born(int(self._program.stdout.readline()), Path(facts["log"]))


async def _live(facts: dict[str, Any]) -> None:
    """One role process: says where its API is when it serves, stops in good order at SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    settings = settings_for(Path(facts["data_dir"]), **facts["settings"])
    if facts["roles"] == ["migrate"]:
        await apply_migrations(facts["postgres"], settings)
        return
    addresses = Addresses(facts["postgres"], facts["nats_url"], facts["nats_token"])
    process = Runtime(settings, addresses, roles=facts["roles"], app=load_app(facts["app"]))
    await process.start()
    ready = Path(facts["ready"])
    said = {"port": None if process.api_server is None else int(process.api_server.url.rpartition(":")[2])}
    ready.with_suffix(".new").write_text(json.dumps(said))
    ready.with_suffix(".new").rename(ready)
    await stop.wait()
    await process.stop()


def _child(facts: dict[str, Any]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(facts["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(log, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(facts["environment"])
    # A fork remembers its parent's chance; processes that draw alike would hide what chance is there for.
    random.seed()
    asyncio.run(_live(facts))


def _main() -> None:
    # Nobody asks how they ended: the kernel buries them at once, and their pidfd says when.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                _child(json.loads(line))
                code = 0
            except BaseException:
                structlog.get_logger("kit.crash_nursery").exception("kit.child_broken")
                raise
            finally:
                sys.stdout.flush()
                os._exit(code)
        print(pid, flush=True)


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    _main()
