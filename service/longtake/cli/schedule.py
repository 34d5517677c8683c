"""`longtake schedule`: workflows that start by themselves, at the times of a cron expression."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import msgspec
from cyclopts import App, Parameter

from longtake.cli.authority import authority
from longtake.cli.inputs import read_input
from longtake.cli.output import Json, print_json, print_line, print_table
from longtake.cli.place import Config, DataDir, settings_of
from longtake.cli.process import run
from longtake.engine.scheduler import DOORBELL_SCHEDULES
from longtake.engine.schedules import Schedules
from longtake.errors import ConfigurationError
from longtake.jetstream.connection import Connection, ConnectionOptions
from longtake.jetstream.doorbell import ring_once
from longtake.postgres.schedules import PostgresScheduleStore
from longtake.settings import Settings
from longtake.store.scheduling import OccurrenceRow, ScheduleRow
from longtake.workflow.cron import Timetable
from longtake.workflow.schedule import CatchUp, Overlap, Schedule, Template, check_schedule

T = TypeVar("T")

RING_SECONDS = 2.0
"""How long we try to tell the schedulers of a change. Without being told they look within half a minute."""

app = App(name="schedule", help="Start workflows at the times of a cron expression.")

Tenant = Annotated[str, Parameter(help="Whose schedules")]


@app.command
def create(
    id: str,
    *,
    workflow: Annotated[str, Parameter(help="What to start: name@version")],
    cron: Annotated[str, Parameter(help="minute hour day-of-month month day-of-week")],
    project: Annotated[str, Parameter(help="The project of the runs")],
    tenant: Tenant,
    actor: Annotated[str, Parameter(help="In whose name the runs are started")],
    zone: Annotated[str, Parameter(help="IANA time zone of the expression")] = "UTC",
    input: Annotated[str | None, Parameter(help="A JSON file, or - for standard input")] = None,
    policy: Annotated[str | None, Parameter(help="A JSON file with the policy")] = None,
    account: Annotated[str | None, Parameter(help="The account that pays")] = None,
    conversation: Annotated[str | None, Parameter(help="The conversation of the runs")] = None,
    overlap: Annotated[
        str, Parameter(help="While an earlier run is at work: skip, queue, cancel_running, allow")
    ] = "skip",
    catch_up: Annotated[str, Parameter(help="Of missed occurrences start: none, last, all")] = "last",
    catch_up_seconds: Annotated[int, Parameter(help="How old a missed occurrence may be")] = 86_400,
    start_at: Annotated[str | None, Parameter(help="No occurrence before this time")] = None,
    end_at: Annotated[str | None, Parameter(help="No occurrence from this time on")] = None,
    data_dir: DataDir = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Make a schedule and print its first occurrence."""
    schedule = Schedule(
        tenant=tenant,
        id=id,
        actor=actor,
        timetable=Timetable(cron, zone),
        template=Template(
            workflow=workflow,
            project=project,
            input=_object("--input", input),
            policy=_object("--policy", policy),
            account=account,
            conversation=conversation,
        ),
        overlap=_one_of("--overlap", overlap, Overlap),
        catch_up=_one_of("--catch-up", catch_up, CatchUp),
        catch_up_seconds=catch_up_seconds,
        start_at=_moment("--start-at", start_at),
        end_at=_moment("--end-at", end_at),
    )
    check_schedule(schedule)  # what is wrong with it is said even where there is no store
    first = _with(data_dir, config, lambda schedules: schedules.create(schedule))
    if json:
        print_json({"id": id, "tenant": tenant, "next_at": first})
    else:
        print_line(f"{id} runs first at {_told(first)}")


@app.command(name="list")
def list_(*, tenant: Tenant, data_dir: DataDir = None, config: Config = None, json: Json = False) -> None:
    """A tenant's schedules."""
    rows = _with(data_dir, config, lambda schedules: schedules.list_schedules(tenant))
    if json:
        print_json([_document(row) for row in rows])
        return
    print_table(
        ("schedule", "cron", "zone", "workflow", "overlap", "catch up", "next", "problem"),
        (
            (
                row.schedule.id,
                row.schedule.timetable.expression,
                row.schedule.timetable.zone,
                row.schedule.template.workflow,
                row.schedule.overlap,
                row.schedule.catch_up,
                "paused" if row.paused_at else _told(row.next_at),
                row.last_problem.title if row.last_problem else "",
            )
            for row in rows
        ),
    )


@app.command
def show(
    id: str, *, tenant: Tenant, data_dir: DataDir = None, config: Config = None, json: Json = False
) -> None:
    """A schedule and what became of its latest occurrences."""

    async def work(schedules: Schedules) -> tuple[ScheduleRow, list[OccurrenceRow]]:
        return await schedules.show(tenant, id), await schedules.occurrences(tenant, id)

    row, occurrences = _with(data_dir, config, work)
    if json:
        print_json({**_document(row), "occurrences": occurrences})
        return
    schedule = row.schedule
    print_line(
        f"{id}  {schedule.timetable.expression}  {schedule.timetable.zone}  {schedule.template.workflow}  "
        f"as {schedule.actor}"
    )
    print_line(
        f"overlap {schedule.overlap}, catch up {schedule.catch_up} within {schedule.catch_up_seconds} s"
    )
    print_line(f"paused since {_told(row.paused_at)}" if row.paused_at else f"next {_told(row.next_at)}")
    if row.last_problem is not None:
        print_line(f"last problem, {_told(row.last_problem_at)}: {row.last_problem.detail}")
    print_table(
        ("occurrence", "state", "origin", "run", "problem"),
        (
            (_told(item.instant), item.state, item.origin, item.run_id, item.problem and item.problem.detail)
            for item in occurrences
        ),
        status_column=1,
    )


@app.command
def pause(
    id: str, *, tenant: Tenant, data_dir: DataDir = None, config: Config = None, json: Json = False
) -> None:
    """Start nothing by the time table until it is resumed."""
    _with(data_dir, config, lambda schedules: schedules.pause(tenant, id))
    _done(json, id, "paused")


@app.command
def resume(
    id: str, *, tenant: Tenant, data_dir: DataDir = None, config: Config = None, json: Json = False
) -> None:
    """Go on; what was missed follows the catch-up policy."""
    _with(data_dir, config, lambda schedules: schedules.resume(tenant, id))
    _done(json, id, "resumed")


@app.command
def backfill(
    id: str,
    *,
    tenant: Tenant,
    since: Annotated[str, Parameter(help="From this time on")],
    until: Annotated[str, Parameter(help="Up to this time, which has passed")],
    data_dir: DataDir = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Start the occurrences of a past range that never were. Asking twice starts nothing twice."""
    first, last = _time("--since", since), _time("--until", until)
    added = _with(data_dir, config, lambda schedules: schedules.backfill(tenant, id, since=first, until=last))
    if json:
        print_json({"id": id, "added": added})
    else:
        print_line(f"{added} occurrences of {id} are on their way")


@app.command
def delete(
    id: str, *, tenant: Tenant, data_dir: DataDir = None, config: Config = None, json: Json = False
) -> None:
    """Forget a schedule. Runs that it started go on."""
    _with(data_dir, config, lambda schedules: schedules.delete(tenant, id))
    _done(json, id, "deleted")


def _with(data_dir: Path | None, config: Path | None, work: Callable[[Schedules], Awaitable[T]]) -> T:
    """Do something to schedules in the database, and tell the schedulers that something may have changed."""
    settings = settings_of(config=config, data_dir=data_dir)

    async def main() -> T:
        async with authority(settings) as pool:
            done = await work(Schedules(PostgresScheduleStore(pool)))
        if settings.nats_url:
            await _ring(settings)
        return done

    return run(main())


async def _ring(settings: Settings) -> None:
    token = str(settings.nats_token) or None
    connection = Connection(ConnectionOptions(servers=(settings.nats_url,), role="cli", token=token))
    await connection.start()
    try:
        if await connection.wait_linked(RING_SECONDS):
            await ring_once(connection, DOORBELL_SCHEDULES)
    finally:
        await connection.stop()


def _object(option: str, name: str | None) -> dict[str, Any]:
    if name is None:
        return {}
    given = read_input(name, option=option)
    if not isinstance(given, dict):
        raise ConfigurationError(f"{option} {name} holds no JSON object; write {{...}}")
    return given


def _one_of(option: str, value: str, allowed: Any) -> Any:
    names = get_args(allowed)
    if value not in names:
        raise ConfigurationError(f"{option} is {value!r}; use one of {', '.join(names)}")
    return value


def _moment(option: str, text: str | None) -> datetime | None:
    return None if text is None else _time(option, text)


def _time(option: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigurationError(f"{option} is {text!r}; write it like 2026-11-30T22:00:00Z") from error
    if moment.tzinfo is None:
        raise ConfigurationError(f"{option} is {text!r} and has no offset; end it with Z or +hh:mm")
    return moment


def _told(moment: datetime | None) -> str:
    return "never" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def _document(row: ScheduleRow) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(row)
    schedule: dict[str, Any] = document.pop("schedule")
    return {**schedule, **document}


def _done(json: bool, id: str, what: str) -> None:
    if json:
        print_json({"id": id, "done": what})
    else:
        print_line(f"{what} {id}")
