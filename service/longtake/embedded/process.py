"""Child processes: how one is started, what is alive, and how one is ended.

Everything is arranged by a chain of ordinary commands before the program itself (`sh`, `setpriv`), each of
which replaces itself by the next, so the pid is the program's and any event loop can start it.
"""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

LOG_BYTES_MAX = 8_000_000
LOG_TAIL_LINES = 8
POLL_SECONDS = 0.02
KILL_WAIT_SECONDS = 10.0


def die_with_parent(which: str = "INT") -> list[str]:
    """The command prefix that makes the kernel signal the child when its parent dies, even by SIGKILL.

    The kernel means the *thread* that started the child: start servers from a thread that lives as long as
    they should, which the main thread does. Where `setpriv` is missing (macOS) orphans are healed by the next start.
    """
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    return [setpriv, "--pdeathsig", which] if setpriv else []


def environment() -> dict[str, str]:
    """A fixed small environment: no locale, home, proxy or PG* setting of the caller reaches a server."""
    kept = {name: os.environ[name] for name in ("TMPDIR", "SYSTEMROOT") if name in os.environ}
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC", **kept}


async def spawn(command: Sequence[str], log_file: Path) -> asyncio.subprocess.Process:
    """Start a long-lived child in a session of its own, umask 077, its output appended to `log_file`."""
    if log_file.exists() and log_file.stat().st_size > LOG_BYTES_MAX:
        log_file.replace(log_file.with_suffix(log_file.suffix + ".1"))
    with log_file.open("ab") as log:
        return await asyncio.create_subprocess_exec(
            *_private(command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment(),
            cwd="/",
            start_new_session=True,
        )


async def run(command: Sequence[str]) -> tuple[int, str]:
    """Run a short command to its end and return its exit status and whatever it said; cancelled, it is killed."""
    try:
        process = await asyncio.create_subprocess_exec(
            *_private(command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment(),
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        return 127, str(error)
    try:
        said, _ = await process.communicate()
    except asyncio.CancelledError:
        # It may have children (initdb has), which must not go on writing; when all are gone, the pipe ends.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.communicate(), KILL_WAIT_SECONDS)
        raise
    return process.returncode or 0, said.decode(errors="replace").strip()


async def end(process: asyncio.subprocess.Process, signals: Sequence[tuple[signal.Signals, float]]) -> None:
    """Ask with each signal in turn, waiting its seconds, then SIGKILL; returns when the process is gone."""
    for which, seconds in (*signals, (signal.SIGKILL, KILL_WAIT_SECONDS)):
        if process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(which)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), seconds)


async def end_stranger(pids: Sequence[int], signals: Sequence[tuple[signal.Signals, float]]) -> None:
    """The same for processes that are not our children: a killed predecessor's."""
    for which, seconds in (*signals, (signal.SIGKILL, KILL_WAIT_SECONDS)):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, which)
        if await gone(pids, seconds):
            return


async def gone(pids: Sequence[int], seconds: float) -> bool:
    """Wait until none of `pids` lives; False when the time is over first."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while any(alive(pid) for pid in pids):
        if loop.time() > deadline:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True


def alive(pid: int) -> bool:
    """Whether a process of this number runs; a zombie does not."""
    if pid <= 0:
        return False
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return stat.rpartition(")")[2].split()[0] not in ("Z", "X")
    if Path("/proc/self/stat").exists():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def working_in(directory: Path) -> list[int]:
    """The processes whose working directory is `directory`: every process of a Postgres sits in its data."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError, ValueError):
            if entry.readlink() == directory and alive(int(entry.parent.name)):
                found.append(int(entry.parent.name))
    return found


def arguments(pid: int) -> list[str]:
    """The command line of a process, empty when it cannot be read."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="surrogateescape").split("\0")
    return []


def log_tail(log_file: Path) -> str:
    """The last lines of a log, for an error message."""
    with suppress(OSError), log_file.open("rb") as log:
        log.seek(max(0, log_file.stat().st_size - 4096))
        return "\n".join(log.read().decode(errors="replace").splitlines()[-LOG_TAIL_LINES:])
    return ""


def _private(command: Sequence[str]) -> list[str]:
    return ["/bin/sh", "-c", 'umask 077; exec "$@"', "sh", *command]
