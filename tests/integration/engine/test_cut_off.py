"""Relays whose backends are ended at random, and leases that live on while rows are locked and pools empty (F07, F53)."""

import asyncio
import random
import uuid
from contextlib import AsyncExitStack, suppress

import asyncpg
import pytest

from kit.probe import eventually
from kit.runtimes import ended, runtime, start_run
from longtake import App, Plan
from longtake.bootstrap import Runtime

RELAYS = 4
RUNS = 3
STEPS = 200
"""Far more than a window: the relays publish what does not fit."""
BLOWS = 30
BACKENDS = """
select pid from pg_stat_activity
where datname = current_database() and application_name = 'longtake relay' and pid <> pg_backend_pid()
"""


def wide_app() -> App:
    """Steps side by side that do nothing."""
    app = App("wide")

    @app.workflow("wide", version=1)
    def wide(input, policy):
        plan = Plan(max_parallel=1000)
        for number in range(STEPS):
            plan = plan.step(f"s:{number}", activity="s@1")
        return plan

    @app.activity("s@1")
    async def s(call):
        return None

    return app


async def test_four_relays_whose_backends_are_ended_at_random_lose_no_row(database, broker, tmp_path):
    """F07: nothing rests on a lock that is lost with its connection; each step is done, and no effect is claimed twice."""
    chance, struck = random.Random(7), 0
    relays: list[Runtime] = []
    others = ("api", "dispatcher", "sweeper", "worker")
    async with AsyncExitStack() as stack:
        process = await stack.enter_async_context(
            runtime(
                database, broker, tmp_path / "others", wide_app(), roles=others, lease_seconds=300, slots=8
            )
        )
        for number in range(RELAYS):
            folder = tmp_path / f"relay-{number}"
            relays.append(
                await stack.enter_async_context(runtime(database, broker, folder, None, roles=("relay",)))
            )
        connection = await database.connect()
        stack.push_async_callback(connection.close)
        begun = [await start_run(process, f"r-{number}", "wide@1") for number in range(RUNS)]
        ending = asyncio.gather(*(ended(process, receipt.run_id, 60) for receipt in begun))
        while struck < BLOWS:
            pids = [row["pid"] for row in await connection.fetch(BACKENDS)]
            if pids:
                struck += await connection.fetchval(
                    "select pg_terminate_backend($1)::int", chance.choice(pids)
                )
            # Hints wake the relays; what they pass over while they are cut off must be found again.
            process.doorbell.ring("relay")
            await asyncio.sleep(chance.uniform(0.0, 0.1))
        summaries = await ending
        published = await connection.fetchval(
            "select count(*) from longtake.effects where incarnation = any($1)",
            [relay.incarnation for relay in relays],
        )
        done = await connection.fetchrow(
            "select count(*) as all, count(distinct (run_id, data->>'step')) as steps from longtake.events "
            "where type = 'step_succeeded'"
        )
        claims = await connection.fetchrow(
            "select count(*) as all, count(distinct effect_id) as effects from longtake.effect_claims"
        )

    print(f"{struck} backends ended; {published} of {RUNS * STEPS} effects published by relays")
    assert struck == BLOWS
    assert published > 0
    assert {summary["status"] for summary in summaries} == {"completed"}
    assert (done["all"], done["steps"]) == (RUNS * STEPS, RUNS * STEPS)
    assert (claims["all"], claims["effects"]) == (RUNS * STEPS, RUNS * STEPS)


def waiting_app() -> App:
    """A step that lasts until it is told to end."""
    app = App("waiting")
    app.go = asyncio.Event()  # type: ignore[attr-defined]  # the test's own

    @app.workflow("wait", version=1)
    def wait(input, policy):
        return Plan().step("w", activity="w@1")

    @app.activity("w@1")
    async def w(call):
        await app.go.wait()  # type: ignore[attr-defined]  # see above

    return app


async def test_a_lease_lives_on_while_the_row_of_its_run_is_locked_and_every_pool_is_empty(
    database, broker, tmp_path
):
    """F53: the beat has a connection of its own and asks for no row but the lease's. A sweeper would end the lease else."""
    app = waiting_app()
    async with AsyncExitStack() as stack:
        worker = await stack.enter_async_context(
            runtime(database, broker, tmp_path / "worker", app, roles=("worker",))
        )
        process = await stack.enter_async_context(
            runtime(
                database,
                broker,
                tmp_path / "others",
                app,
                roles=("api", "dispatcher", "relay", "sweeper"),
            )
        )
        receipt = await start_run(process, "w-1", "wait@1")
        connection, locking = await database.connect(), await database.connect()
        stack.push_async_callback(connection.close)
        stack.push_async_callback(locking.close)

        async def leased():
            return await connection.fetchrow("select * from longtake.effects where state = 'leased'")

        before = await eventually(leased, "the claim")
        run = "select from longtake.runs where run_id = $1 for update"
        async with AsyncExitStack() as blocked:
            await blocked.enter_async_context(locking.transaction())
            await locking.execute(run, uuid.UUID(receipt.run_id))
            taken = 0
            for pool in worker._pools:
                with suppress(TimeoutError):
                    while True:
                        held = await pool.acquire(timeout=0.2)
                        blocked.push_async_callback(pool.release, held)
                        taken += 1
            assert taken > 0
            # The broken variants: what asks for the run's row, or for a connection of a pool, would stand still here.
            with pytest.raises(asyncpg.LockNotAvailableError):
                await connection.execute(run + " nowait", uuid.UUID(receipt.run_id))
            for pool in worker._pools:
                with pytest.raises(TimeoutError):
                    await pool.acquire(timeout=0.05)
            since = await connection.fetchval("select clock_timestamp()")

            async def outlived():
                row = await leased()
                return row if row and (row["heartbeat_at"] - since).total_seconds() > 4 else None

            after = await eventually(outlived, "beats for longer than two leases", 30)
            assert (after["fence"], after["claim_id"]) == (before["fence"], before["claim_id"])
        app.go.set()
        assert (await ended(process, receipt.run_id))["status"] == "completed"
        assert await connection.fetchval("select count(*) from longtake.effect_claims") == 1
