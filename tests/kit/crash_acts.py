"""What is done in a cell of the crash matrix: runs that pass its point, until it was passed so often.

Every cell has some runs beside: paid ones, one that a person answers and one that is cancelled. Then rounds of one small
run each follow, each to its end, so that passes cannot fall together; the cell is unreached when ROUNDS_MAX were in vain.
Points that no ordinary run passes have a cell of their own kind.
"""

import asyncio
import signal
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import nats
from nats.errors import Error as NatsError

from kit.crash_nursery import Nursery
from kit.crashing import APP, Cell, Report, Service, Unreached, service
from kit.probe import eventually
from kit.recorded_client import RecordedClient
from kit.runtimes import PRINCIPAL
from longtake.contracts.ids import run_id_for
from longtake.engine.schedules import Schedules
from longtake.postgres.schedules import PostgresScheduleStore
from longtake.settings import ROLES
from longtake.workflow.cron import Timetable
from longtake.workflow.schedule import Schedule, Template

CELL_SECONDS = 60.0
ROUNDS_MAX = 12
ROUNDS_MIN = 2
TRIES_MAX = 20
BESIDE = 2
"""Paid runs that are under way beside the rounds."""
ENDED = ("completed", "failed", "cancelled")

Act = Callable[[Service], Awaitable[None]]
Round = Callable[[Service, RecordedClient, int], Awaitable[None]]


# --- small runs, each to its end ----------------------------------------------------------------------------------------


async def begun(session: RecordedClient, id_: str, workflow: str, input_: Any, **asked: Any) -> str:
    """Start a run, again under the same id until somebody says that it is started."""
    for _ in range(TRIES_MAX):
        accepted = await session.start(id_, workflow, input_, **asked)
        if accepted is not None:
            return str(accepted.run_id)
    raise AssertionError(f"{id_} was not taken {TRIES_MAX} times")


async def told(session: RecordedClient, kind: str, run_id: str, id_: str, **payload: Any) -> None:
    """Send a command about a run as it is, again until it is answered."""
    for _ in range(TRIES_MAX):
        summary = await session.read(run_id)
        if summary is None or summary.status in ENDED:
            continue
        if await session.command(kind, run_id, id_, summary.revision, **payload) is not None:
            return
    raise AssertionError(f"{kind} {id_} was not taken {TRIES_MAX} times")


async def ended(of: Service, session: RecordedClient, run_id: str, status: str = "completed") -> None:
    """Until a run has ended so; its client sees it."""
    await of.status(run_id, *ENDED)
    summary = await session.read(run_id)
    assert summary is not None and summary.status == status, summary


async def reel(of: Service, session: RecordedClient, number: int) -> None:
    """A paid shot."""
    await ended(of, session, await begun(session, f"reel-{number}", "reel@1", {}))


async def copied(of: Service, session: RecordedClient, number: int) -> None:
    """A paid shot, and the relay has copied every command: the next one is copied by another pass."""
    await reel(of, session, number)
    query = "select count(*) = 0 from longtake.commands where copied_at is null and channel = 'http'"
    await eventually(lambda: of.pool.fetchval(query), "the commands to be copied", CELL_SECONDS)


def simple(workflow: str) -> Round:
    """A run of a workflow without a question."""

    async def act(of: Service, session: RecordedClient, number: int) -> None:
        await ended(of, session, await begun(session, f"{workflow}-{number}", f"{workflow}@1", {}))

    return act


async def sent(of: Service, session: RecordedClient, number: int) -> None:
    """A producer publishes a command, and hears of it by its run."""
    id_ = f"sent-{number}"
    command = {
        "kind": "generation",
        "project": "p1",
        "client_command_id": id_,
        "payload": {"workflow": "cutting@1", "input": {}},
    }
    client = await nats.connect(of.broker.url, token=of.broker.token)
    try:

        async def stored() -> bool:
            try:
                await client.jetstream().publish(
                    f"longtake.v1.command.{PRINCIPAL.tenant}.generation",
                    msgspec.json.encode(command),
                    headers={"Nats-Msg-Id": id_, "Longtake-Actor": PRINCIPAL.actor},
                )
            except NatsError:
                return False  # the streams are being made
            return True

        await eventually(stored, "the stream to take a command")
    finally:
        await client.close()
    run_id = run_id_for(tenant=PRINCIPAL.tenant, actor=PRINCIPAL.actor, client_command_id=id_)
    await ended(of, session, str(run_id))


async def voice(of: Service, session: RecordedClient, number: int) -> None:
    """Two runs want one scope; the second begins when the first has ended."""
    first = await begun(session, f"first-{number}", "voice@1", {}, on_conflict="queue")
    second = await begun(session, f"second-{number}", "voice@1", {}, on_conflict="queue")
    for name, run_id in (("first", first), ("second", second)):
        await of.status(run_id, "running")
        await told(session, "send_event", run_id, f"said-{name}-{number}", name="said", payload={})
        await ended(of, session, run_id)


async def occurrence(of: Service, session: RecordedClient, number: int) -> None:
    """One more occurrence of a schedule is made up for."""
    schedules = Schedules(PostgresScheduleStore(of.pool))
    if number == 0:
        await schedules.create(
            Schedule(
                tenant=PRINCIPAL.tenant,
                id="hourly",
                actor=PRINCIPAL.actor,
                timetable=Timetable("0 * * * *", "UTC"),
                template=Template(workflow="cutting@1", project="p1"),
                overlap="allow",
            )
        )
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=48 - number)
    assert 1 == await schedules.backfill(
        PRINCIPAL.tenant, "hourly", since=hour, until=hour + timedelta(minutes=1)
    )

    async def started() -> uuid.UUID | None:
        return next(
            (
                row.run_id
                for row in await schedules.occurrences(PRINCIPAL.tenant, "hourly", limit=100)
                if row.instant == hour
            ),
            None,
        )

    await ended(of, session, str(await eventually(started, "the occurrence to be started")))


async def answered(of: Service, session: RecordedClient, number: int) -> None:
    """A person answers."""
    run_id = await begun(session, f"asked-{number}", "asked@1", {})
    await of.status(run_id, "needs_input")
    await told(session, "provide_input", run_id, f"answer-{number}", step="choose", answer={"ok": True})
    await ended(of, session, run_id)


async def cancelled(of: Service, session: RecordedClient, number: int) -> None:
    """A person changes her mind."""
    run_id = await begun(session, f"regretted-{number}", "asked@1", {})
    await of.status(run_id, "needs_input")
    await told(session, "cancel", run_id, f"cancel-{number}")
    await ended(of, session, run_id, "cancelled")


# --- whole cells ---------------------------------------------------------------------------------------------------------


async def beside(of: Service) -> None:
    """What is under way in every cell."""
    async with asyncio.TaskGroup() as group:
        for number in range(BESIDE):
            group.create_task(reel(of, of.session(f"beside-{number}"), 100 + number))
        group.create_task(answered(of, of.session("answers"), 100))
        group.create_task(cancelled(of, of.session("cancels"), 100))


def rounds(act: Round, *, holding: bool = False) -> Act:
    """Rounds of one run each, beside the others. `holding`: the provider keeps its answers until the blow has fallen."""

    async def cell(of: Service) -> None:
        if holding:
            of.provider.hold()
        await of.begin(armed=True)
        async with asyncio.TaskGroup() as group:
            group.create_task(beside(of))
            if holding:
                for number in range(of.cell.hit):
                    group.create_task(reel(of, of.session(f"more-{number}"), 200 + number))
            session = of.session("rounds")
            number = 0
            while number < ROUNDS_MIN or not of.struck.is_set():
                if number == ROUNDS_MAX:
                    return
                await act(of, session, number)
                # The blow may be falling just now: then another round only makes it later.
                if len(of.passes) >= of.cell.hit:
                    await of.struck.wait()
                number += 1

    return cell


async def leases_end(of: Service) -> None:
    """Workers that hold paid work are killed; the armed process ends their leases."""
    of.provider.hold()
    helper = await of.begin(roles=("worker",))
    await of.begin(armed=True, roles=[role for role in ROLES if role != "worker"])
    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(reel(of, of.session(f"client-{number}"), number))
        await eventually(lambda: of.provider.held == 3, "three requests at the provider")
        await helper.kill()
        await of.struck.wait()
        of.provider.release()
        await of.begin(roles=("worker",))


async def stops(of: Service) -> None:
    """The armed process is told to stop while work of three pools is at the provider."""
    of.provider.hold()
    one = await of.begin(armed=True)
    async with asyncio.TaskGroup() as group:
        session = of.session("client")

        async def wide() -> None:
            await ended(of, session, await begun(session, "wide", "reel@1", {"pools": 3}))

        group.create_task(wide())
        await eventually(lambda: of.provider.held == 3, "three requests at the provider")
        one.signal(signal.SIGTERM)
        await of.struck.wait()


async def deploys(of: Service) -> None:
    """Runs that were planned by an older application are compared when the armed process brings a newer one."""
    zero = await of.begin(app="kit.crash_app:older")
    session = of.session("client")
    runs = [await begun(session, f"asked-{number}", "asked@1", {}) for number in range(3)]
    for run_id in runs:
        await of.status(run_id, "needs_input")
    of.front.refuse()
    zero.signal(signal.SIGTERM)
    await zero.ended()
    await of.begin(armed=True)
    await of.struck.wait()
    for number, run_id in enumerate(runs):
        await told(session, "provide_input", run_id, f"answer-{number}", step="choose", answer={"ok": True})
        await ended(of, session, run_id)


SPECIAL: dict[str, Act] = {
    "expired.before_requeue": leases_end,
    "sigterm.mid_effect": stops,
    "plan_checked.before_mark": deploys,
    "provider_in_flight": rounds(reel, holding=True),
    "heartbeat.mid_tx": rounds(reel, holding=True),
    "pulled.before_decode": rounds(sent),
    "committed.before_ack": rounds(sent),
    "acked": rounds(sent),
    "puback.before_mark": rounds(copied),
    "claimed.before_publish": rounds(simple("crowd")),
    "mid_batch": rounds(simple("crowd")),
    "put_back.before_bell": rounds(simple("crowd")),
    "scan.before_fire": rounds(simple("nap")),
    "child_admitted.before_settle": rounds(simple("family")),
    "scopes_granted.before_commit": rounds(voice),
    "occurrence.before_settle": rounds(occurrence),
}
"""What passes a point that the paid shot does not."""


async def run_cell(
    cell: Cell, nursery: Nursery, database: Any, broker: Any, folder: Path, *, app: str = APP
) -> Report:
    """One cell, from an empty store to its verdict. Raises Unreached."""
    since = time.monotonic()
    async with service(cell, nursery, database, broker, folder, app) as of, AsyncExitStack() as stack:
        if cell.point == "migration.mid":
            await struck_while(of, migrates)
        await of.prepare(stack)
        if cell.point == "migration.mid":
            await of.begin()
            await beside(of)
        else:
            await struck_while(of, SPECIAL.get(cell.point, rounds(reel)))
        await of.served()
        violations, counters = await of.verdict()
        return Report(
            cell=cell,
            passes=len(of.passes),
            runs=counters["runs"],
            charges=counters["charged"],
            violations=violations,
            seconds=time.monotonic() - since,
        )


async def struck_while(of: Service, work: Act) -> None:
    """Do the work; the blow falls when the point is reached. Raises Unreached when it is not."""
    try:
        async with asyncio.timeout(CELL_SECONDS), asyncio.TaskGroup() as group:
            blow = group.create_task(of.strike())
            await work(of)
            if not of.struck.is_set():
                blow.cancel()
    except* TimeoutError:
        raise AssertionError(
            f"{of.cell}: passed {len(of.passes)} times, and no end in {CELL_SECONDS} s"
        ) from None
    if not of.struck.is_set():
        raise Unreached(f"{of.cell}: passed {len(of.passes)} times")


async def migrates(of: Service) -> None:
    """The armed process brings an empty database up to date; another one does it after the blow."""
    of.successor = ("migrate",)
    one = await of.begin(armed=True, roles=("migrate",))
    await of.struck.wait()
    again = await of.begin(roles=("migrate",))
    await one.ended()
    await again.ended()
    of.successor = ROLES
