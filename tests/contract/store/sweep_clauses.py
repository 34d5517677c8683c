"""Clauses of relay, sweeper, inbox, plan checks and audit: what is due, what was lost, who lives, what is kept."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import msgspec
import pytest

from contract.store.bench import ALICE, OTHER_INCARNATION, STRANGER, Bench
from contract.store.clauses import clause, instead, patched, without
from contract.store.rows import (
    begin,
    claim,
    commit_of,
    effect_of,
    fact_of,
    one,
    report,
    run_id_of,
    step_of,
)
from longtake.contracts.signals import LeaseExpired, Outgoing
from longtake.errors import DecisionRefused, StoreRewound
from longtake.memory import MemoryAuditStore, MemoryPlanCheckStore, MemorySweepStore
from longtake.memory.store_waiting import due_times
from longtake.workflow.decision import TimerIntent

NO_PART_LEFT: list[datetime | None] = [None] * 4
PAST = datetime(2020, 1, 1, tzinfo=UTC)


async def _due(bench: Bench, *, by: Any = None, limit: int = 100, oldest: Any = None, all_lost: bool = False) -> list[Any]:  # fmt: skip
    sweeper = by if by is not None else bench.sweeper
    return await sweeper.due_pointers(limit=limit, grace_seconds=10, oldest=oldest or {}, all_lost=all_lost)


async def _expire(bench: Bench, *, leases_max: int = 5, up: float = 0, connected: bool = True) -> dict[uuid.UUID, str]:  # fmt: skip
    ended = await bench.sweeper.expire_leases(
        leases_max=leases_max, authority_up_seconds=up, connected=connected
    )
    return {lease.id: lease.state for lease in ended}


async def _lost(bench: Bench, *, grace: float = 10, limit: int = 100, oldest: Any = None) -> list[tuple[str, uuid.UUID]]:  # fmt: skip
    bells = await bench.sweeper.lost_doorbells(
        grace_seconds=grace, limit=limit, oldest=NO_PART_LEFT if oldest is None else oldest
    )
    return sorted((bell.what, bell.id) for bell in bells)


async def _callback(
    bench: Bench, run_id: uuid.UUID, *, key: str = "k", tenant: str = ALICE.tenant
) -> int | None:
    return await bench.inbox.insert_callback(
        id=uuid.uuid5(uuid.NAMESPACE_OID, key), tenant=tenant, provider="acme", dedupe_key=key, run_id=run_id,
        step="s", attempt=1, external_ref=None, type="done", payload=b'{ "a": 1}', traceparent="00-cb",
    )  # fmt: skip


# --- leases that end ---------------------------------------------------------------------------------------------------


@clause(without("call_opened_asks"))
async def a_lease_that_ends_is_a_retry_before_the_call_and_a_question_after_it(bench: Bench) -> None:
    before, after = effect_of(step="before"), effect_of(step="after")
    await begin(bench, effects=[before, after])
    held = {c.id: c.fence for c in await claim(bench, before, after, lease_seconds=30)}
    await bench.effects.open_call(effect_id=after.id, fence=held[after.id])
    assert await _expire(bench) == {}
    await bench.pass_seconds(31)
    assert await _expire(bench) == {before.id: "queued", after.id: "expired"}
    row = await bench.effect(before.id)
    assert (row.generation, row.published_at, row.lease_owner, row.leases) == (2, None, None, 1)
    signal = await fact_of(bench, after)
    assert isinstance(signal, LeaseExpired)
    assert (signal.call_opened, signal.leases) == (True, 1)
    assert await fact_of(bench, before) is None


class _Endless(MemorySweepStore):
    async def expire_leases(self, **options: Any) -> Any:
        return await super().expire_leases(**{**options, "leases_max": 99})


@clause(instead(sweeps=_Endless))
async def an_effect_that_lost_too_many_leases_is_a_question(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    states = []
    for number in (1, 2):
        await one(bench, effect, claim_id=number, lease_seconds=1)
        await bench.pass_seconds(2)
        states.append((await _expire(bench, leases_max=2))[effect.id])
    assert states == ["queued", "expired"]


@clause(without("trust_window"))
async def no_lease_ends_before_authority_and_sweeper_were_up_for_one(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    await one(bench, effect, lease_seconds=1)
    await bench.pass_seconds(2)
    assert await _expire(bench, up=10 * 365 * 86400.0) == {}
    assert await _expire(bench, connected=False) == {}
    assert await _expire(bench) == {effect.id: "queued"}


@clause(without("lease_expiry"))
async def leases_of_a_process_that_is_proved_dead_end_at_once(bench: Bench) -> None:
    effects = [effect_of(step=step) for step in "ab"]
    await begin(bench, effects=effects)
    await bench.sweeper.announce(roles=["worker"], pools=[], activities=[])
    await bench.other_sweeper.announce(roles=["worker"], pools=[], activities=[])
    await claim(bench, effects[0], owner="alpha", claim_id=1)
    await claim(bench, effects[1], owner="beta", claim_id=2)
    assert await bench.sweeper.bury_others() == ["beta"]
    assert await bench.sweeper.bury_others() == []
    assert await _expire(bench, up=10 * 365 * 86400.0, connected=False) == {effects[1].id: "queued"}


# --- pointers ----------------------------------------------------------------------------------------------------------


class _Unmarked(MemorySweepStore):
    async def due_pointers(self, **options: Any) -> Any:
        before = self._database.snapshot()
        found = await super().due_pointers(**options)
        self._database.restore(before)
        return found


@clause(instead(sweeps=_Unmarked))
async def what_was_never_published_is_published_once_when_it_is_due(bench: Bench) -> None:
    now, later = effect_of(kind="poll", not_before=PAST), effect_of(kind="poll", ordinal=2)
    later = msgspec.structs.replace(later, not_before=datetime.now(UTC) + timedelta(days=3650))
    await begin(bench, effects=[now, later])
    pointers = await _due(bench)
    assert [(p.id, p.attempt, p.generation, p.pool) for p in pointers] == [(now.id, 1, 1, "pool")]
    assert await _due(bench) == []
    assert (await bench.effect(now.id)).published_at is not None


@clause(without("generation_raised"))
async def a_pointer_that_is_published_again_has_another_generation(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    assert await _due(bench) == []
    assert [p.generation for p in await _due(bench, all_lost=True)] == [2]
    assert [p.generation for p in await _due(bench, all_lost=True)] == [3]


@clause(patched("store_publishing.dead_incarnations", lambda session, now: set()))
async def pointers_of_a_dead_process_are_published_again_at_once(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    await bench.sweeper.announce(roles=["dispatcher"], pools=[], activities=[])
    assert await _due(bench, by=bench.other_sweeper) == []
    await bench.sweeper.retire()
    assert [p.id for p in await _due(bench, by=bench.other_sweeper)] == [effect.id]
    assert (await bench.effect(effect.id)).incarnation == OTHER_INCARNATION
    assert await _due(bench, by=bench.other_sweeper) == []


@clause(patched("store_publishing.dead_incarnations", lambda session, now: set()))
async def a_process_that_falls_silent_counts_as_dead(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    await bench.sweeper.announce(roles=["dispatcher"], pools=[], activities=[])
    await bench.pass_seconds(14)
    await bench.sweeper.announce(roles=["dispatcher"], pools=[], activities=[])
    await bench.pass_seconds(14)
    assert await _due(bench, by=bench.other_sweeper) == []
    await bench.pass_seconds(2)
    assert [p.id for p in await _due(bench, by=bench.other_sweeper)] == [effect.id]


@clause(patched("store_publishing.backoff", lambda effect, grace_seconds: timedelta(seconds=grace_seconds)))
async def the_grace_doubles_with_each_generation(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    empty = {"pool": None}
    assert await _due(bench, oldest=empty) == []
    await bench.pass_seconds(11)
    assert await _due(bench) == [], "nobody has looked into its stream"
    assert [p.generation for p in await _due(bench, oldest=empty)] == [2]
    await bench.pass_seconds(11)
    assert await _due(bench, oldest=empty) == []
    await bench.pass_seconds(10)
    assert [p.generation for p in await _due(bench, oldest=empty)] == [3]


def _impatient(effect: Any, now: datetime, grace_seconds: float, oldest: Any) -> bool:
    return effect.published_at < now - timedelta(seconds=grace_seconds)


@clause(patched("store_publishing.left_behind", _impatient))
async def a_pointer_that_may_still_stand_in_its_stream_is_not_lost(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    await bench.pass_seconds(60)
    published = (await bench.effect(effect.id)).published_at
    assert await _due(bench, oldest={"pool": published - timedelta(seconds=1)}) == []
    assert await _due(bench, oldest={"pool": published + timedelta(seconds=10)}) == []
    assert len(await _due(bench, oldest={"pool": published + timedelta(seconds=11)})) == 1


class _AnyOrder(MemorySweepStore):
    async def due_pointers(self, *, limit: int, **options: Any) -> Any:
        return (await super().due_pointers(limit=100, **options))[-limit:]


@clause(instead(sweeps=_AnyOrder))
async def urgent_work_is_published_first(bench: Bench) -> None:
    effects = [
        effect_of(kind="poll", ordinal=number, not_before=PAST, priority=priority)
        for number, priority in ((1, 0), (2, 9), (3, 5))
    ]
    await begin(bench, effects=effects)
    assert {p.id for p in await _due(bench, limit=2)} == {effects[1].id, effects[2].id}
    assert [p.id for p in await _due(bench, limit=2)] == [effects[0].id]


# --- doorbells ---------------------------------------------------------------------------------------------------------


class _Deaf(MemorySweepStore):
    async def lost_doorbells(self, **options: Any) -> Any:
        return [bell for bell in await super().lost_doorbells(**options) if bell.what != "effect"]


@clause(instead(sweeps=_Deaf))
async def a_receipt_that_nobody_looked_at_is_found_after_a_grace(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    claimed = await one(bench, effect)
    await report(bench, effect, claimed.fence)
    assert await _lost(bench) == []
    await bench.pass_seconds(11)
    assert await _lost(bench) == [("effect", effect.id)]


class _NoParts(MemorySweepStore):
    async def lost_doorbells(self, *, oldest: Any, **options: Any) -> Any:
        return await super().lost_doorbells(oldest=NO_PART_LEFT, **options)


@clause(instead(sweeps=_NoParts))
async def a_doorbell_that_may_still_stand_in_its_part_is_not_lost(bench: Bench) -> None:
    effect = effect_of(3)
    await begin(bench, 3, effects=[effect])
    claimed = await one(bench, effect)
    await report(bench, effect, claimed.fence)
    await bench.pass_seconds(60)
    reported = (await bench.effect(effect.id)).reported_at
    behind = [None, None, None, reported + timedelta(seconds=5)]
    ahead = [None, None, None, reported + timedelta(seconds=11)]
    assert await _lost(bench, oldest=behind) == []
    assert await _lost(bench, oldest=ahead) == [("effect", effect.id)]


@clause(patched("store_waiting.died_holding", lambda session, told_at: False))
async def a_dispatcher_that_fell_silent_may_have_taken_doorbells_along(bench: Bench) -> None:
    effect = effect_of(3)
    await begin(bench, 3, effects=[effect])
    claimed = await one(bench, effect)
    await bench.other_sweeper.announce(roles=["dispatcher"], pools=[], activities=[])
    await report(bench, effect, claimed.fence)
    reported = (await bench.effect(effect.id)).reported_at
    standing = [None, None, None, reported - timedelta(days=1)]
    await bench.pass_seconds(12)
    assert await _lost(bench, oldest=standing) == []
    await bench.pass_seconds(5)
    assert await _lost(bench, oldest=standing) == [("effect", effect.id)]
    await bench.pass_seconds(5)
    assert await _lost(bench, oldest=standing) == []


@clause(patched("store_waiting.died_holding", lambda session, told_at: True))
async def no_other_death_is_a_reason_to_ring_again(bench: Bench) -> None:
    effect = effect_of(3)
    await begin(bench, 3, effects=[effect])
    claimed = await one(bench, effect)
    await bench.other_sweeper.announce(roles=["worker"], pools=[], activities=[])
    await bench.sweeper.announce(roles=["dispatcher"], pools=[], activities=[])
    await report(bench, effect, claimed.fence)
    await bench.sweeper.retire()
    await bench.pass_seconds(17)
    assert await _lost(bench, oldest=[None, None, None, PAST]) == []


class _CountsAll(MemorySweepStore):
    async def take_suspects(self, digests: Any) -> Any:
        counted = self._database.__dict__.setdefault("_counted", {})
        for digest in digests:
            counted[digest] = counted.get(digest, -1) + 1
        return {digest: counted[digest] for digest in digests}


@clause(instead(sweeps=_CountsAll))
async def a_message_is_suspect_only_by_the_deaths_of_those_who_had_it(bench: Bench) -> None:
    one_, other = b"1" * 32, b"2" * 32
    await bench.sweeper.announce(roles=["dispatcher"], pools=[], activities=[])
    await bench.other_sweeper.announce(roles=["dispatcher"], pools=[], activities=[])
    for holder in (bench.sweeper, bench.sweeper, bench.other_sweeper, bench.sweeper):
        assert await holder.take_suspects([one_]) == {one_: 0}
    await bench.pass_seconds(16)
    await bench.other_sweeper.announce(roles=["dispatcher"], pools=[], activities=[])
    assert await bench.other_sweeper.take_suspects([one_, other]) == {one_: 1, other: 0}
    assert await bench.other_sweeper.take_suspects([one_, other]) == {one_: 1, other: 0}
    await bench.other_sweeper.retire()
    await bench.sweeper.announce(roles=["dispatcher"], pools=[], activities=[])
    assert await bench.sweeper.take_suspects([one_]) == {one_: 2}


@clause(instead(sweeps=_Deaf))
async def a_deadline_that_passed_and_a_lease_that_ended_ring_too(bench: Bench) -> None:
    late, ended = effect_of(step="late", deadline=PAST), effect_of(step="ended")
    await begin(bench, effects=[late, ended])
    claimed = await one(bench, ended, lease_seconds=1)
    await bench.effects.open_call(effect_id=ended.id, fence=claimed.fence)
    await bench.pass_seconds(2)
    assert await _expire(bench) == {ended.id: "expired"}
    assert await _lost(bench) == [("effect", late.id)]
    await bench.pass_seconds(11)
    assert await _lost(bench) == sorted([("effect", late.id), ("effect", ended.id)])


def _everything(session: Any, statement: str, run_id: uuid.UUID) -> Any:
    return session.tables.runs.get(run_id)


@clause(patched("store_waiting.looked_at", _everything))
async def nobody_is_rung_for_a_run_that_is_set_aside(bench: Bench) -> None:
    run_id = await begin(bench, effects=[effect_of(deadline=PAST)])
    due = TimerIntent(key="settlement", due_at=PAST)
    await bench.decisions.commit([commit_of(timers=[due])])
    await _callback(bench, run_id)
    await bench.decisions.set_aside(run_id)
    await bench.pass_seconds(60)
    assert await _lost(bench) == []


class _OnlyEffects(MemorySweepStore):
    async def lost_doorbells(self, **options: Any) -> Any:
        return [bell for bell in await super().lost_doorbells(**options) if bell.what == "effect"]


@clause(instead(sweeps=_OnlyEffects))
async def timers_ring_when_due_callbacks_and_signals_after_a_grace(bench: Bench) -> None:
    first, second, third = [await begin(bench, number) for number in (1, 2, 3)]
    later = datetime.now(UTC) + timedelta(days=3650)
    timers = [TimerIntent(key="settlement", due_at=PAST), TimerIntent(key="run_deadline", due_at=later)]
    await bench.decisions.commit([commit_of(1, timers=timers)])
    await _callback(bench, second)
    await bench.plans.signal(
        id=uuid.UUID(int=5), tenant=ALICE.tenant, run_id=third, kind="plan_checked", payload=b"{}"
    )
    assert await _lost(bench) == [("run", first)]
    await bench.pass_seconds(11)
    inbox_id = (await bench.rows("inbox"))[0].id
    assert await _lost(bench) == sorted([("inbox", inbox_id), ("run", first), ("run", third)])
    assert len(await _lost(bench, limit=1)) == 3, "the limit counts each kind"
    bells = await bench.sweeper.lost_doorbells(grace_seconds=10, limit=9, oldest=NO_PART_LEFT)
    assert sorted(str(bell.traceparent) for bell in bells) == ["00-cb", "00-t", "00-t"]


async def _next(bench: Bench) -> float:
    seconds = await bench.sweeper.next_due_seconds(grace_seconds=10)
    assert seconds is not None
    return seconds


def _one_grace_more(session: Any, grace_seconds: float) -> Any:
    return [moment + timedelta(seconds=grace_seconds) for moment in due_times(session, grace_seconds)]


@clause(patched("store_sweeps.due_times", _one_grace_more))
async def the_next_due_moment_is_the_earliest_of_all(bench: Bench) -> None:
    assert await bench.sweeper.next_due_seconds(grace_seconds=10) is None
    effect = effect_of()
    run_id = await begin(bench, effects=[effect])
    assert 8 < await _next(bench) <= 10
    await one(bench, effect, lease_seconds=5)
    assert 3 < await _next(bench) <= 5
    errand = Outgoing(id=uuid.UUID(int=8), run_id=run_id, kind="start_due", payload={})
    await bench.decisions.commit([commit_of(outgoing=[errand])])
    assert await _next(bench) <= 0
    await bench.decisions.commit([commit_of(at=2, timers=[TimerIntent(key="settlement", due_at=PAST)])])
    assert await _next(bench) < -86400


# --- who lives, and what is kept ---------------------------------------------------------------------------------------


class _Careless(MemorySweepStore):
    async def announce(self, **options: Any) -> None:
        if not self._database.tables.incarnations:
            await super().announce(**options)


@clause(instead(sweeps=_Careless))
async def two_processes_never_work_under_one_name(bench: Bench) -> None:
    await bench.sweeper.announce(roles=["worker"], pools=["pool"], activities=["a@1"])
    await bench.sweeper.announce(roles=["worker"], pools=["pool"], activities=["a@1"])
    twin = type(bench.sweeper)(*_place_of(bench), incarnation=uuid.UUID(int=7), owner="alpha")
    with pytest.raises((DecisionRefused, asyncpg.UniqueViolationError)):
        await twin.announce(roles=[], pools=[], activities=[])


def _place_of(bench: Any) -> tuple[Any, ...]:
    """What a store of this bench stands on: the pool, or the database in memory."""
    return (bench.pool,) if hasattr(bench, "pool") else (bench.database,)


class _Fixed(MemorySweepStore):
    async def raise_transport_epoch(self) -> int:
        return 1


@clause(instead(sweeps=_Fixed))
async def the_store_knows_its_epochs_and_streams(bench: Bench) -> None:
    identity = await bench.sweeper.identity()
    assert (identity.store_epoch, identity.transport_epoch, identity.application) == (1, 1, None)
    assert await bench.sweeper.raise_transport_epoch() == 2
    await bench.plans.deploy("build-2")
    identity = await bench.sweeper.identity()
    assert (identity.transport_epoch, identity.application) == (2, "build-2")
    await bench.sweeper.save_stream_identities({"LT_EFFECT": "monday", "LT_EVENT": "monday"})
    await bench.sweeper.save_stream_identities({"LT_EFFECT": "tuesday"})
    assert await bench.sweeper.stream_identities() == {"LT_EFFECT": "tuesday", "LT_EVENT": "monday"}


class _Forgetful(MemorySweepStore):
    async def dead_letter(self, **options: Any) -> None:
        await super().dead_letter(**{**options, "reason": ""})


@clause(instead(sweeps=_Forgetful))
async def a_dead_letter_is_kept_with_its_reason(bench: Bench) -> None:
    await bench.sweeper.dead_letter(
        tenant=None, source="callback", subject="s", reason="unreadable", body=b"\x00\xff", headers={"h": "v"}
    )
    (letter,) = await bench.rows("dead_letters")
    assert (letter.reason, bytes(letter.body), letter.source) == ("unreadable", b"\x00\xff", "callback")


@clause(without("inbox_unique"))
async def copies_of_a_callback_meet_on_one_row(bench: Bench) -> None:
    run_id = await begin(bench)
    assert [await _callback(bench, run_id) for _ in range(3)] == [1, 2, 3]
    assert await _callback(bench, run_id, key="another") == 1
    assert await bench.count("inbox") == 2
    assert {row.payload for row in await bench.rows("inbox")} == {b'{ "a": 1}'}, "exact bytes"


@clause(without("tenant_checked"))
async def a_callback_for_the_run_of_another_is_not_kept(bench: Bench) -> None:
    run_id = await begin(bench)
    assert await _callback(bench, run_id, tenant=STRANGER.tenant) is None
    assert await _callback(bench, run_id_of(9)) is None
    assert await bench.count("inbox") == 0


class _ChecksNothing(MemoryPlanCheckStore):
    async def mark_checked(self, run_ids: Any, application: str) -> None:
        pass


@clause(instead(plans=_ChecksNothing))
async def active_runs_are_compared_with_new_code_once(bench: Bench) -> None:
    first, second, ended = [await begin(bench, number) for number in (1, 2, 3)]
    await bench.decisions.commit([commit_of(3, row={"ended_at": PAST, "status": "completed"})])
    assert await bench.plans.unchecked_runs("build-1", 10) == []
    found = await bench.plans.unchecked_runs("build-2", 10)
    assert [run.run_id for run in found] == [first, second]
    assert (found[0].plan, found[0].fingerprint, found[0].drift_blocked) == (b"{}", "print-1", False)
    assert len(await bench.plans.unchecked_runs("build-2", 1)) == 1
    await bench.plans.mark_checked([first, second, ended, run_id_of(9)], "build-2")
    assert await bench.plans.unchecked_runs("build-2", 10) == []


class _Reencoded(MemoryAuditStore):
    async def history(self, run_id: uuid.UUID) -> Any:
        return [
            msgspec.structs.replace(event, data=msgspec.json.encode(msgspec.json.decode(event.data)))
            for event in await super().history(run_id)
        ]


@clause(instead(audit=_Reencoded))
async def history_is_told_in_order_with_the_exact_bytes(bench: Bench) -> None:
    run_id = await begin(bench)
    commit = commit_of(events=2)
    await bench.decisions.commit([commit])
    history = await bench.audit.history(run_id)
    assert history[1:] == commit.events
    assert [event.seq for event in history] == [1, 2, 3]


class _Overwrites(MemoryAuditStore):
    async def replace_projection(
        self, run_id: uuid.UUID, tenant: str, row: Any, steps: Any, **options: Any
    ) -> bool:
        revision = self._database.tables.runs[run_id].revision
        row = msgspec.structs.replace(row, revision=revision)
        return await super().replace_projection(run_id, tenant, row, steps, **options)


@clause(instead(audit=_Overwrites))
async def a_projection_is_replaced_only_where_it_was_folded(bench: Bench) -> None:
    run_id = await begin(bench, steps=[step_of("old")])
    row = commit_of(row={"status": "paused", "revision": 1}).row
    assert row is not None
    stale = msgspec.structs.replace(row, revision=7)
    assert not await bench.audit.replace_projection(run_id, ALICE.tenant, stale, [], poisoned=False)
    assert await bench.audit.replace_projection(run_id, ALICE.tenant, row, [step_of("new")], poisoned=False)
    projection = await bench.audit.projection(run_id)
    assert projection is not None
    assert (projection.run["status"], projection.run["revision"]) == ("paused", 1)
    assert [step["key"] for step in projection.steps] == ["new"]
    assert (projection.charged, projection.refunded) == (0, 0)


@clause(patched("store_sweeps.refuse_rewound", lambda known, confirmed: None))
async def a_process_that_the_store_has_forgotten_hears_so(bench: Bench) -> None:
    """Whoever ran through a restore must end: of what was confirmed to it the store knows nothing any more (F70)."""
    await bench.back_up()
    assert await bench.sweeper.announce(roles=["worker"], pools=[], activities=[]) == 1
    assert await bench.sweeper.announce(roles=["worker"], pools=[], activities=[]) == 1
    await bench.restore()
    with pytest.raises(StoreRewound, match="doctor restore"):
        await bench.sweeper.announce(roles=["worker"], pools=[], activities=[])
    assert await bench.other_sweeper.announce(roles=["worker"], pools=[], activities=[]) == 2
    assert not await bench.sweeper.has_command("acme", "alice", "lost")
