"""Bootstrap: the one place where settings become objects and roles become services (floor 6).

Explicit constructors, no container. `Runtime` is one process: any set of roles over one Postgres and one NATS.
"""

import asyncio
import os
import socket
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import asyncpg
import structlog

from longtake import resources
from longtake.api import ApiContext, ApiServer, NatsRequests, build_asgi
from longtake.contracts.effects import ClaimedEffect
from longtake.contracts.ids import callback_token_for
from longtake.crash_points import arm
from longtake.engine.admission import Admission
from longtake.engine.audit import Audit
from longtake.engine.dispatch_loop import DispatchLoop
from longtake.engine.dispatcher import Dispatcher
from longtake.engine.hints import Hints, pack_factor
from longtake.engine.inbox import Inbox
from longtake.engine.intake import Intake
from longtake.engine.line import Line
from longtake.engine.money_audit import MoneyAudit
from longtake.engine.pace import Pace
from longtake.engine.plan_check import PlanCheck
from longtake.engine.presence import Presence
from longtake.engine.relay import Relay
from longtake.engine.repeating import RepeatingPublisher
from longtake.engine.scheduler import Scheduler
from longtake.engine.schedules import Schedules
from longtake.engine.starter import Starter
from longtake.engine.sweeper import Sweeper
from longtake.engine.windows import Windows
from longtake.errors import ConfigurationError
from longtake.lifecycle import Service, first_failure, start_all, stop_all
from longtake.postgres.admissions import PostgresAdmissionStore
from longtake.postgres.audits import PostgresAuditStore
from longtake.postgres.callbacks import PostgresInboxStore
from longtake.postgres.decisions import PostgresDecisionStore
from longtake.postgres.effects import PostgresEffectStore, PostgresLeaseKeeper
from longtake.postgres.environments import UNNAMED, check_environment, migrate_store
from longtake.postgres.errands import PostgresErrandStore
from longtake.postgres.keys import PostgresKeyStore
from longtake.postgres.migrator import MigrationReport, check_schema
from longtake.postgres.plan_checks import PostgresPlanCheckStore
from longtake.postgres.pool import open_pool
from longtake.postgres.reads import PostgresReads
from longtake.postgres.schedules import PostgresScheduleStore
from longtake.postgres.sweeps import PostgresSweepStore, read_identity
from longtake.settings import ROLES, Settings
from longtake.storage.objects import Objects
from longtake.storage.secret import kept_secret
from longtake.telemetry import recording
from longtake.telemetry.recording import history_of, recorded
from longtake.wires import wires_of
from longtake.worker.executor import Executor
from longtake.worker.heartbeat import Heartbeat
from longtake.worker.leases import Lease
from longtake.worker.registry import App
from longtake.worker.reporter import Reporter
from longtake.worker.runner import Runner

POOL_SIZE = {"api": 6, "dispatcher": 4, "polling": 2, "relay": 2, "starter": 2, "sweeper": 2, "worker": 4}

DISPATCH_LANES = ((0, 1), (2, 3))
"""Parts of LT_CALLBACK by loop: while one waits for its commit the other decides (design.md 14)."""

log = structlog.get_logger("longtake.bootstrap")


class Addresses:
    """Where the servers of this process are; a value object of connect arguments."""

    def __init__(self, postgres: Mapping[str, Any], nats_url: str, nats_token: str | None) -> None:
        self.postgres = dict(postgres)
        self.nats_url = nats_url
        self.nats_token = nats_token


async def apply_migrations(
    postgres: Mapping[str, Any], settings: Settings | None = None, *, naming: bool = False
) -> MigrationReport:
    """Bring a database of this environment up to date, as the user who owns it (G51). `settings` may arm a crash point."""
    if settings is not None and settings.crash_point:
        arm(settings.crash_point, environment=settings.environment)
    environment = UNNAMED if settings is None else settings.environment
    return await migrate_store(postgres, resources.directory("migrations"), environment, naming=naming)


class Runtime:
    """One process: the given roles of longtake. A `Service`."""

    def __init__(
        self,
        settings: Settings,
        addresses: Addresses,
        *,
        roles: Sequence[str] = ROLES,
        app: App | None,
        sole_owner: bool = False,
    ) -> None:
        """`sole_owner`: the lock of the data directory is ours, so every earlier process of this store is dead."""
        strange = [role for role in roles if role not in ROLES]
        if strange:
            raise ConfigurationError(f"--role {','.join(strange)} is unknown; use some of {','.join(ROLES)}")
        if app is None and {"api", "worker"} & set(roles):
            raise ConfigurationError(
                "the roles api and worker need an application: use --app module:attribute"
            )
        self.settings = settings
        self.addresses = addresses
        self.roles = tuple(roles)
        self.app = app
        self.sole_owner = sole_owner
        self.incarnation = uuid.uuid4()
        self.owner = f"{socket.gethostname()}-{os.getpid()}-{self.incarnation.hex[:8]}"
        self.history = history_of(Path(settings.history_dir) if settings.history_dir else None, self.owner)
        self.public_url = settings.public_url or f"http://{settings.host}:{settings.port}"
        self.dispatcher: Dispatcher | None = None
        self._pools: list[asyncpg.Pool] = []
        self._services: list[Service] = []
        self._started = False
        self.api_server: ApiServer | None = None

    async def start(self) -> None:
        """Connect, check the store's name, and start every role."""
        if self._started:
            return
        try:
            await self._build()
            await start_all(self._services)
        except BaseException:
            if self.api_server is not None:
                await self.api_server.stop()
            await self._close_pools()
            raise
        self._started = True
        log.info("longtake.started", roles=",".join(self.roles), owner=self.owner)

    async def started(self) -> None:
        """Return when every role runs."""
        for service in self._services:
            await service.started()

    async def stop(self) -> None:
        """Stop every role, then close the pools. Nothing happens the second time."""
        services, self._services = self._services, []
        self._started = False
        try:
            await stop_all(services)
        finally:
            await self._close_pools()

    async def failed(self) -> BaseException:
        """Return when a role has ended by an error: a process that lacks a role it promised must not go on."""
        return await first_failure(self._services)

    async def _close_pools(self) -> None:
        pools, self._pools = self._pools, []
        for pool in pools:
            try:
                async with asyncio.timeout(5.0):
                    await pool.close()
            except TimeoutError:
                pool.terminate()

    async def _pool(self, name: str) -> asyncpg.Pool:
        pool = await open_pool(self.addresses.postgres, size=POOL_SIZE[name], name=name)
        self._pools.append(pool)
        return pool

    async def _build(self) -> None:
        settings = self.settings
        control = await self._pool("relay")
        await check_schema(control, resources.directory("migrations"))
        self.identity = await read_identity(control)
        check_environment(settings.environment, self.identity.environment)
        if settings.crash_point:
            arm(settings.crash_point, environment=self.identity.environment)
        epoch = self.identity.store_epoch
        self.sweep = PostgresSweepStore(control, incarnation=self.incarnation, owner=self.owner)
        self.wires = wires_of(
            settings.transport,
            idle_seconds=settings.idle_seconds,
            redelivery_seconds=settings.redelivery_seconds,
            postgres=self.addresses.postgres,
            nats_url=self.addresses.nats_url,
            nats_token=self.addresses.nats_token,
            pool=control if settings.transport != "off" else await self._pool("polling"),
            sweep=self.sweep,
            store_epoch=epoch,
        )
        self.transport, self.doorbell = self.wires.transport, self.wires.doorbell
        publisher = recorded(self.transport.publisher, self.history, recording.PUBLISHER)
        repeating = RepeatingPublisher(publisher)
        self.hints = Hints(repeating, store_epoch=epoch)
        self.objects = Objects.in_directory(settings.data_dir / "objects")
        self.secret = str(settings.callback_secret).encode() or kept_secret(
            settings.data_dir / "callback.secret"
        )
        self.windows = Windows(self.sweep)
        pace = Pace(cap_seconds=settings.idle_seconds, grace_seconds=settings.grace_seconds)
        if self.sole_owner:
            buried = await self.sweep.bury_others()
            if buried:
                log.info("longtake.predecessors_buried", processes=len(buried))
        presence = Presence(
            self.sweep,
            roles=self.roles,
            pools=self.app.pools if self.app else (),
            activities=tuple(self.app.activities) if self.app else (),
            slots=self._slots() if self.app and "worker" in self.roles else (),
            store_epoch=epoch,
        )
        await presence.announce()
        self._services = [presence, *self.wires.services, repeating, self.hints]
        if "dispatcher" in self.roles:
            store = PostgresDecisionStore(
                await self._pool("dispatcher"), store_epoch=epoch, incarnation=self.incarnation
            )
            noted = recorded(store, self.history, recording.DECISIONS)
            self.dispatcher = Dispatcher(
                noted, self.hints, self.doorbell, store_epoch=epoch, windows=self.windows
            )
            transport = recorded(self.transport, self.history, recording.TRANSPORT)
            for lane in DISPATCH_LANES:
                self._services.append(DispatchLoop(self.dispatcher, transport, self.sweep, parts=lane))
        if "api" in self.roles:
            await self._build_api(epoch)
        if "worker" in self.roles:
            await self._build_worker(epoch)
        if "sweeper" in self.roles:
            self._services.append(
                Sweeper(
                    recorded(self.sweep, self.history, recording.SWEEPS),
                    self.hints,
                    self.transport,
                    self.doorbell,
                    pace=pace,
                    lease_seconds=settings.lease_seconds,
                    stall_seconds=settings.stall_seconds,
                )
            )
            self._services.append(MoneyAudit(PostgresAuditStore(control)))
        if "relay" in self.roles:
            pools = self.app.pools if self.app else ("default", "short")
            self._services.append(
                Relay(
                    self.sweep,
                    self.hints,
                    publisher,
                    self.transport,
                    self.doorbell,
                    pools=pools,
                    pace=pace,
                )
            )
        if self.app is not None:
            checks = PostgresPlanCheckStore(control)
            await checks.deploy(self.app.application)
            self._services.append(PlanCheck(checks, self.app, self.hints, self.doorbell))
            await self._build_starter(self.app, epoch, pace)
            if "api" in self.roles:
                schedules = PostgresScheduleStore(control)
                self.schedules = Schedules(schedules, self.doorbell)
                self._services.append(Scheduler(schedules, self.admission, self.doorbell, pace=pace))
            self._services += self.app.services
        if self.api_server is not None:
            # Last to begin and first to end: whoever is answered finds all the rest at work.
            self._services.append(self.api_server)

    async def _build_api(self, epoch: int) -> None:
        pool = await self._pool("api")
        assert self.app is not None, "checked by the constructor"
        self.reads = PostgresReads(pool)
        self.keys = PostgresKeyStore(pool)
        self.audit = Audit(PostgresAuditStore(pool))
        self.admission = Admission(
            PostgresAdmissionStore(pool, store_epoch=epoch, incarnation=self.incarnation),
            self.app,
            self.hints,
            store_epoch=epoch,
            on_started=self.dispatcher.cache.put_new if self.dispatcher else None,
            doorbell=self.doorbell,
            windows=self.windows,
        )
        self.inbox = Inbox(
            recorded(PostgresInboxStore(pool), self.history, recording.INBOX),
            self.hints,
            secret=self.secret,
            verifiers=self.app.verifiers,
        )
        self._services.append(
            Intake(self.admission, self.transport, self.sweep, producers=self.settings.producers)
        )
        context = ApiContext(
            admission=self.admission,
            inbox=self.inbox,
            reads=self.reads,
            keys=self.keys,
            objects=self.objects,
            store_epoch=epoch,
            cursor_secret=self.secret,
            hosts=self.settings.hosts,
            nats_health=self.wires.health,
        )
        requests = NatsRequests(context)
        self._services += self.wires.requests(command=requests.command, summary=requests.summary)
        self.api_server = ApiServer(
            host=self.settings.host, port=self.settings.port, stopping=context.stopping
        )
        self.api_server.app = build_asgi(context)
        if not self.settings.public_url:
            self.public_url = self.api_server.url

    async def _build_starter(self, app: App, epoch: int, pace: Pace) -> None:
        """Child runs are planned where the application is loaded, and begin there too."""
        pool = await self._pool("starter")
        admissions = PostgresAdmissionStore(pool, store_epoch=epoch, incarnation=self.incarnation)
        admission = Admission(
            admissions,
            app,
            self.hints,
            store_epoch=epoch,
            on_started=self.dispatcher.cache.put_new if self.dispatcher else None,
            doorbell=self.doorbell,
            windows=self.windows,
        )
        self._services.append(
            Starter(
                PostgresErrandStore(pool),
                admission,
                Line(admissions, self.hints, self.doorbell, store_epoch=epoch, windows=self.windows),
                self.sweep,
                self.hints,
                self.doorbell,
                pace=pace,
            )
        )

    async def _build_worker(self, epoch: int) -> None:
        assert self.app is not None, "checked by the constructor"
        settings = self.settings
        effects = recorded(
            PostgresEffectStore(await self._pool("worker"), store_epoch=epoch), self.history, recording.WORK
        )
        keeper = PostgresLeaseKeeper(self.addresses.postgres, owner=self.owner)
        heartbeat = Heartbeat(
            recorded(keeper, self.history, recording.LEASES),
            every_seconds=settings.heartbeat_seconds,
        )
        lease = Lease(seconds=settings.lease_seconds, beat_seconds=settings.heartbeat_seconds)
        reporter = Reporter(effects, self.hints)
        executor = Executor(
            effects, self.app.activities, self.objects, self._callback_url, expanders=self.app.expanders
        )
        self._services += [heartbeat, reporter]
        for pool, slots in zip(self.app.pools, self._slots(), strict=True):
            self._services.append(
                Runner(
                    pool,
                    slots=slots,
                    owner=self.owner,
                    lease=lease,
                    stop_seconds=settings.stop_seconds,
                    transport=recorded(self.transport, self.history, recording.TRANSPORT),
                    effects=effects,
                    sweep=self.sweep,
                    executor=executor,
                    heartbeat=heartbeat,
                    reporter=reporter,
                    doorbell=self.doorbell,
                )
            )

    def _slots(self) -> tuple[int, ...]:
        assert self.app is not None, "a worker has an application"
        return tuple(self.settings.slots * pack_factor(pool) for pool in self.app.pools)

    def _callback_url(self, effect: ClaimedEffect, provider: str) -> str:
        token = callback_token_for(
            self.secret, run_id=effect.run_id, step=effect.step, attempt=effect.attempt
        )
        return f"{self.public_url}/v1/callbacks/{provider}/{token}"
