"""Two whole instances on the same Postgres and NATS: nothing is a singleton, nothing is done twice, one may die."""

import asyncio
import uuid
from collections import Counter

from kit.instance import instance
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import ended, fund, runtime, start_run
from kit.witnessing import WITNESS, app, times, witnessed

RUNS = 20
STEPS = 3
TURNS_MAX = 5
"""On a busy machine one of the two may be done with a turn before the other has begun."""


async def _start(process, name: str) -> list[str]:
    receipts = await asyncio.gather(
        *(start_run(process, f"{name}-{n}", "chain@1", {"steps": STEPS}) for n in range(RUNS))
    )
    return [str(receipt.run_id) for receipt in receipts]


async def _complete(process, runs: list[str], seconds: float) -> None:
    summaries = await asyncio.gather(*(ended(process, run_id, seconds) for run_id in runs))
    assert {summary["status"] for summary in summaries} == {"completed"}


@promise("H32", "G13", "T63")
async def test_two_instances_share_the_work_and_one_of_them_may_be_killed(
    database, broker, tmp_path, monkeypatch
):
    witness = tmp_path / "witness"
    monkeypatch.setenv(WITNESS, str(witness))
    async with (
        instance(database, broker, tmp_path / "other", witness=witness) as other,
        runtime(database, broker, tmp_path / "ours", app) as process,
    ):
        await fund(process)
        both: list[str] = []
        for turn in range(TURNS_MAX):
            begun = await _start(process, f"both-{turn}")
            await _complete(process, begun, 60)
            both += begun
            if len({line.pid for line in witnessed(witness)}) == 2:
                break

        lines = witnessed(witness)
        assert times(lines) == Counter(
            {(run_id, f"link:{step}"): 1 for run_id in both for step in range(STEPS)}
        )
        assert len({line.pid for line in lines}) == 2, "one of the two did nothing"

        seen = len(lines)
        left = await _start(process, "left")

        def working() -> bool:
            return any(line.pid == other.pid for line in witnessed(witness)[seen:])

        await eventually(working, "the other one to be in the middle of its work")
        await other.kill()
        await _complete(process, left, 90)

        connection = await database.connect()
        again = {key for key, count in times(witnessed(witness)).items() if count > 1}
        claimed = await connection.fetch(
            "select run_id::text, step, count(*) as claims from longtake.effect_claims group by 1, 2"
        )
        # At least once: a second execution needs a second claim, and a second claim needs a dead holder.
        assert again <= {(row["run_id"], row["step"]) for row in claimed if row["claims"] > 1}
        applied = await connection.fetch(
            "select run_id::text, data->>'step' as step, count(*) as times from longtake.events "
            "where type = 'step_succeeded' group by 1, 2"
        )
        assert len(applied) == len(both + left) * STEPS
        assert {row["times"] for row in applied} == {1}
        for run_id in both + left:
            assert await process.audit.prove(uuid.UUID(run_id), "acme") == []
            assert await process.audit.verify(uuid.UUID(run_id)) > 0
