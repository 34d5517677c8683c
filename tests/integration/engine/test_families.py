"""Families on real servers: child runs, their refusals, cancels that cascade, depth, and plans that grow (P5, P15)."""

import asyncio
import uuid
from typing import Any

import msgspec

from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import PRINCIPAL, ended, fund, runtime, start_run, summary_of
from longtake import App, Plan, Step, Succeeded, group, ref
from longtake.contracts.commands import Command
from longtake.contracts.ids import child_command_id_for, run_id_for

CLIP = bytes(range(256))


def family_app() -> App:
    """`parent` has its film made by `film`; `deep` starts itself; `fan` grows by what its first step says."""
    app = App("family")
    app.gate = asyncio.Event()  # type: ignore[attr-defined]  # the test opens it
    app.calls = []  # type: ignore[attr-defined]  # what was worked on

    @app.workflow("film", version=1)
    def film(input: Any, policy: Any) -> Plan:
        return (
            Plan(scopes=tuple(input.get("scopes", ())), delivers="make")
            .step("make", activity="make@1", price=input.get("price", 5), artifacts=["clip"], input=input)
            .step("check", activity="wait@1", depends_on=["make"])
        )

    @app.workflow("parent", version=1)
    def parent(input: Any, policy: Any) -> Plan:
        return (
            Plan()
            .step("script", activity="script@1")
            .run(
                "film",
                workflow=input.get("workflow", "film@1"),
                input={**input.get("child", {}), "words": ref("script", "/result/words")},
                on_exhausted="block",
                on_parent_close=input.get("on_parent_close", "cancel"),
            )
            .step("report", activity="report@1", input={"url": ref("film", "/result/result/url")})
        )

    @app.workflow("deep", version=1)
    def deep(input: Any, policy: Any) -> Plan:
        return Plan().run("deeper", workflow="deep@1")

    @app.workflow("fan", version=1)
    def fan(input: Any, policy: Any) -> Plan:
        return (
            Plan(cost_cap=50, prices={"scene": 5})
            .expand(
                "scenes", activity="scenes.plan@1", fills="takes", expands_to=["scene@1"], input={"count": 3}
            )
            .step("cut", activity="report@1", input={"clips": ref(group("takes"), "/result/number")})
        )

    @app.activity("script@1")
    async def script(call: Any) -> dict[str, Any]:
        return {"words": "once"}

    @app.activity("make@1")
    async def make(call: Any) -> Succeeded:
        clip = await call.artifacts.put(CLIP, name="clip", kind="clip", content_type="video/mp4")
        return Succeeded(result={"url": f"film of {call.input['words']}"}, artifacts=(clip,))

    @app.activity("wait@1")
    async def wait(call: Any) -> None:
        await app.gate.wait()  # type: ignore[attr-defined]  # see above

    @app.activity("report@1")
    async def report(call: Any) -> None:
        app.calls.append(call.input)  # type: ignore[attr-defined]  # see above

    @app.activity("scenes.plan@1")
    async def scenes(call: Any) -> dict[str, Any]:
        return {"count": call.input["count"]}

    @app.activity("scene@1")
    async def scene(call: Any) -> dict[str, Any]:
        return {"number": call.input["number"]}

    @app.expander("scenes.plan@1")
    def expand(result: dict[str, Any]) -> list[Step]:
        return [
            Step(f"scenes:{number}", activity="scene@1", price_key="scene", input={"number": number})
            for number in range(result["count"])
        ]

    return app


def child_of(parent: str, step: str = "film", attempt: int = 1) -> str:
    command_id = child_command_id_for(uuid.UUID(parent), step=step, attempt=attempt)
    return str(run_id_for(tenant=PRINCIPAL.tenant, actor=PRINCIPAL.actor, client_command_id=command_id))


async def command(process: Any, kind: str, run_id: str, id_: str, **payload: Any) -> Any:
    revision = (await summary_of(process, run_id))["revision"]
    given = Command(
        kind=kind,  # type: ignore[arg-type]  # a kind of the table
        project="p1",
        targets=(run_id,),
        expected_revision=revision,
        payload=payload,
        client_command_id=id_,
    )
    return (await process.admission.admit(PRINCIPAL, given, channel="local", traceparent=None)).receipt


async def becomes(process: Any, run_id: str, status: str) -> dict[str, Any]:
    async def there() -> dict[str, Any] | None:
        row = await process.reads.summary(PRINCIPAL.tenant, uuid.UUID(run_id))
        summary: dict[str, Any] | None = None if row is None else msgspec.json.decode(row["summary"])
        return summary if summary is not None and summary["status"] == status else None

    found: dict[str, Any] = await eventually(there, f"run {run_id} {status}", 20)
    return found


@promise("T34")
async def test_a_child_does_the_work_of_a_step_and_its_parent_takes_what_it_delivers(
    database, broker, tmp_path
) -> None:
    app = family_app()
    app.gate.set()
    async with runtime(database, broker, tmp_path, app) as process:
        await fund(process)
        receipt = await start_run(process, "c1", "parent@1")
        summary = await ended(process, receipt.run_id)
        child = await summary_of(process, child_of(receipt.run_id))

    assert ("completed", "completed") == (summary["status"], child["status"])
    assert [{"url": "film of once"}] == app.calls
    assert (0, 5) == (summary["cost"]["charged_credits"], child["cost"]["charged_credits"])
    connection = await database.connect()
    published = await connection.fetch("select run_id::text, step from longtake.artifacts order by step")
    assert {(receipt.run_id, "film"), (child_of(receipt.run_id), "make")} == {tuple(row) for row in published}


async def test_a_refused_child_blocks_its_step_and_a_retry_starts_another(database, broker, tmp_path) -> None:
    app = family_app()
    app.gate.set()
    async with runtime(database, broker, tmp_path, app) as process:
        receipt = await start_run(process, "c1", "parent@1")
        summary = await becomes(process, receipt.run_id, "blocked")
        assert "insufficient-funds" in summary["blockers"][0]["details"]["message"]
        await fund(process)
        assert "applied" == (await command(process, "retry", receipt.run_id, "c2")).status
        await ended(process, receipt.run_id)

        assert "completed" == (await summary_of(process, child_of(receipt.run_id, attempt=2)))["status"]


async def test_a_cancel_reaches_the_child_and_waits_for_it(database, broker, tmp_path) -> None:
    app = family_app()
    async with runtime(database, broker, tmp_path, app) as process:
        await fund(process)
        receipt = await start_run(process, "c1", "parent@1")
        await becomes(process, child_of(receipt.run_id), "running")
        await eventually(
            lambda: _status_of(database, child_of(receipt.run_id), "make", "succeeded"), "the clip", 20
        )
        await command(process, "cancel", receipt.run_id, "c2", reason="enough")
        app.gate.set()
        await ended(process, receipt.run_id)

        parent, child = (
            await summary_of(process, receipt.run_id),
            await summary_of(process, child_of(receipt.run_id)),
        )
        assert ("cancelled", "cancelled") == (parent["status"], child["status"])


async def _status_of(database: Any, run_id: str, step: str, status: str) -> bool:
    connection = await database.connect()
    found = await connection.fetchval(
        "select status from longtake.steps where run_id = $1 and key = $2", uuid.UUID(run_id), step
    )
    await connection.close()
    return bool(found == status)


async def test_an_abandoned_child_outlives_its_parent(database, broker, tmp_path) -> None:
    app = family_app()
    async with runtime(database, broker, tmp_path, app) as process:
        await fund(process)
        receipt = await start_run(process, "c1", "parent@1", {"on_parent_close": "abandon"})
        await becomes(process, child_of(receipt.run_id), "running")
        await command(process, "cancel", receipt.run_id, "c2")
        await ended(process, receipt.run_id)
        app.gate.set()
        child = await ended(process, child_of(receipt.run_id))

    assert "completed" == child["status"]


async def test_a_workflow_that_starts_itself_ends_at_the_eighth_generation(
    database, broker, tmp_path
) -> None:
    async with runtime(database, broker, tmp_path, family_app()) as process:
        receipt = await start_run(process, "c1", "deep@1")
        summary = await ended(process, receipt.run_id)

    assert "failed" == summary["status"]
    connection = await database.connect()
    runs = await connection.fetch("select summary from longtake.runs order by accepted_at")
    assert 8 == len(runs)
    assert "at most 8 generations" in runs[-1]["summary"]


@promise("H11", "H13")
async def test_a_plan_grows_by_what_a_step_says_and_everybody_sees_it(database, broker, tmp_path) -> None:
    app = family_app()
    async with runtime(database, broker, tmp_path, app) as process:
        await fund(process)
        receipt = await start_run(process, "c1", "fan@1")
        summary = await ended(process, receipt.run_id)
        run_id = uuid.UUID(receipt.run_id)
        assert (5, 15) == (summary["progress"]["total"], summary["cost"]["charged_credits"])
        assert [{"clips": [0, 1, 2]}] == app.calls
        assert [] == await process.audit.prove(run_id, PRINCIPAL.tenant)
        row = await process.reads.plan(PRINCIPAL.tenant, run_id)
        assert b"scenes:2" in row["plan"]


async def test_a_child_that_is_started_twice_is_one_run(database, broker, tmp_path) -> None:
    """A starter that dies after the admission and before it settles its errand does it again."""
    app = family_app()
    app.gate.set()
    async with runtime(database, broker, tmp_path, app) as process:
        await fund(process)
        receipt = await start_run(process, "c1", "parent@1")
        await ended(process, receipt.run_id)
        connection = await database.connect()
        await connection.execute("update longtake.errands set settled_at = null, reason = null")
        process.doorbell.ring("starter")

        async def settled() -> bool:
            left = await connection.fetchval("select count(*) from longtake.errands where settled_at is null")
            return bool(left == 0)

        await eventually(settled, "the errand is settled again", 20)
        assert 2 == await connection.fetchval("select count(*) from longtake.runs")
        assert 1 == await connection.fetchval("select count(*) from longtake.ledger_entries")
