"""One cell of the crash matrix: a service whose process is killed, stopped or cut off at a named point, and the verdict.

    report = await run_cell(Cell("claimed.before_ack", "kill", 1), nursery, database, broker, folder)

The harness listens on a unix socket. The armed process tells it of each pass of its point and waits for its word before it
acts, so a cell counts only when the point was passed that often. A supervisor then begins another process, as systemd
would. Clients repeat what they were not told of; the provider counts what it was asked. Leaves to others: what the runs
do (crash_acts.py), the process (crash_nursery.py), the rules of the verdict (longtake.testing.checking).
"""

import asyncio
import itertools
import json
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from kit.crash_nursery import Born, Nursery
from kit.crash_provider import PROVIDER, CrashProvider
from kit.probe import eventually
from kit.proxy import TcpProxy
from kit.recorded_client import RecordedClient
from kit.runtimes import FUNDS, PRINCIPAL
from longtake.client import Client
from longtake.crash_points import POINTS, Action, Passed
from longtake.engine.audit import Audit
from longtake.errors import LongtakeError
from longtake.postgres.audits import PostgresAuditStore
from longtake.postgres.keys import PostgresKeyStore
from longtake.postgres.pool import open_pool
from longtake.settings import ROLES
from longtake.testing.checking import Recorder, judge, read_history, read_store, read_witness

ENVIRONMENT = "test-crash"
LEASE_SECONDS = 1
WAIT_SECONDS = 40.0
APP = "kit.crash_app:app"
SETTINGS = {
    "environment": ENVIRONMENT,
    "lease_seconds": LEASE_SECONDS,
    "heartbeat_seconds": 0.25,
    "grace_seconds": 0.4,
    "redelivery_seconds": 1.0,
    "idle_seconds": 1.0,
    "stop_seconds": 0.5,
    "callback_secret": "signs the callbacks of crash cells",
}
OPEN = """
select
    (select count(*) from longtake.runs where ended_at is null) as runs,
    (select count(*) from longtake.commands where receipt is null) as commands,
    (select count(*) from longtake.effects where closed_at is null) as effects,
    (select count(*) from longtake.inbox where settled_at is null) as inbox,
    (select count(*) from longtake.errands where settled_at is null) as errands,
    (select count(*) from longtake.scope_queue) as line
"""


class Cell(msgspec.Struct, frozen=True):
    """A place of the matrix."""

    point: str
    action: Action
    hit: int

    def __str__(self) -> str:
        return f"{self.point}-{self.action}-{self.hit}"


ACTIONS: tuple[Action, ...] = ("kill", "stop", "cut")
HITS = (1, 3)
SPREAD: tuple[tuple[Action, int], ...] = (("stop", 1), ("cut", 3), ("cut", 1), ("kill", 3), ("stop", 3))
"""What the suite does at a point besides killing at the first pass, point by point in turn."""


def cells() -> list[Cell]:
    """The whole matrix."""
    return [Cell(point, action, hit) for point in POINTS for action in ACTIONS for hit in HITS]


def cells_of_the_suite() -> list[Cell]:
    """Two cells a point: killed at the first pass, and one of the others."""
    return [
        cell
        for number, point in enumerate(POINTS)
        for cell in (Cell(point, "kill", 1), Cell(point, *SPREAD[number % len(SPREAD)]))
    ]


class Unreached(AssertionError):
    """The point was not passed so often: the cell shows nothing."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell showed."""

    cell: Cell
    passes: int
    runs: int
    charges: int
    violations: list[str]
    seconds: float


class Service:
    """The service under a cell."""

    def __init__(
        self, cell: Cell, nursery: Nursery, database: Any, broker: Any, folder: Path, app: str
    ) -> None:
        self.cell = cell
        self.nursery = nursery
        self.database = database
        self.broker = broker
        self.folder = folder
        self.app = app
        self.successor: Sequence[str] = ROLES
        """Roles of the process that a supervisor begins after the blow."""
        self.provider = CrashProvider(folder / "history" / "witness.jsonl")
        self.history = folder / "history"
        self.passes: list[Passed] = []
        self.struck = asyncio.Event()
        self.one: Born | None = None
        """The armed process."""
        self._hit: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
        self._numbers = itertools.count(1)
        self._watching: list[asyncio.Task[None]] = []
        self._listening: set[asyncio.Task[None] | None] = set()
        self._processes: list[Born] = []

    @property
    def socket(self) -> Path:
        """Where the armed process finds us."""
        return self.folder / "harness"

    async def open(self, stack: AsyncExitStack) -> None:
        """Begin the provider, listen, and put proxies before the servers and the API."""
        await stack.enter_async_context(self.provider)
        server = await asyncio.start_unix_server(self._listen, self.socket)
        stack.callback(server.close)
        kwargs = self.database.connect_kwargs
        self.postgres = await stack.enter_async_context(TcpProxy(kwargs["host"], kwargs["port"]))
        self.nats = await stack.enter_async_context(
            TcpProxy("127.0.0.1", int(self.broker.url.rpartition(":")[2]))
        )
        self.front = await stack.enter_async_context(TcpProxy("127.0.0.1", 1))
        self.front.refuse()
        self.connection = await self.database.connect()
        stack.push_async_callback(self._bury)

    async def prepare(self, stack: AsyncExitStack) -> None:
        """Name the store as one for tests, fund its account, make a key."""
        await self.connection.execute("update longtake.store set environment = $1", ENVIRONMENT)
        self.pool = await open_pool(self.database.connect_kwargs, size=2, name="harness")
        stack.callback(self.pool.terminate)
        keys = PostgresKeyStore(self.pool)
        await keys.fund(tenant=PRINCIPAL.tenant, account="main", credits=FUNDS)
        made = await keys.create(tenant=PRINCIPAL.tenant, actor=PRINCIPAL.actor, roles=("producer",))
        url = f"http://127.0.0.1:{self.front.port}"
        self.client = await stack.enter_async_context(Client(url, made.text, patience_seconds=WAIT_SECONDS))

    def session(self, name: str) -> RecordedClient:
        """A client that writes its history."""
        return RecordedClient(self.client, Recorder(self.history / f"client-{name}.jsonl", name))

    async def begin(
        self, *, armed: bool = False, roles: Sequence[str] = ROLES, app: str | None = None
    ) -> Born:
        """Another process; requests are led to it once it serves."""
        number = next(self._numbers)
        ready = self.folder / f"ready-{number}"
        settings: dict[str, Any] = {
            **SETTINGS,
            "public_url": f"http://127.0.0.1:{self.front.port}",
            "history_dir": str(self.history),
        }
        if armed:
            settings["crash_point"] = f"{self.cell.point}:{self.cell.action}:{self.cell.hit}:{self.socket}"
        postgres, nats_url = dict(self.database.connect_kwargs), self.broker.url
        if armed:
            # Its connections are the ones that are cut.
            postgres |= {"host": "127.0.0.1", "port": self.postgres.port, "ssl": False}
            nats_url = f"nats://127.0.0.1:{self.nats.port}"
        process = self.nursery.born(
            {
                "postgres": postgres,
                "nats_url": nats_url,
                "nats_token": self.broker.token,
                "data_dir": str(self.folder / "data"),
                "settings": settings,
                "roles": list(roles),
                "app": app or self.app,
                "ready": str(ready),
                "log": str(self.folder / f"process-{number}.log"),
                "environment": {PROVIDER: self.provider.url},
            }
        )
        self._processes.append(process)
        self._watching.append(asyncio.create_task(self._lead_to(process, ready)))
        if armed:
            self.one = process
        return process

    async def _lead_to(self, process: Born, ready: Path) -> None:
        await eventually(lambda: ready.exists() or not process.alive, "a process to serve", WAIT_SECONDS)
        if ready.exists() and (port := json.loads(ready.read_text())["port"]) is not None:
            self.front.aim("127.0.0.1", port)

    async def served(self) -> None:
        """Until every process that was begun serves or has died."""
        await asyncio.gather(*self._watching)

    async def _bury(self) -> None:
        for process in self._processes:
            await process.kill()
        for task in self._watching:
            task.cancel()
        listening = [task for task in self._listening if task is not None]
        await asyncio.gather(*self._watching, *listening, return_exceptions=True)

    # --- the blow -----------------------------------------------------------------------------------------------------

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._listening.add(task := asyncio.current_task())
        try:
            while line := await reader.readline():
                passed = msgspec.json.decode(line, type=Passed)
                self.passes.append(passed)
                if passed.acts and not self._hit.done():
                    self._hit.set_result(writer)
        except ConnectionResetError:
            """The armed process died."""
        finally:
            writer.close()
            self._listening.discard(task)

    async def strike(self) -> None:
        """Wait until the armed process stands at its point for the time that counts, and let the blow fall."""
        wire = await self._hit
        assert self.one is not None
        assert [passed.hit for passed in self.passes] == list(range(1, self.cell.hit + 1))
        assert {(passed.point, passed.pid) for passed in self.passes} == {(self.cell.point, self.one.pid)}
        if self.cell.point == "provider_in_flight":
            await eventually(lambda: self.provider.held, "a request to be at the provider")
        match self.cell.action:
            case "kill":
                self.front.refuse()
                wire.write(b"!")
                await self.one.ended()
                self.provider.release()
                await self.begin(roles=self.successor)
            case "stop":
                self.front.refuse()
                wire.write(b"!")
                one = self.one
                await eventually(lambda: one.stands_still, "it to stand still")
                self.provider.release()
                await self.begin(roles=self.successor)
                await self.two_leases()
                self.one.signal(signal.SIGCONT)
            case "cut":
                assert self.postgres.links, "there is something to be cut"
                for proxy in (self.postgres, self.nats, self.front):
                    proxy.cut()
                wire.write(b"!")
                self.provider.release()
                if self.cell.point == "sigterm.mid_effect":
                    await self.one.ended()
                    await self.begin()
        self.struck.set()

    async def two_leases(self) -> None:
        """Until the authority's clock has gone on by two leases."""
        since = await self.connection.fetchval("select clock_timestamp()")
        query = "select clock_timestamp() > $1::timestamptz + make_interval(secs => $2)"
        await eventually(lambda: self.connection.fetchval(query, since, 2 * LEASE_SECONDS), "two leases")

    # --- what is seen -------------------------------------------------------------------------------------------------

    async def status(self, run_id: str, *statuses: str) -> None:
        """Until a run has one of these statuses."""
        query = "select status from longtake.runs where run_id = $1"

        async def there() -> bool:
            return await self.pool.fetchval(query, run_id) in statuses

        await eventually(there, f"run {run_id} to be {' or '.join(statuses)}", WAIT_SECONDS)

    async def verdict(self) -> tuple[list[str], dict[str, int]]:
        """What is wrong after all, in words; and how much was looked at."""

        async def at_rest() -> bool:
            return not any((await self.connection.fetchrow(OPEN)).values())

        violations: list[str] = []
        try:
            await eventually(at_rest, "nothing to be open", WAIT_SECONDS)
        except AssertionError:
            violations.append(f"still open: {dict(await self.connection.fetchrow(OPEN))}")
        store = await read_store(self.connection)
        said = judge(
            read_history(self.history),
            store,
            read_witness(self.history / "witness.jsonl"),
            funded={(PRINCIPAL.tenant, "main"): FUNDS},
            all_clients=False,
        )
        violations += [f"{found.invariant} {found.what} ({found.where})" for found in said.violations]
        audits = PostgresAuditStore(self.pool)
        violations += [str(found) for found in await audits.money_violations(None)]
        audit = Audit(audits)
        async for run_id, tenant in audit.runs():
            try:
                await audit.verify(run_id)
                violations += [str(difference) for difference in await audit.prove(run_id, tenant)]
            except LongtakeError as error:
                violations.append(f"run {run_id}: {error}")
        return violations, said.counters


@asynccontextmanager
async def service(
    cell: Cell, nursery: Nursery, database: Any, broker: Any, folder: Path, app: str
) -> AsyncIterator[Service]:
    """A service with nobody in it yet."""
    (folder / "data").mkdir(parents=True)
    (folder / "history").mkdir()
    async with AsyncExitStack() as stack:
        made = Service(cell, nursery, database, broker, folder, app)
        await made.open(stack)
        yield made
