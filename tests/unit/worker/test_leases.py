"""Leases: which effect has which, and a heartbeat that keeps each alive at its own pace (G33, P18)."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from kit.probe import eventually
from kit.promises import promise
from longtake.errors import AuthorityUnavailable
from longtake.settings import Settings
from longtake.worker.heartbeat import Heartbeat, Held
from longtake.worker.leases import LONG, LOOK, Lease, Trust, lease_of

DEFAULT = Lease(seconds=30, beat_seconds=10.0)
QUICK = 0.01


@promise("G33")
def test_the_profiles_are_those_of_the_protocol() -> None:
    """P18: 30/10 s, long 5 min/45 s, a look at what a long call began 3 min; never shorter than the setting."""
    settings = Settings()

    assert (settings.lease_seconds, settings.heartbeat_seconds) == (DEFAULT.seconds, DEFAULT.beat_seconds)
    assert (LONG.seconds, LONG.beat_seconds) == (300, 45.0)
    assert lease_of("default", "execute", default=DEFAULT) is DEFAULT
    assert lease_of("default", "poll", default=DEFAULT) is DEFAULT
    assert lease_of("long", "execute", default=DEFAULT) is LONG
    assert {lease_of("long", kind, default=DEFAULT) for kind in ("poll", "reconcile", "cancel")} == {LOOK}
    assert LOOK.seconds == 180
    hour = Lease(seconds=3600, beat_seconds=45.0)
    assert lease_of("long", "execute", default=hour) is hour


@promise("G32")
def test_a_lease_that_one_late_beat_would_lose_is_refused() -> None:
    with pytest.raises(ValueError, match="two beats"):
        Lease(seconds=60, beat_seconds=31.0)
    assert all(lease.beat_seconds * 2 <= lease.seconds for lease in (DEFAULT, LONG, LOOK))


class Keeper:
    """An authority that notes what it was asked; it can be away, and can have given leases to others."""

    def __init__(self) -> None:
        self.asked: list[dict[uuid.UUID, tuple[int, int | None]]] = []
        self.away = False
        self.gone: set[uuid.UUID] = set()

    async def renew(self, leases, progress) -> set[uuid.UUID]:  # type: ignore[no-untyped-def]
        self.asked.append({id_: (seconds, progress.get(id_)) for id_, _, seconds in leases})
        if self.away:
            raise AuthorityUnavailable("away")
        return {id_ for id_, _, _ in leases} - self.gone

    async def close(self) -> None:
        return None

    def times(self, id_: uuid.UUID) -> int:
        return sum(id_ in asked for asked in self.asked)


@asynccontextmanager
async def beating(keeper: Keeper) -> AsyncIterator[Heartbeat]:
    heartbeat = Heartbeat(keeper, every_seconds=QUICK)  # type: ignore[arg-type]  # a LeaseKeeper but for its hints
    await heartbeat.start()
    try:
        yield heartbeat
    finally:
        await heartbeat.stop()


def held(
    number: int, lease: Lease, *, lost: asyncio.Event | None = None, progress: list[int] | None = None
) -> Held:
    return Held(
        effect_id=uuid.UUID(int=number),
        fence=1,
        lease=lease,
        on_lost=(lost or asyncio.Event()).set,
        progress=lambda: progress[-1] if progress else None,
    )


@promise("G33", "G34")
async def test_each_lease_is_renewed_for_its_own_time_at_its_own_pace() -> None:
    """A short one at every look; a long one once, and again when there is progress to tell."""
    keeper, percent = Keeper(), [10]
    short, long = held(1, Lease(seconds=30, beat_seconds=QUICK)), held(2, LONG, progress=percent)
    async with beating(keeper) as heartbeat:
        heartbeat.hold(short)
        heartbeat.hold(long)
        await eventually(lambda: keeper.times(short.effect_id) >= 6, "six beats of the short lease")
        assert keeper.times(long.effect_id) == 1
        percent.append(60)
        await eventually(lambda: keeper.times(long.effect_id) == 2, "the progress of the long one")
        seen = keeper.times(short.effect_id)
        await eventually(lambda: keeper.times(short.effect_id) >= seen + 4, "more beats")

    assert keeper.times(long.effect_id) == 2
    renewals = [asked[long.effect_id] for asked in keeper.asked if long.effect_id in asked]
    assert renewals == [(300, 10), (300, 60)]
    assert {asked[short.effect_id] for asked in keeper.asked if short.effect_id in asked} == {(30, None)}


@promise("G32")
async def test_while_the_authority_is_away_nobody_is_told_and_all_is_tried_again() -> None:
    keeper, lost = Keeper(), asyncio.Event()
    keeper.away = True
    long = held(1, LONG, lost=lost)
    async with beating(keeper) as heartbeat:
        heartbeat.hold(long)
        await eventually(lambda: keeper.times(long.effect_id) >= 4, "tries while the authority is away")
        assert not lost.is_set()
        keeper.away = False
        tries = keeper.times(long.effect_id)
        await eventually(lambda: keeper.times(long.effect_id) > tries, "the first try that succeeds")
        assert not lost.is_set()


async def test_a_lease_that_is_gone_is_told_to_its_holder_and_renewed_no_more() -> None:
    keeper, lost = Keeper(), asyncio.Event()
    gone = held(1, Lease(seconds=30, beat_seconds=QUICK), lost=lost)
    keeper.gone = {gone.effect_id}
    async with beating(keeper) as heartbeat:
        heartbeat.hold(gone)
        await asyncio.wait_for(lost.wait(), 10)
        other = held(2, Lease(seconds=30, beat_seconds=QUICK))
        heartbeat.hold(other)
        await eventually(lambda: keeper.times(other.effect_id) >= 3, "beats of another")

    assert keeper.times(gone.effect_id) == 1


async def test_a_new_fence_of_the_same_effect_is_renewed_at_once() -> None:
    """Its claim began with the default lease, whatever its predecessor had reached."""
    keeper = Keeper()
    first = held(1, LONG)
    async with beating(keeper) as heartbeat:
        heartbeat.hold(first)
        await eventually(lambda: keeper.times(first.effect_id) == 1, "the first renewal")
        heartbeat.hold(
            Held(effect_id=first.effect_id, fence=2, lease=LONG, on_lost=print, progress=lambda: None)
        )
        await eventually(lambda: keeper.times(first.effect_id) == 2, "that of the next fence")


def test_a_lease_is_trusted_for_its_time_less_a_margin_from_before_it_was_asked_for() -> None:
    """F47: whatever other clocks say. A renewal of the past, which is told late, shortens nothing."""
    now = [1000.0]
    trust = Trust(30, since=990.0, clock=lambda: now[0])
    assert trust.holds
    now[0] = 1017.0
    assert not trust.holds

    trust.renew(300, since=1010.0)
    trust.renew(30, since=1012.0)
    now[0] = 1279.0
    assert trust.holds
    now[0] = 1280.0
    assert not trust.holds


async def test_a_renewal_moves_the_trust_on_and_a_refused_one_does_not() -> None:
    keeper, now = Keeper(), time.monotonic()
    ours, gone = (msgspec.structs.replace(held(n, LONG), trust=Trust(0, since=now)) for n in (1, 2))
    keeper.gone = {gone.effect_id}
    assert ours.trust is not None and gone.trust is not None
    async with beating(keeper) as heartbeat:
        heartbeat.hold(ours)
        heartbeat.hold(gone)
        await eventually(lambda: ours.trust is not None and ours.trust.holds, "the renewal")

    assert not gone.trust.holds
