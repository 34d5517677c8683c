"""Clauses of unpleasant habits: lost answers, crashes, locks in the way, and what is seen out of order."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from contract.store.bench import ALICE, Bench, MemoryBench, Scripted
from contract.store.clauses import Wrong, clause, instead, patched, without
from contract.store.rows import (
    begin,
    claim,
    command_of,
    commit_of,
    effect_of,
    new_run,
    one,
    receipt_of,
    report,
    run_id_of,
)
from longtake.errors import AuthorityUnavailable
from longtake.memory import MemoryDatabase
from longtake.workflow.decision import TimerIntent


def confusing(meant: Any, done: Any) -> Wrong:
    """The fake that takes one fault for another."""

    @contextmanager
    def opened() -> Iterator[MemoryBench]:
        yield MemoryBench(faults=Scripted({meant: done}))

    return opened


@clause(confusing("executed_and_lost", "not_executed"))
async def a_decision_whose_answer_was_lost_stands(bench: Bench) -> None:
    effect = effect_of()
    run_id = await begin(bench)
    decision = commit_of(effects=[(effect, None)])
    bench.strike("decisions_commit", "executed_and_lost")
    with pytest.raises(AuthorityUnavailable):
        await bench.decisions.commit([decision])
    assert (await bench.run(run_id)).revision == 2
    assert (await bench.effect(effect.id)).state == "queued"
    assert (await bench.decisions.commit([decision])).committed == frozenset()


@clause(confusing("not_executed", "executed_and_lost"))
async def a_decision_that_was_not_executed_left_nothing(bench: Bench) -> None:
    run_id = await begin(bench)
    bench.strike("decisions_commit", "not_executed")
    with pytest.raises(AuthorityUnavailable):
        await bench.decisions.commit([commit_of()])
    assert (await bench.run(run_id)).revision == 1
    assert (await bench.decisions.commit([commit_of()])).committed == {run_id}


@clause(without("claim_idempotent"))
async def a_claim_whose_answer_was_lost_is_asked_for_again(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    bench.strike("effects_claim", "executed_and_lost")
    with pytest.raises(AuthorityUnavailable):
        await claim(bench, effect, claim_id=5)
    claimed = await claim(bench, effect, claim_id=5)
    assert [c.id for c in claimed] == [effect.id]
    assert await claim(bench, effect, claim_id=6) == []


@clause(confusing("executed_and_lost", "not_executed"))
async def a_report_whose_answer_was_lost_is_stored(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    claimed = await one(bench, effect)
    bench.strike("receipts_store", "executed_and_lost")
    with pytest.raises(AuthorityUnavailable):
        await report(bench, effect, claimed.fence)
    assert (await bench.effect(effect.id)).state == "reported"
    assert await report(bench, effect, claimed.fence) == []


class _Immortal(MemoryDatabase):
    def crash(self) -> None:
        pass


@clause(instead(database=_Immortal))
async def a_crash_takes_open_transactions_and_their_locks(bench: Bench) -> None:
    run_id = await begin(bench, 1)
    await bench.fund(10)
    with pytest.raises(AuthorityUnavailable):
        async with bench.admission.transaction(ALICE, channel="local", traceparent=None) as transaction:
            now = await transaction.insert_command(command_of("c2"), intent_hash="h")
            assert now is not None
            await transaction.lay_down(new_run(2, cap=7, scopes=["voice"]), command_id="c2", now=now)
            await transaction.lock_run(run_id)
            await bench.crash()
            assert (await bench.decisions.commit([commit_of(1)])).committed == {run_id}
            await transaction.settle_command(receipt_of("c2"))
    assert await bench.count("commands") == 1
    assert await bench.money() == (10, 0)
    await begin(bench, 2, cap=7, scopes=["voice"])


@clause(patched("store_rules.Session.lock", lambda self, *lock: None))
async def work_that_a_command_is_deciding_about_is_not_claimed(bench: Bench) -> None:
    effect, other = effect_of(1), effect_of(2)
    run_id = await begin(bench, 1, effects=[effect])
    await begin(bench, 2, effects=[other])
    async with bench.admission.transaction(ALICE, channel="local", traceparent=None) as transaction:
        await transaction.lock_run(run_id)
        await transaction.commit_run(commit_of(1, withdrawn=[effect.id]), receipt_of())
        assert [c.id for c in await claim(bench, effect, other)] == [other.id]
    assert (await bench.effect(effect.id)).state == "reported"


@clause(patched("store_rules.Session.lock", lambda self, *lock: None))
async def a_report_waits_for_the_command_that_is_deciding_about_its_work(bench: Bench) -> None:
    effect = effect_of()
    run_id = await begin(bench, effects=[effect])
    claimed = await one(bench, effect)
    order: list[str] = []

    async def reports() -> None:
        await report(bench, effect, claimed.fence)
        order.append("reported")

    async with bench.admission.transaction(ALICE, channel="local", traceparent=None) as transaction:
        await transaction.lock_run(run_id)
        await transaction.commit_run(commit_of(withdrawn=[effect.id]), receipt_of())
        reporting = asyncio.create_task(reports())
        for _ in range(20):
            await asyncio.sleep(0)
        await transaction.stored_answer("a round trip")
        order.append("decided")
    await reporting
    assert order == ["decided", "reported"]
    assert (await bench.effect(effect.id)).reporter == "worker"


@clause(without("run_lock"))
async def nobody_waits_for_a_lock_for_ever(bench: Bench) -> None:
    run_id = await begin(bench)
    async with bench.admission.transaction(ALICE, channel="local", traceparent=None) as holder:
        await holder.lock_run(run_id)
        with pytest.raises(AuthorityUnavailable):
            async with bench.admission.transaction(ALICE, channel="local", traceparent=None) as waiting:
                await waiting.lock_run(run_id)
    async with bench.admission.transaction(ALICE, channel="local", traceparent=None) as later:
        assert await later.lock_run(run_id) is not None


def _merge_in_order(right: Any) -> Any:
    def merge(view: Any) -> None:
        highest = max((e.position for events in view.tables.events.values() for e in events), default=0)
        for number, event in enumerate(view.events, start=1):
            view.events[number - 1] = type(event)(
                **{
                    **{name: getattr(event, name) for name in event.__struct_fields__},
                    "position": highest + number,
                }
            )
        right(view)

    return merge


def _view_merge() -> Any:
    from longtake.memory.store_tables import View

    return View.merge


@clause(patched("store_tables.View.merge", _merge_in_order(_view_merge())))
async def events_become_visible_in_another_order_than_they_were_written(bench: Bench) -> None:
    """A reader who remembers the highest place it has seen would never see the earlier one (I6)."""
    first, second = await begin(bench, 1), await begin(bench, 2)
    async with bench.admission.transaction(ALICE, channel="local", traceparent=None) as transaction:
        await transaction.lock_run(first)
        await transaction.commit_run(commit_of(1), receipt_of())
        await bench.decisions.commit([commit_of(2)])
        seen = {e.run_id: e.position for e in await bench.rows("events") if e.seq == 2}
        assert set(seen) == {second}
    late = {e.run_id: e.position for e in await bench.rows("events") if e.seq == 2}
    assert late[first] < late[second]


def _unborn(tenant: str, due_at: datetime) -> Any:
    from longtake.memory.tables import NEVER, TimerRow

    return TimerRow(tenant=tenant, due_at=NEVER)


@clause(patched("store_commit.TimerRow", _unborn))
async def a_clock_that_steps_back_makes_nothing_due_early(bench: Bench) -> None:
    effect = effect_of()
    run_id = await begin(bench, effects=[effect])
    claimed = await one(bench, effect, lease_seconds=30)
    moment = (await bench.effect(effect.id)).claimed_at
    await bench.decisions.commit([commit_of(timers=[TimerIntent(key="settlement", due_at=moment)])])
    await bench.pass_seconds(-3600)
    assert (await bench.decisions.facts(effects=[effect.id], inbox=[], runs=[run_id])).facts == ()
    assert await bench.effects.open_call(effect_id=effect.id, fence=claimed.fence)
    ended = await bench.sweeper.expire_leases(leases_max=5, authority_up_seconds=0, connected=True)
    assert ended == []
    await bench.pass_seconds(3601)
    assert len((await bench.decisions.facts(effects=[], inbox=[], runs=[run_id])).facts) == 1
    assert run_id == run_id_of(1)


class _Unrestored(MemoryDatabase):
    def restore(self, snapshot: Any) -> None:
        pass


@clause(instead(database=_Unrestored))
async def a_restore_forgets_decisions_claims_and_money_that_others_may_remember(bench: Bench) -> None:
    """Whoever claimed in the lost past keeps a fence below all that come; what it reports is stored all the same (F70)."""
    effect = effect_of()
    await bench.fund(10)
    run_id = await begin(bench, effects=[effect], cap=4)
    await bench.back_up()
    lost = await one(bench, effect, owner="survivor")
    await bench.decisions.commit([commit_of(row={"charged": 4, "cap": 4}, hold_released=True)])
    await bench.inbox.insert_callback(
        id=run_id_of(5), tenant=ALICE.tenant, provider="acme", dedupe_key="k", run_id=run_id, step="s", attempt=1,
        external_ref=None, type="done", payload=b"{}", traceparent=None,
    )  # fmt: skip
    assert await bench.restore() == 2
    identity = await bench.sweeper.identity()
    assert (identity.store_epoch, (await bench.run(run_id)).revision, await bench.count("inbox")) == (2, 1, 0)
    assert await bench.money() == (10, 4)
    assert not await bench.effects.open_call(effect_id=effect.id, fence=lost.fence)
    keeper = bench.keeper("survivor")
    assert await keeper.renew([(effect.id, lost.fence, 30)], {}) == set()
    await keeper.close()
    (claimed,) = await bench.effects_of_epoch(2).claim(
        claim_id=run_id_of(6), effects=[(effect.id, 1)], limit=1, owner="new", lease_seconds=30
    )
    assert claimed.fence > lost.fence
    assert await report(bench, effect, lost.fence, owner="survivor") == [(effect.id, run_id)]
    # Whoever decides under the lost epoch writes nothing.
    assert (await bench.decisions.commit([commit_of(row={"cap": 4})])).committed == frozenset()
