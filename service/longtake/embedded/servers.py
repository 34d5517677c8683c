"""Postgres and NATS for somebody who has neither: started, kept running and stopped as one.

    async with EmbeddedServers(Path(".longtake")) as servers:
        pool = await asyncpg.create_pool(**servers.postgres_connect_kwargs())

Both live in one data directory, which is locked, reused, and healed after a crash. Migrations, streams and roles
are not made here.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
import structlog

from .account import STATE_ROOT, Isolation, take_seat
from .errors import DataDirUnusable, EmbeddedError
from .keeper import Keeper
from .locate import nats_program, postgres_tree
from .lock import DataDirLock
from .nats import NatsServer
from .postgres import DATABASE, PostgresServer, connect_arguments, socket_directory
from .profile import DURABLE, Profile

log = structlog.get_logger("longtake.embedded")

S = TypeVar("S", PostgresServer, NatsServer)


class ServerPids(msgspec.Struct, frozen=True):
    """The processes of both servers; None while one is down."""

    postgres: int | None
    nats: int | None


class EmbeddedServers:
    """A `Service` (lifecycle.py) that owns both servers; also an async context manager."""

    def __init__(
        self,
        data_dir: Path,
        *,
        profile: Profile = DURABLE,
        broker: bool = True,
        isolation: Isolation = "auto",
        state_root: Path = STATE_ROOT,
    ) -> None:
        """`broker`: with a nats-server beside Postgres."""
        self.data_dir = Path(os.path.abspath(data_dir))
        self._broker = broker
        self._profile = profile
        self._isolation = isolation
        self._state_root = state_root
        self._lock = DataDirLock(self.data_dir)
        self._started = asyncio.Event()
        self._failed: asyncio.Future[EmbeddedError] | None = None
        self._postgres: PostgresServer | None = None
        self._nats: NatsServer | None = None
        self._keepers: dict[str, Keeper] = {}

    async def start(self) -> None:
        """Take the data directory and start both servers; returns when both answer."""
        if self._started.is_set():
            return
        _make_data_dir(self.data_dir)
        self._lock.take()
        try:
            await self._start_both()
        except BaseException:
            await self.stop()
            raise
        self._started.set()
        nats = self.nats_url if self._broker else None
        log.info("longtake.embedded_started", data_dir=str(self.data_dir), nats=nats)

    async def started(self) -> None:
        """Return once both servers answer."""
        await self._started.wait()

    async def stop(self) -> None:
        """Stop both servers and let go of the data directory; nothing happens the second time."""
        keepers, self._keepers = self._keepers, {}
        self._started.clear()
        try:
            await asyncio.gather(*(keeper.stop() for keeper in keepers.values()))
        finally:
            self._lock.release()

    async def failed(self) -> EmbeddedError:
        """Return when a server has been given up, with the reason; otherwise wait for ever."""
        if self._failed is None:
            raise RuntimeError("failed() is for servers that were started")
        return await asyncio.shield(self._failed)

    @property
    def postgres_dsn(self) -> str:
        """The address of our database as a URL."""
        return self._running(self._postgres).dsn

    def postgres_connect_kwargs(self, database: str = DATABASE) -> dict[str, Any]:
        """The same as keyword arguments of `asyncpg.connect`, for any database of this server."""
        return self._running(self._postgres).connect_kwargs(database)

    @property
    def nats_url(self) -> str:
        """The address of NATS, without its token."""
        return self._running(self._nats).url

    @property
    def nats_token(self) -> str:
        """The token that NATS asks for."""
        return self._running(self._nats).token

    def nats_connect_kwargs(self) -> dict[str, Any]:
        """Address and token as keyword arguments of `nats.connect`."""
        return self._running(self._nats).connect_kwargs()

    @property
    def pids(self) -> ServerPids:
        """The processes, for whoever wants to measure or to kill them."""
        found = {name: keeper.pid for name, keeper in self._keepers.items()}
        return ServerPids(postgres=found.get("postgres"), nats=found.get("nats"))

    @property
    def restarts(self) -> dict[str, int]:
        """How often each server had to be started again since `start`."""
        return {name: keeper.restarts for name, keeper in self._keepers.items()}

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _start_both(self) -> None:
        self._failed = asyncio.get_running_loop().create_future()
        seat = await take_seat(
            postgres_tree(), self.data_dir, isolation=self._isolation, state_root=self._state_root
        )
        logs = self.data_dir / "log"
        logs.mkdir(mode=0o700, exist_ok=True)
        self._postgres = PostgresServer(seat, self._profile, logs / "postgres.log")
        wanted: list[PostgresServer | NatsServer] = [self._postgres]
        if self._broker:
            self._nats = NatsServer(nats_program(), self.data_dir / "nats", self._profile, logs / "nats.log")
            wanted.append(self._nats)
        try:
            async with asyncio.TaskGroup() as group:
                for server in wanted:
                    group.create_task(self._start_one(server))
        except ExceptionGroup as failures:
            # One reason is enough for a reader; the other server was merely told to stop.
            raise failures.exceptions[0] from None

    async def _start_one(self, server: PostgresServer | NatsServer) -> None:
        keeper = Keeper(server, self._give_up)
        self._keepers[server.name] = keeper
        await server.heal()
        await server.prepare()
        await keeper.start()

    def _give_up(self, error: EmbeddedError) -> None:
        if self._failed is not None and not self._failed.done():
            self._failed.set_result(error)

    @staticmethod
    def _running(server: S | None) -> S:
        if server is None:
            raise RuntimeError("the embedded servers have no address before start()")
        return server


def running_pids(data_dir: Path) -> ServerPids:
    """The server processes that the files of a data directory name, seen from any process."""
    return ServerPids(
        postgres=_pid_in(data_dir / "postgres" / "data" / "postmaster.pid"),
        nats=_pid_in(data_dir / "nats" / "nats.pid"),
    )


def running_postgres(data_dir: Path) -> dict[str, Any] | None:
    """Connect arguments of the Postgres that another process runs in a data directory; None when none runs."""
    home = (data_dir / "postgres").resolve()
    if _pid_in(home / "data" / "postmaster.pid") is None:
        return None
    return connect_arguments(home, socket_directory(home / "run"), DATABASE)


def _pid_in(path: Path) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        return int(path.read_text().split()[0])
    return None


def _make_data_dir(data_dir: Path) -> None:
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DataDirUnusable(
            data_dir, f"it cannot be made ({error.strerror})", "Choose a directory that you may write to."
        ) from error
