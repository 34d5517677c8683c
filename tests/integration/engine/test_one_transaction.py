"""What one decision writes stands or falls together, and each row says where it comes from (P5, P9, P23, T20)."""

import hashlib
import uuid
from typing import Any

import asyncpg
import msgspec
import pytest

from kit.hand_work import Bench
from kit.outside import outside_app
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import FUNDS, PRINCIPAL, fund, runtime, start_run, summary_of
from longtake import App, Artifact, Failed, Plan, Retry, Submitted, Succeeded
from longtake.contracts.codec import canonical
from longtake.contracts.commands import Command
from longtake.contracts.ids import effect_id_for

API_ONLY = ("api",)
DIGEST = hashlib.sha256(b"film").hexdigest()
FILM = Artifact(
    name="film", kind="film", object_key=f"sha256/{DIGEST}", sha256=DIGEST, bytes=4, content_type="video/mp4"
)


async def _writers(connection: asyncpg.Connection, **wheres: str) -> dict[str, set[str]]:
    """By table, the transactions that wrote the newest version of the rows that match."""
    return {
        table: {
            row[0] for row in await connection.fetch(f"select xmin::text from longtake.{table} where {where}")
        }
        for table, where in wheres.items()
    }


@promise("H29", "T07", "T20")
async def test_command_run_charge_events_and_first_effect_are_one_transaction(database, broker, tmp_path):
    async with runtime(database, broker, tmp_path, outside_app(), roles=API_ONLY) as process:
        await fund(process)
        await start_run(process, "together", "outside@1")
    connection = await database.connect()

    written = await _writers(
        connection,
        commands="true",
        runs="true",
        events="true",
        steps="true",
        effects="true",
        ledger_entries="true",
        holds="true",
        accounts="true",
    )

    assert all(written.values()), "each of them has a row"
    assert len(set().union(*written.values())) == 1


def resting_app() -> App:
    """A run that sleeps, waits for an event, and tries a step again, each in an hour."""
    app = App("resting")

    @app.activity("fails@1")
    async def fails(call: Any) -> Failed:
        return Failed(error_class="transient", message="later")

    @app.workflow("resting", version=1)
    def build(input: Any, policy: Any) -> Plan:
        return (
            Plan(deadline_seconds=86_400)
            .sleep("sleep", seconds=3600)
            .wait("wait", event="said", timeout_seconds=3600)
            .step("again", activity="fails@1", retry=Retry(first_delay_ms=3_600_000, delay_ms_max=3_600_000))
        )

    return app


@promise("W27")
async def test_what_wakes_a_run_is_written_by_the_decision_that_lets_it_rest(database, broker, tmp_path):
    """Timers and due times are rows of the transaction of their events: a process that dies then has nothing to save."""
    async with runtime(database, broker, tmp_path, resting_app()) as process:
        await start_run(process, "resting", "resting@1")
        connection = await database.connect()

        async def rests() -> bool:
            return await connection.fetchval(
                "select count(*) = 1 from longtake.events where type = 'attempt_failed'"
            )

        await eventually(rests, "the first attempt has failed", 20)
    wakes = await connection.fetch(
        "select xmin::text as writer, key as what, due_at from longtake.timers "
        "union all select xmin::text, kind, not_before from longtake.effects where attempt = 2"
    )
    writers = {
        row["type"]: row["writer"]
        for row in await connection.fetch("select type, xmin::text as writer from longtake.events")
    }

    assert {
        "step:sleep": writers["gates_opened"],
        "step:wait": writers["gates_opened"],
        "run_deadline": writers["run_accepted"],
    } == {row["what"]: row["writer"] for row in wakes if row["what"] != "execute"}
    (again,) = [row for row in wakes if row["what"] == "execute"]
    assert again["due_at"] is not None
    written = await _writers(connection, steps="key = 'again'", runs="true")
    assert {writers["attempt_failed"]} == written["steps"] == written["runs"]


@promise("H27", "H25")
async def test_the_end_of_a_run_its_artifact_and_its_money_are_one_transaction(database, broker, tmp_path):
    """Local operations are written by the transition itself; nobody does them afterwards."""
    async with runtime(database, broker, tmp_path, outside_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            await start_run(process, "ends", "outside@1")
            claimed = await bench.settle(Succeeded(artifacts=(FILM,)))
            written = await _writers(
                bench.pool,
                events="type in ('step_succeeded', 'run_completed')",
                runs="status = 'completed'",
                steps="status = 'succeeded'",
                effects="state = 'closed'",
                artifacts="true",
                holds="released_at is not null",
                accounts="held = 0",
            )
        finally:
            await bench.close()

    assert len(claimed) == 1
    assert all(written.values())
    assert len(set().union(*written.values())) == 1


@promise("H77", "H50", "H27")
async def test_the_failure_of_a_run_and_its_refund_are_one_transaction(database, broker, tmp_path):
    app = outside_app()

    @app.workflow("strict", version=1)
    def build(input, policy):
        return Plan().step("make", activity="outside@1", price=4, on_exhausted="fail")

    async with runtime(database, broker, tmp_path, app, roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            await start_run(process, "fails", "strict@1")
            await bench.settle(Failed(error_class="invalid_input", origin="content", message="no"))
            written = await _writers(
                bench.pool,
                events="type in ('refunded', 'run_failed')",
                runs="status = 'failed'",
                ledger_entries="kind = 'refund'",
                holds="released_at is not null",
            )
            money = await bench.pool.fetchrow("select balance, held from longtake.accounts")
        finally:
            await bench.close()

    assert all(written.values())
    assert len(set().union(*written.values())) == 1
    assert tuple(money) == (FUNDS, 0)


@promise("H77", "H86", "T20")
async def test_a_decision_that_cannot_be_written_whole_is_not_written_at_all(database, broker, tmp_path):
    """An artifact that the table refuses takes success, end and money with it; the run says so and can be gone on with."""
    async with runtime(database, broker, tmp_path, outside_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            receipt = await start_run(process, "torn", "outside@1")
            owner = await database.connect()
            await owner.execute("alter table longtake.artifacts add constraint never check (name <> 'film')")
            claimed = await bench.claim()
            await bench.report(claimed, Succeeded(artifacts=(FILM,)))
            outcome = await bench.decide([claimed[0].id])
            torn = await summary_of(process, str(receipt.run_id))
            left = await owner.fetchrow(
                "select (select count(*) from longtake.artifacts) as files, e.state, e.closed_at, "
                "(select count(*) from longtake.events where type in ('step_succeeded', 'run_completed')) as ends, "
                "(select count(*) from longtake.holds where released_at is null) as held from longtake.effects e"
            )
            await owner.execute("alter table longtake.artifacts drop constraint never")
            retry = Command(
                kind="retry",
                project="p1",
                targets=(str(receipt.run_id),),
                expected_revision=torn["revision"],
                client_command_id="mended",
            )
            await process.admission.admit(PRINCIPAL, retry, channel="local", traceparent=None)
            await bench.decide([claimed[0].id])
            whole = await summary_of(process, str(receipt.run_id))
        finally:
            await bench.close()

    assert outcome.blocked == 1
    assert (torn["status"], [blocker["type"] for blocker in torn["blockers"]]) == (
        "blocked",
        ["reducer_error"],
    )
    assert tuple(left) == (0, "reported", None, 0, 1)
    assert whole["status"] == "completed"


@promise("H25")
async def test_one_run_whose_rows_are_refused_is_blocked_and_the_others_of_its_batch_commit(
    database, broker, tmp_path
):
    """A provider's reference with a NUL in it, which no text column takes: it stops its own run and no dispatcher."""
    async with runtime(database, broker, tmp_path, outside_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            runs = [str((await start_run(process, f"batch-{n}", "outside@1")).run_id) for n in range(8)]
            claimed = await bench.claim()
            victim = claimed[3]
            for effect in claimed:
                ref = "job\0" if effect is victim else f"job-{effect.id}"
                await bench.report([effect], Submitted(external_ref=ref, poll_after_seconds=600))
            outcome = await bench.decide([effect.id for effect in claimed])
            statuses = {run: (await summary_of(process, run))["status"] for run in runs}
            polls = await bench.pool.fetchval("select count(*) from longtake.effects where kind = 'poll'")
            proved = [await process.audit.prove(uuid.UUID(run), "acme") for run in runs]
            again = await bench.decide([effect.id for effect in claimed])
        finally:
            await bench.close()

    assert outcome.blocked == 1
    assert statuses.pop(str(victim.run_id)) == "blocked"
    assert set(statuses.values()) == {"running"}
    assert polls == 7
    assert proved == [[]] * 8
    assert again.deferred == 0


@promise("G36", "G26", "T12")
async def test_a_receipt_stands_before_anything_of_it_is_applied(database, broker, tmp_path):
    """The provider's answer, whole, is on the effect's row; the run moves only when it is decided, by whoever lives."""
    async with runtime(database, broker, tmp_path, outside_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            receipt = await start_run(process, "answered", "outside@1")
            (effect,) = await bench.claim()
            said = Succeeded(artifacts=(FILM,), external_ref="job-1", result={"rating": 5}, provider_cost=12)
            await bench.report([effect], said)
            row = await bench.pool.fetchrow(
                "select receipt, reporter, report_fence, reported_at, closed_at from longtake.effects"
            )
            before = await summary_of(process, str(receipt.run_id))
            # Whoever stored it is gone; another process knows everything.
            bench.dispatcher = bench.new_dispatcher()
            await bench.decide([effect.id])
            after = await summary_of(process, str(receipt.run_id))
            scheduled, succeeded = [
                msgspec.json.decode(data)
                for data in await bench.pool.fetchval(
                    "select array_agg(data::text order by seq) from longtake.events "
                    "where type in ('steps_scheduled', 'step_succeeded')"
                )
            ]
        finally:
            await bench.close()

    kept = msgspec.json.decode(row["receipt"])
    assert (kept["external_ref"], kept["outcome"], kept["result"]) == ("job-1", "succeeded", {"rating": 5})
    assert kept["artifacts"][0]["object_key"] == FILM.object_key
    assert (row["reporter"], row["report_fence"], row["closed_at"]) == ("hand", effect.fence, None)
    assert before["revision"] == receipt.revision
    assert after["status"] == "completed"
    # The applied receipt names the effect, and the effect's fingerprint of its input stands in the history.
    assert succeeded["work"]["effect_id"] == scheduled["steps"][0]["effect_id"] == str(effect.id)
    assert scheduled["steps"][0]["input_digest"] == hashlib.sha256(effect.input).hexdigest()


@promise("T04", "G25", "G39")
async def test_the_row_of_an_effect_is_its_whole_envelope(database, broker, tmp_path):
    """Scope, operation with its version, input and digest, cause and authority, lease and heartbeat: all on rows."""
    async with runtime(database, broker, tmp_path, outside_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            receipt = await start_run(process, "enveloped", "outside@1")
            await bench.settle(Submitted(external_ref="job-1", poll_after_seconds=0))
            (poll,) = await bench.claim(owner="worker-1")
            row = await bench.pool.fetchrow("select * from longtake.effects where id = $1", poll.id)
            meta = msgspec.json.decode(
                await bench.pool.fetchval("select meta from longtake.events where type = 'attempt_submitted'")
            )
            plan_retry = await bench.pool.fetchval(
                "select max_attempts from longtake.steps where key = 'make'"
            )
        finally:
            await bench.close()

    run_id = uuid.UUID(receipt.run_id)
    execute = effect_id_for(run_id, step="make", attempt=1, kind="execute", ordinal=1)
    assert row["id"] == effect_id_for(run_id, step="make", attempt=1, kind="poll", ordinal=1)
    assert (row["tenant_id"], row["run_id"], row["step"], row["attempt"]) == ("acme", run_id, "make", 1)
    assert (row["activity"], row["kind"], row["external_ref"]) == ("outside@1", "poll", "job-1")
    assert row["deadline"] > row["created_at"]
    assert row["lease_owner"] == "worker-1"
    assert row["lease_until"] > row["claimed_at"] == row["heartbeat_at"]
    assert row["not_before"] is not None and plan_retry > 1
    assert canonical(msgspec.json.decode(row["input"])) == poll.input
    assert meta["causation"] == f"effect:{execute}"
    assert meta["correlation"].endswith("enveloped")
    assert meta["actor"]
    assert PRINCIPAL.tenant == row["tenant_id"]


@promise("G27")
async def test_each_claim_leaves_a_row_that_nobody_can_change(database, broker, tmp_path):
    async with runtime(database, broker, tmp_path, outside_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            await start_run(process, "claimed", "outside@1")
            for owner in ("first", "second"):
                await bench.claim(owner=owner)
                await bench.pool.execute(
                    "update longtake.effects set lease_until = clock_timestamp() - interval '1 s'"
                )
                await process.sweep.expire_leases(leases_max=5, authority_up_seconds=0.0, connected=True)
            rows = await bench.pool.fetch(
                "select owner, attempt, fence from longtake.effect_claims order by fence"
            )
            owner_of_all = await database.connect()
            with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="append-only"):
                await owner_of_all.execute("update longtake.effect_claims set owner = 'nobody'")
        finally:
            await bench.close()

    assert [(row["owner"], row["attempt"]) for row in rows] == [("first", 1), ("second", 1)]
    assert rows[0]["fence"] < rows[1]["fence"]
