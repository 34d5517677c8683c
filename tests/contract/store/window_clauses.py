"""Clauses of the relay's window: how much of a pool is published, in which order, and what nobody can take."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from contract.store.bench import ALICE, STRANGER, Bench
from contract.store.clauses import clause, instead, patched, without
from contract.store.rows import begin, blocker_of, commit_of, effect_of, one, run_id_of
from longtake.contracts.signals import Outgoing
from longtake.memory import MemoryDecisionStore, MemorySweepStore
from longtake.store import WINDOW_FACTOR, WINDOW_MIN, StalledWork

PAST = datetime(2020, 1, 1, tzinfo=UTC)
LATER = datetime.now(UTC) + timedelta(days=3650)


def _polls(number: int, count: int, **members: Any) -> list[Any]:
    """Effects that are due and were never published."""
    return [
        effect_of(number, kind="poll", ordinal=ordinal, not_before=PAST, **members)
        for ordinal in range(1, count + 1)
    ]


async def _due(bench: Bench, *, limit: int = 1000, all_lost: bool = False) -> list[uuid.UUID]:
    pointers = await bench.sweeper.due_pointers(limit=limit, grace_seconds=10, oldest={}, all_lost=all_lost)
    return [pointer.id for pointer in pointers]


@clause(without("window_kept"))
async def a_pool_without_workers_has_the_smallest_window(bench: Bench) -> None:
    effects = _polls(1, WINDOW_MIN + 5)
    await begin(bench, effects=effects)
    assert len(await _due(bench)) == WINDOW_MIN
    assert await _due(bench) == []
    published = {row.id for row in await bench.rows("effects") if row.published_at is not None}
    await one(bench, next(effect for effect in effects if effect.id in published))
    assert len(await _due(bench)) == 1, "what is claimed makes room"
    assert len(await _due(bench, all_lost=True)) == WINDOW_MIN, (
        "what is lost is published whatever the window"
    )


def _no_slots(session: Any) -> dict[str, int]:
    return {}


@clause(patched("store_publishing.windows_of_pools", _no_slots))
async def a_window_grows_with_the_slots_that_living_workers_announce(bench: Bench) -> None:
    slots = WINDOW_MIN // WINDOW_FACTOR + 1
    size = WINDOW_FACTOR * (slots + 1)
    await begin(bench, effects=_polls(1, size + 5))
    await bench.sweeper.announce(roles=["worker"], pools=["short", "pool"], activities=[], slots=[900, slots])
    await bench.other_sweeper.announce(roles=["worker", "relay"], pools=["pool"], activities=[], slots=[1])
    assert (await bench.sweeper.room()).get("pool") == size
    assert len(await _due(bench)) == size
    room = await bench.sweeper.room()
    assert (room["pool"], room["short"]) == (0, WINDOW_FACTOR * 900)
    await bench.other_sweeper.retire()
    assert (await bench.sweeper.room())["pool"] == -WINDOW_FACTOR


class _Roomy(MemorySweepStore):
    async def room(self) -> dict[str, int]:
        return {pool: WINDOW_MIN for pool in await super().room()}


@clause(instead(sweeps=_Roomy))
async def room_is_what_a_window_has_left(bench: Bench) -> None:
    busy = effect_of(1, step="busy")
    await begin(bench, effects=[effect_of(1), busy, effect_of(1, kind="poll", not_before=LATER)])
    assert await bench.sweeper.room() == {"pool": WINDOW_MIN - 2}
    await one(bench, busy)
    assert await bench.sweeper.room() == {"pool": WINDOW_MIN - 1}
    await bench.sweeper.announce(roles=["relay"], pools=["pool"], activities=[], slots=[900])
    assert await bench.sweeper.room() == {"pool": WINDOW_MIN - 1}, "no worker"


def _by_id(effects: list[Any]) -> list[Any]:
    return sorted(effects, key=lambda effect: (-effect.priority, effect.id))


@clause(patched("store_publishing._in_turn", _by_id))
async def tenants_take_turns_and_urgent_work_goes_before_all(bench: Bench) -> None:
    ours, theirs = _polls(1, 3), _polls(2, 3)
    urgent = effect_of(1, step="urgent", kind="poll", not_before=PAST, priority=9)
    await begin(bench, 1, effects=[*ours, urgent])
    await begin(bench, 2, effects=theirs, principal=STRANGER)
    ours, theirs = (sorted(effect.id for effect in effects) for effects in (ours, theirs))
    published = await _due(bench)
    assert published == [urgent.id, theirs[0], ours[0], theirs[1], ours[1], theirs[2], ours[2]]
    assert await _due(bench) == []


class _Eager(MemoryDecisionStore):
    async def commit(self, commits: Any) -> Any:
        for commit in commits:
            commit.held_back = set()
        return await super().commit(commits)


@clause(instead(decisions=_Eager))
async def an_effect_that_is_held_back_is_left_to_the_relay(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench)
    commit = commit_of(effects=[(effect, None)])
    commit.held_back = {effect.id}
    assert (await bench.decisions.commit([commit])).pointers == ()
    assert (await bench.effect(effect.id)).published_at is None
    assert await _due(bench) == [effect.id]


def _work(effect: Any, *, leases: int = 0, stalled: bool = True) -> StalledWork:
    return StalledWork(
        id=effect.id, tenant=ALICE.tenant, run_id=run_id_of(1), step=effect.step, attempt=1,
        activity=effect.activity, leases=leases, stalled=stalled,
    )  # fmt: skip


class _Patient(MemorySweepStore):
    async def stalled_work(self, **options: Any) -> list[StalledWork]:
        return [work for work in await super().stalled_work(**options) if not work.stalled]


@clause(instead(sweeps=_Patient))
async def work_that_no_living_worker_can_take_is_found_after_the_stall_window(bench: Bench) -> None:
    nobodys, known = effect_of(step="nobodys", activity="rare@1"), effect_of(step="known", activity="a@1")
    polled = effect_of(step="polled", kind="poll", activity="rare@1")
    await begin(bench, effects=[nobodys, known, polled])
    await bench.sweeper.announce(roles=["worker"], pools=["pool"], activities=["a@1"])
    await bench.other_sweeper.announce(roles=["api"], pools=["pool"], activities=["rare@1"])

    async def stalled(limit: int = 10) -> list[StalledWork]:
        return await bench.sweeper.stalled_work(stall_seconds=5, limit=limit)

    assert await stalled() == []
    await bench.pass_seconds(6)
    assert await stalled() == [_work(nobodys)]
    assert await stalled(limit=0) == []
    await bench.pass_seconds(20)
    assert {work.step for work in await stalled()} == {"nobodys", "known"}, "its only worker fell silent"


class _Hopeless(MemorySweepStore):
    async def stalled_work(self, **options: Any) -> list[StalledWork]:
        return [work for work in await super().stalled_work(**options) if work.stalled]


@clause(instead(sweeps=_Hopeless))
async def stalled_work_that_somebody_can_take_after_all_is_found_too(bench: Bench) -> None:
    effect = effect_of(activity="rare@1")
    await begin(bench, effects=[effect])
    await bench.pass_seconds(6)
    await bench.decisions.commit([commit_of(row={"blockers": (blocker_of("no_worker"),)})])

    async def told() -> list[StalledWork]:
        return await bench.sweeper.stalled_work(stall_seconds=5, limit=10)

    assert await told() == [_work(effect)], "nobody came"
    await bench.sweeper.announce(roles=["worker"], pools=["pool"], activities=["rare@1"])
    assert await told() == [_work(effect, stalled=False)]
    await bench.sweeper.retire()
    await one(bench, effect)
    assert await told() == [_work(effect, leases=1, stalled=False)]


class _Mute(MemorySweepStore):
    async def tell(self, tenant: str, fact: Outgoing) -> None:
        await super().tell(tenant, msgspec.structs.replace(fact, payload={}))


@clause(instead(sweeps=_Mute))
async def the_sweeper_tells_a_run_a_fact_once(bench: Bench) -> None:
    run_id = await begin(bench)
    fact = Outgoing(id=uuid.UUID(int=5), run_id=run_id, kind="work_stalled", payload={"step": "s"})
    for _ in range(2):
        await bench.sweeper.tell(ALICE.tenant, fact)
    (row,) = await bench.rows("signals")
    assert (row.id, row.run_id, row.kind, row.payload) == (fact.id, run_id, "work_stalled", b'{"step":"s"}')
