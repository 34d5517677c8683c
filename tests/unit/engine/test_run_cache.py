"""Runs kept folded in memory: as many as there is work on, not as many as there ever were."""

import uuid
from datetime import UTC, datetime, timedelta

from longtake.engine.deciding import IDLE, LiveRun, RunCache
from longtake.engine.history import Head
from longtake.workflow.plan import Plan, compile_plan
from longtake.workflow.state import initial

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLAN = compile_plan(Plan().wait("word", event="word"))


def run_at(clock: datetime | None) -> LiveRun:
    id_ = uuid.uuid4()
    head = Head(run_id=id_, tenant="t", store_epoch=1, seq=1, hash=bytes(32), actor="ann", correlation="c")
    state = initial(id_, "t", PLAN)
    state.revision = 1
    return LiveRun(state=state, head=head, clock=clock)


def kept(cache: RunCache, *runs: LiveRun) -> list[bool]:
    return [cache.revision(run.head.run_id) > 0 for run in runs]


def test_a_run_that_others_ended_does_not_stay_for_ever() -> None:
    cache = RunCache(store_epoch=1)
    early, late = run_at(NOW), run_at(NOW + timedelta(seconds=1))
    cache.put(early)
    cache.put(late)
    assert kept(cache, early, late) == [True, True]

    cache.put(newest := run_at(NOW + IDLE + timedelta(milliseconds=500)))
    assert kept(cache, early, late, newest) == [False, True, True]


def test_a_run_that_is_worked_on_stays_and_what_has_no_time_is_no_reason() -> None:
    cache = RunCache(store_epoch=1)
    worked, timeless = run_at(NOW), run_at(None)
    cache.put(worked)
    cache.put(timeless)
    cache.get(worked.head.run_id).clock = NOW + IDLE
    cache.put(run_at(NOW + IDLE + timedelta(seconds=1)))
    assert kept(cache, worked) == [True]


def test_there_is_a_bound_whatever_the_times_are() -> None:
    cache = RunCache(store_epoch=1, runs_max=3)
    runs = [run_at(NOW) for _ in range(5)]
    for run in runs:
        cache.put(run)
    assert kept(cache, *runs) == [False, False, True, True, True]
