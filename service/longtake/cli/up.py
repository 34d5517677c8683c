"""`longtake up`: everything in one process, on servers of its own unless addresses of others are set."""

import asyncio
import contextlib
import dataclasses
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from longtake.bootstrap import Addresses, Runtime, apply_migrations
from longtake.cli.output import Json, print_json, print_line
from longtake.cli.place import (
    KEY_FILE,
    AppName,
    Config,
    DataDir,
    TransportName,
    UpFacts,
    forget_up,
    settings_of,
    write_up,
)
from longtake.cli.process import StopSignal, run_until_stopped
from longtake.cli.telemetry import observed
from longtake.cli.workroom import workroom
from longtake.embedded import EmbeddedServers
from longtake.embedded.nats import write_private
from longtake.errors import ConfigurationError
from longtake.postgres.environments import UNNAMED
from longtake.settings import ROLES, Settings
from longtake.worker.registry import App, load_app

DEV_TENANT = "dev"
DEV_ACTOR = "dev"
DEV_ACCOUNT = "main"
DEV_CREDITS = 10_000


def up(
    *,
    data_dir: DataDir = None,
    host: Annotated[str | None, Parameter(help="Address to listen on (LONGTAKE_HOST, 127.0.0.1)")] = None,
    port: Annotated[
        int | None, Parameter(help="Port to listen on, 0 for a free one (LONGTAKE_PORT, 8600)")
    ] = None,
    app: AppName = None,
    config: Config = None,
    transport: TransportName = None,
    detached: Annotated[
        bool, Parameter(negative=(), help="Go on when the process that started this one is gone")
    ] = False,
    json: Json = False,
) -> None:
    """Run everything in this process until Ctrl-C.

    Postgres and NATS are started from their packages, with data under the data directory, unless
    LONGTAKE_POSTGRES_URL and LONGTAKE_NATS_URL name others. A development key is made once and printed once.
    """
    settings = settings_of(
        config=config, data_dir=data_dir, host=host, port=port, app=app, transport=transport
    )
    half = settings.transport != "off" and bool(settings.postgres_url) != bool(settings.nats_url)
    if half and settings.environment != UNNAMED:
        # Hints of one's own beside a shared store would wake nobody, and take turns with those that do (G50).
        raise ConfigurationError(
            f"the environment {settings.environment!r} is shared: set both LONGTAKE_POSTGRES_URL and LONGTAKE_NATS_URL, "
            "or neither"
        )
    application = load_app(settings.app)
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)

    async def work(stop: StopSignal) -> None:
        with observed(settings, roles=ROLES, to_file=True):
            async with _everything(settings, application, stop) as (process, servers):
                await _tell(settings, process, as_json=json)
                await until_stopped(stop, process, servers)
                if not json:
                    print_line(f"stopping ({stop.reason})")

    run_until_stopped(work, with_parent=not detached)


@asynccontextmanager
async def _everything(
    settings: Settings, application: App, stop: StopSignal
) -> AsyncIterator[tuple[Runtime, EmbeddedServers | None]]:
    """Servers, schema and roles, ended in the opposite order whatever happens."""
    async with contextlib.AsyncExitStack() as stack:
        servers = None
        has_broker = bool(settings.nats_url) or settings.transport == "off"
        if not (settings.postgres_url and has_broker):
            servers = EmbeddedServers(settings.data_dir, broker=settings.transport != "off")
            # Should a start be cut short, it cleans up after itself.
            await stop.before(servers.start())
            stack.push_async_callback(servers.stop)
            # Not before: the servers' socket wants a short path.
            stack.enter_context(workroom(settings.data_dir))
        addresses = addresses_of(settings, servers)
        await stop.before(apply_migrations(addresses.postgres, dataclasses.replace(settings, crash_point="")))
        process = Runtime(
            settings,
            addresses,
            app=application,
            # The lock of the data directory is ours: whoever worked on this store before is dead.
            sole_owner=servers is not None and not settings.postgres_url,
        )
        stack.push_async_callback(process.stop)
        await stop.before(process.start())
        stack.callback(forget_up, settings.data_dir)
        yield process, servers


def addresses_of(settings: Settings, servers: EmbeddedServers | None) -> Addresses:
    """Addresses from the settings, and from embedded servers for what they do not name."""
    postgres: dict[str, Any] = {"dsn": settings.postgres_url}
    nats_url, nats_token = settings.nats_url, str(settings.nats_token) or None
    if servers is not None and not settings.postgres_url:
        postgres = servers.postgres_connect_kwargs()
    if servers is not None and not settings.nats_url and settings.transport != "off":
        nats_url, nats_token = servers.nats_url, servers.nats_token
    return Addresses(postgres, nats_url, nats_token)


async def _tell(settings: Settings, process: Runtime, *, as_json: bool) -> None:
    """Make the development key if need be, leave our address for clients, and say where everything is."""
    key_file, fresh = await ensure_dev_key(process, settings.data_dir)
    assert process.api_server is not None, "up runs the API"
    url = process.api_server.url
    write_up(settings.data_dir, UpFacts(url=url, pid=os.getpid(), key_file=str(key_file)))
    if as_json:
        print_json(
            {"url": url, "pid": os.getpid(), "key_file": str(key_file), "data_dir": str(settings.data_dir)}
        )
        return
    print_line(f"longtake is up at {url}")
    print_line(f"  key   {fresh}  (kept in {key_file})" if fresh else f"  key   in {key_file}")
    print_line(f"  data  {settings.data_dir}")
    print_line(f"  log   {settings.data_dir / 'log' / 'longtake.log'}")
    print_line("  Ctrl-C stops it")


async def ensure_dev_key(process: Runtime, data_dir: Path) -> tuple[Path, str | None]:
    """The file of the development key; with its text when it was made just now. Its account is funded once."""
    path = data_dir / KEY_FILE
    fresh = None
    known = path.read_text().strip() if path.exists() else ""
    # A key of another database in the same place opens nothing.
    if not known or await process.keys.principal(known) is None:
        made = await process.keys.create(tenant=DEV_TENANT, actor=DEV_ACTOR, roles=("producer",))
        write_private(path, made.text)
        fresh = made.text
    if await process.keys.balance(tenant=DEV_TENANT, account=DEV_ACCOUNT) is None:
        await process.keys.fund(tenant=DEV_TENANT, account=DEV_ACCOUNT, credits=DEV_CREDITS)
    return path, fresh


async def until_stopped(stop: StopSignal, process: Runtime, servers: EmbeddedServers | None = None) -> None:
    """Wait for a reason to stop. Raises when a role broke, or an embedded server has been given up."""
    told = asyncio.create_task(stop.wait())
    broken: set[asyncio.Task[BaseException]] = {asyncio.create_task(process.failed())}
    if servers is not None:
        broken.add(asyncio.create_task(_given_up(servers)))
    try:
        await asyncio.wait({told, *broken}, return_when=asyncio.FIRST_COMPLETED)
        for task in broken:
            if task.done() and not told.done():
                raise task.result()
    finally:
        for waiting in (told, *broken):
            waiting.cancel()


async def _given_up(servers: EmbeddedServers) -> BaseException:
    return await servers.failed()
