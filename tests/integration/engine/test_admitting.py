"""Admission with the real thing: copies, funds, scopes (P8, P10, P23, H54)."""

import asyncio
import uuid
from typing import Any

import pytest

from kit.hand_work import Bench
from kit.outside import outside_app
from kit.promises import promise
from kit.runtimes import FUNDS, PRINCIPAL, fund, runtime, start_run, summary_of
from longtake import App, Plan
from longtake.contracts.commands import Command
from longtake.contracts.problems import PROBLEM_BASE

API_ONLY = ("api",)
COPIES = 50


def scoped_app() -> App:
    """Runs that own what they are told to, and cost what they are told to."""
    app = App("scoped")

    @app.activity("own@1")
    async def own(call: Any) -> None:
        return None

    @app.workflow("scoped", version=1)
    def build(input: Any, policy: Any) -> Plan:
        return Plan(scopes=tuple(input.get("scopes", ()))).step(
            "own", activity="own@1", phase="owning", price=input.get("price", 0)
        )

    return app


async def cancel(process: Any, run_id: str, id_: str) -> Any:
    revision = (await summary_of(process, run_id))["revision"]
    command = Command(
        kind="cancel", project="p1", targets=(run_id,), expected_revision=revision, client_command_id=id_
    )
    return (await process.admission.admit(PRINCIPAL, command, channel="local", traceparent=None)).receipt


@promise("H77", "G19", "G18")
async def test_fifty_copies_at_once_are_one_run_one_charge_and_fifty_equal_answers(
    database, broker, tmp_path
):
    """P23: a copy waits for the first one's commit and reads its answer, in this process and in another."""
    async with (
        runtime(database, broker, tmp_path / "a", scoped_app(), roles=API_ONLY) as one,
        runtime(database, broker, tmp_path / "b", scoped_app(), roles=API_ONLY) as other,
    ):
        await fund(one)

        def send(number: int) -> Any:
            process = (one, other)[number % 2]
            command = Command(
                kind="generation",
                project="p1",
                payload={"workflow": "scoped@1", "input": {"price": 15, "scopes": ["voice"]}},
                client_command_id="copied",
            )
            return process.admission.admit(PRINCIPAL, command, channel="local", traceparent=None)

        answers = await asyncio.gather(*(send(number) for number in range(COPIES)))

    connection = await database.connect()
    stands = await connection.fetchrow(
        "select (select count(*) from longtake.runs) as runs, (select count(*) from longtake.commands) as commands, "
        "(select count(*) from longtake.effects) as effects, (select sum(amount) from longtake.ledger_entries) as paid"
    )
    assert dict(stands) == {"runs": 1, "commands": 1, "effects": 1, "paid": 15}
    assert [answer.replayed for answer in answers].count(False) == 1
    assert len({answer.receipt for answer in answers if answer.receipt.summary is None} or {1}) == 1
    assert all(answer.receipt == answers[0].receipt for answer in answers)


@promise("H54", "G21")
async def test_of_two_starts_that_want_one_scope_one_is_refused_and_told_who_holds_it(
    database, broker, tmp_path
):
    async with runtime(database, broker, tmp_path, scoped_app(), roles=API_ONLY) as process:
        receipts = await asyncio.gather(
            start_run(process, "left", "scoped@1", {"scopes": ["voice", "scene:1"]}),
            start_run(process, "right", "scoped@1", {"scopes": ["scene:1", "render"]}),
            start_run(process, "apart", "scoped@1", {"scopes": ["scene:2"]}),
        )
        by_status = {receipt.status: receipt for receipt in receipts[:2]}

        assert set(by_status) == {"running", "rejected"}
        assert receipts[2].status == "running"
        refused = by_status["rejected"].problem
        assert refused.type == PROBLEM_BASE + "scope-conflict"
        assert by_status["running"].run_id in refused.detail
        assert "scene:1" in refused.errors[0].message and "voice" not in refused.errors[0].message
        connection = await database.connect()
        held = await connection.fetch("select scope, run_id::text from longtake.scopes order by scope")
        assert "scene:1" in {row["scope"] for row in held if row["run_id"] == by_status["running"].run_id}
        assert await connection.fetchval("select count(*) from longtake.runs") == 2

        # Scopes are free as soon as their run is on its way out (P10), and the refusal stays the answer of its id.
        await cancel(process, by_status["running"].run_id, "out")
        free = await start_run(process, "third", "scoped@1", {"scopes": ["scene:1"]})
        again = await start_run(
            process,
            by_status["rejected"].command_id,
            "scoped@1",
            {
                "scopes": ["voice", "scene:1"]
                if by_status["rejected"].command_id == "left"
                else ["scene:1", "render"]
            },
        )
        assert free.status == "running"
        assert again == by_status["rejected"]


@promise("H43", "H44", "H48")
async def test_an_account_that_cannot_pay_for_the_cap_is_told_what_is_missing(database, broker, tmp_path):
    async with runtime(database, broker, tmp_path, scoped_app(), roles=API_ONLY) as process:
        await fund(process, 20)
        first = await start_run(process, "first", "scoped@1", {"price": 15})
        second = await start_run(process, "second", "scoped@1", {"price": 15})

        assert first.status == "running"
        assert second.status == "rejected"
        assert second.problem is not None
        assert second.problem.type == PROBLEM_BASE + "insufficient-funds"
        assert second.problem.errors[0].pointer == "/payload/account"
        assert second.problem.errors[0].remedy == "add 10 credits"
        connection = await database.connect()
        assert await connection.fetchval("select count(*) from longtake.runs") == 1
        assert await connection.fetchval("select sum(amount) from longtake.ledger_entries") == 15


@pytest.mark.parametrize("price", [1, FUNDS])
@promise("H47", "H49")
async def test_a_charge_belongs_to_the_run_that_caused_it_and_never_exceeds_its_cap(
    database, broker, tmp_path, price
):
    async with runtime(database, broker, tmp_path, scoped_app(), roles=API_ONLY) as process:
        await fund(process)
        receipt = await start_run(process, "paid", "scoped@1", {"price": price})
        connection = await database.connect()
        row = await connection.fetchrow(
            "select l.tenant_id = r.tenant_id and l.run_id = r.run_id and l.account = r.account as ours, "
            "l.amount <= r.cap as covered, r.charged - r.refunded = l.amount as net from longtake.ledger_entries l "
            "join longtake.runs r using (run_id)"
        )
        assert tuple(row) == (True, True, True)
        with pytest.raises(Exception, match="net_within_cap"):
            await connection.execute(
                "update longtake.runs set charged = cap + 1 where run_id = $1", uuid.UUID(receipt.run_id)
            )


@promise("T42", "H46")
async def test_a_cancel_of_submitted_work_asks_the_provider_to_stop_and_gives_the_money_back(
    database, broker, tmp_path
):
    from longtake import Cancelled, Submitted

    async with runtime(database, broker, tmp_path, outside_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            receipt = await start_run(process, "stopped", "outside@1")
            await bench.settle(Submitted(external_ref="job-1", poll_after_seconds=600))
            answer = await cancel(process, str(receipt.run_id), "stop")
            waiting = await summary_of(process, str(receipt.run_id))
            (stop,) = await bench.claim()
            await bench.report([stop], Cancelled(answer="stopped"))
            await bench.decide([stop.id])
            summary = await summary_of(process, str(receipt.run_id))
            proved = await process.audit.prove(uuid.UUID(receipt.run_id), "acme")
        finally:
            await bench.close()

        assert answer.status != "rejected"
        assert (waiting["status"], waiting["available_actions"]) == ("cancelling", ["follow_up_generation"])
        assert (stop.kind, stop.external_ref, stop.attempt) == ("cancel", "job-1", 1)
        assert summary["status"] == "cancelled"
        assert summary["cost"] == {
            "quoted_credits": 4,
            "charged_credits": 4,
            "refunded_credits": 4,
            "net_credits": 0,
        }
        assert proved == []


@promise("H35", "H59", "H45")
async def test_a_person_may_retry_a_blocked_run_on_the_same_step_without_paying_again(
    database, broker, tmp_path
):
    import hashlib

    from longtake import Artifact, Failed, Succeeded

    async with runtime(database, broker, tmp_path, outside_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            receipt = await start_run(process, "tired", "outside@1")
            run_id = str(receipt.run_id)
            for _ in range(10):
                await bench.pool.execute(
                    "update longtake.effects set not_before = now() where closed_at is null"
                )
                if not await bench.settle(Failed(error_class="transient", message="busy")):
                    break
            blocked = await summary_of(process, run_id)
            spent = await bench.pool.fetchval("select max(attempt) from longtake.effects")
            command = Command(
                kind="retry",
                project="p1",
                targets=(run_id,),
                expected_revision=blocked["revision"],
                client_command_id="again",
            )
            answer = await process.admission.admit(PRINCIPAL, command, channel="local", traceparent=None)
            digest = hashlib.sha256(b"film").hexdigest()
            film = Artifact(
                name="film",
                kind="film",
                object_key=f"sha256/{digest}",
                sha256=digest,
                bytes=4,
                content_type="video/mp4",
            )
            (effect,) = await bench.settle(Succeeded(artifacts=(film,)))
            summary = await summary_of(process, run_id)
        finally:
            await bench.close()

        assert blocked["status"] == "blocked"
        assert [blocker["type"] for blocker in blocked["blockers"]] == ["retries_exhausted"]
        assert "retry_generation" in blocked["available_actions"]
        assert answer.receipt.status != "rejected"
        assert (effect.step, effect.attempt) == ("make", spent + 1)
        assert summary["status"] == "completed"
        assert summary["cost"]["charged_credits"] == summary["cost"]["net_credits"] == 4
