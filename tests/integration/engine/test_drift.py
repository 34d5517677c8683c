"""The same store under other code: a run whose plan would be another is blocked before anything of it is done (P15)."""

import importlib.util
import sys
import uuid
from pathlib import Path

from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import ended, fund, runtime, start_run, summary_of
from longtake import App
from longtake.engine.plan_check import IDLE_SECONDS

SOURCE = """
from longtake import App, Plan

app = App("deployed", price_list="{price_list}")


@app.workflow("shop", version=1)
def build(input, policy):
    return Plan().step("sell", activity="sell@1", price={price})


@app.workflow("calm", version=1)
def calm(input, policy):
    return Plan().step("rest", activity="sell@1")


@app.activity("sell@1")
async def sell(call):
    return None
"""


def deploy(folder: Path, name: str, *, price: int, price_list: str = "1") -> App:
    """Write an application's source and import it, as a deployment does."""
    path = folder / f"{name}.py"
    path.write_text(SOURCE.format(price=price, price_list=price_list))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.app  # type: ignore[no-any-return]  # a module's attributes are not typed


@promise("H17", "H89", "H20")
async def test_a_changed_builder_blocks_its_runs_and_no_other_and_its_return_unblocks_them(
    database, broker, tmp_path
):
    before = deploy(tmp_path, "shop_before", price=5)
    after = deploy(tmp_path, "shop_after", price=6)
    async with runtime(database, broker, tmp_path, before, roles=("api",)) as process:
        await fund(process)
        drifting = str((await start_run(process, "drifting", "shop@1")).run_id)
        calm = str((await start_run(process, "calm", "calm@1")).run_id)

    async with runtime(database, broker, tmp_path, after, sole_owner=True) as process:
        assert (await ended(process, calm, 30))["status"] == "completed"

        async def blocked() -> dict | None:
            summary = await summary_of(process, drifting)
            return summary if summary["status"] == "blocked" else None

        summary = await eventually(blocked, "the drifted run to be blocked")
        connection = await database.connect()
        event = await connection.fetchval(
            "select data::text from longtake.events where run_id = $1 and type = 'run_blocked'",
            uuid.UUID(drifting),
        )
        succeeded = await connection.fetchval(
            "select count(*) from longtake.events where run_id = $1 and type = 'step_succeeded'",
            uuid.UUID(drifting),
        )

    assert [blocker["type"] for blocker in summary["blockers"]] == ["plan_drift"]
    assert "price" in event, event
    assert succeeded == 0
    assert summary["cost"]["charged_credits"] == 5

    async with runtime(database, broker, tmp_path, before, sole_owner=True) as process:
        summary = await ended(process, drifting, 30)
        proved = await process.audit.prove(uuid.UUID(drifting), "acme")

    assert summary["status"] == "completed"
    assert proved == []


async def test_code_that_plans_the_same_blocks_nobody(database, broker, tmp_path):
    """The other side: a deployment that changes no plan is noticed and lets every run go on."""
    async with runtime(
        database, broker, tmp_path, deploy(tmp_path, "shop_one", price=5), roles=("api",)
    ) as process:
        await fund(process)
        run_id = str((await start_run(process, "steady", "shop@1")).run_id)
    moved = tmp_path / "moved"
    moved.mkdir()
    other = deploy(moved, "shop_two", price=5)

    async with runtime(database, broker, tmp_path, other, sole_owner=True) as process:
        assert (await ended(process, run_id, 30))["status"] == "completed"
        connection = await database.connect()
        assert await connection.fetchval("select plan_checked from longtake.runs") == other.application


@promise("T33", "H16")
async def test_a_run_keeps_the_plan_it_was_accepted_with(database, broker, tmp_path):
    """A later deployment is compared with it and never replaces it."""
    async with runtime(
        database, broker, tmp_path, deploy(tmp_path, "shop_then", price=5), roles=("api",)
    ) as process:
        await fund(process)
        run_id = (await start_run(process, "kept", "shop@1")).run_id
    connection = await database.connect()
    read = (
        "select p.plan::text from longtake.runs r join longtake.plans p on p.fingerprint = r.plan_fingerprint"
    )
    before = await connection.fetchval(read)

    async with runtime(
        database, broker, tmp_path, deploy(tmp_path, "shop_now", price=9), roles=("api",)
    ) as process:
        again = await start_run(process, "kept", "shop@1")
        fresh = await start_run(process, "fresh", "shop@1")

    assert '"price":5' in before
    assert await connection.fetchval(f"{read} where r.run_id = $1", uuid.UUID(run_id)) == before
    assert again.run_id == run_id and again.summary is not None
    assert again.summary.cost.quoted_credits == 5
    assert fresh.summary is not None and fresh.summary.cost.quoted_credits == 9


async def test_a_run_that_older_code_accepts_beside_newer_workers_is_looked_at_at_once(
    database, broker, tmp_path
):
    """In the middle of an upgrade: the claim that is refused tells whoever can compare plans, long before they look again."""
    older, moved = deploy(tmp_path, "shop_older", price=5), tmp_path / "moved"
    moved.mkdir()
    newer = deploy(moved, "shop_newer", price=5)
    work = ("dispatcher", "relay", "sweeper", "worker")
    async with runtime(database, broker, tmp_path, older, roles=("api",)) as front:
        await fund(front)
        async with runtime(database, broker, tmp_path, newer, roles=work):
            run_id = str((await start_run(front, "between", "shop@1")).run_id)

            assert (await ended(front, run_id, IDLE_SECONDS / 2))["status"] == "completed"
