"""What happens when nobody knows whether the provider took the request (design.md 5, P18)."""

import uuid

import pytest

from kit.hand_work import Bench
from kit.promises import promise
from kit.runtimes import fund, runtime, start_run, summary_of
from longtake import (
    Activity,
    App,
    Impossible,
    NotFound,
    Outcome,
    Plan,
    Submitted,
    Succeeded,
)

API_ONLY = ("api",)


class Paid(Activity):
    """A paid call that the test answers by hand."""

    name = "paid@1"
    paid = True

    async def execute(self, call) -> Outcome:
        raise AssertionError("the test works by hand")

    async def reconcile(self, call) -> Outcome:
        raise AssertionError("the test works by hand")


def paid_app() -> App:
    app = App("paid")
    app.add(Paid())

    @app.workflow("paid", version=1)
    def build(input, policy):
        return Plan().step("pay", activity="paid@1", price=7)

    return app


async def _unknown_after_open_call(bench: Bench) -> tuple:
    """Claim the step, open its call, and let the lease run out without a receipt."""
    (effect,) = await bench.claim(lease_seconds=1)
    assert await bench.effects.open_call(effect_id=effect.id, fence=effect.fence)
    await bench.pool.execute(
        "update longtake.effects set lease_until = clock_timestamp() - interval '1 s' where id = $1",
        effect.id,
    )
    ended = await bench.process.sweep.expire_leases(leases_max=5, authority_up_seconds=0.0, connected=True)
    assert [(lease.id, lease.state) for lease in ended] == [(effect.id, "expired")]
    await bench.decide([effect.id])
    (look_up,) = await bench.claim()
    assert (look_up.kind, look_up.attempt) == ("reconcile", effect.attempt)
    return effect, look_up


async def _facts(bench: Bench) -> dict:
    row = await bench.pool.fetchrow(
        "select (select count(*) from longtake.ledger_entries where kind = 'charge') as charges, "
        "(select count(*) from longtake.ledger_entries where kind = 'refund') as refunds, "
        "(select count(*) from longtake.effects where kind = 'execute') as calls"
    )
    return dict(row)


@pytest.mark.parametrize(
    ("verdict", "status", "facts"),
    [
        (Succeeded(adopted=True), "completed", {"charges": 1, "refunds": 0, "calls": 1}),
        (NotFound(evidence="no such token"), "running", {"charges": 1, "refunds": 0, "calls": 2}),
        (Impossible(evidence="there is no look-up"), "blocked", {"charges": 1, "refunds": 0, "calls": 1}),
    ],
    ids=["found", "not-found", "impossible"],
)
@promise("T21", "T42")
async def test_a_lost_lease_after_the_call_was_opened_is_looked_up(
    database, broker, tmp_path, verdict, status, facts
):
    async with runtime(database, broker, tmp_path, paid_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            receipt = await start_run(process, "ambiguous", "paid@1")
            _, look_up = await _unknown_after_open_call(bench)

            await bench.report([look_up], verdict)
            await bench.decide([look_up.id])

            summary = await summary_of(process, str(receipt.run_id))
            assert summary["status"] == status
            assert await _facts(bench) == facts
            if status == "blocked":
                assert [b["type"] for b in summary["blockers"]] == ["provider_outcome_unknown"]
            assert await process.audit.prove(look_up.run_id, "acme") == []
        finally:
            await bench.close()


@promise("G35")
async def test_a_lease_lost_before_the_call_was_opened_is_a_safe_retry_of_the_same_attempt(
    database, broker, tmp_path
):
    async with runtime(database, broker, tmp_path, paid_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            receipt = await start_run(process, "unopened", "paid@1")
            (effect,) = await bench.claim(lease_seconds=1)
            await bench.pool.execute(
                "update longtake.effects set lease_until = clock_timestamp() - interval '1 s'"
            )
            ended = await process.sweep.expire_leases(leases_max=5, authority_up_seconds=0.0, connected=True)
            (again,) = await bench.claim()

            assert [lease.state for lease in ended] == ["queued"]
            assert (again.id, again.attempt) == (effect.id, effect.attempt)
            assert again.fence > effect.fence
            assert (await summary_of(process, str(receipt.run_id)))["revision"] == receipt.revision
        finally:
            await bench.close()


@promise("H36", "G37")
async def test_a_receipt_of_the_current_attempt_counts_whatever_its_fence(database, broker, tmp_path):
    """The zombie's answer arrives while its attempt is being looked up: it is the best evidence there is (P1)."""
    async with runtime(database, broker, tmp_path, paid_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            receipt = await start_run(process, "zombie", "paid@1")
            effect, look_up = await _unknown_after_open_call(bench)

            await bench.report([effect], Succeeded(external_ref="job-1"), owner="zombie")
            await bench.decide([effect.id])
            await bench.report([look_up], NotFound(evidence="asked too early"))
            await bench.decide([look_up.id])

            summary = await summary_of(process, str(receipt.run_id))
            assert summary["status"] == "completed"
            assert await _facts(bench) == {"charges": 1, "refunds": 0, "calls": 1}
        finally:
            await bench.close()


@promise("G31", "G30")
async def test_a_second_delivery_finds_nothing_to_claim(database, broker, tmp_path):
    async with runtime(database, broker, tmp_path, paid_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            await start_run(process, "twice", "paid@1")
            pointers = await bench.open_effects()
            first = await bench.claim()
            second = await bench.effects.claim(
                claim_id=uuid.uuid4(), effects=pointers, limit=10, owner="other", lease_seconds=30
            )

            assert len(first) == 1
            assert second == []
            rows = await bench.pool.fetch("select owner, fence from longtake.effect_claims")
            assert [row["owner"] for row in rows] == ["hand"]
        finally:
            await bench.close()


@promise("G41", "G59")
async def test_a_poll_that_finds_nothing_writes_no_event_and_no_effect(database, broker, tmp_path):
    async with runtime(database, broker, tmp_path, paid_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            receipt = await start_run(process, "polled", "paid@1")
            await bench.settle(Submitted(external_ref="job-1", poll_after_seconds=1))
            before = await _rows(bench)
            for _ in range(20):
                await bench.pool.execute(
                    "update longtake.effects set not_before = clock_timestamp() where state = 'queued'"
                )
                (poll,) = await bench.claim()
                assert await bench.effects.put_back(
                    effect_id=poll.id, fence=poll.fence, delay_seconds=1.0, progress=40
                )

            assert await _rows(bench) == before
            assert (await summary_of(process, str(receipt.run_id)))["revision"] == receipt.revision + 1
        finally:
            await bench.close()


async def _rows(bench: Bench) -> tuple:
    return tuple(
        await bench.pool.fetchrow(
            "select (select count(*) from longtake.events), (select count(*) from longtake.effects)"
        )
    )
