"""A thousand runs, and every stream deleted in their middle again and again: nothing that counts is different (issue 4, I31).

Undisturbed and disturbed services do the same runs; then both are asked what they did (kit/told_apart.py).
"""

import asyncio
import time
from collections import Counter

import pytest

from kit.broker_ruin import delete_streams, quick_looks
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import ended, fund, runtime, start_run
from kit.sibling_app import sibling_app
from kit.told_apart import Told, told
from longtake.postgres.sweeps import PostgresSweepStore

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("whole-service")]

RUNS = 1_000
FEW = 60
DELETIONS = 5
STARTERS = 8
STARTERS = 8
PATIENT = {"grace_seconds": 1.0, "lease_seconds": 30}


@promise("G28", "H83")
async def test_a_thousand_runs_tell_the_same_with_every_stream_deleted_in_their_middle(
    database, broker, tmp_path, monkeypatch
):
    quick_looks(monkeypatch)
    began = time.monotonic()
    calm, _ = await done(database, broker, tmp_path, "calm", RUNS, deletions=0)
    between = time.monotonic()
    torn, lost = await done(database, broker, tmp_path, "torn", RUNS, deletions=DELETIONS)
    seconds = f"{between - began:.1f} s undisturbed, {time.monotonic() - between:.1f} s disturbed"
    print(f"{RUNS} runs, {DELETIONS} deletions, messages that stood then: {lost}; {seconds}")

    assert len(calm) == len(torn) == RUNS
    assert sum(lost) > 0, "the deletions took something"
    assert Counter(run["status"] for run in calm.values()) == {
        "completed": RUNS * 4 // 5,
        "failed": RUNS // 5,
    }
    assert {number: run for number, run in calm.items() if torn[number] != run} == {}


async def test_without_publishing_again_a_deleted_stream_leaves_its_runs_undone(
    database, broker, tmp_path, monkeypatch
):
    """The broken variant: a service that works, and a comparison that says what it lost."""
    quick_looks(monkeypatch)
    real = PostgresSweepStore.due_pointers

    async def only_new(self, **question):
        return await real(self, **{**question, "oldest": {}, "all_lost": False})

    calm, _ = await done(database, broker, tmp_path, "calm", FEW, deletions=0)
    monkeypatch.setattr(PostgresSweepStore, "due_pointers", only_new)
    connection, client = await database.connect(), await broker.connect()
    async with runtime(
        database, broker, tmp_path, sibling_app(), roles=("api", "relay", "sweeper", "dispatcher"), **PATIENT
    ) as process:
        await all_started(process, "torn", FEW)
        await process.hints.stop()  # which waits for what was not waited for
        stood = await standing(client)
        births = await process.transport.declare()
        await delete_streams(client)
        await eventually(lambda: process.transport._known not in ((), births), "the streams are new")
        async with runtime(
            database, broker, tmp_path / "worker", sibling_app(), roles=("worker",), **PATIENT
        ):
            later = await start_run(process, "later-1", "siblings@1", {"number": 1})
            assert (await ended(process, str(later.run_id)))["status"] == "completed"
        torn = await told(connection, "torn")
        generations = await connection.fetch(
            "select distinct generation from longtake.effects where closed_at is null"
        )

    assert stood >= FEW / 64
    assert [row["generation"] for row in generations] == [1]
    assert [number for number, run in calm.items() if torn[number] == run] == []


# --- tools ------------------------------------------------------------------------------------------------------------


async def all_started(process, name: str, runs: int) -> None:
    """Admit the runs, a few at a time."""
    numbers = iter(range(runs))

    async def starter() -> None:
        for number in numbers:
            await start_run(process, f"{name}-{number}", "siblings@1", {"number": number})

    await asyncio.gather(*(starter() for _ in range(STARTERS)))


async def done(
    database, broker, tmp_path, name: str, runs: int, *, deletions: int
) -> tuple[dict[str, Told], list[int]]:
    """Do the runs, delete every stream so many times meanwhile; what was done, and how much stood in the streams."""
    connection, client = await database.connect(), await broker.connect()
    lost: list[int] = []

    async def have_ended(floor: int) -> bool:
        return floor <= await connection.fetchval(
            "select count(*) from longtake.runs where ended_at is not null and starts_with(command_id, $1)",
            name,
        )

    async with runtime(database, broker, tmp_path / name, sibling_app(), **PATIENT) as process:
        await fund(process)
        starting = asyncio.create_task(all_started(process, name, runs))
        for turn in range(deletions):
            floor = runs * (turn + 1) // (deletions + 2)
            await eventually(lambda floor=floor: have_ended(floor), f"{floor} runs have ended", 100)
            lost.append(await standing(client))
            assert await delete_streams(client)
        await starting
        await eventually(lambda: have_ended(runs), "every run has ended", 100)
    return await told(connection, name), lost


async def standing(client) -> int:
    """Messages of effects and doorbells that nobody has settled."""
    found = await client.jetstream().streams_info()
    return sum(info.state.messages for info in found if info.config.name in ("LT_EFFECT", "LT_CALLBACK"))
