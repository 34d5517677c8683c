"""A dispatcher that died with a doorbell in its hands: the receipt behind it is not left to the stream's patience."""

import uuid
from datetime import UTC, datetime

from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import ended, noop_app, runtime, start_run
from longtake.contracts.ids import callback_part
from longtake.engine.hints import CALLBACK_PARTS
from longtake.engine.sweeper import Sweeper
from longtake.postgres.sweeps import PostgresSweepStore

PAST = datetime(2020, 1, 1, tzinfo=UTC)


@promise("G37")
async def test_a_receipt_whose_doorbell_died_with_a_dispatcher_is_looked_at_soon(database, broker, tmp_path):
    """The stream shows the doorbell as standing for half a minute; whoever starts next does not wait for that."""
    async with runtime(database, broker, tmp_path, noop_app(), roles=("api", "relay", "worker")) as process:
        receipt = await start_run(process, "doorbell", input_={"steps": 1})
        part = callback_part(uuid.UUID(receipt.run_id), CALLBACK_PARTS)
        subscription = await process.transport.callbacks(part)
        held = await subscription.fetch(limit=1, wait_seconds=15)
        assert len(held) == 1, "the worker has reported and rung"

        async with runtime(
            database,
            broker,
            tmp_path / "next",
            noop_app(),
            roles=("dispatcher", "sweeper"),
            grace_seconds=0.5,
        ):
            summary = await ended(process, receipt.run_id, 15)
        await subscription.close()

    assert summary["status"] == "completed"


@promise("G37")
async def test_what_a_dispatcher_took_along_into_its_death_is_told_to_the_others(database, broker, tmp_path):
    """With others alive nobody starts and looks at everything: the sweeper hears of the death by the silence."""
    roles = ("api", "relay", "worker", "sweeper")
    async with runtime(database, broker, tmp_path, noop_app(), roles=roles, grace_seconds=0.5) as process:
        await eventually(lambda: sweeper_of(process)._believes_in_doorbells, "the sweeper is past its start")
        connection = await database.connect()
        dead = PostgresSweepStore(process.sweep._pool, incarnation=uuid.uuid4(), owner="the dead one")
        await dead.announce(roles=("dispatcher",), pools=(), activities=())
        receipt = await start_run(process, "taken", input_={"steps": 1})
        part = callback_part(uuid.UUID(receipt.run_id), CALLBACK_PARTS)
        subscription = await process.transport.callbacks(part)
        held = await subscription.fetch(limit=1, wait_seconds=15)
        assert len(held) == 1, "the worker has reported, and the dead one has the doorbell"
        question = {"grace_seconds": 0.0, "limit": 9, "oldest": [PAST] * CALLBACK_PARTS}
        before = await process.sweep.lost_doorbells(**question)
        silence = (
            "update longtake.incarnations set alive_until = clock_timestamp() where owner = 'the dead one'"
        )
        await connection.execute(silence)
        after = await process.sweep.lost_doorbells(**question)

        async with runtime(database, broker, tmp_path / "other", noop_app(), roles=("dispatcher",)):
            summary = await ended(process, receipt.run_id, 15)
        await subscription.close()

    assert before == [], "its doorbell stands in the stream"
    assert [(bell.what, str(bell.run_id)) for bell in after] == [("effect", receipt.run_id)]
    assert summary["status"] == "completed"


def sweeper_of(process) -> Sweeper:
    (sweeper,) = [service for service in process._services if isinstance(service, Sweeper)]
    return sweeper
