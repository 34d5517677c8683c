"""One local Postgres: its cluster, its command line, its address, and what a killed one left behind.

Who starts it again when it dies is the keeper's business (keeper.py); under which account it runs is the
seat's (account.py). It listens on a unix socket in a private directory only, never on TCP.
"""

import asyncio
import hashlib
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg

from .account import Seat
from .errors import DataDirUnusable, ServerFailed
from .process import end_stranger, log_tail, run, working_in
from .profile import Profile

MAJOR_VERSION = "18"
USER = "longtake"
DATABASE = "longtake"
PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"
SOCKET_PATH_BYTES_MAX = 100  # the kernel's limit is 107; the lock file beside the socket has a longer name
SHM_BYTES_NEEDED = 64 << 20
CONNECT_SECONDS = 5.0

STOP_SIGNALS = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0))
"""Fast shutdown, then immediate. SIGTERM would wait for every idle connection to leave by itself."""


class PostgresServer:
    """A `Server` for the keeper."""

    name = "postgres"
    stop_signals = STOP_SIGNALS

    def __init__(self, seat: Seat, profile: Profile, log_file: Path) -> None:
        self.log_file = log_file
        self._seat = seat
        self._profile = profile
        self._home = seat.home.resolve()
        self._data = self._home / "data"
        self._sockets = socket_directory(self._home / "run")

    @property
    def data(self) -> Path:
        """The data directory of the cluster."""
        return self._data

    @property
    def dsn(self) -> str:
        """The address as a URL, for people and for settings."""
        return f"postgresql://{USER}@/{DATABASE}?host={quote(str(self._sockets), safe='')}&port={PORT}"

    def connect_kwargs(self, database: str = DATABASE) -> dict[str, Any]:
        """The address as keyword arguments of `asyncpg.connect` and `asyncpg.create_pool`."""
        return connect_arguments(self._home, self._sockets, database)

    async def prepare(self) -> None:
        """Make the cluster if there is none; refuse one of another major version."""
        version_file = self._data / "PG_VERSION"
        try:
            version = version_file.read_text().strip() if version_file.exists() else None
        except PermissionError as error:
            raise DataDirUnusable(
                self._data,
                "it belongs to another account",
                "Start longtake as the account that made it, or choose another data directory.",
            ) from error
        if version is None:
            await self._initdb()
        elif version != MAJOR_VERSION:
            raise DataDirUnusable(
                self._data,
                f"it was made by PostgreSQL {version}, this is {MAJOR_VERSION}",
                "Move it away (pg_upgrade can convert it), or choose another data directory.",
            )

    async def heal(self) -> None:
        """Before a start: end a live orphan of a killed predecessor, remove its stale files.

        The caller holds the lock of the data directory, so whatever runs here is nobody's. The pid file is
        judged by who works in the directory, never by its number, which may since belong to anybody.
        """
        lock_file = self._data / "postmaster.pid"
        orphans = working_in(self._data)
        if orphans:
            postmaster = [pid for pid in (_first_number(lock_file),) if pid in orphans]
            await end_stranger(postmaster or orphans, STOP_SIGNALS)
            await end_stranger(working_in(self._data), ((signal.SIGQUIT, 5.0),))
        if Path("/proc/self").exists():
            lock_file.unlink(missing_ok=True)
        _make_socket_directory(self._sockets, self._home)
        for stale in (self._sockets / SOCKET_NAME, self._sockets / f"{SOCKET_NAME}.lock"):
            stale.unlink(missing_ok=True)

    def command(self) -> list[str]:
        """The command line of the server."""
        settings = {
            **self._profile.postgres,
            "unix_socket_directories": _quoted(self._sockets),
            "port": str(PORT),
            "dynamic_shared_memory_type": "posix" if _shm_is_ample() else "mmap",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return self._seat.command("postgres", "-D", str(self._data), *options)

    async def answers(self) -> bool:
        """Whether a client gets in; makes our database the first time."""
        # InternalClientError is what asyncpg says when the server dies within a call.
        unreachable = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
        with suppress(*unreachable, TimeoutError):
            async with asyncio.timeout(CONNECT_SECONDS):
                connection = await asyncpg.connect(**self.connect_kwargs("postgres"), timeout=CONNECT_SECONDS)
                try:
                    if not await connection.fetchval(
                        "select 1 from pg_database where datname = $1", DATABASE
                    ):
                        await connection.execute(f'create database "{DATABASE}"')
                    return True
                finally:
                    connection.terminate()
        return False

    def clean(self) -> None:
        """After the last stop: remove the short socket directory, if one was needed."""
        if self._sockets.parent != self._home:
            shutil.rmtree(self._sockets, ignore_errors=True)

    async def _initdb(self) -> None:
        # Made beside its place and renamed, so that an initdb killed half way is never taken for a cluster.
        fresh = self._home / "data.new"
        await asyncio.to_thread(shutil.rmtree, fresh, ignore_errors=True)
        if self._data.exists() and any(self._data.iterdir()):
            raise DataDirUnusable(self._data, "it is not empty and not a cluster", "Move it away.")
        status, said = await run(
            self._seat.command(
                "initdb",
                *("-D", str(fresh), "-U", USER, "--encoding=UTF8"),
                *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
                *("--auth-local=trust", "--auth-host=reject", "--no-instructions", *self._profile.initdb),
            )
        )
        if status != 0:
            self.log_file.parent.mkdir(parents=True, exist_ok=True)
            with self.log_file.open("a") as log:
                log.write(said + "\n")
            raise ServerFailed(
                self.name, f"initdb ended with status {status}", self.log_file, log_tail(self.log_file)
            )
        if self._data.exists():
            self._data.rmdir()
        fresh.rename(self._data)


def connect_arguments(home: Path, sockets: Path, database: str) -> dict[str, Any]:
    """How to reach the server whose files lie in `home` and whose socket lies in `sockets`, from any process."""
    return {
        "host": str(sockets),
        "port": PORT,
        "user": USER,
        "database": database,
        "ssl": False,
        # An explicit password file that is not there keeps asyncpg away from a home that may not exist.
        "passfile": str(home / "no-passfile"),
    }


def socket_directory(wanted: Path, temporary: Callable[[], str] = tempfile.gettempdir) -> Path:
    """`wanted`, or a short private directory when a socket in it could not be reached.

    Its path would be too long for the kernel, or hold a comma, which clients take for a list of hosts.
    """
    if len(os.fsencode(wanted / SOCKET_NAME)) <= SOCKET_PATH_BYTES_MAX and "," not in str(wanted):
        return wanted
    name = f"longtake-{hashlib.sha256(os.fsencode(wanted)).hexdigest()[:12]}"
    for parent in (temporary(), "/tmp"):
        short = Path(parent, name)
        if len(os.fsencode(short / SOCKET_NAME)) <= SOCKET_PATH_BYTES_MAX and "," not in parent:
            return short
    raise DataDirUnusable(wanted, "no directory short enough for a socket", "Set TMPDIR to a short path.")


def _make_socket_directory(sockets: Path, home: Path) -> None:
    sockets.mkdir(mode=0o700, exist_ok=True)
    facts = sockets.lstat()
    owner = home.stat()
    # In a shared temporary directory somebody else may have been first: a link or a stranger's directory is refused.
    if sockets.is_symlink() or facts.st_uid not in (os.geteuid(), owner.st_uid):
        raise DataDirUnusable(sockets, "it belongs to somebody else", "Remove it, or set TMPDIR.")
    if facts.st_uid != owner.st_uid:
        os.chown(sockets, owner.st_uid, owner.st_gid)
    sockets.chmod(0o700)


def _quoted(directory: Path) -> str:
    return '"' + str(directory).replace('"', '""') + '"'


def _first_number(path: Path) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        return int(path.read_text().split()[0])
    return None


def _shm_is_ample() -> bool:
    try:
        facts = os.statvfs("/dev/shm")
    except OSError:
        return False
    return facts.f_bavail * facts.f_frsize >= SHM_BYTES_NEEDED and os.access("/dev/shm", os.W_OK)
