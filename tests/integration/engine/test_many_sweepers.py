"""Several of everything on one store: who is stopped or slow holds nobody up, and nothing is done twice (F50, F51)."""

import asyncio
import uuid
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager

from kit.hand_work import Bench
from kit.promises import promise
from kit.runtimes import fund, runtime, start_run
from kit.stale_races import STEPS, app
from longtake.postgres.pool import open_pool
from longtake.postgres.sweeps import PostgresSweepStore

STALE = 1_000
SWEEPERS = 8
RELAYS = 4
HELD = 300
PASSES = 3


@asynccontextmanager
async def _stores(bench: Bench, count: int):
    """Sweepers and relays of as many processes, each with connections of its own."""
    async with AsyncExitStack() as stack:
        stores = []
        for number in range(count):
            pool = await open_pool(bench.process.addresses.postgres, size=1, name=f"sweeper-{number}")
            stack.push_async_callback(pool.close)
            stores.append(PostgresSweepStore(pool, incarnation=uuid.uuid4(), owner=f"sweeper-{number}"))
        yield stores


@asynccontextmanager
async def _stale(database, broker, tmp_path):
    """A bench before a thousand leases whose time is over."""
    async with runtime(database, broker, tmp_path, app, roles=("api",)) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            for number in range(STALE // STEPS):
                await start_run(process, f"stale-{number}", "race@1")
            assert len(await bench.claim(owner="gone")) == STALE
            await bench.pool.execute("update longtake.effects set lease_until = clock_timestamp()")
            yield bench
        finally:
            await bench.close()


async def _generations(bench: Bench) -> Counter[int]:
    return Counter(
        row["generation"] for row in await bench.pool.fetch("select generation from longtake.effects")
    )


async def _sweep(store: PostgresSweepStore) -> list[uuid.UUID]:
    ended = []
    for _ in range(PASSES):
        leases = await store.expire_leases(leases_max=9, authority_up_seconds=0.0, connected=True)
        ended += [lease.id for lease in leases]
    return ended


@promise("T63")
async def test_eight_sweepers_end_a_thousand_stale_leases_once_each(database, broker, tmp_path):
    async with _stale(database, broker, tmp_path) as bench, _stores(bench, SWEEPERS) as stores:
        before = await _generations(bench)
        ended = [id_ for swept in await asyncio.gather(*map(_sweep, stores)) for id_ in swept]
        after = await _generations(bench)

    assert (len(ended), len(set(ended))) == (STALE, STALE)
    assert after == Counter({generation + 1: count for generation, count in before.items()})


async def test_sweepers_that_look_first_and_write_later_end_them_twice(database, broker, tmp_path):
    """The broken variant: each looks, then all write. The generations show it."""
    async with _stale(database, broker, tmp_path) as bench:
        before = await _generations(bench)
        seen = [
            await bench.pool.fetch("select id from longtake.effects where state = 'leased'")
            for _ in range(SWEEPERS)
        ]
        for rows in seen:
            await bench.pool.execute(
                "update longtake.effects set state = 'queued', generation = generation + 1 where id = any($1)",
                [row["id"] for row in rows],
            )
        after = await _generations(bench)

    assert after != Counter({generation + 1: count for generation, count in before.items()})


@promise("T63")
async def test_a_sweeper_that_stands_still_in_its_statement_holds_nobody_up(database, broker, tmp_path):
    """F50. Its backend has three hundred rows; three others end the rest at once, and the last when it is gone."""
    async with _stale(database, broker, tmp_path) as bench, _stores(bench, 3) as stores:
        stopped = await database.connect()
        holding = stopped.transaction()
        await holding.start()
        held = await stopped.fetch(
            "select id from longtake.effects where state = 'leased' order by id limit $1 for update", HELD
        )
        around = {id_ for swept in await asyncio.gather(*map(_sweep, stores)) for id_ in swept}
        await holding.rollback()
        rest = {id_ for swept in await asyncio.gather(*map(_sweep, stores)) for id_ in swept}

    assert rest == {row["id"] for row in held}
    assert len(around) == STALE - HELD and not around & rest


@promise("T63")
async def test_four_relays_hand_out_each_pointer_once(database, broker, tmp_path):
    """F51. A statement that waited for another's commit must not hand out what that one has published meanwhile."""
    async with _stale(database, broker, tmp_path) as bench, _stores(bench, RELAYS) as stores:
        await _sweep(stores[0])
        room = {"limit": STALE, "grace_seconds": 600.0, "oldest": {}, "all_lost": False}
        ids: list[uuid.UUID] = []
        while True:
            passes = await asyncio.gather(*(store.due_pointers(**room) for store in stores))
            handed = [pointer.id for pointers in passes for pointer in pointers]
            if not handed:
                break
            ids += handed
            # Workers take what stands there, so that the window opens for the next.
            await bench.pool.execute(
                "update longtake.effects set state = 'leased', lease_until = clock_timestamp() + interval '1 h' "
                "where id = any($1)",
                handed,
            )

    assert len(ids) == len(set(ids)) == STALE


async def test_pointers_whose_answer_was_lost_with_the_connection_are_handed_out_again(
    database, broker, tmp_path
):
    """F07. Marked, and its relay lives, but nothing left; the broken variant is a relay that believes the mark for ever."""
    async with _stale(database, broker, tmp_path) as bench, _stores(bench, 2) as (one, other):
        await _sweep(one)
        lost = {
            pointer.id
            for pointer in await one.due_pointers(limit=STALE, grace_seconds=600.0, oldest={}, all_lost=False)
        }
        empty = {pool["pool"]: None for pool in await bench.pool.fetch("select pool from longtake.effects")}
        believing, looking = [
            {
                pointer.id
                for pointer in await other.due_pointers(
                    limit=STALE, grace_seconds=seconds, oldest=empty, all_lost=False
                )
            }
            for seconds in (600.0, 0.0)
        ]

    assert lost
    assert not believing & lost
    assert lost <= looking
