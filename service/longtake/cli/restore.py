"""`longtake doctor restore`: what must be done after a backup was restored, each step checked by the program (F70)."""

import os
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import asyncpg
from cyclopts import Parameter

from longtake.bootstrap import Addresses
from longtake.cli.output import Json, print_json, print_line
from longtake.cli.place import AppName, Config, DataDir, settings_of
from longtake.cli.process import run
from longtake.cli.up import addresses_of
from longtake.contracts.commands import Command, Receipt
from longtake.contracts.principal import Principal
from longtake.embedded import EmbeddedServers
from longtake.engine.admission import Admission
from longtake.engine.audit import Audit
from longtake.engine.hints import Hints
from longtake.engine.restore import Restore, RestoreReport, Say
from longtake.errors import AuthorityUnavailable, ConfigurationError, TransportUnavailable
from longtake.jetstream.connection import Connection, ConnectionOptions
from longtake.jetstream.memory import JetStreamMemory
from longtake.jetstream.transport import JetStreamTransport
from longtake.lifecycle import running
from longtake.postgres.admissions import PostgresAdmissionStore
from longtake.postgres.audits import PostgresAuditStore
from longtake.postgres.pool import open_pool
from longtake.postgres.restores import PostgresRestoreStore
from longtake.postgres.sweeps import PostgresSweepStore
from longtake.settings import Settings
from longtake.worker.registry import App, load_app

STREAMS_SECONDS = 20.0
ASK_HOURS = 24


def restore(
    *,
    yes: Annotated[bool, Parameter(help="Do it; without, only look")] = False,
    epoch_above: Annotated[
        int | None,
        Parameter(help="The highest epoch this store ever had, when the transport lost its note of it"),
    ] = None,
    ask_hours: Annotated[
        int,
        Parameter(
            help="Hours in which clients may send lost commands again, and calls are asked about first"
        ),
    ] = ASK_HOURS,
    data_dir: DataDir = None,
    app: AppName = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Go through what a restored database needs before anybody works on it. Stop every process first."""
    if ask_hours < 0:
        raise ConfigurationError(f"--ask-hours is {ask_hours}; it must not be negative")
    settings = settings_of(config=config, data_dir=data_dir, app=app)
    application = load_app(settings.app)
    steps: list[str] = []

    def say(line: str) -> None:
        steps.append(line)
        if not json:
            print_line(f"{len(steps)}. {line}")

    async def work() -> RestoreReport:
        async with _addresses(settings) as addresses:
            return await go_through(
                addresses, application, yes=yes, epoch_above=epoch_above, ask_hours=ask_hours, say=say
            )

    report = run(work())
    if json:
        print_json({"done": yes, "steps": steps, "report": report})
        return
    for lost in report.commands_not_taken:
        print_line(f"not taken: {lost.kind} {lost.id} of {lost.tenant}/{lost.actor}: {lost.reason}")
    for orphan in report.orphan_pointers:
        print_line(f"put aside: {orphan}")
    if not yes:
        print_line("nothing was changed; add --yes to go on")


@asynccontextmanager
async def _addresses(settings: Settings) -> AsyncIterator[Addresses]:
    if settings.postgres_url and settings.nats_url:
        yield addresses_of(settings, None)
        return
    if not (settings.data_dir / "postgres").exists():
        raise ConfigurationError(
            f"there is no store in {settings.data_dir}: name the restored one by --data-dir, or by LONGTAKE_POSTGRES_URL "
            "and LONGTAKE_NATS_URL"
        )
    async with EmbeddedServers(settings.data_dir) as servers:
        yield addresses_of(settings, servers)


async def go_through(
    addresses: Addresses,
    app: App,
    *,
    yes: bool,
    epoch_above: int | None = None,
    ask_hours: int = ASK_HOURS,
    say: Say = lambda line: None,
) -> RestoreReport:
    """All steps over the given servers; without `yes` those that only look."""
    connection = Connection(
        ConnectionOptions(
            servers=(addresses.nats_url,), role="longtake-restore", token=addresses.nats_token or None
        )
    )
    transport = JetStreamTransport(connection)
    try:
        owner = await asyncpg.connect(**addresses.postgres)
        pool = await open_pool(addresses.postgres, size=1, name="restore")
    except (AuthorityUnavailable, asyncpg.PostgresError, OSError, ValueError) as error:
        raise ConfigurationError(f"the database cannot be reached: {error}") from error
    try:
        async with running(transport):
            if not await transport.wait_ready(STREAMS_SECONDS):
                raise TransportUnavailable(
                    f"NATS did not answer within {STREAMS_SECONDS:.0f} s; a restore needs what it remembers"
                )
            async with pool.acquire() as ours:
                mine = [ours.get_server_pid()]
            return await _steps(
                PostgresRestoreStore(owner, mine=mine),
                pool,
                transport,
                app,
                yes=yes,
                epoch_above=epoch_above,
                ask_hours=ask_hours,
                say=say,
            )
    finally:
        await pool.close()
        await owner.close()


async def _steps(
    store: PostgresRestoreStore,
    pool: asyncpg.Pool,
    transport: JetStreamTransport,
    app: App,
    *,
    yes: bool,
    epoch_above: int | None,
    ask_hours: int,
    say: Say,
) -> RestoreReport:
    incarnation = uuid.uuid4()
    name = f"{socket.gethostname()}-{os.getpid()}-{incarnation.hex[:8]}"
    sweep = PostgresSweepStore(pool, incarnation=incarnation, owner=name)
    memory = JetStreamMemory(transport.connection)
    going = Restore(store, sweep, memory, Audit(PostgresAuditStore(pool)), say=say)
    report = await going.inspect()
    epoch = going.next_epoch(report, epoch_above)
    if not yes:
        return report
    await going.begin(report, epoch, ask_hours=ask_hours)
    # What we publish is lost when we end, as with every process: the relay publishes it again.
    await sweep.announce(roles=("api",), pools=(), activities=())
    hints = Hints(transport.publisher, store_epoch=epoch)
    async with running(hints):
        admission = Admission(
            PostgresAdmissionStore(pool, store_epoch=epoch, incarnation=incarnation),
            app,
            hints,
            store_epoch=epoch,
        )

        async def admit(principal: Principal, command: Command) -> tuple[Receipt, bool]:
            answer = await admission.admit(principal, command, channel="nats", traceparent=None)
            return answer.receipt, answer.replayed

        await going.replay(report, admit)
    await going.quarantine(report)
    await sweep.retire()
    await going.finish(report)
    return report
