"""`longtake serve` and `longtake migrate`: roles apart, over servers of one's own."""

from typing import Annotated

from cyclopts import Parameter

from longtake.bootstrap import Runtime, apply_migrations
from longtake.cli.authority import postgres_address
from longtake.cli.output import Json, print_json, print_line
from longtake.cli.place import AppName, Config, DataDir, TransportName, settings_of
from longtake.cli.process import StopSignal, run, run_until_stopped
from longtake.cli.telemetry import observed
from longtake.cli.up import addresses_of, until_stopped
from longtake.errors import ConfigurationError
from longtake.postgres.migrator import MigrationReport
from longtake.settings import ROLES
from longtake.worker.registry import load_app


def serve(
    *,
    role: Annotated[str, Parameter(help=f"Roles, with commas between: {','.join(ROLES)}")] = ",".join(ROLES),
    host: Annotated[str | None, Parameter(help="Address of the API (LONGTAKE_HOST)")] = None,
    port: Annotated[int | None, Parameter(help="Port of the API (LONGTAKE_PORT)")] = None,
    data_dir: DataDir = None,
    app: AppName = None,
    config: Config = None,
    transport: TransportName = None,
    json: Json = False,
) -> None:
    """Run some roles until a signal comes. LONGTAKE_POSTGRES_URL and LONGTAKE_NATS_URL name the servers."""
    settings = settings_of(
        config=config, data_dir=data_dir, host=host, port=port, app=app, transport=transport
    )
    needed = ("postgres_url",) if settings.transport == "off" else ("postgres_url", "nats_url")
    missing = [f"LONGTAKE_{name.upper()}" for name in needed if not getattr(settings, name)]
    if missing:
        raise ConfigurationError(
            f"serve needs {' and '.join(missing)}; `longtake up` runs everything with servers of its own"
        )
    roles = tuple(name.strip() for name in role.split(",") if name.strip())
    if not roles:
        raise ConfigurationError(f"--role names no role; use some of {','.join(ROLES)}")
    application = load_app(settings.app)

    async def work(stop: StopSignal) -> None:
        with observed(settings, roles=roles, to_file=False):
            process = Runtime(settings, addresses_of(settings, None), roles=roles, app=application)
            try:
                await stop.before(process.start())
                url = None if process.api_server is None else process.api_server.url
                if json:
                    print_json({"roles": list(roles), "url": url})
                else:
                    print_line(f"longtake serves {', '.join(roles)}" + (f" at {url}" if url else ""))
                await until_stopped(stop, process)
            finally:
                await process.stop()

    # A supervisor owns us and may be restarted itself: no watching of parents here.
    run_until_stopped(work, with_parent=False)


def migrate(
    *,
    environment: Annotated[
        str | None, Parameter(help="The environment that it belongs to; names a store without a name")
    ] = None,
    data_dir: DataDir = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Apply the migrations that the database does not have; two at once wait for each other."""
    settings = settings_of(config=config, data_dir=data_dir, environment=environment)

    async def work() -> MigrationReport:
        async with postgres_address(settings, make=True) as address:
            return await apply_migrations(address, settings, naming=environment is not None)

    report = run(work())
    if json:
        print_json({"applied": list(report.applied), "standing": list(report.standing)})
        return
    for name in report.applied:
        print_line(f"applied  {name}")
    print_line(f"{len(report.standing)} migrations stand" + ("" if report.applied else ", nothing to do"))
