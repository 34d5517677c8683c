"""The dispatcher's batches: as many statements for one signal as for hundreds, and a bad run harms no other (P21)."""

import asyncio
import time
import uuid

import pytest

from kit.hand_work import Bench
from kit.promises import promise
from kit.runtimes import fund, noop_app, runtime, start_run, summary_of
from longtake.engine.deciding import commit_of

API_ONLY = ("api",)
ACCEPTANCE_SECONDS_MAX = 1.0


async def _runs(process, count: int, name: str) -> list[str]:
    receipts = await asyncio.gather(*(start_run(process, f"{name}-{n}") for n in range(count)))
    return [str(receipt.run_id) for receipt in receipts]


async def _statements_for(bench: Bench, process, size: int) -> int:
    """Statements for a batch of `size` signals of runs that are in memory."""
    await _runs(process, size, f"batch{size}")
    warm = await bench.settle()
    assert len(warm) == size
    claimed = await bench.claim()
    await bench.report(claimed)
    before = bench.counting.statements

    outcome = await bench.decide([effect.id for effect in claimed])

    assert (outcome.committed, outcome.deferred) == (size, 0)
    await bench.settle()
    return bench.counting.statements - before - 2


@promise("H22")
async def test_a_batch_costs_two_statements_whatever_its_size(database, broker, tmp_path):
    async with runtime(database, broker, tmp_path, noop_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            counts = {size: await _statements_for(bench, process, size) for size in (1, 16, 256)}
        finally:
            await bench.close()

        assert counts == {1: 2, 16: 2, 256: 2}


@pytest.mark.parametrize("size", [1, 64])
async def test_cold_runs_are_loaded_by_a_constant_number_of_statements(database, broker, tmp_path, size):
    async with runtime(database, broker, tmp_path, noop_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            await _runs(process, size, "cold")
            claimed = await bench.claim()
            await bench.report(claimed)
            await bench.decide([effect.id for effect in claimed])
        finally:
            await bench.close()

        # facts; begin, runs, events, commit; decisions
        assert bench.counting.statements == 6


@promise("G23")
async def test_acceptance_costs_the_same_for_6_and_61_jobs(database, broker, tmp_path):
    from kit.counting import CountingPool
    from longtake.engine.admission import Admission
    from longtake.postgres.admissions import PostgresAdmissionStore
    from longtake.postgres.pool import open_pool
    from videoads import app

    counts, took = {}, {}
    async with runtime(database, broker, tmp_path, app, roles=API_ONLY) as process:
        await fund(process)
        pool = await open_pool(process.addresses.postgres, size=2, name="test")
        try:
            for scenes, jobs in ((1, 3), (3, 7), (30, 61)):  # the first warms the connection
                counting = CountingPool(pool)
                store = PostgresAdmissionStore(counting, store_epoch=1, incarnation=process.incarnation)  # type: ignore[arg-type]
                process.admission = Admission(store, app, process.hints, store_epoch=1)
                begun = time.monotonic()
                receipt = await start_run(process, f"jobs-{jobs}", "film.takes@1", {"scenes": scenes})
                took[jobs] = time.monotonic() - begun
                assert receipt.status == "running", receipt
                assert (await summary_of(process, str(receipt.run_id)))["progress"]["total"] == jobs
                await pool.execute("delete from longtake.scopes")
                counts[jobs] = counting.statements
        finally:
            await pool.close()

    assert counts[7] == counts[61]
    assert took[61] < ACCEPTANCE_SECONDS_MAX


@promise("H25")
async def test_one_run_whose_reducer_raises_is_blocked_and_the_other_63_commit(database, broker, tmp_path):
    async with runtime(database, broker, tmp_path, noop_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            ids = await _runs(process, 64, "mixed")
            claimed = await bench.claim()
            await bench.report(claimed)
            victim = claimed[17]

            def sabotaged(run, facts, *, traceparent):
                if run.head.run_id == victim.run_id:
                    raise ZeroDivisionError("a defect of the reducer")
                return commit_of(run, facts, traceparent=traceparent)

            bench.dispatcher = bench.new_dispatcher(decide=sabotaged)

            outcome = await bench.decide([effect.id for effect in claimed])

            statuses = {run_id: (await summary_of(process, run_id))["status"] for run_id in ids}
        finally:
            await bench.close()

        assert outcome.blocked == 1
        assert statuses.pop(str(victim.run_id)) == "blocked"
        assert set(statuses.values()) == {"running"}
        assert await process.audit.prove(victim.run_id, "acme") == []


async def test_a_run_that_cannot_be_folded_is_set_aside_and_the_others_commit(database, broker, tmp_path):
    async with runtime(database, broker, tmp_path, noop_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            ids = await _runs(process, 8, "torn")
            claimed = await bench.claim()
            await bench.report(claimed)
            victim = claimed[3]
            owner = await database.connect()
            await owner.execute("alter table longtake.events disable trigger events_append_only")
            await owner.execute(
                "update longtake.events set type = 'from_the_future' where run_id = $1 and seq = 1",
                victim.run_id,
            )

            outcome = await bench.decide([effect.id for effect in claimed])

            rows = await owner.fetch("select run_id, blockers from longtake.runs where poisoned")
        finally:
            await bench.close()

        assert outcome.committed == len(ids) - 1
        assert [(row["run_id"], row["blockers"]) for row in rows] == [(victim.run_id, ["history_unreadable"])]


async def test_a_run_that_another_dispatcher_moved_is_decided_again(database, broker, tmp_path):
    async with runtime(database, broker, tmp_path, noop_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            (run_id,) = await _runs(process, 1, "moved")
            await bench.settle()
            other = bench.new_dispatcher()
            claimed = await bench.claim()
            await bench.report(claimed)
            first, second = await asyncio.gather(
                bench.decide([claimed[0].id]), _decide(other, [claimed[0].id])
            )

            summary = await summary_of(process, run_id)
        finally:
            await bench.close()

        assert summary["progress"]["completed"] == 2
        assert await process.audit.verify(uuid.UUID(run_id)) == summary["revision"]
        assert first.committed + second.committed >= 1


async def _decide(dispatcher, ids):
    from longtake.engine.dispatcher import Pointers

    return await dispatcher.handle(Pointers(effects=dict.fromkeys(ids)))
