"""A dispatcher that died with a doorbell in its hands: the receipt behind it is not left to the stream's patience."""

import uuid

from kit.promises import promise
from kit.runtimes import ended, noop_app, runtime, start_run
from longtake.contracts.ids import callback_part
from longtake.engine.hints import CALLBACK_PARTS


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
