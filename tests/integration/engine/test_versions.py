"""Deployments over active runs: a changed plan blocks exactly its runs and says where, and people may let them go on.

Each deployment is foretold by `longtake plan check`, which a pipeline runs before it (P15; shows itself by 8).
"""

import asyncio
import json
import uuid

import pytest

from kit.deploying import deploy, deploy_source
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import ended, fund, runtime, start_run, summary_of
from longtake.cli.main import run_command

API_ONLY = ("api",)
NO_WORKER = ("api", "dispatcher", "relay", "sweeper")


@pytest.fixture
def line(monkeypatch, tmp_path, capsys, database):
    """Run a command in a thread, as it brings a loop of its own; returns code, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGTAKE_POSTGRES_URL", database.dsn)

    async def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = await asyncio.to_thread(run_command, list(arguments))
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


async def drift_of(process, run_id: str) -> dict:
    """Wait until the run is blocked by drift; its blocker's details."""

    async def blocked() -> dict | None:
        summary = await summary_of(process, run_id)
        found = [b for b in summary["blockers"] if b["type"] == "plan_drift"]
        return found[0]["details"] if found else None

    return await eventually(blocked, f"run {run_id} to be blocked by drift")


async def free_of_drift(process, run_id: str) -> None:
    async def free() -> bool | None:
        summary = await summary_of(process, run_id)
        return True if not summary["blockers"] else None

    await eventually(free, f"run {run_id} to be free again")


STAYS, RISES = "the price stays at 5 credits", "the price rises from 5 to 6 credits"


@pytest.mark.parametrize(
    ("mutation", "field", "before_after", "effect"),
    [
        ({"tries": 5}, "/plan/steps/0/retry/max_attempts", (4, 5), STAYS),
        ({"price": 6}, "/plan/steps/0/price", (5, 6), RISES),
        ({"model": "v3"}, "/plan/steps/0/input/model", ("v2", "v3"), STAYS),
        ({"waits": ["film"]}, "/plan/steps/2/depends_on/1", ("voice", None), STAYS),
        (
            {"first": "voice", "second": "film"},
            "/plan/steps",
            (["film", "voice", "cut"], ["voice", "film", "cut"]),
            STAYS,
        ),
    ],
    ids=["retry", "price", "model", "edge", "order"],
)
@promise("H17", "H20", "H15")
async def test_one_changed_field_blocks_exactly_the_runs_it_is_in_and_names_it(
    database, broker, tmp_path, line, mutation, field, before_after, effect
):
    name = next(iter(mutation))
    accepted = deploy(tmp_path, f"accepted_{name}")
    async with runtime(database, broker, tmp_path, accepted, roles=API_ONLY) as process:
        await fund(process)
        affected = {
            str((await start_run(process, f"shop-{n}", "shop@1", {"of": str(n)})).run_id) for n in "ab"
        }
        others = [str((await start_run(process, w, f"{w}@1")).run_id) for w in ("twin", "calm")]

    check = ("plan", "check", "--app", f"changed_{name}:app", "--json")
    assert (await line("plan", "check", "--app", f"accepted_{name}:app"))[0] == 0
    changed = deploy(tmp_path, f"changed_{name}", **mutation)
    code, out, _ = await line(*check)
    foretold = json.loads(out)

    assert code == 1
    assert {run["run_id"] for run in foretold["blocking"]} == affected
    assert (foretold["active"], foretold["same"], foretold["unclaimed"]) == (4, 2, 0)
    for run in foretold["blocking"]:
        (change,) = run["changes"]
        assert change["pointer"] == field
        assert (change.get("before"), change.get("after")) == before_after
        assert run["price_effect"] == effect
    async with runtime(database, broker, tmp_path, changed, sole_owner=True) as process:
        for run_id in others:
            assert (await ended(process, run_id))["status"] == "completed"
        for run_id in affected:
            details = await drift_of(process, run_id)
            assert (details["field"], details["price_effect"]) == (field, effect)
            assert (await summary_of(process, run_id))["status"] == "blocked"
            assert await process.audit.prove(uuid.UUID(run_id), "acme") == []
        connection = await database.connect()
        done = await connection.fetchval(
            "select count(*) from longtake.events where type = 'step_succeeded' and run_id = any($1::uuid[])",
            [uuid.UUID(run_id) for run_id in affected],
        )

    assert done == 0
    code, out, _ = await line("plan", "check", "--app", f"changed_{name}:app")
    assert code == 1 and "would block, as it is now" in out


async def test_a_deployment_of_the_same_plans_is_foretold_to_block_nobody(database, broker, tmp_path, line):
    """The other side of the table above: other bytes, the same plans."""
    async with runtime(database, broker, tmp_path, deploy(tmp_path, "shop_then"), roles=API_ONLY) as process:
        await fund(process)
        run_id = str((await start_run(process, "same", "shop@1")).run_id)
    again = deploy(tmp_path, "shop_again")

    code, out, _ = await line("plan", "check", "--app", "shop_again:app")
    assert (code, out.strip()) == (0, "1 active run: 0 would block, 1 would go on")
    async with runtime(database, broker, tmp_path, again, sole_owner=True) as process:
        assert (await ended(process, run_id))["status"] == "completed"


async def test_another_price_list_alone_is_named(database, broker, tmp_path, line):
    """No step changes; a price list is part of what was agreed."""
    async with runtime(database, broker, tmp_path, deploy(tmp_path, "list_one"), roles=API_ONLY) as process:
        await fund(process)
        run_id = str((await start_run(process, "listed", "shop@1")).run_id)
    changed = deploy(tmp_path, "list_two", price_list="2")

    _, out, _ = await line("plan", "check", "--app", "list_two:app", "--json")
    (run,) = json.loads(out)["blocking"]
    assert run["changes"] == [{"pointer": "/price_basis", "before": "1", "after": "2"}]
    async with runtime(database, broker, tmp_path, changed, roles=NO_WORKER) as process:
        assert (await drift_of(process, run_id))["field"] == "/price_basis"


async def test_a_check_writes_nothing(database, broker, tmp_path, line):
    async with runtime(database, broker, tmp_path, deploy(tmp_path, "seen_one"), roles=API_ONLY) as process:
        await fund(process)
        await start_run(process, "seen", "shop@1")
    deploy(tmp_path, "seen_two", price=6)
    connection = await database.connect()
    counted = (
        "select (select string_agg(r::text, '') from longtake.runs r) || (select s::text from longtake.store s) "
        "|| (select count(*) from longtake.signals) || (select count(*) from longtake.events)"
    )
    before = await connection.fetchval(counted)

    code, _, _ = await line("plan", "check", "--app", "seen_two:app")

    assert code == 1
    assert await connection.fetchval(counted) == before


@promise("H89")
async def test_a_person_may_let_a_drifted_run_go_on_and_is_named_in_its_history(
    database, broker, tmp_path, line
):
    """The word holds for that run under that deployment: another run stays blocked, the next deployment asks again."""
    before, after = deploy(tmp_path, "accept_before"), deploy(tmp_path, "accept_after", price=6)
    later = deploy(tmp_path, "accept_later", price=6)
    async with runtime(database, broker, tmp_path, before, roles=API_ONLY) as process:
        await fund(process)
        first, second, third = [
            str((await start_run(process, f"accept-{n}", "shop@1")).run_id) for n in range(3)
        ]
    accept = ("plan", "accept", first, "--reason", "the new price is for new runs", "--actor", "rosa")

    code, _, err = await line(*accept)
    assert code == 1 and "not blocked by plan drift; there is nothing to accept" in err
    async with runtime(database, broker, tmp_path, after, sole_owner=True) as process:
        for run_id in (first, second, third):
            await drift_of(process, run_id)
        code, out, _ = await line(*accept)
        assert code == 0 and "goes on with its accepted plan" in out
        summary = await ended(process, first)
        assert summary["status"] == "completed"
        assert summary["cost"]["charged_credits"] == 5, "the price it was accepted at"
        assert await process.audit.prove(uuid.UUID(first), "acme") == []
        assert (await summary_of(process, second))["status"] == "blocked"
    connection = await database.connect()
    said = await connection.fetchval(
        "select data::text from longtake.events where run_id = $1 and type = 'run_unblocked'",
        uuid.UUID(first),
    )
    assert "accepted by rosa: the new price is for new runs" in said
    code, _, err = await line(*accept)
    assert code == 1 and "is completed and not blocked" in err

    async with runtime(database, broker, tmp_path, after, roles=NO_WORKER) as process:
        assert (await line("plan", "accept", second, "--reason", "late", "--actor", "rosa"))[0] == 0
        await free_of_drift(process, second)
    async with runtime(database, broker, tmp_path, later, roles=NO_WORKER) as process:
        assert (await drift_of(process, second))["field"] == "/plan/steps/0/price"
        assert (await summary_of(process, third))["status"] == "blocked"


@pytest.mark.parametrize(
    ("run_id", "more", "said"),
    [
        ("nonsense", ("--reason", "x"), "'nonsense' is no run id"),
        (str(uuid.UUID(int=7)), ("--reason", "x"), "there is no run 00000000-0000-0000-0000-000000000007"),
        (str(uuid.UUID(int=7)), ("--reason", "  "), "--reason has 0 characters; say why in 1 to 300"),
        (str(uuid.UUID(int=7)), ("--reason", "x" * 301), "--reason has 301 characters"),
        (str(uuid.UUID(int=7)), (), "requires an argument"),
    ],
)
async def test_an_acceptance_of_nothing_is_refused_with_words(line, run_id, more, said):
    code, out, err = await line("plan", "accept", run_id, *more)

    assert code in (1, 2)
    assert said in " ".join((out + err).replace("│", " ").split())
    assert "Traceback" not in err


async def test_a_deployment_that_comes_back_a_second_time_is_compared_again(database, broker, tmp_path):
    """Rolled out, rolled back, rolled out: each time the run is told, or it would wait without a blocker for ever."""
    before, after = deploy(tmp_path, "roll_before"), deploy(tmp_path, "roll_after", price=6)
    async with runtime(database, broker, tmp_path, before, roles=API_ONLY) as process:
        await fund(process)
        run_id = str((await start_run(process, "rolled", "shop@1")).run_id)

    for _ in range(2):
        async with runtime(database, broker, tmp_path, after, roles=NO_WORKER) as process:
            await drift_of(process, run_id)
        async with runtime(database, broker, tmp_path, before, roles=NO_WORKER) as process:
            await free_of_drift(process, run_id)
    async with runtime(database, broker, tmp_path, before, sole_owner=True) as process:
        assert (await ended(process, run_id))["status"] == "completed"


RAISES = """
from longtake import App, Plan

app = App("deployed", price_list="1")


@app.workflow("shop", version=1)
def build(input, policy):
    return {}["forgotten"]


@app.workflow("calm", version=1)
def calm(input, policy):
    return Plan().step("rest", activity="work@1")


@app.activity("work@1")
async def work(call):
    return None
"""


async def test_a_builder_that_raises_on_an_old_input_blocks_its_runs_and_no_process(
    database, broker, tmp_path
):
    async with runtime(database, broker, tmp_path, deploy(tmp_path, "sound"), roles=API_ONLY) as process:
        await fund(process)
        shop = str((await start_run(process, "old", "shop@1")).run_id)
        calm = str((await start_run(process, "calm", "calm@1")).run_id)

    async with runtime(
        database, broker, tmp_path, deploy_source(tmp_path, "raises", RAISES), sole_owner=True
    ) as process:
        assert (await ended(process, calm))["status"] == "completed"
        assert (await drift_of(process, shop))["price_effect"] == "the plan cannot be built"


TWO_VERSIONS = """
from longtake import App, Plan

app = App("versions", price_list="1")


@app.workflow("ad", version=1)
def one(input, policy):
    return Plan().step("clip", activity="work@1", price=3)


@app.workflow("ad", version=2)
def two(input, policy):
    return Plan().step("clip", activity="work@1", price=4).step("cut", activity="work@1", depends_on=["clip"])


@app.activity("work@1")
async def work(call):
    return None
"""
ONE_VERSION = (
    TWO_VERSIONS[: TWO_VERSIONS.index('@app.workflow("ad", version=2)')]
    + TWO_VERSIONS[TWO_VERSIONS.index("@app.activity") :]
)


@promise("H20", "H89", "H16")
async def test_two_versions_of_one_workflow_run_side_by_side(database, broker, tmp_path, line):
    """A change comes as a new version: runs of the old one go on under code that has both, each as it was accepted."""
    old = deploy_source(tmp_path, "ad_one", ONE_VERSION)
    both = deploy_source(tmp_path, "ad_both", TWO_VERSIONS)
    async with runtime(database, broker, tmp_path, old, roles=API_ONLY) as process:
        await fund(process)
        first = str((await start_run(process, "first", "ad@1")).run_id)

    code, out, _ = await line("plan", "check", "--app", "ad_both:app")
    assert code == 0 and "0 would block, 1 would go on" in out
    async with runtime(database, broker, tmp_path, both, sole_owner=True) as process:
        second = str((await start_run(process, "second", "ad@2")).run_id)
        fresh_old = str((await start_run(process, "third", "ad@1")).run_id)
        summaries = {run_id: await ended(process, run_id) for run_id in (first, second, fresh_old)}

    told = {
        run_id: (s["status"], s["workflow_version"], s["progress"]["total"], s["cost"]["charged_credits"])
        for run_id, s in summaries.items()
    }
    assert told == {
        first: ("completed", 1, 1, 3),
        second: ("completed", 2, 2, 4),
        fresh_old: ("completed", 1, 1, 3),
    }
