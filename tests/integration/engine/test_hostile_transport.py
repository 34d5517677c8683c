"""Messages doubled, shuffled, stolen, given back, malformed, or too many: every run ends, and each attempt is applied once."""

import asyncio
import random

import pytest

from kit.broker_ruin import declare_by, quick_looks
from kit.echo import Echo
from kit.lone_nats import LoneNats
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import ended, noop_app, runtime, start_run
from kit.transports import barrier
from longtake import Plan
from longtake.jetstream import TopologySettings
from longtake.jetstream.publisher import JetStreamPublisher
from longtake.jetstream.topology import callback_subject, effect_subject

RUNS = 40
STEPS = 4
AUTHORITY = ("api", "relay", "sweeper", "dispatcher")
SUBJECTS = ("longtake.v1.effect.*", "longtake.v1.callback.*")


async def all_end(process, runs: int = RUNS, name: str = "r") -> list[str]:
    """Start so many runs and wait for their ends; the statuses."""
    started = [await start_run(process, f"{name}-{n}", input_={"steps": STEPS}) for n in range(runs)]
    summaries = await asyncio.gather(*(ended(process, str(receipt.run_id), 60) for receipt in started))
    return [summary["status"] for summary in summaries]


async def applied_once(connection, runs: int = RUNS) -> bool:
    """Whether each step of each run has exactly one success, and each effect exactly one claim."""
    rows = await connection.fetch(
        "select run_id, data->>'step' as step, count(*) from longtake.events where type = 'step_succeeded' group by 1, 2"
    )
    return len(rows) == runs * STEPS and {row["count"] for row in rows} == {1}


@pytest.mark.parametrize("seed", [1, 2])
@promise("G28", "G48")
async def test_messages_that_come_again_late_and_shuffled_change_nothing(
    database, broker, tmp_path, seed: int
):
    """F27: three copies of everything, out of a window of fifty."""
    connection = await database.connect()
    async with (
        runtime(database, broker, tmp_path, noop_app(), lease_seconds=30) as process,
        Echo(await broker.connect(), random.Random(seed), subjects=SUBJECTS) as echo,
    ):
        statuses = await all_end(process)
        claims = await connection.fetchval("select count(*) from longtake.effect_claims")
        letters = await connection.fetchval("select count(*) from longtake.dead_letters")

    print(f"seed {seed}: {echo.copies} copies of messages were published again")
    assert echo.copies >= 100
    assert statuses == ["completed"] * RUNS
    assert await applied_once(connection)
    assert claims == RUNS * STEPS, "a copy claims nothing"
    assert letters == 0


@promise("G28")
async def test_a_zombie_that_acks_or_gives_back_what_others_hold_holds_up_no_run(
    database, broker, tmp_path, monkeypatch
):
    """F14, finding 2: half of the pointers are acked by somebody who did nothing, the others are given back twice."""
    declare_by(TopologySettings(effect_ack_wait_seconds=0.5), monkeypatch.setattr)
    connection = await database.connect()
    client = await broker.connect()
    async with runtime(database, broker, tmp_path, noop_app(), roles=AUTHORITY) as process:
        await process.transport.declare()
        starting = [await start_run(process, f"r-{n}", input_={"steps": STEPS}) for n in range(RUNS)]
        await (await process.transport.effects("short")).fetch(limit=1, wait_seconds=0)
        pulling = await client.jetstream().pull_subscribe_bind("effects_short", "LT_EFFECT")
        zombie = await pulling.fetch(8, timeout=10)
        async with runtime(database, broker, tmp_path / "worker", noop_app(), roles=("worker",)):
            # The living holds copies of the same messages by now, or has them settled; the zombie has its say all the same.
            await eventually(lambda: some_succeeded(connection), "the worker works")
            for number, message in enumerate(zombie):
                await (message.ack() if number % 2 else message.nak())
            await barrier(client)
            summaries = await asyncio.gather(*(ended(process, str(r.run_id), 60) for r in starting))

    assert len(zombie) > 0
    assert [summary["status"] for summary in summaries] == ["completed"] * RUNS
    assert await applied_once(connection)


@promise("G28")
async def test_work_that_outlasts_every_ack_wait_is_done_once(database, broker, tmp_path, monkeypatch):
    """F13: the message is acked at the claim; copies that come while the work is under way claim nothing."""
    gate, begun = asyncio.Event(), []
    app = noop_app()

    @app.workflow("slow", version=1)
    def build(input, policy):
        return Plan().step("slow", activity="slow@1", pool="short")

    @app.activity("slow@1", pool="short")
    async def slow(call):
        begun.append(call.attempt)
        await gate.wait()

    client = await broker.connect()
    async with (
        runtime(database, broker, tmp_path, app, lease_seconds=30) as process,
        Echo(client, random.Random(3), subjects=SUBJECTS) as echo,
    ):
        receipt = await start_run(process, "slow", "slow@1")
        await eventually(lambda: begun, "the work has begun")
        await eventually(lambda: echo.copies >= 3, "its pointer came again")
        # Behind the copies in the same stream: when this run has ended, the copies have been taken.
        other = await start_run(process, "behind", input_={"steps": 1})
        assert (await ended(process, str(other.run_id)))["status"] == "completed"
        gate.set()
        summary = await ended(process, str(receipt.run_id))

    assert summary["status"] == "completed"
    assert begun == [1]


@promise("G28")
async def test_a_stream_with_hardly_any_room_delays_and_loses_nothing(
    database, tmp_path, tmp_path_factory, monkeypatch
):
    """F18: what the full stream refuses stays in Postgres and is published when there is room."""
    quick_looks(monkeypatch)
    room = 2_000
    declare_by(TopologySettings(pointer_stream_bytes_max=room), monkeypatch.setattr)
    refused: list[str] = []
    real = JetStreamPublisher.publish

    async def counted(self, messages):
        results = await real(self, messages)
        refused.extend(result.detail for result in results if result.state == "refused")
        return results

    monkeypatch.setattr(JetStreamPublisher, "publish", counted)
    async with (
        LoneNats(tmp_path_factory.mktemp("nats")) as server,
        runtime(database, server, tmp_path, noop_app(), roles=AUTHORITY) as process,
    ):
        started = [await start_run(process, f"r-{n}", input_={"steps": STEPS}) for n in range(RUNS)]
        await process.hints.stop()
        before = len(refused)
        lag = await process.sweep.next_due_seconds(grace_seconds=0.0)
        async with runtime(database, server, tmp_path / "worker", noop_app(), roles=("worker",)):
            summaries = await asyncio.gather(*(ended(process, str(r.run_id), 60) for r in started))

    print(f"{before} messages were refused before there was a worker, {len(refused)} in all")
    assert before > 0
    assert all("maximum bytes exceeded" in detail for detail in refused)
    assert lag is not None, "and the lag is there to be seen"
    assert [summary["status"] for summary in summaries] == ["completed"] * RUNS


BAD_MESSAGES = {
    "no JSON": (b"\xff\xfe", {}),
    "another schema": (b'{"schema_version": 99}', {}),
    "no ids": (b'{"schema_version":1,"epoch":1,"effects":[["x",1,1]]}', {}),
    "giant": (b"[" * 16_000, {}),
    "strange headers": (b"{}", {"traceparent": "00-zz", "Longtake-Copied": "\u00e9" * 50}),
}


@pytest.mark.parametrize("what", BAD_MESSAGES)
@promise("G28")
async def test_a_message_that_nobody_can_read_is_kept_as_a_dead_letter_and_holds_up_nobody(
    database, broker, tmp_path, what: str
):
    """F16, F28: on both streams, between good ones."""
    body, headers = BAD_MESSAGES[what]
    connection, client = await database.connect(), await broker.connect()
    async with runtime(database, broker, tmp_path, noop_app()) as process:
        await process.transport.started()
        for subject in (effect_subject("short"), callback_subject(2)):
            await client.jetstream().publish(subject, body, headers=headers or None)
        statuses = await all_end(process, 5)

        async def letters() -> int:
            return await connection.fetchval("select count(*) from longtake.dead_letters")

        await eventually(lambda: equals(letters, 2), "both are kept")
        rows = await connection.fetch(
            "select source, reason, body from longtake.dead_letters order by source"
        )

    assert statuses == ["completed"] * 5
    assert [(row["source"], row["body"]) for row in rows] == [("dispatcher", body), ("worker", body)]
    assert all(row["reason"].startswith("poison: ") for row in rows)


@pytest.mark.parametrize("flag", [False, True])
async def test_runs_end_whichever_form_of_ack_subject_the_server_speaks(
    database, tmp_path, tmp_path_factory, flag: bool
):
    """F30: our pull consumers work in both."""
    settings = f"feature_flags {{ js_ack_fc_v2: {str(flag).lower()} }}"
    async with (
        LoneNats(tmp_path_factory.mktemp("nats"), settings=settings) as server,
        runtime(database, server, tmp_path, noop_app()) as process,
    ):
        statuses = await all_end(process, 10)
        left = await process.transport.connection.client.jetstream().stream_info("LT_EFFECT")

    assert statuses == ["completed"] * 10
    assert left.state.messages == 0, "the acks were understood"


@promise("G28")
async def test_nobody_holds_a_transaction_open_while_the_broker_stands_still(
    database, tmp_path, tmp_path_factory, monkeypatch
):
    """F08: an open transaction would hold back vacuum and every reader of the feed."""
    async with (
        LoneNats(tmp_path_factory.mktemp("nats")) as server,
        runtime(
            database, server, tmp_path, noop_app(), roles=("api", "relay", "sweeper", "worker")
        ) as process,
    ):
        await process.transport.started()
        publishing: list[int] = []
        real = JetStreamPublisher.publish

        async def counted(self, messages):
            publishing.append(len(messages))
            return await real(self, messages)

        monkeypatch.setattr(JetStreamPublisher, "publish", counted)
        server.freeze()
        receipt = await start_run(process, "frozen", input_={"steps": 1})
        await eventually(lambda: publishing, "somebody publishes into the silence")
        connection = await database.connect()
        held = await open_transactions(connection)
        async with (await database.connect()).transaction():
            planted = await open_transactions(connection)
        server.thaw()

    assert receipt.run_id
    assert held == []
    assert len(planted) == 1, "the question finds one that is there"


@promise("G28")
# --- tools ------------------------------------------------------------------------------------------------------------


async def some_succeeded(connection) -> bool:
    return await connection.fetchval(
        "select exists (select from longtake.events where type = 'step_succeeded')"
    )


async def open_transactions(connection) -> list:
    """Transactions that wait for their own client."""
    return await connection.fetch(
        "select application_name, query from pg_stat_activity where datname = current_database()"
        " and pid <> pg_backend_pid() and state like 'idle in transaction%'"
    )


async def equals(question, answer: int) -> bool:
    return await question() == answer
