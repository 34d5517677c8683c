"""Clauses of effects: claims and their fences, calls, receipts, renewal, giving back."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from contract.store.bench import Bench
from contract.store.clauses import clause, instead, patched, without
from contract.store.rows import (
    CANCELLED,
    FAILED,
    SUCCEEDED,
    begin,
    blocker_of,
    claim,
    closing_of,
    commit_of,
    effect_of,
    fact_of,
    one,
    report,
)
from longtake.contracts.effects import Report
from longtake.contracts.ids import fence_floor
from longtake.memory import MemoryEffectStore, MemoryLeaseKeeper
from longtake.memory.store_effects import _may_be_claimed, _queue_again

LATER = datetime.now(UTC) + timedelta(days=3650)

# --- claiming ----------------------------------------------------------------------------------------------------------


@clause(without("claim_fence"))
async def each_claim_of_an_effect_has_a_higher_fence(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    fences = []
    for number in (1, 2, 3):
        claimed = await one(bench, effect, claim_id=number)
        fences.append(claimed.fence)
        await bench.effects.release(leases=[(effect.id, claimed.fence)], owner="worker")
    assert fences == sorted(set(fences))
    assert fences[0] > fence_floor(1)
    kept = await bench.rows("effect_claims")
    assert sorted(row.fence for row in kept) == fences
    assert {row.owner for row in kept} == {"worker"}


@clause(without("claim_state"))
async def a_leased_effect_cannot_be_claimed(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    await one(bench, effect, owner="first", claim_id=1)
    assert await claim(bench, effect, owner="second", claim_id=2) == []
    assert (await bench.effect(effect.id)).lease_owner == "first"


def _states_forgotten(session: Any, effect: Any, attempt: int, now: Any) -> bool:
    return effect.state in ("queued", "reported", "closed")


@clause(patched("store_effects._may_be_claimed", _states_forgotten))
async def work_with_a_receipt_or_an_end_cannot_be_claimed(bench: Bench) -> None:
    reported, closed = effect_of(step="reported"), effect_of(step="closed")
    await begin(bench, effects=[reported, closed])
    held = await one(bench, reported, claim_id=1)
    await report(bench, reported, held.fence)
    await bench.decisions.commit([commit_of(closings=[closing_of(closed, receipt=False)])])
    assert await claim(bench, reported, closed, claim_id=2) == []


@clause(without("claim_attempt"))
async def a_pointer_claims_its_own_attempt_only(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    old = msgspec.structs.replace(effect, attempt=2)
    assert await claim(bench, old) == []
    assert len(await claim(bench, effect)) == 1


@clause(without("claim_idempotent"))
async def the_same_claim_id_gives_the_same_leases_again(bench: Bench) -> None:
    effects = [effect_of(step=step) for step in "ab"]
    await begin(bench, effects=effects)
    first = await claim(bench, *effects, claim_id=7)
    again = await claim(bench, *effects, claim_id=7)
    assert {(c.id, c.fence) for c in first} == {(c.id, c.fence) for c in again}
    assert len(first) == 2
    assert await bench.count("effect_claims") == 2


@clause(without("generation_raised"))
async def what_a_claim_leaves_over_goes_back_to_the_relay_under_a_new_generation(bench: Bench) -> None:
    effects = sorted((effect_of(step=step) for step in "abc"), key=lambda effect: effect.id)
    await begin(bench, effects=effects)
    claimed = await claim(bench, *reversed(effects), limit=1)
    assert [c.id for c in claimed] == [effects[0].id], "in the order of ids"
    for effect in effects[1:]:
        row = await bench.effect(effect.id)
        assert (row.state, row.generation, row.published_at) == ("queued", 2, None)


def _at_any_time(session: Any, effect: Any, attempt: int, now: Any) -> bool:
    return _may_be_claimed(session, effect, attempt, LATER + timedelta(days=1))


@clause(patched("store_effects._may_be_claimed", _at_any_time))
async def work_that_is_not_due_cannot_be_claimed(bench: Bench) -> None:
    effect = effect_of(not_before=LATER)
    await begin(bench, effects=[effect])
    assert await claim(bench, effect) == []


@clause(without("plan_checked"))
async def nothing_is_executed_under_code_that_the_plan_was_not_compared_with(bench: Bench) -> None:
    execute, poll = effect_of(step="e"), effect_of(step="p", kind="poll")
    await begin(bench, effects=[execute, poll])
    await bench.plans.deploy("build-2")
    claimed = await claim(bench, execute, poll)
    assert [c.kind for c in claimed] == ["poll"], "what is open outside may be asked about"
    assert (await bench.effect(execute.id)).generation == 1, "it stays where it is"


@clause(without("plan_checked"))
async def nothing_is_executed_of_a_run_whose_plan_has_drifted(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    await bench.plans.deploy("build-2")
    drifted = commit_of(checked_application="build-2", row={"blockers": (blocker_of("plan_drift"),)})
    await bench.decisions.commit([drifted])
    assert await claim(bench, effect) == []
    await bench.decisions.commit([commit_of(at=2)])
    assert len(await claim(bench, effect)) == 1


class _TellsNothing(MemoryEffectStore):
    async def claim(self, **options: Any) -> Any:
        claimed = await super().claim(**options)
        return [msgspec.structs.replace(c, call_opened_before=False, external_ref=None) for c in claimed]


@clause(instead(effects=_TellsNothing))
async def a_claim_tells_what_an_earlier_lease_left(bench: Bench) -> None:
    effect = effect_of(kind="poll", pool="short", input=b'{"x":1}')
    await begin(bench)
    await bench.decisions.commit([commit_of(effects=[(effect, "job-7")], traceparent="00-abc")])
    claimed = await one(bench, effect, claim_id=1)
    assert (claimed.tenant, claimed.step, claimed.attempt, claimed.kind) == ("acme", "s", 1, "poll")
    assert (claimed.activity, claimed.pool, claimed.input) == ("a@1", "short", b'{"x":1}')
    assert (claimed.external_ref, claimed.traceparent, claimed.lease_seconds) == ("job-7", "00-abc", 30)
    assert not claimed.call_opened_before
    await bench.effects.open_call(effect_id=effect.id, fence=claimed.fence)
    again = await one(bench, effect, claim_id=1)
    assert again.call_opened_before


@clause(without("fence_floor"))
async def fences_after_a_restore_are_above_those_of_the_lost_past(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    await bench.back_up()
    assert await bench.restore() == 2
    store = bench.effects_of_epoch(2)
    claimed = await store.claim(
        claim_id=uuid.UUID(int=1), effects=[(effect.id, 1)], limit=1, owner="w", lease_seconds=30
    )
    assert claimed[0].fence == fence_floor(2) + 1


# --- calling -----------------------------------------------------------------------------------------------------------


@clause(without("fence_checked"))
async def a_call_is_opened_under_the_fence_that_stands(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    first = await one(bench, effect, claim_id=1)
    await bench.effects.release(leases=[(effect.id, first.fence)], owner="worker")
    second = await one(bench, effect, claim_id=2)
    assert not await bench.effects.open_call(effect_id=effect.id, fence=first.fence)
    assert (await bench.effect(effect.id)).call_opened_at is None
    assert await bench.effects.open_call(effect_id=effect.id, fence=second.fence)
    assert (await bench.effect(effect.id)).call_opened_at is not None


@clause(without("call_needs_lease"))
async def no_call_is_opened_under_a_lease_whose_time_is_over(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    claimed = await one(bench, effect, lease_seconds=30)
    await bench.pass_seconds(31)
    assert not await bench.effects.open_call(effect_id=effect.id, fence=claimed.fence)


@clause(without("fence_checked"))
async def a_lease_is_renewed_by_its_owner_under_its_fence(bench: Bench) -> None:
    ours, lost, never = (effect_of(step=step) for step in ("ours", "lost", "never"))
    await begin(bench, effects=[ours, lost, never])
    held = {c.id: c.fence for c in await claim(bench, ours, lost)}
    leases = [(ours.id, held[ours.id], 300), (lost.id, held[lost.id] - 1, 300), (never.id, 1, 300)]
    keeper = bench.keeper("worker")
    assert await keeper.renew(leases, {ours.id: 40}) == {ours.id}
    assert await bench.keeper("somebody else").renew(leases, {}) == set()
    row = await bench.effect(ours.id)
    assert row.progress == 40
    assert timedelta(seconds=299) < row.lease_until - row.heartbeat_at <= timedelta(seconds=300)
    await keeper.renew(leases[:1], {})
    assert (await bench.effect(ours.id)).progress == 40, "no news is no change"
    await keeper.close()


class _Punctual(MemoryLeaseKeeper):
    async def renew(self, leases: Any, progress: Any) -> set[uuid.UUID]:
        now, effects = self._database.clock.now(), self._database.tables.effects
        return await super().renew(
            [lease for lease in leases if effects[lease[0]].lease_until > now], progress
        )


@clause(instead(keeper=_Punctual))
async def a_lease_that_is_overdue_but_not_ended_can_still_be_renewed(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    claimed = await one(bench, effect, lease_seconds=30)
    await bench.pass_seconds(60)
    keeper = bench.keeper("worker")
    assert await keeper.renew([(effect.id, claimed.fence, 30)], {}) == {effect.id}
    assert await bench.effects.open_call(effect_id=effect.id, fence=claimed.fence)
    await keeper.close()


# --- receipts ----------------------------------------------------------------------------------------------------------


@clause(without("stored_receipt_first_wins"))
async def the_first_receipt_of_an_effect_stands_and_a_later_one_is_kept_apart(bench: Bench) -> None:
    effect = effect_of()
    run_id = await begin(bench, effects=[effect])
    claimed = await one(bench, effect)
    assert await report(bench, effect, claimed.fence) == [(effect.id, run_id)]
    assert await report(bench, effect, claimed.fence + 1, owner="zombie", outcome=FAILED) == []
    row, late = await bench.effect(effect.id), await bench.rows("late_receipts")
    assert (row.state, row.receipt, row.reporter, row.report_fence) == (
        "reported", SUCCEEDED, "worker", claimed.fence,
    )  # fmt: skip
    assert [(r.owner, r.receipt, r.fence) for r in late] == [("zombie", FAILED, claimed.fence + 1)]


class _KeepsCopies(MemoryEffectStore):
    async def report(self, reports: Any) -> Any:
        return await super().report([msgspec.structs.replace(r, owner=f"{r.owner}?") for r in reports]) or (
            await super().report(reports)
        )


@clause(instead(effects=_KeepsCopies))
async def a_copy_of_the_receipt_that_stands_is_nothing_new(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    claimed = await one(bench, effect)
    await report(bench, effect, claimed.fence)
    assert await report(bench, effect, claimed.fence) == []
    assert await bench.count("late_receipts") == 0


@clause(without("receipt_whatever_fence"))
async def a_receipt_is_stored_whatever_its_fence(bench: Bench) -> None:
    effect = effect_of()
    run_id = await begin(bench, effects=[effect])
    first = await one(bench, effect, owner="slow", claim_id=1)
    await bench.effects.release(leases=[(effect.id, first.fence)], owner="slow")
    await one(bench, effect, owner="fast", claim_id=2)
    assert await report(bench, effect, first.fence, owner="slow") == [(effect.id, run_id)]
    signal = await fact_of(bench, effect)
    assert (signal.owner, signal.fence) == ("slow", first.fence)


@clause(without("late_receipt_reopens"))
async def a_receipt_for_an_effect_that_was_closed_without_one_is_looked_at(bench: Bench) -> None:
    effect = effect_of()
    run_id = await begin(bench, effects=[effect])
    claimed = await one(bench, effect)
    expired = closing_of(effect, receipt=False, disposition="expired")
    await bench.decisions.commit([commit_of(closings=[expired])])
    assert await report(bench, effect, claimed.fence) == [(effect.id, run_id)]
    row = await bench.effect(effect.id)
    assert (row.state, row.closed_at, row.disposition) == ("reported", None, None)
    assert await fact_of(bench, effect) is not None


def _reopens_all(right: Any) -> Any:
    def store(session: Any, report: Any) -> Any:
        if (
            effect := session.view.effects.own(report.effect_id)
        ) is not None and effect.closed_at is not None:
            effect.receipt = None
        return right(session, report)

    return store


def _store_receipt() -> Any:
    from longtake.memory import store_effects

    return store_effects._store_receipt


@clause(patched("store_effects._store_receipt", _reopens_all(_store_receipt())))
async def a_receipt_for_an_effect_that_was_settled_by_another_changes_nothing(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    claimed = await one(bench, effect)
    await report(bench, effect, claimed.fence)
    await bench.decisions.commit([commit_of(closings=[closing_of(effect, receipt=True)])])
    assert await report(bench, effect, claimed.fence + 1, owner="zombie", outcome=CANCELLED) == []
    assert (await bench.effect(effect.id)).state == "closed"
    assert await bench.count("late_receipts") == 1


class _OneAtATime(MemoryEffectStore):
    async def report(self, reports: Any) -> Any:
        return await super().report(reports[:1])


@clause(instead(effects=_OneAtATime))
async def receipts_are_stored_together_and_those_of_nobody_are_dropped(bench: Bench) -> None:
    effects = [effect_of(step=step) for step in "ab"]
    run_id = await begin(bench, effects=effects)
    held = {c.id: c.fence for c in await claim(bench, *effects)}
    nobody = Report(effect_id=uuid.UUID(int=999), fence=1, owner="w", outcome=SUCCEEDED)
    reports = [Report(effect_id=id_, fence=f, owner="w", outcome=SUCCEEDED) for id_, f in held.items()]
    stored = await bench.effects.report([*reports, nobody])
    assert sorted(stored) == sorted((effect.id, run_id) for effect in effects)


# --- giving back -------------------------------------------------------------------------------------------------------


@clause(without("generation_raised"))
async def work_that_is_put_back_waits_on_its_own_row_as_if_it_were_new(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    claimed = await one(bench, effect)
    await bench.effects.open_call(effect_id=effect.id, fence=claimed.fence)
    until = await bench.effects.put_back(
        effect_id=effect.id, fence=claimed.fence, delay_seconds=60, progress=30
    )
    row = await bench.effect(effect.id)
    assert until == row.not_before
    assert (row.state, row.generation, row.published_at, row.leases, row.progress) == (
        "queued", 2, None, 0, 30,
    )  # fmt: skip
    assert (row.call_opened_at, row.lease_owner, row.lease_until) == (None, None, None)
    assert await claim(bench, effect, claim_id=2) == []
    await bench.pass_seconds(61)
    assert len(await claim(bench, effect, claim_id=2)) == 1


@clause(without("fence_checked"))
async def whoever_lost_a_lease_puts_nothing_back(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    claimed = await one(bench, effect)
    stale = await bench.effects.put_back(
        effect_id=effect.id, fence=claimed.fence - 1, delay_seconds=1, progress=None
    )
    assert stale is None
    await report(bench, effect, claimed.fence)
    late = await bench.effects.put_back(
        effect_id=effect.id, fence=claimed.fence, delay_seconds=1, progress=None
    )
    assert late is None
    assert (await bench.effect(effect.id)).state == "reported"


class _ReleasesAll(MemoryEffectStore):
    async def release(self, *, leases: Any, owner: str) -> None:
        def write(session: Any) -> None:
            for id_, _ in leases:
                _queue_again(session, session.view.effects.own(id_))

        await self._database.run("leases_release", write)


@clause(instead(effects=_ReleasesAll))
async def only_work_that_has_not_begun_is_released(bench: Bench) -> None:
    idle, begun, foreign = (effect_of(step=step) for step in ("idle", "begun", "foreign"))
    await begin(bench, effects=[idle, begun, foreign])
    held = {c.id: c.fence for c in await claim(bench, idle, begun, claim_id=1)}
    held |= {c.id: c.fence for c in await claim(bench, foreign, owner="another", claim_id=2)}
    await bench.effects.open_call(effect_id=begun.id, fence=held[begun.id])
    await bench.effects.release(leases=list(held.items()), owner="worker")
    states = [(await bench.effect(effect.id)).state for effect in (idle, begun, foreign)]
    assert states == ["queued", "leased", "leased"]
    row = await bench.effect(idle.id)
    assert (row.generation, row.published_at, row.leases) == (2, None, 1)
