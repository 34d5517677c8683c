"""Ten thousand races: whoever reports under whatever fence, no receipt is lost and none counts that may not (P1, F60-F63)."""

import random
from typing import Any

import pytest

from kit.hand_work import Bench
from kit.promises import promise
from kit.runtimes import fund, runtime
from kit.stale_races import STEPS, Races, app

RACES = 10_000
RUNS = 20
FEW = 2

pytestmark = pytest.mark.timeout(240)


class Strict:
    """A store that takes a receipt only under the fence that the row has, as most queues would: the broken variant."""

    def __init__(self, right: Any, pool: Any) -> None:
        self._right = right
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._right, name)

    async def report(self, reports: Any) -> Any:
        rows = await self._pool.fetch(
            "select id, fence from longtake.effects where state = 'leased' and id = any($1)",
            [report.effect_id for report in reports],
        )
        current = {(row["id"], row["fence"]) for row in rows}
        return await self._right.report(
            [report for report in reports if (report.effect_id, report.fence) in current]
        )


@promise("G37", "T21")
async def test_no_receipt_is_lost_in_ten_thousand_races(database, broker, tmp_path, capsys):
    async with runtime(database, broker, tmp_path, app, roles=("api",)) as process:
        await fund(process, 100_000_000)
        bench = await Bench.open(process)
        try:
            races = Races(process, bench, random.Random(60))
            while races.races < RACES:
                await races.play(runs=RUNS)
            found = await races.judge()
        finally:
            await bench.close()

    with capsys.disabled():
        print(
            f"\n  {races.races} races: {dict(sorted(races.ended.items()))}; {dict(sorted(races.told.items()))}"
        )
    assert found == []
    assert races.races >= RACES
    assert {"applied, fence old", "applied, fence current"} <= set(races.ended)
    assert any(how.startswith("ignored") for how in races.ended), (
        "none came too late: the races show too little"
    )


async def test_a_store_that_asks_for_the_fence_loses_receipts_and_is_found_out(database, broker, tmp_path):
    async with runtime(database, broker, tmp_path, app, roles=("api",)) as process:
        await fund(process, 100_000_000)
        bench = await Bench.open(process)
        bench.effects = Strict(bench.effects, bench.pool)
        try:
            races = Races(process, bench, random.Random(60))
            for _ in range(FEW):
                await races.play(runs=RUNS)
            found = await races.judge()
        finally:
            await bench.close()

    assert races.races == FEW * RUNS * STEPS
    assert any("is nowhere" in problem for problem in found)
