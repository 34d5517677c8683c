"""Hints that were lost, doubled, or never sent: the rows they were about are found all the same (F01, F05, F10)."""

import asyncio
import uuid
from types import SimpleNamespace

import pytest

from kit.broker_ruin import quick_looks
from kit.hand_work import Bench
from kit.instance import instance
from kit.probe import eventually
from kit.promises import promise
from kit.proxy import TcpProxy
from kit.runtimes import ended, noop_app, runtime, start_run
from kit.witnessing import WITNESS, app, times, witnessed
from longtake.contracts.pointers import EffectPointers, encode_pointers, message_id
from longtake.engine.repeating import RepeatingPublisher
from longtake.engine.waking import DOORBELL_RELAY
from longtake.ports import OutgoingMessage

HOURS = 600.0
"""A grace that never ends during a test: whatever is published again has another reason."""
BIRTH = "select created from longtake.transport_identity where stream = 'LT_COMMAND'"
NOWHERE = "nats://127.0.0.1:9"


@promise("H31", "G58", "T41")
async def test_what_a_killed_process_committed_and_never_published_is_published_at_once(
    database, broker, tmp_path, monkeypatch
):
    """F01: its commit marks the pointers as published by it, and then there was nobody to publish to."""
    witness = tmp_path / "witness"
    monkeypatch.setenv(WITNESS, str(witness))
    async with instance(
        database, broker, tmp_path / "dead", witness=witness, roles=("api",), nats_url=NOWHERE, start="unsaid"
    ) as admitting:
        run_id = admitting.run_id
        await admitting.kill()
    connection = await database.connect()
    marked = await connection.fetchrow("select published_at, incarnation, generation from longtake.effects")
    assert marked["published_at"] is not None

    # The lock of the data directory is ours, so whoever else is in the store's list is dead.
    async with runtime(
        database, broker, tmp_path / "next", app, sole_owner=True, grace_seconds=HOURS
    ) as process:
        summary = await ended(process, run_id, 15)

    assert summary["status"] == "completed"
    assert set(times(witnessed(witness)).values()) == {1}
    first = await connection.fetchrow(
        "select generation, incarnation from longtake.effects where step = 'link:0'"
    )
    assert first["generation"] == marked["generation"] + 1
    assert first["incarnation"] == process.incarnation


async def test_the_pointers_of_a_living_process_are_left_to_it(database, broker, tmp_path):
    """The other side of F01: without a death nothing is published twice."""
    async with runtime(database, broker, tmp_path, noop_app(), roles=("api",)) as process:
        await start_run(process, "alive")
        none = await process.sweep.due_pointers(limit=9, grace_seconds=HOURS, oldest={}, all_lost=False)
        connection = await database.connect()
        await connection.execute("update longtake.incarnations set alive_until = '-infinity'")
        due = await process.sweep.due_pointers(limit=9, grace_seconds=HOURS, oldest={}, all_lost=False)

    assert none == []
    assert [pointer.generation for pointer in due] == [2]


@promise("G49", "G48")
async def test_a_message_that_was_acked_without_work_is_published_under_another_id(
    database, broker, tmp_path
):
    """F05: the stream's de-duplication must not swallow the second publication."""
    async with runtime(database, broker, tmp_path, noop_app(), roles=("api",)) as process:
        receipt = await start_run(process, "swallowed", input_={"steps": 1})
        subscription = await process.transport.effects("short")
        (delivery,) = await subscription.fetch(limit=1, wait_seconds=10)
        first = delivery.headers["Nats-Msg-Id"]
        body = delivery.body
        await delivery.ack(sync=True)
        await subscription.close()
        again = OutgoingMessage(
            subject="longtake.v1.effect.short", body=body, stream="LT_EFFECT", message_id=first
        )
        assert [r.state for r in await process.transport.publisher.publish([again])] == ["duplicate"]

        async with runtime(
            database, broker, tmp_path / "rest", noop_app(), roles=("relay", "worker", "dispatcher")
        ):
            summary = await ended(process, str(receipt.run_id), 20)

        generation = await (await database.connect()).fetchval("select generation from longtake.effects")

    assert summary["status"] == "completed"
    assert generation == 2
    ids = [message_id(body)] + [
        message_id(encode_pointers(EffectPointers(epoch=1, effects=((uuid.UUID(int=1), 1, generation),))))
        for generation in (1, 2)
    ]
    assert ids[0] == first
    assert ids[1] != ids[2]


@pytest.mark.parametrize("deleted", ["LT_EFFECT", "LT_CALLBACK"])
@promise("H83", "G28")
async def test_a_deleted_stream_raises_the_epoch_and_everything_open_is_published_again(
    database, broker, tmp_path, deleted
):
    """F10: with a grace of hours only the new epoch can be the reason."""
    patient = {"grace_seconds": HOURS}
    async with runtime(
        database, broker, tmp_path, noop_app(), roles=("api", "relay", "sweeper", "dispatcher"), **patient
    ) as process:
        runs = [
            str(receipt.run_id)
            for receipt in await asyncio.gather(*(start_run(process, f"lost-{n}") for n in range(20)))
        ]
        client = await broker.connect()
        await client.jetstream().delete_stream(deleted)
        connection = await database.connect()

        async def raised() -> bool:
            return await connection.fetchval("select transport_epoch from longtake.store") > 1

        await eventually(raised, "the epoch to rise", 30)
        async with runtime(database, broker, tmp_path / "worker", noop_app(), roles=("worker",), **patient):
            summaries = await asyncio.gather(*(ended(process, run_id, 40) for run_id in runs))

    assert {summary["status"] for summary in summaries} == {"completed"}


@promise("G37", "G40")
async def test_the_lease_of_a_holder_that_ended_in_good_order_is_free_at_once(database, broker, tmp_path):
    """G49's other half: orphaned leases go back, here without waiting for their end."""
    async with runtime(database, broker, tmp_path, noop_app(), roles=("api",)) as process:
        await start_run(process, "orphan")
        bench = await Bench.open(process)
        try:
            (held,) = await bench.claim(owner=process.owner, lease_seconds=3600)
            none = await process.sweep.expire_leases(leases_max=5, authority_up_seconds=0.0, connected=True)
            await bench.pool.execute("update longtake.incarnations set alive_until = '-infinity'")
            (freed,) = await process.sweep.expire_leases(
                leases_max=5, authority_up_seconds=3600.0, connected=False
            )
            (again,) = await bench.claim()
        finally:
            await bench.close()

    assert none == []
    assert (freed.id, freed.state) == (held.id, "queued")
    assert again.fence > held.fence


@pytest.mark.parametrize("copies_again", [True, False])
@promise("G28")
async def test_commands_that_a_deleted_stream_has_lost_are_copied_to_the_new_one(
    database, broker, tmp_path, monkeypatch, copies_again: bool
):
    """P2: a restore reads them there. The second case is the broken variant: the new stream begins with what is new."""
    quick_looks(monkeypatch)
    if not copies_again:

        async def forgetful(_store, _seconds: float) -> int:
            return 0

        monkeypatch.setattr("longtake.postgres.sweeps.PostgresSweepStore.copy_again", forgetful)
    client, connection = await broker.connect(), await database.connect()
    async with runtime(database, broker, tmp_path, noop_app(), roles=("api", "relay")) as process:
        await process.transport.started()
        for number in range(20):
            await start_run(process, f"kept-{number}")
        await connection.execute("update longtake.commands set copied_at = clock_timestamp()")
        born = await connection.fetchval(BIRTH)
        await client.jetstream().delete_stream("LT_COMMAND")
        await eventually(lambda: differs(connection, BIRTH, born), "the store to know the new stream")
        await connection.execute(
            "insert into longtake.commands (tenant_id, actor, client_command_id, kind, project, intent_hash, body,"
            " channel, status) select tenant_id, actor, 'later', kind, project, intent_hash, body, 'http', status"
            " from longtake.commands limit 1"
        )
        process.doorbell.ring(DOORBELL_RELAY)
        # They are copied in the order in which they were accepted: after this one, the earlier ones are there.
        later = "select count(copied_at) from longtake.commands where client_command_id = 'later'"
        await eventually(lambda: more_than(connection, later, 0), "the later one to be copied")
        kept = (await client.jetstream().stream_info("LT_COMMAND")).state.messages

    assert kept == (21 if copies_again else 1)


async def differs(connection, question: str, answer) -> bool:
    return await connection.fetchval(question) != answer


async def more_than(connection, question: str, floor: int) -> bool:
    return await connection.fetchval(question) > floor


@pytest.mark.parametrize(("kept", "generation"), [(True, 1), (False, 2)])
async def test_what_a_living_process_could_not_say_it_says_as_soon_as_there_is_a_link(
    database, broker, tmp_path, monkeypatch, kept, generation
):
    """F03: an older message that nobody acknowledges stands in the stream, and hides from every relay what was lost after it.

    The broken variant forgets what it could not say: only when the older message is gone a relay finds it.
    """
    if not kept:
        monkeypatch.setattr(RepeatingPublisher, "_keep", lambda self, messages: None)
    others = ("relay", "worker", "dispatcher")
    async with TcpProxy("127.0.0.1", int(broker.url.rpartition(":")[2])) as proxy:
        far = SimpleNamespace(url=f"nats://127.0.0.1:{proxy.port}", token=broker.token)
        async with runtime(database, far, tmp_path, noop_app(), roles=("api",)) as process:
            declaring = await process.transport.effects("short")
            assert await declaring.fetch(limit=1, wait_seconds=0.01) == []
            await declaring.close()
            body = encode_pointers(EffectPointers(epoch=1, effects=((uuid.UUID(int=9), 1, 1),)))
            old = OutgoingMessage(
                subject="longtake.v1.effect.short", body=body, stream="LT_EFFECT", message_id="old"
            )
            await process.transport.publisher.publish([old])
            stream = (await broker.connect()).jetstream()
            bystander = await stream.pull_subscribe_bind("effects_short", stream="LT_EFFECT")
            (held,) = await bystander.fetch(1)
            async with runtime(database, broker, tmp_path / "rest", noop_app(), roles=others) as rest:
                proxy.refuse()
                receipt = await start_run(process, "unheard", input_={"steps": 1})
                proxy.heal()
                if not kept:
                    assert await process.transport.connection.wait_linked(10)
                    await eventually(lambda: rest.transport.oldest_effect("short"), "the older message")
                    await held.ack_sync()
                summary = await ended(process, str(receipt.run_id), 9)

    assert summary["status"] == "completed"
    effects = await (await database.connect()).fetch("select generation from longtake.effects")
    assert [row["generation"] for row in effects] == [generation]
