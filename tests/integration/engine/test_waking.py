"""Times that come while everybody sleeps: whoever commits a time wakes who must look at it then."""

import asyncio
import json
import uuid
from contextlib import AsyncExitStack
from datetime import datetime

import pytest

from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import ended, fund, runtime, start_run
from longtake import App, Plan
from longtake.engine.dispatcher import Pointers
from longtake.engine.waking import DOORBELL_SWEEPER

IDLE_SECONDS = 30.0
"""How long relay and sweeper sleep here when nobody rings."""
LATE_SECONDS = 5.0


def timed_app() -> App:
    """`nap` sleeps at once, `later` after a step; `ask` takes its default when nobody answers."""
    app = App("timed")

    @app.activity("note@1")
    async def note(call):
        return {}

    @app.workflow("nap", version=1)
    def nap(input, policy):
        return Plan().sleep("rest", seconds=1)

    @app.workflow("later", version=1)
    def later(input, policy):
        return Plan().step("first", activity="note@1").sleep("rest", seconds=1, depends_on=["first"])

    @app.workflow("ask", version=1)
    def ask(input, policy):
        return Plan().input("choose", answer={"type": "object"}, default={"take": 1}, timeout_seconds=1)

    return app


async def _lateness(database, run_id: str) -> float:
    """How long after the gate's time its run went on."""
    connection = await database.connect()
    rows = await connection.fetch(
        "select type, data::jsonb as data, recorded_at from longtake.events where run_id = $1::uuid order by seq",
        run_id,
    )
    gates = next(json.loads(row["data"])["gates"] for row in rows if row["type"] == "gates_opened")
    done = [row["recorded_at"] for row in rows if row["type"] == "step_succeeded"][-1]
    return (done - datetime.fromisoformat(gates[0]["until"])).total_seconds()


@pytest.mark.parametrize("workflow", ["nap", "later", "ask"])
@promise("T43")
async def test_a_gate_with_a_time_ends_at_it_although_everybody_was_asleep(
    database, broker, tmp_path, workflow
):
    async with runtime(database, broker, tmp_path, timed_app(), idle_seconds=IDLE_SECONDS) as process:
        await fund(process)
        receipt = await start_run(process, "one", f"{workflow}@1")

        assert "completed" == (await ended(process, str(receipt.run_id), 20))["status"]
        assert 0 <= await _lateness(database, str(receipt.run_id)) < LATE_SECONDS


async def test_a_sleeper_that_is_not_rung_would_be_late(database, broker, tmp_path):
    """What the test above sees is the ring: without it the time passes, and the run stays where it is."""
    async with runtime(database, broker, tmp_path, timed_app(), idle_seconds=IDLE_SECONDS) as process:
        await fund(process)
        ring = process.doorbell.ring
        process.doorbell.ring = lambda name, **rest: None if name == DOORBELL_SWEEPER else ring(name, **rest)
        receipt = await start_run(process, "one", "later@1")

        with pytest.raises(AssertionError, match="the end of run"):
            await ended(process, str(receipt.run_id), 1 + LATE_SECONDS)


TIMED_RUNS = 100
EARLY = """
select count(*) from longtake.events s join longtake.events g on g.run_id = s.run_id and g.type = 'gates_opened'
where s.type = 'step_succeeded' and s.recorded_at < (g.data->'gates'->0->>'until')::timestamptz
"""
WAKINGS = "select run_id, count(*) from longtake.events where type = 'step_succeeded' group by run_id"


@promise("W45")
async def test_timers_that_three_dispatchers_and_three_sweepers_find_at_once_fire_once_each_and_never_early(
    database, broker, tmp_path
):
    """F55: everybody is told of every run again and again while its time comes."""
    async with AsyncExitStack() as stack:
        processes = [
            await stack.enter_async_context(
                runtime(database, broker, tmp_path / str(number), timed_app(), grace_seconds=0.05)
            )
            for number in range(3)
        ]
        first = processes[0]
        receipts = [await start_run(first, f"nap-{number}", "nap@1") for number in range(TIMED_RUNS)]
        runs = [uuid.UUID(str(receipt.run_id)) for receipt in receipts]
        connection = await database.connect()

        async def over() -> bool:
            await asyncio.gather(
                *(process.dispatcher.handle(Pointers(runs=dict.fromkeys(runs))) for process in processes)
            )
            return await connection.fetchval("select count(*) from longtake.timers") == 0

        await eventually(over, "the end of all timers", 30)
        for run_id in runs:
            await ended(first, str(run_id))

    assert await connection.fetchval(EARLY) == 0
    assert {row["run_id"]: row["count"] for row in await connection.fetch(WAKINGS)} == dict.fromkeys(runs, 1)
