"""The search for an order, against trying every order there is, and against calls that were spoilt on purpose."""

import itertools
import math
from random import Random

import msgspec
import pytest

from longtake.testing.checking.history import Call
from longtake.testing.checking.linearizable import Moment, Track, judge_run, search
from longtake.testing.checking.search import linearize

SEEDS = range(300)


def call(
    id_: int, f: str, value: object, begun: float, ended: float, type_: str = "ok", asked: object = None
) -> Call:
    told = {"value": value} if f in ("write", "see") else value
    ended = math.inf if type_ == "info" else ended
    return Call(proc="c", f=f, key="r", asked=asked, told=told, type=type_, begun=begun, ended=ended, id=id_)


def register(state: int, made: Call) -> int | None:
    """A register: writes put a value in, reads see it."""
    value = made.told["value"]
    return value if made.f == "write" or value == state else None


def every_order(calls: list[Call], initial, step) -> bool:
    """Try all orders of all calls that had an end, with any of the others."""
    sure = [made for made in calls if not math.isinf(made.ended)]
    open_ = [made for made in calls if math.isinf(made.ended)]
    for count in range(len(open_) + 1):
        for chosen in itertools.combinations(open_, count):
            for order in itertools.permutations([*sure, *chosen]):
                if any(later.ended < earlier.begun for earlier, later in itertools.combinations(order, 2)):
                    continue
                state = initial
                for made in order:
                    state = step(state, made)
                    if state is None:
                        break
                else:
                    return True
    return False


def drawn(chance: Random, count: int) -> list[Call]:
    calls = []
    for id_ in range(count):
        begun = chance.random() * 4
        type_ = "info" if chance.random() < 0.15 else "ok"
        f = chance.choice(("write", "see"))
        calls.append(call(id_, f, chance.randrange(3), begun, begun + chance.random() * 2, type_))
    return calls


def test_the_search_finds_what_trying_everything_finds():
    found = {True: 0, False: 0}
    for seed in SEEDS:
        calls = drawn(Random(seed), 5)
        expected = every_order(calls, 0, register)
        assert (linearize(calls, 0, register).order is not None) == expected, f"seed {seed}"
        found[expected] += 1

    assert min(found.values()) > 50, found


def test_an_order_that_is_found_is_one():
    for seed in SEEDS:
        calls = drawn(Random(seed), 6)
        order = linearize(calls, 0, register).order
        if order is None:
            continue
        state = 0
        for made in order:
            state = register(state, made)
            assert state is not None
        assert not any(later.ended < earlier.begun for earlier, later in itertools.combinations(order, 2))


def played(chance: Random, count: int) -> list[Call]:
    """A history that has an order: each call happens at a moment between its beginning and its end."""
    state, now, calls = 0, 0.0, []
    for id_ in range(count):
        now += chance.random()
        f = chance.choice(("write", "see"))
        value = id_ + 1 if f == "write" else state
        state = value
        begun, ended = now - chance.random() * 3, now + chance.random() * 3
        calls.append(
            call(id_, f, value, begun, ended, "info" if chance.random() < 0.1 and f == "write" else "ok")
        )
    return calls


def test_a_history_that_happened_has_an_order_and_a_spoilt_read_has_none():
    for seed in range(80):
        chance = Random(seed)
        calls = played(chance, 30)
        assert linearize(calls, 0, register).order is not None, f"seed {seed}"
        sees = [made for made in calls if made.f == "see"]
        chance.choice(sees).told = {"value": 999}
        spoilt = linearize(calls, 0, register)
        assert spoilt.order is None, f"seed {seed}"
        assert spoilt.stuck


def test_without_the_order_of_time_a_spoilt_history_would_pass():
    """The real-time bound is what rejects a stale read: both at once, either order will do."""
    calls = [call(1, "write", 1, 0, 1), call(2, "see", 0, 2, 3)]
    assert linearize(calls, 0, register).order is None
    for made in calls:
        made.begun = 0.0
    assert linearize(calls, 0, register).order is not None


def test_too_many_ways_are_given_up_and_nothing_is_said():
    calls = [call(id_, "write", id_, 0, 9) for id_ in range(9)] + [call(99, "see", 99, 10, 11)]

    found = linearize(calls, 0, register, visits_max=100)

    assert found.given_up
    assert found.order is None


# --- runs -------------------------------------------------------------------------------------------------------------

STATUSES = ("running", "paused", "needs_input")


def drawn_track(chance: Random, length: int) -> Track:
    """A run whose status, offers and attempts change at random, with commands here and there."""
    moments, since, taken = [Moment(status="")], {}, {"start": (1, 1)}
    for revision in range(1, length + 1):
        offered = [name for name in ("cancel_generation", "pause_generation") if chance.random() < 0.8]
        since = {name: since.get(name, revision) for name in offered}
        moments.append(Moment(status=chance.choice(STATUSES), since=since, attempts={"s": revision // 3}))
        if revision > 1 and chance.random() < 0.3 and "pause_generation" in moments[-2].since:
            taken[f"pause-{revision}"] = (revision, revision)
    return Track(moments=moments, taken=taken, ours=frozenset(taken))


def played_track(chance: Random, track: Track, count: int) -> list[Call]:
    """Clients look at the run and act on it, at the moments at which the log says so."""
    moments = [0.0]
    for _ in range(track.last + 1):
        moments.append(moments[-1] + 0.1 + chance.random())
    calls = []
    for id_, (name, (first, last)) in enumerate(track.taken.items()):
        at = moments[first]
        kind = name.partition("-")[0]
        seen = chance.randint(track.moments[first - 1].since.get("pause_generation", 1), max(first - 1, 1))
        asked = {"kind": kind, "id": name, "expected_revision": seen}
        f = "start" if name == "start" else "command"
        made = call(id_, f, {"revision": last}, at - chance.random(), at + chance.random(), asked=asked)
        if f == "start":
            made.key = "start"
        calls.append(made)
    for id_ in range(100, 100 + count):
        revision = chance.randint(1, track.last)
        low, high = moments[revision], moments[revision + 1]
        at = low + (high - low) * chance.random()
        moment = track.moments[revision]
        told = {
            "revision": revision,
            "status": moment.status,
            "attempts": dict(moment.attempts),
            "actions": [*moment.since],
        }
        calls.append(call(id_, "read", told, at - chance.random(), at + chance.random()))
    return calls


def test_what_a_run_went_through_is_accepted():
    for seed in SEEDS:
        chance = Random(seed)
        track = drawn_track(chance, 12)
        calls = played_track(chance, track, 25)
        assert not judge_run("r", calls, track), f"seed {seed}"


@pytest.mark.parametrize("name", ["revision", "status", "actions", "attempts"])
def test_a_read_that_was_spoilt_is_found(name):
    for seed in range(100):
        chance = Random(seed)
        track = drawn_track(chance, 12)
        calls = played_track(chance, track, 25)
        told = chance.choice([made for made in calls if made.f == "read"]).told
        told[name] = {
            "revision": 99,
            "status": "failed",
            "actions": ["steer_generation"],
            "attempts": {"s": 77},
        }[name]
        assert judge_run("r", calls, track), f"seed {seed}"


def test_the_model_of_a_run_agrees_with_trying_everything():
    found = {True: 0, False: 0}
    for seed in SEEDS:
        chance = Random(seed)
        track = drawn_track(chance, 4)
        calls = played_track(chance, track, 3)[:5]
        track = msgspec.structs.replace(
            track, ours=frozenset(made.asked["id"] for made in calls if made.asked)
        )
        spoilt = chance.choice(calls)
        if chance.random() < 0.7:
            spoilt.begun = chance.random() * 4
            spoilt.ended = spoilt.begun + chance.random()
        expected = every_order(calls, 0, track.step)
        assert (linearize(calls, 0, track.step).order is not None) == expected, f"seed {seed}"
        found[expected] += 1

    assert min(found.values()) > 30, found


def test_a_run_with_two_hundred_calls_is_judged():
    chance = Random(7)
    track = drawn_track(chance, 60)
    calls = played_track(chance, track, 180)[:200]

    # Thirty reads without an answer would be a thousand million ways.
    calls += [call(1000 + id_, "read", None, chance.random() * 30, 0, "info") for id_ in range(30)]

    found = search(calls, track)

    assert not found.given_up
    assert found.order is not None
