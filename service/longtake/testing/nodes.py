"""Processes of a simulated deployment: the production classes of each role, wired to the fakes through ports (bootstrap.py).

Every start of a process makes all of it anew under a new incarnation, as a real start does.
Leaves to others: what moves in the world besides (site.py).
"""

import itertools
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

from longtake.contracts.effects import ClaimedEffect
from longtake.contracts.ids import callback_token_for
from longtake.engine.admission import Admission
from longtake.engine.deciding import commit_of
from longtake.engine.dispatch_loop import DispatchLoop
from longtake.engine.dispatcher import DOORBELL_PLANS, Dispatcher
from longtake.engine.hints import Hints
from longtake.engine.inbox import Inbox
from longtake.engine.intake import Intake
from longtake.engine.line import Line
from longtake.engine.pace import Pace
from longtake.engine.plan_check import PlanCheck
from longtake.engine.relatives import DOORBELL_STARTER
from longtake.engine.relay import Relay
from longtake.engine.starter import Starter
from longtake.engine.streams import StreamGuard
from longtake.engine.sweeper import Sweeper
from longtake.engine.waking import DOORBELL_RELAY, DOORBELL_SWEEPER
from longtake.errors import AuthorityUnavailable, TransportUnavailable
from longtake.memory import (
    MemoryAdmissionStore,
    MemoryDatabase,
    MemoryDecisionStore,
    MemoryErrandStore,
    MemoryInboxStore,
    MemoryLeaseKeeper,
    MemoryPlanCheckStore,
)
from longtake.testing.bells import WorldDoorbell
from longtake.testing.calls import Port, TransactionPort
from longtake.testing.faults import Faults
from longtake.testing.provider import FakeProvider
from longtake.testing.watching import Broken, Leases, WatchedEffects, WatchedSweeps
from longtake.testing.wires import Connection, Wires
from longtake.testing.working import SimulatedWorker
from longtake.testing.world import Process, World
from longtake.worker.executor import Executor
from longtake.worker.leases import Lease
from longtake.worker.registry import App

SECRET = b"simulated"
LEASE = Lease(seconds=30, beat_seconds=10.0)
PACE = Pace(cap_seconds=30.0, floor_seconds=1.0, grace_seconds=2.0)
ANNOUNCE_SECONDS = 5.0
TOPOLOGY_SECONDS = 5.0
LANES = ((0, 1), (2, 3))

Wrap = Callable[[str, Any], Any]
"""(name, object) -> what stands in its place; for experiments that take a defence away."""


class Deployment:
    """Everything that outlives a process, and how processes are made of it."""

    def __init__(
        self,
        world: World,
        database: MemoryDatabase,
        wires: Wires,
        provider: FakeProvider,
        faults: Faults,
        app: App,
        *,
        wrap: Wrap | None = None,
    ) -> None:
        self.world = world
        self.database = database
        self.wires = wires
        self.provider = provider
        self.faults = faults
        self.app = app
        self.wrap: Wrap = wrap or (lambda name, thing: thing)
        self.doorbell = WorldDoorbell(world, faults)
        self.leases: Leases = {}
        self.line_looked_at: Callable[[], None] = lambda: None
        """Called whenever a starter begins to look at a line of runs that wait for their scopes."""
        self.broken: Broken = lambda invariant, message: None
        """Told of promises that stores see broken."""

    def node(self, name: str, roles: tuple[str, ...]) -> Process:
        """Add a process with these roles, not yet started."""
        return self.world.process(name, lambda process: _Node(self, process, roles).begin())


class _Node:
    """One start of one process."""

    def __init__(self, deployment: Deployment, process: Process, roles: tuple[str, ...]) -> None:
        self._all = deployment
        self._process = process
        self._world = process.world
        self._roles = roles
        self._owner = f"{process.name}-{process.starts}"
        self._incarnation = uuid.uuid5(uuid.NAMESPACE_OID, self._owner)
        self._salt = itertools.count(process.starts << 24)

    def begin(self) -> None:
        """Make every object of the roles, and spawn their loops."""
        everything, process, database = self._all, self._process, self._all.database
        epoch = database.store_epoch
        wrap = everything.wrap
        self.sweep = self._store(
            "sweep",
            WatchedSweeps(
                database, incarnation=self._incarnation, owner=self._owner, broken=everything.broken
            ),
        )
        guard = StreamGuard(self.sweep)
        connection = everything.wires.connect(process, guard.seen)

        def spawn(work: Coroutine[Any, Any, None]) -> None:
            process.spawn("hints", work)

        self.transport: Any = connection
        self.hints = wrap(
            "hints",
            Hints(
                connection.publisher,
                store_epoch=epoch,
                spawn=spawn,
            ),
        )
        self.doorbell = everything.doorbell
        process.memory["provider"] = Port(
            process, "provider", everything.provider, everything.faults, away=TimeoutError
        )
        guard.doorbell = self.doorbell
        process.spawn("presence", self._presence())
        process.spawn("topology", self._topology(connection))
        dispatcher: Dispatcher | None = None
        if "dispatcher" in self._roles:
            store = self._store(
                "decisions", MemoryDecisionStore(database, store_epoch=epoch, incarnation=self._incarnation)
            )
            dispatcher = wrap(
                "dispatcher",
                Dispatcher(
                    store, self.hints, self.doorbell, store_epoch=epoch, decide=wrap("decide", commit_of)
                ),
            )
            process.memory["dispatcher"] = dispatcher
            for lane in LANES:
                loop = DispatchLoop(
                    dispatcher,
                    self.transport,
                    self.sweep,
                    parts=lane,
                    sleep=self._world.sleep,
                    uniform=self._world.random.uniform,
                )
                for part in lane:
                    process.spawn(f"dispatcher-{part}", self._dispatch(loop, part))
        if "api" in self._roles:
            self._begin_api(epoch, dispatcher)
        if "worker" in self._roles:
            self._begin_worker(epoch)
        if "relay" in self._roles:
            relay = Relay(
                self.sweep,
                self.hints,
                connection.publisher,
                connection.oldest,
                self.doorbell,
                pools=everything.app.pools,
                pace=PACE,
            )
            process.spawn("relay", self._passes(wrap("relay", relay), DOORBELL_RELAY))
        if "sweeper" in self._roles:
            sweeper = Sweeper(
                self.sweep,
                self.hints,
                connection.oldest,
                self.doorbell,
                pace=PACE,
                lease_seconds=LEASE.seconds,
                monotonic=self._world.monotonic,
                first_salt=next(self._salt) + (hash_of(process.name) << 40),
            )
            process.spawn("sweeper", self._passes(wrap("sweeper", sweeper), DOORBELL_SWEEPER))

    def _begin_api(self, epoch: int, dispatcher: Dispatcher | None) -> None:
        everything, process, database = self._all, self._process, self._all.database
        store = MemoryAdmissionStore(database, store_epoch=epoch, incarnation=self._incarnation)
        admission = Admission(
            TransactionPort(process, "admission", store, everything.faults, away=AuthorityUnavailable),
            everything.app,
            self.hints,
            store_epoch=epoch,
            on_started=dispatcher.cache.put_new if dispatcher is not None else None,
            doorbell=self.doorbell,
        )
        process.memory["admission"] = admission
        process.memory["inbox"] = Inbox(
            self._store("inbox", MemoryInboxStore(database)),
            self.hints,
            secret=SECRET,
            verifiers=everything.app.verifiers,
        )
        process.spawn("intake", self._intake(Intake(admission, self.transport, self.sweep)))
        checks = self._store("plans", MemoryPlanCheckStore(database))
        process.spawn("plan-check", self._check_plans(checks))
        line = Line(
            TransactionPort(
                process,
                "starting",
                store,
                everything.faults,
                away=AuthorityUnavailable,
                on_begin=lambda: everything.line_looked_at(),
            ),
            self.hints,
            self.doorbell,
            store_epoch=epoch,
        )
        starter = Starter(
            self._store("errands", MemoryErrandStore(database)),
            admission,
            line,
            self.sweep,
            self.hints,
            self.doorbell,
            pace=PACE,
        )
        process.spawn("starter", self._start(starter))

    def _begin_worker(self, epoch: int) -> None:
        everything, process, database = self._all, self._process, self._all.database
        effects = self._store(
            "effects",
            WatchedEffects(database, store_epoch=epoch, leases=everything.leases, broken=everything.broken),
        )
        executor = Executor(
            effects,
            everything.app.activities,
            _NoArtifacts(),
            _callback_url,
            expanders=everything.app.expanders,
        )
        worker = SimulatedWorker(
            process,
            owner=self._owner,
            slots=4,
            lease=LEASE,
            transport=self.transport,
            effects=effects,
            keeper=self._store("leases", MemoryLeaseKeeper(database, owner=self._owner)),
            sweep=self.sweep,
            executor=executor,
            hints=self.hints,
            doorbell=self.doorbell,
        )
        worker.begin(everything.app.pools)

    def _store(self, name: str, store: Any) -> Any:
        return Port(
            self._process,
            name,
            self._all.wrap(name, store),
            self._all.faults,
            away=AuthorityUnavailable,
            outage="authority",
        )

    # --- loops, as the LoopServices run them --------------------------------------------------------------------------

    async def _presence(self) -> None:
        while True:
            try:
                await self.sweep.announce(
                    roles=self._roles, pools=self._all.app.pools, activities=tuple(self._all.app.activities)
                )
            except AuthorityUnavailable:
                pass  # said again in a moment
            await self._world.sleep(ANNOUNCE_SECONDS)

    async def _topology(self, connection: Connection) -> None:
        while True:
            try:
                await connection.look()
            except (AuthorityUnavailable, TransportUnavailable):
                pass  # told again at the next look
            await self._world.sleep(0.5 if connection.link.must_look else TOPOLOGY_SECONDS)

    async def _dispatch(self, loop: DispatchLoop, part: int) -> None:
        subscription = await self.transport.callbacks(part)
        while True:
            try:
                deliveries = await subscription.fetch(limit=64, wait_seconds=5.0)
            except TransportUnavailable:
                await self._world.sleep(0.5)
                continue
            if deliveries:
                settle = await loop.batch(deliveries)
                await settle

    async def _intake(self, intake: Intake) -> None:
        subscription = await self.transport.commands()
        while True:
            try:
                deliveries = await subscription.fetch(limit=16, wait_seconds=5.0)
            except TransportUnavailable:
                await self._world.sleep(0.5)
                continue
            for delivery in deliveries:
                try:
                    await intake.take(delivery)
                except AuthorityUnavailable:
                    try:
                        await delivery.nak(delay_seconds=self._world.random.uniform(0.2, 2.0))
                    except TransportUnavailable:
                        continue
                except TransportUnavailable:
                    continue

    async def _passes(self, role: Any, bell: str) -> None:
        while True:
            try:
                busy = await role.pass_once()
                seconds = 0.0 if busy else await PACE.seconds(self.sweep)
            except (AuthorityUnavailable, TransportUnavailable) as error:
                if isinstance(role, Sweeper) and isinstance(error, AuthorityUnavailable):
                    role.forget_connection()
                seconds = PACE.away_seconds
            if seconds > 0:
                await self.doorbell.wait(bell, timeout_seconds=seconds)

    async def _start(self, starter: Starter) -> None:
        while True:
            try:
                done, postponed = await starter.pass_once()
                if done:
                    continue
                seconds = await PACE.seconds(self.sweep)
                seconds = min(seconds, 1.0) if postponed else seconds
            except AuthorityUnavailable:
                seconds = PACE.away_seconds
            await self.doorbell.wait(DOORBELL_STARTER, timeout_seconds=seconds)

    async def _check_plans(self, checks: Any) -> None:
        deployed = False
        while True:
            try:
                if not deployed:
                    await checks.deploy(self._all.app.application)
                    deployed = True
                await PlanCheck(checks, self._all.app, self.hints, self.doorbell).pass_once()
                seconds = 30.0
            except AuthorityUnavailable:
                seconds = 0.5
            await self.doorbell.wait(DOORBELL_PLANS, timeout_seconds=seconds)


class _NoArtifacts:
    """Simulated activities store nothing."""

    async def put(self, content: Any, *, name: str, kind: str, content_type: str) -> Any:
        """Never called."""
        raise NotImplementedError

    async def fetch(self, key: str, path: Any) -> None:
        """Never called."""
        raise NotImplementedError


def _callback_url(effect: ClaimedEffect, provider: str) -> str:
    return callback_token_for(SECRET, run_id=effect.run_id, step=effect.step, attempt=effect.attempt)


def hash_of(name: str) -> int:
    """A small number for a name, the same in every process of ours."""
    return uuid.uuid5(uuid.NAMESPACE_OID, name).int & 0xFFFF
