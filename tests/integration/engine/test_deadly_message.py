"""A message that kills whoever reads it: real processes die of it, and then it is kept, unread (F16)."""

import asyncio
import json
import sys
from pathlib import Path

from kit.broker_ruin import declare_by
from kit.deadly_process import DEADLY, DEATH, QUICK
from kit.promises import promise
from kit.runtimes import ended, noop_app, runtime, start_run
from longtake.engine.suspects import DEATHS_MAX, SUSPECT_FROM
from longtake.jetstream.topology import callback_subject

LIVES_MAX = 12
TESTS = Path(__file__).parents[2]
HOURS = 600.0


@promise("G28")
async def test_five_processes_die_of_a_message_and_the_sixth_keeps_it_unread(
    database, broker, tmp_path, monkeypatch
):
    declare_by(QUICK, monkeypatch.setattr)
    connection, client = await database.connect(), await broker.connect()
    deaths = 0
    async with runtime(
        database, broker, tmp_path, noop_app(), roles=("api", "relay", "worker", "sweeper")
    ) as process:
        await process.transport.started()
        await client.jetstream().publish(callback_subject(1), DEADLY)
        receipt = await start_run(process, "beside", input_={"steps": 3})
        letter = asyncio.create_task(kept(connection))
        for life in range(LIVES_MAX):
            dispatcher = await begun(database, broker, tmp_path / str(life))
            dying = asyncio.create_task(dispatcher.wait())
            await asyncio.wait({letter, dying}, return_when=asyncio.FIRST_COMPLETED)
            if letter.done():
                break
            assert dying.result() == DEATH
            deaths += 1
        row = letter.result()
        summary = await ended(process, str(receipt.run_id), 30)
        alive = dispatcher.returncode is None
        dispatcher.stdin.close()
        await dying

    print(f"{deaths} processes died of it: {row['reason']}")
    # The last deaths are counted when the dead are known to be dead, so a few lives more may be spent, never fewer.
    assert deaths >= SUSPECT_FROM - 1 + DEATHS_MAX
    assert (row["source"], row["body"]) == ("dispatcher", DEADLY)
    assert row["reason"].startswith("poison: ")
    assert alive, "who buried it lives"
    assert summary["status"] == "completed"


async def begun(database, broker, directory: Path) -> asyncio.subprocess.Process:
    """A dispatcher, perhaps not for long."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kit.deadly_process", json.dumps(database.connect_kwargs), broker.url, broker.token,
        str(directory), cwd=TESTS, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip


async def kept(connection):
    """The dead letter, as soon as there is one."""
    while True:
        row = await connection.fetchrow("select source, reason, body from longtake.dead_letters")
        if row is not None:
            return row
        await asyncio.sleep(0.05)
