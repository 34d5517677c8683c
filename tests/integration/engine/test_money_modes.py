"""Money in both modes on the real authority: what is written together, what is refused, and what an audit finds (H43 to H52)."""

import uuid
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from kit.hand_work import Bench
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import PRINCIPAL, fund, runtime, start_run, summary_of
from longtake import Activity, App, Artifact, Failed, Outcome, Plan, Succeeded
from longtake.contracts.commands import Command, Receipt
from longtake.contracts.effects import ClaimedEffect
from longtake.contracts.upcasters import decode_event
from longtake.engine.money_audit import MoneyAudit
from longtake.lifecycle import running
from longtake.postgres.audits import PostgresAuditStore
from longtake.postgres.statements import statement
from longtake.workflow.forking import Fork, plan_fork
from longtake.workflow.plan import Retry

API_ONLY = ("api",)
ONCE = Retry(max_attempts=1)
CLIP = Artifact(
    name="clip",
    kind="clip",
    object_key="sha256/" + "1" * 64,
    sha256="1" * 64,
    bytes=4,
    content_type="video/mp4",
)


class Shoot(Activity):
    """A paid call; the test answers for it."""

    name = "shoot@1"
    paid = True

    async def execute(self, call: Any) -> Outcome:
        raise AssertionError("the test works by hand")


def studio(*, cut_price: int = 6) -> App:
    app = App("studio")

    app.add(Shoot())

    @app.activity("look@1")
    async def look(call: Any) -> None:
        raise AssertionError("the test works by hand")

    @app.workflow("takes", version=1)
    def takes(input: Any, policy: Any) -> Plan:
        """Two paid steps; the first may fail and gives nothing back when it does, the other waits for a free one."""
        how = {"billing": "pay_as_you_go", "cost_cap": 12, **input}
        return (
            Plan(**how)
            .step("a", activity="shoot@1", price=5, optional=True, refund="none", retry=ONCE)
            .step("warm", activity="look@1")
            .step("look", activity="look@1")
            .step("b", activity="shoot@1", price=7, depends_on=["look"], retry=ONCE, on_exhausted="fail")
        )

    @app.workflow("film", version=1)
    def film(input: Any, policy: Any) -> Plan:
        return (
            Plan(billing=input.get("billing", "prepaid"))
            .step("clip", activity="shoot@1", price=3, artifacts=["clip"])
            .step(
                "cut",
                activity="shoot@1",
                price=cut_price,
                depends_on=["clip"],
                retry=ONCE,
                on_exhausted="fail",
            )
        )

    return app


@asynccontextmanager
async def bench(database: Any, broker: Any, tmp_path: Any, app: App | None = None) -> Any:
    """A process that admits, and hands for everything else."""
    async with runtime(database, broker, tmp_path, app or studio(), roles=API_ONLY) as process:
        hands = await Bench.open(process)
        try:
            yield hands
        finally:
            await hands.close()


async def send(hands: Bench, kind: str, run_id: str | None, **payload: Any) -> Receipt:
    """Admit a command about a run at its present revision."""
    revision = None
    if run_id is not None and kind != "fork":
        revision = (await summary_of(hands.process, run_id))["revision"]
    command = Command(
        kind=kind, project="p1", payload=payload, targets=() if run_id is None else (run_id,),
        expected_revision=revision, client_command_id=uuid.uuid4().hex,
    )  # fmt: skip
    answer = await hands.process.admission.admit(PRINCIPAL, command, channel="local", traceparent=None)
    return answer.receipt


async def account(hands: Bench) -> tuple[int, int]:
    row = await hands.pool.fetchrow("select balance, held from longtake.accounts")
    return row["balance"], row["held"]


async def violations(hands: Bench) -> list[tuple[str, uuid.UUID | None]]:
    found = await PostgresAuditStore(hands.pool).money_violations(None)
    return [(item.law, item.run_id) for item in found]


FAILED = Failed(error_class="auth", message="no")


class Desk:
    """Answers steps one at a time."""

    def __init__(self, hands: Bench) -> None:
        self._hands = hands
        self._taken: dict[str, ClaimedEffect] = {}

    async def answer(self, step: str, outcome: Outcome | None = None) -> None:
        """Take what is due, and let this step end so."""
        self._taken.update((effect.step, effect) for effect in await self._hands.claim())
        effect = self._taken.pop(step)
        await self._hands.report([effect], outcome)
        await self._hands.decide([effect.id])


@promise("H44", "H51")
async def test_a_cycle_and_the_first_work_of_it_are_one_transaction(database, broker, tmp_path):
    async with bench(database, broker, tmp_path) as hands:
        await fund(hands.process, 100)
        await start_run(hands.process, "c1", "takes@1", {})
        for _ in range(2):
            await hands.settle()
        rows = await hands.pool.fetch(
            "select l.step, l.tx_id = c.tx_id as event, l.tx_id = s.tx_id as work from longtake.ledger_entries l"
            " join longtake.events c on c.run_id = l.run_id and c.seq = l.seq"
            " join longtake.events s on s.run_id = l.run_id and s.type = 'steps_scheduled'"
            " and s.data -> 'steps' -> 0 ->> 'step' = l.step order by l.seq"
        )

        assert [("a", True, True), ("b", True, True)] == [tuple(row) for row in rows]
        assert (88, 0) == await account(hands)
        assert [] == await violations(hands)


async def test_what_happens_inside_a_run_does_not_touch_the_account(database, broker, tmp_path):
    """Charges and refunds draw on the hold; the account's row is written at admission and at the end (P8)."""
    async with bench(database, broker, tmp_path) as hands:
        await fund(hands.process, 100)
        version = "select xmin::text from longtake.accounts"
        await start_run(hands.process, "c1", "takes@1", {})
        admitted = await hands.pool.fetchval(version)
        desk = Desk(hands)
        await desk.answer("warm")  # the dispatcher knows the run from here on
        before = hands.counting.statements
        await desk.answer("a", FAILED)  # moves nothing: its rule gives nothing back
        without = hands.counting.statements - before
        before = hands.counting.statements
        await desk.answer("look")  # begins b, and takes its price
        moving = hands.counting.statements - before
        inside = await hands.pool.fetchval(version)
        await desk.answer("b")

        assert 2 == await hands.pool.fetchval("select count(*) from longtake.ledger_entries")
        assert admitted == inside
        assert inside != await hands.pool.fetchval(version)
        assert without == moving, "a decision that moves money asks no more often"


@promise("H43")
async def test_only_the_hold_must_be_there_and_a_plan_may_hold_its_quote(database, broker, tmp_path):
    async with bench(database, broker, tmp_path) as hands:
        await fund(hands.process, 15)
        refused = await start_run(hands.process, "c1", "takes@1", {"cost_cap": 40})
        taken = await start_run(hands.process, "c2", "takes@1", {"cost_cap": 40, "hold": "quote"})

        assert ("rejected", "insufficient-funds") == (refused.status, refused.problem.slug)
        assert "running" == taken.status
        assert (15, 12) == await account(hands)
        assert 1 == await hands.pool.fetchval("select count(*) from longtake.runs")
        assert [] == await violations(hands)


@promise("H48", "H64")
async def test_a_cap_is_raised_only_when_the_account_can_pay(database, broker, tmp_path):
    async with bench(database, broker, tmp_path) as hands:
        await fund(hands.process, 14)
        receipt = await start_run(hands.process, "c1", "takes@1", {"cost_cap": 12})
        run_id = str(receipt.run_id)
        desk = Desk(hands)
        await desk.answer("a", FAILED)
        assert "applied" == (await send(hands, "retry", run_id, step="a")).status
        await desk.answer("look")
        waiting = await summary_of(hands.process, run_id)
        poor = await send(hands, "provide_input", run_id, step="b", cap=17)
        unchanged = await summary_of(hands.process, run_id)
        held = await account(hands)
        await fund(hands.process, 10)
        taken = await send(hands, "provide_input", run_id, step="b", cap=17)
        raised = await account(hands)
        found = await violations(hands)
        for step in ("a", "b", "warm"):
            await desk.answer(step)

        assert ("needs_input", "spend_cap") == (waiting["status"], waiting["blockers"][0]["type"])
        assert ("rejected", "insufficient-funds") == (poor.status, poor.problem.slug)
        assert (waiting, (14, 12)) == (unchanged, held)
        assert ("applied", (24, 17)) == (taken.status, raised)
        assert 17 == await hands.pool.fetchval("select cap from longtake.runs")
        assert 17 == await hands.pool.fetchval("select amount from longtake.holds")
        assert (7, 0) == await account(hands)
        assert [] == found == await violations(hands)


@promise("H50")
@pytest.mark.parametrize(("billing", "net"), [("prepaid", 0), ("pay_as_you_go", 3)])
async def test_a_failed_run_costs_what_its_mode_says(database, broker, tmp_path, billing, net):
    async with bench(database, broker, tmp_path) as hands:
        await fund(hands.process, 20)
        await start_run(hands.process, "c1", "film@1", {"billing": billing})
        await hands.settle(Succeeded(artifacts=(CLIP,)))
        await hands.settle(FAILED)

        assert "failed" == await hands.pool.fetchval("select status from longtake.runs")
        assert (20 - net, 0) == await account(hands)
        assert [] == await violations(hands)


# --- forks -----------------------------------------------------------------------------------------------------------


@promise("T52")
@pytest.mark.parametrize(("billing", "extra"), [("prepaid", 9), ("pay_as_you_go", 6)])
async def test_a_fork_costs_what_was_told_and_publishes_what_it_takes_over(
    database, broker, tmp_path, billing, extra
):
    async with bench(database, broker, tmp_path) as hands:
        await fund(hands.process, 40)
        source = str((await start_run(hands.process, "c1", "film@1", {"billing": billing})).run_id)
        await hands.settle(Succeeded(artifacts=(CLIP,)))
        await hands.settle(FAILED)
        told = await priced(hands, source, "cut")
        refused = await send(hands, "fork", source, step="cut", max_extra_credits=extra - 1)
        taken = await send(hands, "fork", source, step="cut", max_extra_credits=told.extra)
        fork = str(taken.run_id)
        assert ["cut"] == [claimed.step for claimed in await hands.settle()]
        done = await summary_of(hands.process, fork)
        artifacts = await hands.pool.fetch(
            "select object_key from longtake.artifacts where run_id = $1", uuid.UUID(fork)
        )
        accepted = await hands.pool.fetchval(
            "select data::text from longtake.events where run_id = $1 and seq = 1", uuid.UUID(fork)
        )

        assert ("rejected", "running") == (refused.status, taken.status)
        assert f"the fork costs {extra}" in refused.problem.errors[0].message
        assert fork != source
        assert ("completed", extra, extra) == (done["status"], done["cost"]["charged_credits"], told.extra)
        assert [CLIP.object_key] == [row["object_key"] for row in artifacts]
        assert source in accepted
        assert [] == await violations(hands)


async def ran_to_its_end(hands: Bench) -> str:
    await fund(hands.process, 40)
    run_id = str((await start_run(hands.process, "c1", "film@1", {})).run_id)
    await hands.settle(Succeeded(artifacts=(CLIP,)))
    await hands.settle()
    return run_id


async def test_after_a_deploy_only_a_run_whose_plan_is_still_the_same_is_forked(database, broker, tmp_path):
    """Code does not drift in silence: a fork is a new run under the code that is there now (P15)."""
    async with bench(database, broker, tmp_path) as hands:
        source = await ran_to_its_end(hands)
    async with bench(database, broker, tmp_path, studio(cut_price=7)) as hands:
        await hands.pool.execute("update longtake.store set application = 'the one with a price of 7'")
        changed = await send(hands, "fork", source, step="cut")
    async with bench(database, broker, tmp_path) as hands:
        await hands.pool.execute("update longtake.store set application = 'another build of the same'")
        same = await send(hands, "fork", source, step="cut")

    assert ("rejected", "action-not-available") == (changed.status, changed.problem.slug)
    assert "plans something else" in changed.problem.errors[0].message
    assert "running" == same.status


async def priced(hands: Bench, run_id: str, step: str) -> Fork:
    """The price as anybody can tell it who reads the history."""
    audit = hands.process.audit
    id_ = uuid.UUID(run_id)
    state = await audit.fold(id_, PRINCIPAL.tenant)
    events = await PostgresAuditStore(hands.pool).history(id_)
    found = plan_fork(state, [decode_event(e.type, e.version, e.data) for e in events], step)
    assert isinstance(found, Fork)
    return found


# --- laws as constraints ---------------------------------------------------------------------------------------------

ENTRY = (
    "insert into longtake.ledger_entries (key, tenant_id, run_id, account, kind, debit, credit, amount, step, cycle, seq,"
    " recorded_at) select {key}, {tenant}, run_id, {account}, {kind}, {debit}, {credit}, {amount}, {step}, {cycle}, 1, now()"
    " from longtake.runs"
)
GOOD = {
    "key": "'charge:' || run_id || ':a:9'", "tenant": "tenant_id", "account": "account", "kind": "'charge'",
    "debit": "account", "credit": "'system:escrow'", "amount": "1", "step": "'a'", "cycle": "9",
}  # fmt: skip
BACK = {"kind": "'refund'", "debit": "'system:escrow'", "credit": "account"}


@promise("H46", "H49", "H45")
@pytest.mark.parametrize(
    ("changes", "constraint"),
    [
        ({"account": "'other'", "debit": "'other'"}, "payer_is_the_runs"),
        ({"tenant": "'other'"}, "payer_is_the_runs"),
        ({"key": "'charge:' || run_id || ':a:8'"}, "key_is_derived"),
        ({"cycle": "null"}, "cycle_is_of_a_step"),
        ({"step": "null", "cycle": "9", "key": "'charge:' || run_id"}, "cycle_is_of_a_step"),
        ({"credit": "'system:elsewhere'"}, "sides_are_known"),
        ({"debit": "'system:escrow'", "credit": "account"}, "sides_are_known"),
        ({**BACK, "key": "'refund:' || run_id || ':a:9'"}, "refund_has_its_charge"),
        ({"amount": "0"}, "ledger_entries_amount_check"),
        ({"key": "'charge:' || run_id || ':a:1'", "cycle": "1"}, "ledger_entries_pkey"),
    ],
)
async def test_a_row_that_breaks_a_law_is_refused(database, broker, tmp_path, changes, constraint):
    async with bench(database, broker, tmp_path) as hands:
        await fund(hands.process, 20)
        await start_run(hands.process, "c1", "takes@1", {})
        with pytest.raises(asyncpg.IntegrityConstraintViolationError) as refused:
            await hands.pool.execute(ENTRY.format(**{**GOOD, **changes}))

        assert constraint == refused.value.constraint_name
        await hands.pool.execute(ENTRY.format(**GOOD))


@promise("H47", "H48")
@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("charged = 4, refunded = 5", "charged_covers_refunded"),
        ("refunded = -1", "charged_covers_refunded"),
        ("charged = 99", "net_within_cap"),
    ],
)
async def test_a_run_that_breaks_a_law_is_refused(database, broker, tmp_path, change, constraint):
    async with bench(database, broker, tmp_path) as hands:
        await fund(hands.process, 20)
        await start_run(hands.process, "c1", "takes@1", {})
        with pytest.raises(asyncpg.CheckViolationError) as refused:
            await hands.pool.execute(f"update longtake.runs set {change}")

        assert constraint == refused.value.constraint_name


# --- laws as an audit ------------------------------------------------------------------------------------------------

UNGUARDED = """
do $$
begin
    execute (
        select string_agg(format('alter table %s drop constraint %I', conrelid::regclass, conname), '; ')
        from pg_constraint where contype in ('c', 'f') and conrelid in ('longtake.ledger_entries'::regclass,
            'longtake.runs'::regclass, 'longtake.holds'::regclass, 'longtake.accounts'::regclass));
end $$;
alter table longtake.ledger_entries disable trigger user;
alter table longtake.events disable trigger user;
"""
LATER = "update longtake.events set tx_id = '999999'::xid8 where {}"

PLANTED = {
    "net_is_the_ledgers": "update longtake.runs set charged = charged + 1",
    "events_are_the_ledger": "update longtake.ledger_entries set seq = seq + 1",
    "refund_has_its_charge": ENTRY.format(
        **{**GOOD, **BACK, "key": "'refund:' || run_id || ':a:9'", "amount": "5"}
    ),
    "net_within_cap": "update longtake.runs set cap = 2; update longtake.holds set amount = 2; "
    "update longtake.accounts set held = 2",
    "owner_is_the_runs": "update longtake.ledger_entries set account = 'other', debit = 'other'",
    "sides_are_known": "update longtake.ledger_entries set credit = 'system:elsewhere'",
    "cycle_opens_with_its_work": LATER.format("type = 'steps_scheduled'"),
    "hold_covers_the_run": "update longtake.holds set amount = 99; update longtake.accounts set held = 99",
    "hold_ends_with_the_run": "update longtake.runs set ended_at = now()",
    "account_holds_are_the_runs": "update longtake.accounts set held = 3",
    "books_balance": "update longtake.ledger_entries set debit = 'nobody'",
}


@promise("H52")
async def test_the_audit_finds_each_planted_violation_and_none_where_there_is_none(
    database, broker, tmp_path
):
    async with bench(database, broker, tmp_path) as hands:
        await fund(hands.process, 100)
        run_id = (await start_run(hands.process, "c1", "takes@1", {})).run_id
        await hands.settle()
        assert [] == await violations(hands)
        owner = await database.connect()
        await owner.execute(UNGUARDED)

        missed = {}
        for law, planting_it in PLANTED.items():
            planting = owner.transaction()
            await planting.start()
            await owner.execute(planting_it)
            found = await owner.fetch(statement("money_violations"), None, None)
            await planting.rollback()
            if law not in {row["law"] for row in found}:
                missed[law] = [tuple(row) for row in found]
            assert all(str(row["run_id"]) in (run_id, "None") for row in found)

        assert {} == missed
        assert [] == await violations(hands)


@promise("H52")
async def test_money_that_moved_is_looked_at_again_and_again(database, broker, tmp_path, capsys):
    async with bench(database, broker, tmp_path) as hands:
        await fund(hands.process, 100)
        await start_run(hands.process, "c1", "takes@1", {})
        owner = await database.connect()
        store = PostgresAuditStore(owner)
        audit = MoneyAudit(store, every_seconds=0.01)
        assert [] == await audit.pass_once()
        await owner.execute(UNGUARDED)
        await owner.execute(PLANTED["net_is_the_ledgers"])
        async with running(audit):
            shown = await eventually(lambda: told(capsys), "a broken law in the log", 10.0)
        await owner.execute(
            "update longtake.ledger_entries set recorded_at = recorded_at - interval '1 hour'"
        )

        assert "law=net_is_the_ledgers" in shown
        assert [] == await audit.pass_once(), "what has not moved for long is for the audit of everything"
        assert ["net_is_the_ledgers"] == [item.law for item in await store.money_violations(None)]


async def told(capsys: pytest.CaptureFixture[str]) -> str | None:
    shown = capsys.readouterr().out
    return shown if "money_law_broken" in shown else None


@pytest.mark.parametrize(
    "planted",
    [
        pytest.param(
            "delete from longtake.events where type = 'charged'", id="a step begins without a charge"
        ),
        pytest.param(LATER.format("type = 'run_accepted'"), id="a prepaid charge apart from the beginning"),
    ],
)
async def test_work_that_was_not_paid_when_it_began_is_found(database, broker, tmp_path, planted):
    async with bench(database, broker, tmp_path) as hands:
        await fund(hands.process, 100)
        await start_run(hands.process, "c1", "takes@1", {"billing": "pay_as_you_go"})
        await start_run(hands.process, "c2", "film@1", {})
        owner = await database.connect()
        await owner.execute(UNGUARDED)
        await owner.execute(planted)

        assert "cycle_opens_with_its_work" in {law for law, _ in await violations(hands)}
