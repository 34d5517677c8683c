"""What the relay publishes: in which order, and how much of a pool at once (P12), as one look at the rows answers it.

Leaves to others: marking what was chosen (store_sweeps.py).
"""

import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice

from longtake.memory.store_session import Session
from longtake.memory.store_waiting import backoff, open_effects
from longtake.memory.tables import EffectRow, IncarnationRow
from longtake.store import WINDOW_FACTOR, WINDOW_MIN, StalledWork

NO_WORKER = "no_worker"
"""Blocker of a run with work that no living worker can take."""
_BY_HAND = ("execute", "compensate")


def to_publish(
    session: Session, grace_seconds: float, oldest: Mapping[str, datetime | None], *, all_lost: bool
) -> list[EffectRow]:
    """What is published now: what is lost, and what is new as far as the window of its pool goes; the urgent first, then
    each tenant in its turn."""
    now = session.now
    dead = dead_incarnations(session, now)
    waiting = [
        effect
        for effect in open_effects(session, "pointers_due")
        if effect.state == "queued" and effect.not_before <= now
    ]
    unclaimed: dict[str, int] = {}
    for effect in waiting:
        if effect.published_at is not None:
            unclaimed[effect.pool] = unclaimed.get(effect.pool, 0) + 1
    wanted = [
        effect
        for effect in waiting
        if effect.published_at is None
        or all_lost
        or effect.incarnation in dead
        or left_behind(effect, now, grace_seconds, oldest)
    ]
    if not wanted:
        return []
    windows = windows_of_pools(session)
    places: dict[str, int] = {}
    chosen: list[EffectRow] = []
    for effect in _in_turn(wanted):
        if effect.published_at is None:
            place = places[effect.pool] = places.get(effect.pool, 0) + 1
            window = windows.get(effect.pool, WINDOW_MIN)
            if place > window - unclaimed.get(effect.pool, 0) and session.defences.window_kept:
                continue
        chosen.append(effect)
    return chosen


def _in_turn(effects: list[EffectRow]) -> list[EffectRow]:
    """By priority, then in turn by tenant within a pool, then by id."""
    turns: dict[uuid.UUID, int] = {}
    counted: dict[tuple[str, str], int] = {}
    for effect in sorted(effects, key=lambda effect: (-effect.priority, effect.id)):
        whose = (effect.pool, effect.tenant)
        turns[effect.id] = counted[whose] = counted.get(whose, 0) + 1
    return sorted(effects, key=lambda effect: (-effect.priority, turns[effect.id], effect.id))


def windows_of_pools(session: Session) -> dict[str, int]:
    """How many unclaimed pointers of a pool may stand published, by what living workers announce."""
    slots: dict[str, int] = {}
    for row in _living_workers(session):
        for index, pool in enumerate(row.pools):
            slots[pool] = slots.get(pool, 0) + (row.slots[index] if index < len(row.slots) else 0)
    return {pool: max(WINDOW_MIN, WINDOW_FACTOR * count) for pool, count in slots.items()}


def room_of_pools(session: Session) -> dict[str, int]:
    """How many pointers of each pool may be published more."""
    room = windows_of_pools(session)
    for effect in open_effects(session, "windows_read"):
        if effect.state == "queued" and effect.published_at is not None and effect.not_before <= session.now:
            room[effect.pool] = room.get(effect.pool, WINDOW_MIN) - 1
    return room


def stalled_work(session: Session, stall_seconds: float, limit: int) -> list[StalledWork]:
    """Work that nobody can take for longer than the window, and such work that somebody can take after all."""
    able = {activity for row in _living_workers(session) for activity in row.activities}
    return [
        *islice(_stalled(session, able, stall_seconds), limit),
        *islice(_taken_after_all(session, able), limit),
    ]


def _stalled(session: Session, able: set[str], stall_seconds: float) -> Iterator[StalledWork]:
    before = session.now - timedelta(seconds=stall_seconds)
    for effect in open_effects(session, "work_stalled"):
        run = session.tables.runs[effect.run_id]
        if run.poisoned or effect.activity in able:
            continue
        since = (
            effect.not_before if effect.heartbeat_at is None else max(effect.not_before, effect.heartbeat_at)
        )
        if effect.state == "queued" and effect.kind in _BY_HAND and since < before:
            yield _work(effect, stalled=True)


def _taken_after_all(session: Session, able: set[str]) -> Iterator[StalledWork]:
    for effect in open_effects(session, "work_stalled"):
        run = session.tables.runs[effect.run_id]
        if run.ended_at is not None or NO_WORKER not in run.blockers or effect.kind not in _BY_HAND:
            continue
        if effect.state != "queued" or effect.activity in able:
            yield _work(effect, stalled=False)


def _work(effect: EffectRow, *, stalled: bool) -> StalledWork:
    return StalledWork(
        id=effect.id,
        tenant=effect.tenant,
        run_id=effect.run_id,
        step=effect.step,
        attempt=effect.attempt,
        activity=effect.activity,
        leases=effect.leases,
        stalled=stalled,
    )


def _living_workers(session: Session) -> Iterator[IncarnationRow]:
    now = session.now
    for row in session.tables.incarnations.values():
        if row.alive_until > now and "worker" in row.roles:
            yield row


def dead_incarnations(session: Session, now: datetime) -> set[uuid.UUID | None]:
    """Processes that count as dead."""
    return {id_ for id_, row in session.tables.incarnations.items() if row.alive_until < now}


def left_behind(
    effect: EffectRow, now: datetime, grace_seconds: float, oldest: Mapping[str, datetime | None]
) -> bool:
    """Published long ago into a stream that has since moved on (P12)."""
    if effect.pool not in oldest or effect.published_at is None:
        return False
    moved_to = oldest[effect.pool]
    return effect.published_at < now - backoff(effect, grace_seconds) and (
        moved_to is None or moved_to > effect.published_at + timedelta(seconds=grace_seconds)
    )
