"""Scopes on real servers: refused, in line, or superseded; times to start; and five hundred starts at once (H54 to H57)."""

import asyncio
import random
import uuid
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import PRINCIPAL, ended, fund, runtime, summary_of
from longtake import App, Plan
from longtake.contracts.commands import Command
from longtake.contracts.events import RunAccepted, RunQueued, SupersedeRequested

API_ONLY = ("api",)
STARTS = 500


def scoped_app() -> App:
    """Runs that own what they are told to, until the gate is opened."""
    app = App("scoped")
    app.gate = asyncio.Event()  # type: ignore[attr-defined]  # the test opens it

    @app.activity("own@1")
    async def own(call: Any) -> None:
        await app.gate.wait()  # type: ignore[attr-defined]  # see above

    @app.workflow("scoped", version=1)
    def build(input: Any, policy: Any) -> Plan:
        return Plan(scopes=tuple(input.get("scopes", ())), on_conflict=input.get("plan", "reject")).step(
            "own", activity="own@1", phase="owning", price=input.get("price", 0)
        )

    return app


async def start(
    process: Any, id_: str, *scopes: str, price: int = 0, plan: str = "reject", **payload: Any
) -> Any:
    command = Command(
        kind="generation",
        project="p1",
        payload={
            "workflow": "scoped@1",
            "input": {"scopes": list(scopes), "price": price, "plan": plan},
            **payload,
        },
        client_command_id=id_,
    )
    return (await process.admission.admit(PRINCIPAL, command, channel="local", traceparent=None)).receipt


async def cancel(process: Any, run_id: str, id_: str) -> Any:
    revision = (await summary_of(process, run_id))["revision"]
    command = Command(
        kind="cancel", project="p1", targets=(run_id,), expected_revision=revision, client_command_id=id_
    )
    return (await process.admission.admit(PRINCIPAL, command, channel="local", traceparent=None)).receipt


async def becomes(process: Any, run_id: str, status: str) -> dict[str, Any]:
    async def there() -> dict[str, Any] | None:
        summary = await summary_of(process, run_id)
        return summary if summary["status"] == status else None

    found: dict[str, Any] = await eventually(there, f"run {run_id} {status}", 20)
    return found


async def history(database: Any, run_id: str, type_: Any) -> Any:
    connection = await database.connect()
    data = await connection.fetchval(
        "select data from longtake.events where run_id = $1 and type = $2", uuid.UUID(run_id), type_.TYPE
    )
    await connection.close()
    return None if data is None else msgspec.json.decode(data, type=type_)


# --- the three policies ------------------------------------------------------------------------------------------------


@promise("H54", "H55")
async def test_a_refusal_names_the_holder_its_phase_and_the_scope(database, broker, tmp_path) -> None:
    async with runtime(database, broker, tmp_path, scoped_app()) as process:
        holder = await start(process, "a", "voice", "music")
        refused = await start(process, "b", "scene:1", "music")
        beside = await start(process, "c", "scene:1")

    assert ("rejected", "scope-conflict") == (refused.status, refused.problem.slug)
    assert holder.run_id in refused.problem.detail
    assert "owning" in refused.problem.detail
    assert ["scope 'music' is held by run " + holder.run_id] == [
        place.message for place in refused.problem.errors
    ]
    assert "running" == beside.status


@pytest.mark.parametrize("by", ["payload", "plan"])
async def test_a_run_in_line_begins_when_its_scopes_are_free(database, broker, tmp_path, by: str) -> None:
    app = scoped_app()
    policy: dict[str, Any] = {"on_conflict": "queue"} if by == "payload" else {"plan": "queue"}
    async with runtime(database, broker, tmp_path, app) as process:
        await fund(process)
        first = await start(process, "a", "x")
        second = await start(process, "b", "x", "y", price=3, **policy)
        third = await start(process, "c", "y", **policy)
        assert ("scheduled", "scheduled") == (second.status, third.status)
        waiting = await summary_of(process, second.run_id)
        assert ("accepted", 0) == (waiting["status"], waiting["cost"]["charged_credits"])
        app.gate.set()
        for receipt in (first, second, third):
            await ended(process, receipt.run_id)

    queued = await history(database, second.run_id, RunQueued)
    assert ((uuid.UUID(first.run_id),), ("x",)) == (queued.holders, queued.scopes)
    connection = await database.connect()
    order = await connection.fetch("select run_id::text as id from longtake.runs order by ended_at")
    assert [first.run_id, second.run_id, third.run_id] == [row["id"] for row in order]
    assert 0 == await connection.fetchval("select count(*) from longtake.scope_queue")
    assert 0 == await connection.fetchval("select count(*) from longtake.scopes")


async def test_a_new_start_does_not_overtake_the_line(database, broker, tmp_path) -> None:
    async with runtime(database, broker, tmp_path, scoped_app()) as process:
        await start(process, "a", "x")
        second = await start(process, "b", "x", "y", on_conflict="queue")
        refused = await start(process, "c", "y")

    assert "rejected" == refused.status
    assert f"Run {second.run_id} was accepted earlier and is in line" in refused.problem.detail


async def test_a_cancelled_run_leaves_the_line_to_those_behind_it(database, broker, tmp_path) -> None:
    app = scoped_app()
    async with runtime(database, broker, tmp_path, app) as process:
        await start(process, "a", "x")
        second = await start(process, "b", "x", "y", on_conflict="queue")
        third = await start(process, "c", "y", on_conflict="queue")
        await cancel(process, second.run_id, "d")
        assert "cancelled" == (await summary_of(process, second.run_id))["status"]

        await becomes(process, third.run_id, "running")


@promise("H53", "H56", "H57")
async def test_scopes_are_names_and_runs_that_share_none_are_active_together(
    database, broker, tmp_path
) -> None:
    """A render owns the media versions it shows; a newer version, another track and a run of no scope go on beside it."""
    async with runtime(database, broker, tmp_path, scoped_app()) as process:
        render = await start(process, "a", "render", "media:clip-1:3")
        beside = [
            await start(process, f"b{number}", *scopes)
            for number, scopes in enumerate(
                [("media:clip-1:4",), ("voice",), ("music",), ("scene:7",), ("full_generation",), ()]
            )
        ]
        same = await start(process, "c", "media:clip-1:3")

    assert {"running"} == {receipt.status for receipt in beside}
    assert "rejected" == same.status
    assert render.run_id in same.problem.detail


async def test_a_successor_begins_when_the_run_it_supersedes_has_settled_and_both_say_so(
    database, broker, tmp_path
) -> None:
    app = scoped_app()
    async with runtime(database, broker, tmp_path, app) as process:
        await fund(process)
        holder = await start(process, "a", "x", price=2)
        await eventually(lambda: _claimed(database, holder.run_id), "the holder works", 20)
        successor = await start(process, "b", "x", price=3, on_conflict="supersede")
        assert "scheduled" == successor.status
        await becomes(process, holder.run_id, "cancelling")
        assert "accepted" == (await summary_of(process, successor.run_id))["status"], (
            "the holder is at work still"
        )
        app.gate.set()
        await ended(process, successor.run_id)

        assert "superseded" == (await summary_of(process, holder.run_id))["status"]
        assert "completed" == (await summary_of(process, successor.run_id))["status"]
    asked = await history(database, holder.run_id, SupersedeRequested)
    accepted = await history(database, successor.run_id, RunAccepted)
    assert uuid.UUID(successor.run_id) == asked.by_run
    assert (uuid.UUID(holder.run_id),) == accepted.supersedes


async def _claimed(database: Any, run_id: str) -> bool:
    connection = await database.connect()
    count = await connection.fetchval(
        "select count(*) from longtake.effect_claims where run_id = $1", uuid.UUID(run_id)
    )
    await connection.close()
    return bool(count)


# --- times -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scopes", [(), ("x",)])
async def test_a_run_with_a_time_begins_at_it(database, broker, tmp_path, scopes: tuple[str, ...]) -> None:
    app = scoped_app()
    app.gate.set()
    at = datetime.now(UTC) + timedelta(seconds=1)
    async with runtime(database, broker, tmp_path, app) as process:
        receipt = await start(process, "a", *scopes, start_at=at.isoformat())
        assert "scheduled" == receipt.status
        between = await start(process, "b", *scopes)
        assert "running" == between.status, "before its time it keeps nobody from beginning"
        summary = await ended(process, receipt.run_id)

    assert "completed" == summary["status"]
    connection = await database.connect()
    began = await connection.fetchval(
        "select recorded_at from longtake.events where run_id = $1 and type = 'run_started'",
        uuid.UUID(receipt.run_id),
    )
    assert at <= began


@promise("H55")
async def test_a_successor_with_a_time_names_whom_it_superseded_when_that_came_and_they_name_it(
    database, broker, tmp_path
) -> None:
    app = scoped_app()
    at = datetime.now(UTC) + timedelta(seconds=1)
    async with runtime(database, broker, tmp_path, app) as process:
        successor = await start(process, "a", "x", on_conflict="supersede", start_at=at.isoformat())
        holder = await start(process, "b", "x")
        assert ("scheduled", "running") == (successor.status, holder.status)
        await eventually(lambda: _claimed(database, holder.run_id), "the holder works", 20)
        await becomes(process, holder.run_id, "cancelling")
        waiting = await summary_of(process, successor.run_id)
        assert ("accepted", f"Waits for run {holder.run_id}") == (waiting["status"], waiting["label"])
        app.gate.set()
        await ended(process, successor.run_id)
        assert "superseded" == (await summary_of(process, holder.run_id))["status"]

    connection = await database.connect()
    asked = await history(database, holder.run_id, SupersedeRequested)
    rows = await connection.fetch(
        "select type, data, recorded_at from longtake.events where run_id = $1 order by seq",
        uuid.UUID(successor.run_id),
    )
    await connection.close()
    assert ["run_accepted", "run_queued", "run_queued", "run_started"] == [row["type"] for row in rows[:4]]
    named = msgspec.json.decode(rows[2]["data"], type=RunQueued)
    only = (uuid.UUID(holder.run_id),)
    assert (only, only, ("x",)) == (named.holders, named.supersedes, named.scopes)
    assert uuid.UUID(successor.run_id) == asked.by_run
    assert at <= rows[2]["recorded_at"]


# --- five hundred at once ----------------------------------------------------------------------------------------------


@promise("H54")
async def test_five_hundred_concurrent_starts_share_no_scope_and_every_refusal_names_a_real_holder(
    database, broker, tmp_path
) -> None:
    draw = random.Random(7)
    async with (
        runtime(database, broker, tmp_path / "a", scoped_app(), roles=API_ONLY) as one,
        runtime(database, broker, tmp_path / "b", scoped_app(), roles=API_ONLY) as other,
    ):
        wanted = [draw.sample([f"s{n}" for n in range(60)], draw.randint(1, 3)) for _ in range(STARTS)]
        receipts = await asyncio.gather(
            *(start((one, other)[n % 2], f"c{n}", *scopes) for n, scopes in enumerate(wanted))
        )

    connection = await database.connect()
    held = {
        (row["scope"], str(row["run_id"]))
        for row in await connection.fetch("select scope, run_id from longtake.scopes")
    }
    began = [n for n, receipt in enumerate(receipts) if receipt.status == "running"]
    owned = [scope for n in began for scope in wanted[n]]
    assert len(owned) == len(set(owned)) == len(held)
    refused = [receipt for receipt in receipts if receipt.status == "rejected"]
    assert STARTS == len(began) + len(refused)
    for receipt in refused:
        assert "scope-conflict" == receipt.problem.slug
        for place in receipt.problem.errors:
            _, scope, rest = place.message.split("'")
            assert (scope, rest.removeprefix(" is held by run ")) in held


def shared(spans: dict[str, list[tuple[datetime, datetime]]]) -> list[str]:
    """Scopes that two runs held at a time, by (since, until)."""
    return [
        scope
        for scope, held in spans.items()
        if any(earlier[1] > later[0] for earlier, later in pairwise(sorted(held)))
    ]


def test_two_holders_at_a_time_would_be_seen() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    second = timedelta(seconds=1)

    assert [] == shared({"x": [(at, at + second), (at + second, at + 2 * second)]})
    assert ["x"] == shared({"x": [(at, at + 2 * second), (at + second, at + 3 * second)]})


async def test_five_hundred_starts_in_line_and_superseding_all_end_and_never_share_a_scope(
    database, broker, tmp_path
) -> None:
    """Every third start supersedes. The histories tell when each run held its scopes."""
    draw = random.Random(11)
    app = scoped_app()
    app.gate.set()
    async with runtime(database, broker, tmp_path, app) as process:
        wanted = {
            f"c{n}": draw.sample([f"s{n}" for n in range(40)], draw.randint(1, 3)) for n in range(STARTS)
        }
        receipts = await asyncio.gather(
            *(
                start(process, id_, *scopes, on_conflict="queue" if number % 3 else "supersede")
                for number, (id_, scopes) in enumerate(wanted.items())
            )
        )
        assert {"running", "scheduled"} >= {receipt.status for receipt in receipts}
        connection = await database.connect()

        async def over() -> bool:
            left = await connection.fetchval("select count(*) from longtake.runs where ended_at is null")
            return bool(left == 0)

        await eventually(over, "all runs have ended", 120)

    assert 0 == await connection.fetchval("select count(*) from longtake.scope_queue")
    rows = await connection.fetch(
        "select r.command_id, r.status, min(e.recorded_at) filter (where e.type in ('run_started')) as granted, "
        "min(e.recorded_at) filter (where e.type = 'run_accepted') as accepted, "
        "bool_or(e.type = 'run_queued') as queued, max(e.recorded_at) as ended "
        "from longtake.runs r join longtake.events e using (run_id) group by 1, 2"
    )
    spans: dict[str, list[tuple[datetime, datetime]]] = {}
    for row in rows:
        since = row["granted"] if row["queued"] else row["accepted"]
        if since is not None:
            for scope in wanted[row["command_id"]]:
                spans.setdefault(scope, []).append((since, row["ended"]))
    assert [] == shared(spans)
    assert {"completed", "superseded"} >= {row["status"] for row in rows}
