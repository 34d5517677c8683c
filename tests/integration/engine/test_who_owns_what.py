"""The authority owns every outcome; the broker and the clock only say when to look (T01, T62, G10, G11)."""

import asyncio
import uuid
from typing import Any

import httpx2

from kit.hand_work import Bench
from kit.outside import outside_app
from kit.promises import promise
from kit.runtimes import PRINCIPAL, ended, fund, noop_app, runtime, settings_for, start_run, summary_of
from kit.tables import counts
from longtake import App, Failed, Plan
from longtake.bootstrap import Addresses, Runtime
from longtake.engine.intake import Intake

NOWHERE = "nats://127.0.0.1:9"
HOURS = 600.0
PROMPT_SECONDS = 5.0


@promise("G11", "T62", "T01")
async def test_without_any_broker_a_run_is_accepted_told_and_brought_to_its_end(database, tmp_path):
    """NATS is away for the whole life of the run: status, plan and eligibility come from rows, and so does the end."""
    app = App("branches")

    @app.activity("noop@1")
    async def noop(call: Any) -> None:
        return None

    @app.workflow("branches", version=1)
    def build(input: Any, policy: Any) -> Plan:
        return (
            Plan()
            .step("left", activity="noop@1")
            .step("right", activity="noop@1")
            .step("join", activity="noop@1", depends_on=["left", "right"])
        )

    process = Runtime(
        settings_for(tmp_path), Addresses(database.connect_kwargs, NOWHERE, None), roles=("api",), app=app
    )
    await process.start()
    bench = await Bench.open(process)
    try:
        key = await process.keys.create(tenant=PRINCIPAL.tenant, actor=PRINCIPAL.actor, roles=("producer",))
        async with httpx2.AsyncClient(
            base_url=process.api_server.url, trust_env=False, headers={"Authorization": f"Bearer {key.text}"}
        ) as http:
            answer = await http.post(
                "/v1/commands",
                json={
                    "kind": "generation",
                    "project": "p1",
                    "payload": {"workflow": "branches@1", "input": {}},
                },
                headers={"Idempotency-Key": "unbrokered"},
            )
            run_id = answer.json()["run_id"]
            plan = (await http.get(f"/v1/runs/{run_id}/plan")).json()["plan"]
            waves = []
            while claimed := await bench.claim():
                waves.append(sorted(effect.step for effect in claimed))
                await bench.report(claimed)
                await bench.decide([effect.id for effect in claimed])
                told = (await http.get(f"/v1/runs/{run_id}/summary")).json()
    finally:
        await bench.close()
        await process.stop()

    assert answer.status_code == 202
    assert [step["key"] for step in plan["steps"]] == ["left", "right", "join"]
    assert waves == [["left", "right"], ["join"]]
    assert (told["status"], told["progress"]["completed"]) == ("completed", 3)


@promise("G10")
async def test_work_is_taken_up_because_it_is_there_and_not_because_a_timer_came_round(
    database, broker, tmp_path
):
    """Every timer of the service is set to half a minute and more; five steps in a row end long before the first."""
    async with runtime(
        database, broker, tmp_path, noop_app(), idle_seconds=30.0, grace_seconds=HOURS
    ) as process:
        await process.transport.started()
        begun = asyncio.get_running_loop().time()
        receipt = await start_run(process, "prompt", input_={"steps": 5})
        summary = await ended(process, str(receipt.run_id), PROMPT_SECONDS)
        took = asyncio.get_running_loop().time() - begun

    assert summary["status"] == "completed"
    assert took < PROMPT_SECONDS


@promise("H04")
async def test_two_runs_of_one_project_have_their_own_inputs_costs_failures_and_histories(
    database, broker, tmp_path
):
    app = outside_app()

    @app.workflow("strict", version=1)
    def build(input: Any, policy: Any) -> Plan:
        return Plan().step(
            "make", activity="outside@1", price=input["price"], input=input, on_exhausted="fail"
        )

    async with runtime(database, broker, tmp_path, app, roles=("api",)) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            bad = str((await start_run(process, "bad", "strict@1", {"price": 3})).run_id)
            await bench.settle(Failed(error_class="invalid_input", message="no"))
            good = str((await start_run(process, "good", "strict@1", {"price": 4})).run_id)
            await bench.settle()
            summaries = {run: await summary_of(process, run) for run in (bad, good)}
            ledger = await bench.pool.fetch(
                "select run_id::text, kind, amount from longtake.ledger_entries order by recorded_at"
            )
            inputs = await bench.pool.fetchval("select count(distinct fingerprint) from longtake.plans")
            histories = [await process.audit.verify(uuid.UUID(run)) for run in (bad, good)]
        finally:
            await bench.close()

    assert (summaries[bad]["status"], summaries[good]["status"]) == ("failed", "completed")
    assert "failure" in summaries[bad] and "failure" not in summaries[good]
    assert [summaries[run]["cost"]["net_credits"] for run in (bad, good)] == [0, 4]
    assert [tuple(row) for row in ledger] == [(bad, "charge", 3), (bad, "refund", 3), (good, "charge", 4)]
    assert inputs == 2
    assert histories == [summaries[bad]["revision"], summaries[good]["revision"]]


@promise("T33", "H89", "H16")
async def test_a_new_version_of_a_workflow_leaves_the_runs_of_the_old_one_as_they_were(
    database, broker, tmp_path
):
    """The run keeps plan, input and policy of its start; a changed graph under a new version is for new runs."""

    def deployed(*versions: int) -> App:
        app = App("versions")

        @app.activity("noop@1")
        async def noop(call: Any) -> None:
            return None

        def plan_of(steps: int) -> Any:
            def build(input: Any, policy: Any) -> Plan:
                plan = Plan()
                for number in range(steps):
                    plan = plan.step(f"s{number}", activity="noop@1", input={**input, **policy})
                return plan

            return build

        for version in versions:
            app.workflow("grow", version=version, policy={"model": f"m{version}"})(plan_of(version))
        return app

    async with runtime(database, broker, tmp_path, deployed(1), roles=("api",)) as process:
        old = str((await start_run(process, "old", "grow@1", {"x": 1})).run_id)
    async with runtime(database, broker, tmp_path / "next", deployed(1, 2), sole_owner=True) as process:
        new = str((await start_run(process, "new", "grow@2", {"x": 1})).run_id)
        totals = [(await ended(process, run))["progress"]["total"] for run in (old, new)]
        connection = await database.connect()
        frozen = await connection.fetch(
            "select r.workflow_version, p.input::text, p.policy::text, p.plan::text from longtake.runs r "
            "join longtake.plans p on p.fingerprint = r.plan_fingerprint order by r.workflow_version"
        )

    assert totals == [1, 2]
    assert [row["workflow_version"] for row in frozen] == [1, 2]
    assert all('"x":1' in row["input"].replace(" ", "") for row in frozen)
    assert ["m1" in row["policy"] for row in frozen] == [True, False]
    assert ["s1" in row["plan"] for row in frozen] == [False, True]


class Unacked:
    """A delivery whose process dies between the commit and the acknowledgement."""

    def __init__(self, subject: str, body: bytes) -> None:
        self.subject = subject
        self.body = body
        self.headers = {"Longtake-Actor": PRINCIPAL.actor}

    async def ack(self, *, sync: bool = False) -> None:
        raise ConnectionResetError("died before the ack")


@promise("T08", "T14")
async def test_a_message_whose_ack_died_after_the_commit_is_admitted_again_to_the_same_run(
    database, broker, tmp_path
):
    """Broker and authority share no transaction: commit first, then ack, and the redelivery finds what stands."""
    async with runtime(database, broker, tmp_path, outside_app(), roles=("api",)) as process:
        await fund(process)
        await process.transport.started()
        intake = Intake(process.admission, process.transport, process.sweep)
        body = (
            b'{"kind":"generation","project":"p1","client_command_id":"once",'
            b'"payload":{"workflow":"outside@1","input":{}}}'
        )
        subject = f"longtake.v1.command.{PRINCIPAL.tenant}.generation"
        connection = await database.connect()
        stands = []
        for _ in range(2):
            try:
                await intake.take(Unacked(subject, body))  # type: ignore[arg-type]  # all of a Delivery that is asked for
            except ConnectionResetError:
                stands.append(await counts(connection))

    assert len(stands) == 2
    assert stands[0] == stands[1]
    assert (stands[0]["commands"], stands[0]["runs"], stands[0]["ledger_entries"]) == (1, 1, 1)
