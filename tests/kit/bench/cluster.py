"""One service of separate processes: two of every role, on a Postgres and a NATS of its own, with a proxy before each.

Whatever dies is begun again a moment later, as systemd would. Leaves to others: what is asked of it (workload.py), what
goes wrong (faults_*.py), the verdict (campaign.py).
"""

import asyncio
import itertools
import json
import os
import random
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self

import asyncpg
import httpx2

from kit.bench import provider
from kit.bench.provider import URL
from kit.crash_nursery import Born, Nursery
from kit.probe import eventually
from kit.proxy import TcpProxy
from kit.runtimes import FUNDS, PRINCIPAL
from longtake.bootstrap import apply_migrations
from longtake.embedded import DURABLE, EmbeddedServers
from longtake.postgres.keys import PostgresKeyStore
from longtake.postgres.pool import open_pool
from longtake.testing.checking import Recorder, StoreDump, read_store

ROLES = ("api", "dispatcher", "relay", "sweeper", "worker")
TWO_OF_EACH = tuple(f"{role}-{number}" for role in ROLES for number in (1, 2))
LEASE_SECONDS = 3
SETTINGS: dict[str, Any] = {
    "lease_seconds": LEASE_SECONDS,
    "heartbeat_seconds": 1.0,
    "grace_seconds": 0.5,
    "idle_seconds": 2.0,
    "stop_seconds": 1.0,
    "slots": 16,
    "callback_secret": "signs the callbacks of the fault bench",
}
BACK_SECONDS = (0.2, 1.0)
"""Until what died is begun again."""
READY_SECONDS = 60.0
OPEN = """
select
    (select count(*) from longtake.runs where ended_at is null) as runs,
    (select count(*) from longtake.commands where receipt is null) as commands,
    (select count(*) from longtake.effects where closed_at is null) as effects,
    (select count(*) from longtake.inbox where status = 'pending') as inbox
"""


class RoleProcess:
    """A role that is kept running."""

    def __init__(self, bench: "Bench", name: str) -> None:
        self.name = name
        self.role = name.rpartition("-")[0]
        self.deaths = 0
        self._bench = bench
        self._born: Born | None = None
        self._ready = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """The process of now."""
        assert self._born is not None
        return self._born.pid

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._born is not None and self._born.alive

    async def start(self) -> None:
        """Keep it running from now on; returns when it works."""
        self._keeper = asyncio.create_task(self._keep())
        await self.ready()

    async def ready(self) -> None:
        """Return when it works."""
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._ready.wait()
        except TimeoutError as late:
            raise TimeoutError(
                f"{self.name} does not work after {READY_SECONDS:.0f} s: {self._last_words()}"
            ) from late

    def _last_words(self) -> str:
        log = self._bench.folder / f"{self.name}.log"
        return log.read_text()[-1500:] if log.exists() else "it has said nothing"

    async def kill(self) -> None:
        """SIGKILL, and wait for its death; the keeper begins another."""
        assert self._born is not None
        await self._born.kill()

    def stop(self) -> None:
        """SIGSTOP."""
        assert self._born is not None
        self._born.signal(signal.SIGSTOP)

    def cont(self) -> None:
        """SIGCONT."""
        assert self._born is not None
        self._born.signal(signal.SIGCONT)

    async def restart(self) -> None:
        """SIGTERM and another, in good order."""
        assert self._born is not None
        self._ready.clear()
        self._born.signal(signal.SIGTERM)
        await self.ready()

    async def end(self) -> None:
        """Keep it running no longer."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._born is not None and self._born.alive:
            self._born.signal(signal.SIGCONT)
            self._born.signal(signal.SIGTERM)
            try:
                await self._born.ended()
            except TimeoutError:
                await self._born.kill()

    def rss_bytes(self) -> int:
        """Its resident memory."""
        with suppress(OSError, IndexError):
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return 0

    async def _keep(self) -> None:
        while True:
            self._born = self._bench.begin(self, self._ready)
            await _death_of(self._born)
            self.deaths += 1
            self._ready.clear()
            await asyncio.sleep(self._bench.chance.uniform(*BACK_SECONDS))


class Bench:
    """The service."""

    def __init__(self, folder: Path, *, seed: int, app: str, settings: Mapping[str, Any]) -> None:
        self.settings: dict[str, Any] = {**SETTINGS, **settings}
        """Of roles that begin from now on."""
        self.folder = folder
        self.seed = seed
        self.chance = random.Random(f"bench|{seed}")
        self.history_dir = folder / "history"
        self.servers = EmbeddedServers(folder / "servers", profile=DURABLE)
        self.roles: dict[str, RoleProcess] = {}
        self.provider = ProviderHandle(folder, seed)
        self.api_urls: list[str] = []
        self.nemesis: Recorder
        self.postgres_proxy: TcpProxy
        self.nats_proxy: TcpProxy
        self.connection: asyncpg.Connection
        """Of the harness, past the proxy; it may die with its server."""
        self.key = ""
        self._app = app
        self._nursery: Nursery
        self._numbers = itertools.count(1)
        self._ports: dict[str, int] = {}
        self._watches: set[asyncio.Task[None]] = set()

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        folder: Path,
        *,
        seed: int,
        app: str = "kit.bench.app:app",
        roles: Sequence[str] = TWO_OF_EACH,
        **settings: Any,
    ) -> "AsyncIterator[Bench]":
        """A running bench. `settings`: of the roles, besides those of the bench."""
        bench = cls(folder, seed=seed, app=app, settings=settings)
        async with AsyncExitStack() as stack:
            await bench._open(stack, roles)
            yield bench

    async def _open(self, stack: AsyncExitStack, roles: Sequence[str]) -> None:
        self.history_dir.mkdir(parents=True)
        self.nemesis = Recorder(self.history_dir / "nemesis.jsonl", "nemesis")
        await stack.enter_async_context(self.servers)
        await apply_migrations(self.admin_kwargs)
        await stack.enter_async_context(self.provider)
        host, port = self.admin_kwargs["host"], self.admin_kwargs["port"]
        self.postgres_proxy = await stack.enter_async_context(TcpProxy(host, port))
        nats_port = int(self.servers.nats_url.rpartition(":")[2])
        self.nats_proxy = await stack.enter_async_context(TcpProxy("127.0.0.1", nats_port))
        await self._make_account()
        self._nursery = stack.enter_context(Nursery())
        stack.push_async_callback(self._end)
        self._ports = {name: _free_port() for name in roles if name.startswith("api")}
        self.api_urls = [f"http://127.0.0.1:{port}" for port in self._ports.values()]
        for name in roles:
            self.roles[name] = RoleProcess(self, name)
        await asyncio.gather(*(role.start() for role in self.roles.values()))

    @property
    def admin_kwargs(self) -> Mapping[str, Any]:
        """How the harness reaches Postgres, past the proxy."""
        return self.servers.postgres_connect_kwargs()

    @property
    def proxied_kwargs(self) -> dict[str, Any]:
        """How the roles reach it."""
        return {**self.admin_kwargs, "host": "127.0.0.1", "port": self.postgres_proxy.port}

    def of(self, role: str) -> list[RoleProcess]:
        """The processes of a role."""
        return [process for process in self.roles.values() if process.role == role]

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection for a block, as `connect` gives it."""
        connection = await self.connect()
        try:
            yield connection
        finally:
            await connection.close()

    async def dump(self) -> StoreDump:
        """Everything the store holds."""
        async with self.connected() as connection:
            return await read_store(connection)

    async def connect(self) -> asyncpg.Connection:
        """A connection of one's own, past the proxy, as soon as Postgres answers; whoever asks closes it."""

        async def there() -> asyncpg.Connection | None:
            with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
                return await asyncpg.connect(**self.admin_kwargs, timeout=5)
            return None

        return await eventually(there, "an answer of Postgres", 60)

    async def backlog(self) -> dict[str, int]:
        """How much is open: runs, commands, effects, callbacks."""
        async with self.connected() as connection:
            return dict(await connection.fetchrow(OPEN))

    async def settled(self, seconds: float) -> None:
        """Return when nothing is open. Raises TimeoutError with what is."""
        open_ = {}

        async def nothing() -> bool:
            nonlocal open_
            open_ = await self.backlog()
            return not any(open_.values())

        try:
            await eventually(nothing, "rest", seconds)
        except AssertionError as late:
            raise TimeoutError(f"not at rest after {seconds:.0f} s: {open_}") from late

    def begin(self, role: RoleProcess, ready: asyncio.Event) -> Born:
        """Begin a process of a role; `ready` is set when it works."""
        number = next(self._numbers)
        said = self.folder / f"ready-{number}"
        settings: dict[str, Any] = {**self.settings, "history_dir": str(self.history_dir)}
        if role.name in self._ports:
            settings["port"] = self._ports[role.name]
        settings["public_url"] = self.api_urls[0 if role.name.endswith("-1") else -1]
        born = self._nursery.born(
            {
                "roles": [role.role],
                "settings": settings,
                "app": self._app,
                "postgres": self.proxied_kwargs,
                "nats_url": f"nats://127.0.0.1:{self.nats_proxy.port}",
                "nats_token": self.servers.nats_token,
                "data_dir": str(self.folder / "service"),
                "ready": str(said),
                "log": str(self.folder / f"{role.name}.log"),
                "environment": {URL: self.provider.url},
            }
        )
        watch = asyncio.create_task(_when_there(said, ready))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)
        return born

    async def _make_account(self) -> None:
        pool = await open_pool(self.admin_kwargs, size=1, name="bench")
        try:
            keys = PostgresKeyStore(pool)
            await keys.fund(tenant=PRINCIPAL.tenant, account="main", credits=FUNDS)
            made = await keys.create(tenant=PRINCIPAL.tenant, actor=PRINCIPAL.actor, roles=("producer",))
            self.key = made.text
        finally:
            await pool.close()

    async def _end(self) -> None:
        for proxy in (self.postgres_proxy, self.nats_proxy):
            proxy.heal()
        await asyncio.gather(*(role.end() for role in self.roles.values()))


class ProviderHandle:
    """The provider's process."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._seed = seed
        self._process: asyncio.subprocess.Process | None = None
        self.url = ""
        self.witness = folder / "history" / "witness.jsonl"

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, provider.__file__, str(self.witness), str(self._seed)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self._process.stdout is not None
        self.url = json.loads(await self._process.stdout.readline())["url"]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def set_rates(self, rates: Mapping[str, float]) -> None:
        """What goes wrong from now on, by the habits of the provider."""
        async with httpx2.AsyncClient(trust_env=False) as http:
            await http.post(f"{self.url}/mode", json={"rates": dict(rates)})

    async def struck(self) -> dict[str, int]:
        """How often each habit showed."""
        async with httpx2.AsyncClient(trust_env=False) as http:
            counted: dict[str, int] = (await http.post(f"{self.url}/struck", json={})).json()
            return counted


async def _death_of(born: Born) -> None:
    while born.alive:
        with suppress(TimeoutError):
            await born.ended()


async def _when_there(path: Path, ready: asyncio.Event) -> None:
    while not path.exists():
        await asyncio.sleep(0.05)  # a file of another process has no event
    ready.set()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
