"""What comes when all is over: each is answered, kept where somebody can find it, and without effect (F60-F67)."""

import asyncio
import uuid

import msgspec

from kit.hand_work import Bench
from kit.outside import outside_app, signed
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import PRINCIPAL, fund, runtime, start_run, summary_of
from longtake import Failed
from longtake.contracts.commands import Command
from longtake.contracts.effects import Report
from longtake.contracts.ids import callback_token_for
from longtake.engine.dispatcher import Pointers
from longtake.postgres.statements import statement

LATE = msgspec.json.encode(Failed(error_class="provider_bug", message="much later", provider_cost=3))
STANDING = """select r.status, r.revision, r.head_hash, (select count(*) from longtake.effects) as effects,
    (select count(*) from longtake.effect_claims) as claims, (select count(*) from longtake.ledger_entries) as entries
    from longtake.runs r"""


@promise("T20", "T45")
async def test_a_stale_claim_report_callback_cancel_and_input(database, broker, tmp_path):
    async with runtime(database, broker, tmp_path, outside_app(), roles=("api",)) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            run_id = str((await start_run(process, "over", "outside@1")).run_id)
            (effect,) = await bench.settle(Failed(error_class="invalid_input", message="no"))

            async def told(kind: str, **payload: object) -> str:
                revision = (await summary_of(process, run_id))["revision"]
                command = Command(
                    kind=kind,  # type: ignore[arg-type]
                    project="p1",
                    targets=(run_id,),
                    payload=payload,
                    client_command_id=f"{kind}-{uuid.uuid4().hex[:8]}",
                    expected_revision=revision,
                )
                answer = await process.admission.admit(PRINCIPAL, command, channel="local", traceparent=None)
                return answer.receipt.problem.slug if answer.receipt.problem else "applied"

            assert await told("cancel") == "applied"
            before = await bench.pool.fetchrow(STANDING)
            assert before["status"] == "cancelled"

            claimed = await bench.effects.claim(
                claim_id=uuid.uuid4(),
                effects=[(effect.id, effect.attempt)],
                limit=1,
                owner="late",
                lease_seconds=30,
            )
            looked_at = await bench.effects.report(
                [Report(effect_id=effect.id, fence=effect.fence + 1, owner="late", outcome=LATE)]
            )
            token = callback_token_for(process.secret, run_id=uuid.UUID(run_id), step="make", attempt=1)
            raw, headers = signed(id="c1", job="job-1")
            folded = {name.lower(): value for name, value in headers.items()}
            heard = await process.inbox.receive("acme", token, folded, raw, traceparent=None)
            await bench.dispatcher.handle(Pointers(inbox=dict.fromkeys([heard.inbox_id])))
            answers = [await told("cancel"), await told("provide_input", step="make", answer={})]

            kept = await bench.pool.fetch(
                "select owner, receipt->>'provider_cost' as cost from longtake.late_receipts"
            )
            inbox = await bench.pool.fetchrow("select status, settled_at from longtake.inbox")
            refused = await bench.pool.fetchval(
                "select count(*) from longtake.commands where receipt->>'status' = 'rejected'"
            )
            after = await bench.pool.fetchrow(STANDING)
        finally:
            await bench.close()

    assert claimed == [], "told: there is nothing to claim"
    assert looked_at == [], "told: kept, and nobody need look"
    assert [tuple(row) for row in kept] == [("late", "3")]
    assert not heard.duplicate, "thanked, as a provider would otherwise call for ever"
    assert inbox["status"] == "ignored" and inbox["settled_at"] is not None
    assert answers == ["action-not-available"] * 2
    assert refused == 2
    assert dict(after) == dict(before)


@promise("G37")
async def test_a_receipt_that_waited_for_another_is_kept_beside_it(database, broker, tmp_path):
    """Two holders report in the same moment. The second waits for the first's commit, and must see it in the row it locked."""
    async with runtime(database, broker, tmp_path, outside_app(), roles=("api",)) as process:
        await fund(process)
        bench = await Bench.open(process)
        first = await database.connect()
        try:
            await start_run(process, "both", "outside@1")
            (effect,) = await bench.claim()
            uncommitted = first.transaction()
            await uncommitted.start()
            await first.fetch(
                statement("receipts_store"), [effect.id], [effect.fence], ["one"], [LATE.decode()], [None]
            )
            second = asyncio.create_task(
                bench.effects.report(
                    [Report(effect_id=effect.id, fence=effect.fence + 1, owner="two", outcome=LATE)]
                )
            )

            async def waits() -> bool:
                return await bench.pool.fetchval("select exists (select from pg_locks where not granted)")

            await eventually(waits, "the second to wait for the row")
            await uncommitted.commit()
            looked_at = await second
            stands = await bench.pool.fetchval("select reporter from longtake.effects")
            late = await bench.pool.fetch("select owner from longtake.late_receipts")
        finally:
            await bench.close()

    assert (stands, [row["owner"] for row in late], looked_at) == ("one", ["two"], [])
