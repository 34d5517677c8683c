"""Streams and consumers are ruined under runs in flight, in every way there is, and every run ends (F04, F09 to F12).

Each case says how much it really took, so that no case passes because nothing happened.
"""

import asyncio

import pytest

from kit.broker_ruin import (
    Ruin,
    delete_consumers,
    delete_streams,
    narrow_consumers,
    pause_consumers,
    purge_streams,
    quick_looks,
    recreate_streams,
    reset_consumers,
)
from kit.lone_nats import LoneNats
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import ended, noop_app, runtime, start_run

RUNS = 30
STEPS = 4
HOURS = 600.0
AUTHORITY = ("api", "relay", "sweeper", "dispatcher")


@pytest.mark.parametrize(
    "ruin",
    [
        delete_streams,
        recreate_streams,
        purge_streams,
        delete_consumers,
        pause_consumers,
        narrow_consumers,
        reset_consumers,
    ],
)
@promise("G28", "H83")
async def test_whatever_is_ruined_every_run_ends_and_no_step_is_done_twice(
    database, broker, tmp_path, monkeypatch, ruin: Ruin
):
    quick_looks(monkeypatch)
    client = await broker.connect()
    connection = await database.connect()
    async with runtime(database, broker, tmp_path, noop_app(), roles=AUTHORITY) as process:
        runs = [(await start_run(process, f"r-{n}", input_={"steps": STEPS})).run_id for n in range(RUNS)]
        stored = await eventually(lambda: messages(client, "LT_EFFECT"), "pointers stand in the stream")
        first = await ruin(client)
        async with runtime(database, broker, tmp_path / "worker", noop_app(), roles=("worker",)):
            # Once more while the first results come in, so that doorbells are hit as well as pointers.
            await eventually(lambda: applied(connection), "some step is applied", 40)
            again = await ruin(client)
            summaries = await asyncio.gather(*(ended(process, run_id, 60) for run_id in runs))
    events = await connection.fetch(
        "select run_id, count(*) from longtake.events where type = 'step_succeeded' group by run_id"
    )

    print(f"{ruin.__name__}: {stored} pointers stood; touched {first}, then {again}")
    assert first > 0
    assert [summary["status"] for summary in summaries] == ["completed"] * RUNS
    assert [row["count"] for row in events] == [STEPS] * RUNS


@promise("G48", "G49")
async def test_what_a_power_loss_took_is_published_again_under_a_new_epoch(
    database, tmp_path, tmp_path_factory, monkeypatch
):
    """F04. With a grace of hours only the sequence that went back can be the reason."""
    quick_looks(monkeypatch)
    async with (
        LoneNats(tmp_path_factory.mktemp("nats")) as server,
        runtime(database, server, tmp_path, noop_app(), roles=AUTHORITY, grace_seconds=HOURS) as process,
    ):
        runs, lost = await started_and_lost(process, server)
        connection = await database.connect()
        epoch = "select transport_epoch from longtake.store"
        await eventually(lambda: more_than(connection, epoch, 1), "the epoch to rise")
        async with runtime(
            database, server, tmp_path / "worker", noop_app(), roles=("worker",), grace_seconds=HOURS
        ):
            summaries = await asyncio.gather(*(ended(process, run_id, 40) for run_id in runs))

    print(f"power loss: {lost} acknowledged messages were lost")
    assert lost > 0
    assert {summary["status"] for summary in summaries} == {"completed"}


async def test_without_the_sequences_nobody_would_know_of_a_power_loss(
    database, tmp_path, tmp_path_factory, monkeypatch
):
    """The control of the test above: the loss is noticed, nobody raises the epoch, and no pointer is published again."""
    quick_looks(monkeypatch)
    noticed: list[tuple[str, ...]] = []

    async def ignore(_guard, streams) -> None:
        noticed.append(streams)

    monkeypatch.setattr("longtake.engine.streams.StreamGuard.behind", ignore)
    async with (
        LoneNats(tmp_path_factory.mktemp("nats")) as server,
        runtime(database, server, tmp_path, noop_app(), roles=AUTHORITY, grace_seconds=HOURS) as process,
    ):
        _, lost = await started_and_lost(process, server)
        await eventually(lambda: noticed, "the transport has noticed")
        await process.sweep.identity()
        due = await process.sweep.due_pointers(
            limit=RUNS, grace_seconds=HOURS, oldest={"short": None}, all_lost=False
        )
        generations = await (await database.connect()).fetch(
            "select distinct generation from longtake.effects"
        )

    assert lost > 0
    assert due == []
    assert [row["generation"] for row in generations] == [1]


# --- tools ------------------------------------------------------------------------------------------------------------


async def started_and_lost(process, server) -> tuple[list[str], int]:
    """Start runs whose pointers are all in the stream, and take the stream back to before them."""
    assert await process.transport.wait_ready(10)
    server.save()
    runs = [(await start_run(process, f"r-{n}", input_={"steps": STEPS})).run_id for n in range(RUNS)]

    await process.hints.stop()  # which waits for what was not waited for
    before = await messages(process.transport.connection.client, "LT_EFFECT")
    await server.lose_power()
    assert await process.transport.connection.wait_linked(10)
    return runs, before


async def messages(client, stream: str) -> int:
    return (await client.jetstream().stream_info(stream)).state.messages


async def applied(connection) -> bool:
    return await connection.fetchval(
        "select exists (select from longtake.events where type = 'step_succeeded')"
    )


async def more_than(connection, question: str, floor: int) -> bool:
    return await connection.fetchval(question) > floor
