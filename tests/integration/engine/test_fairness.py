"""The relay as flow controller: windows, turns by tenant, and work that nobody can do (P12, G42)."""

import uuid
from typing import Any

import httpx2
import msgspec

from kit.hand_work import Bench
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import ended, runtime, start_run, summary_of
from longtake import App, Plan
from longtake.contracts.commands import Command
from longtake.contracts.principal import Principal
from longtake.postgres.keys import PostgresKeyStore
from longtake.store import WINDOW_FACTOR, WINDOW_MIN

CROWD = 1000
WINDOW = 64
"""Of the default pool in these tests: nobody announces slots."""


def crowd_app(*, without: str = "") -> App:
    """A plan that is as wide as it is told to be."""
    app = App("crowd")
    app.calls = []  # type: ignore[attr-defined]  # what was worked on, by run

    @app.workflow("wide", version=1)
    def wide(input: Any, policy: Any) -> Plan:
        plan = Plan(max_parallel=1000, scopes=tuple(input.get("scopes", ())))
        for number in range(input["steps"]):
            plan = plan.step(f"s:{number}", activity="s@1", priority=input.get("priority", 0))
        return plan

    if without != "s@1":

        @app.activity("s@1")
        async def work(call: Any) -> None:
            app.calls.append(call.run_id)  # type: ignore[attr-defined]  # see above

    return app


async def start_as(process: Any, tenant: str, id_: str, *, on_conflict: str = "reject", **input_: Any) -> str:
    command = Command(
        kind="generation",
        project="p1",
        payload={"workflow": "wide@1", "input": input_, "on_conflict": on_conflict},
        client_command_id=id_,
    )
    principal = Principal(tenant=tenant, actor="tester")
    answer = await process.admission.admit(principal, command, channel="local", traceparent=None)
    run_id: str = answer.receipt.run_id
    return run_id


async def published(database: Any) -> dict[str, int]:
    """Unclaimed effects that stand published, by tenant."""
    connection = await database.connect()
    rows = await connection.fetch(
        "select tenant_id, count(*) as n from longtake.effects where published_at is not null group by 1"
    )
    await connection.close()
    return {row["tenant_id"]: row["n"] for row in rows}


@promise("G42")
async def test_a_crowd_of_one_tenant_does_not_keep_another_waiting_for_more_than_a_window(
    database, broker, tmp_path
) -> None:
    """A thousand effects of one tenant stand before the first of another; a worker takes one window, and it is there."""
    async with runtime(database, broker, tmp_path, crowd_app(), roles=("api", "relay")) as process:
        bench = await Bench.open(process)
        await start_as(process, "crowd", "c1", steps=CROWD)
        assert {"crowd": WINDOW} == await published(database), "no more than the window is published"
        await start_as(process, "other", "c2", steps=1)
        assert {"crowd": WINDOW} == await published(database), "the window is full for everybody"
        standing = await bench.pool.fetch(
            "select id, attempt from longtake.effects where published_at is not null order by id"
        )
        await bench.effects.claim(
            claim_id=uuid.uuid4(),
            effects=[(row["id"], row["attempt"]) for row in standing],
            limit=WINDOW,
            owner="hand",
            lease_seconds=30,
        )
        process.doorbell.ring("relay")

        async def there() -> bool:
            return (await published(database)).get("other") == 1

        await eventually(there, "the other tenant's effect is published", 20)
        await bench.close()


@promise("G42")
async def test_a_run_that_begins_from_the_line_publishes_no_more_than_the_window_takes(
    database, broker, tmp_path
) -> None:
    async with runtime(database, broker, tmp_path, crowd_app(), roles=("api",)) as process:
        holder = await start_as(process, "a", "c1", steps=1, scopes=["voice"])
        crowd = await start_as(process, "a", "c2", steps=4 * WINDOW, scopes=["voice"], on_conflict="queue")
        cancel = Command(
            kind="cancel",
            project="p1",
            targets=(holder,),
            expected_revision=2,
            client_command_id="c3",
        )
        principal = Principal(tenant="a", actor="tester")
        await process.admission.admit(principal, cancel, channel="local", traceparent=None)
        connection = await database.connect()

        async def begun() -> Any:
            return await connection.fetchrow(
                "select count(*) as made, count(published_at) as told from longtake.effects where run_id = $1 "
                "having count(*) > 0",
                uuid.UUID(crowd),
            )

        effects = await eventually(begun, "the run in line has begun", 20)
        await connection.close()

    assert 4 * WINDOW == effects["made"]
    assert WINDOW - 1 <= effects["told"] <= WINDOW, "what the cancelled run had published may still count"


async def test_whatever_waits_goes_by_priority_and_then_in_turn_by_tenant(database, broker, tmp_path) -> None:
    async with runtime(database, broker, tmp_path, crowd_app(), roles=("api",)) as process:
        for tenant in ("a", "b", "c"):
            await start_as(process, tenant, tenant, steps=30)
        await start_as(process, "z", "z", steps=2, priority=5)
        connection = await database.connect()
        await connection.execute("update longtake.effects set published_at = null")
        pointers = await process.sweep.due_pointers(limit=20, grace_seconds=1, oldest={}, all_lost=False)
        rows = await connection.fetch("select id, tenant_id from longtake.effects")
        owner = {row["id"]: row["tenant_id"] for row in rows}
        order = [owner[pointer.id] for pointer in pointers]

    assert ["z", "z"] == order[:2]
    assert all({"a", "b", "c"} == set(order[at : at + 3]) for at in range(2, 20, 3))


async def test_a_window_is_as_large_as_the_slots_that_workers_announce(database, broker, tmp_path) -> None:
    async with runtime(database, broker, tmp_path, crowd_app(), slots=40) as process:
        assert WINDOW_FACTOR * 40 == (await process.sweep.room())["default"]
        assert WINDOW_MIN < WINDOW_FACTOR * 40


async def test_a_crowd_that_is_held_back_is_worked_to_its_end(database, broker, tmp_path) -> None:
    app = crowd_app()
    async with runtime(database, broker, tmp_path, app, slots=8) as process:
        receipt = await start_run(process, "c1", "wide@1", {"steps": 600})
        await ended(process, receipt.run_id, 60)

    assert 600 == len(app.calls)


async def test_a_run_that_is_held_back_says_that_it_waits_for_a_slot(database, broker, tmp_path) -> None:
    """P20: derived at each reading and no part of the ETag; a run of which something is out does not say so."""
    async with runtime(database, broker, tmp_path, crowd_app(), roles=("api", "relay")) as process:
        bench = await Bench.open(process)
        made = await PostgresKeyStore(bench.pool).create(tenant="other", actor="tester", roles=("producer",))
        crowd = await start_as(process, "crowd", "c1", steps=2 * WINDOW)
        other = await start_as(process, "other", "c2", steps=1)
        url = f"{process.api_server.url}/v1/runs/{other}/summary"
        async with httpx2.AsyncClient(
            trust_env=False, headers={"Authorization": f"Bearer {made.text}"}
        ) as http:
            held = await http.get(url)
            row = await process.reads.summary("crowd", uuid.UUID(crowd))
            assert row is not None and not row["held"], "a window of it is published"
            await bench.pool.execute(
                "update longtake.effects set state = 'leased' where published_at is not null"
            )
            room = await http.get(url)
            process.doorbell.ring("relay")

            async def there() -> bool:
                return (await published(database)).get("other") == 1

            await eventually(there, "the other tenant's effect is published", 20)
            out = await http.get(url)
            again = await http.get(url, headers={"If-None-Match": held.headers["etag"]})
        await bench.close()

    stored = msgspec.json.decode(row["summary"])["label"]
    assert held.json()["label"] == "Waiting for a slot"
    assert [room.json()["label"], out.json()["label"]] == [stored, stored] != ["Waiting for a slot"] * 2
    assert held.headers["etag"] == out.headers["etag"]
    assert again.status_code == 304


# --- stalls ------------------------------------------------------------------------------------------------------------


@promise("G42")
async def test_work_that_nobody_can_do_says_what_it_waits_for_until_somebody_can(
    database, broker, tmp_path
) -> None:
    authority = ("api", "dispatcher", "relay", "sweeper")
    app = crowd_app()
    async with runtime(
        database, broker, tmp_path / "a", app, roles=authority, stall_seconds=1.0, idle_seconds=0.3
    ) as process:
        receipt = await start_run(process, "c1", "wide@1", {"steps": 1})

        async def stalled() -> dict[str, Any] | None:
            summary = await summary_of(process, receipt.run_id)
            return summary if summary["blockers"] else None

        summary: dict[str, Any] = await eventually(stalled, "the stall is told", 20)
        [blocker] = summary["blockers"]
        assert ("no_worker", "s:0") == (blocker["type"], blocker["step"])
        assert "s@1" in msgspec.json.encode(blocker).decode()
        async with runtime(database, broker, tmp_path / "b", app, roles=("worker",)):
            done = await ended(process, receipt.run_id)
        assert "completed" == done["status"]
