"""Schedules as pure functions: the clock's two odd days, what is due after an absence, and what an overlap does."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.promises import promise
from longtake.contracts.ids import is_name
from longtake.errors import Refused
from longtake.workflow.cron import EXPRESSION_LENGTH_MAX, Timetable, timetable_faults
from longtake.workflow.schedule import (
    BACKFILL_MAX,
    OCCURRENCES_PER_LOOK_MAX,
    SCHEDULE_ID_LENGTH_MAX,
    WAITING_MAX,
    Schedule,
    Template,
    backfill,
    check_schedule,
    due,
    first_at,
    occurrence_command,
    occurrence_id,
    stop_command,
)

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def at(text: str) -> datetime:
    """A time of day of 30 November 2026, or a whole time."""
    return datetime.fromisoformat(text if "T" in text else f"2026-11-30T{text}:00Z")


def hourly(**changes: Any) -> Schedule:
    """A schedule of every full hour."""
    values: dict[str, Any] = {
        "tenant": "acme",
        "id": "hourly",
        "actor": "planner",
        "timetable": Timetable("0 * * * *"),
        "template": Template(workflow="clip@1", project="p1", input={"scenes": 2}),
    }
    return Schedule(**{**values, **changes})


def look(schedule: Schedule, since: str, now: str, *unsettled: Any) -> list[tuple[str, str]]:
    """What a look finds, as (time of day, state)."""
    found = due(schedule, next_at=at(since), now=at(now), unsettled=unsettled)
    return [(f"{item.instant:%H:%M}", item.state) for item in found.occurrences]


def local(table: Timetable, after: str, count: int) -> list[str]:
    """Instants as the clock on the wall shows them, with its offset."""
    zone = ZoneInfo(table.zone)
    found = islice(table.instants(datetime.fromisoformat(after)), count)
    return [instant.astimezone(zone).strftime("%m-%d %H:%M %z") for instant in found]


@promise("T61")
def test_a_time_that_the_spring_gap_swallows_comes_at_its_end_and_once():
    table = Timetable("30 2 * * *", "Europe/Madrid")

    assert local(table, "2026-03-28T00:00:00+01:00", 3) == [
        "03-28 02:30 +0100",
        "03-29 03:00 +0200",
        "03-30 02:30 +0200",
    ]


@promise("T61")
def test_a_time_that_the_autumn_fold_doubles_comes_the_first_time_only():
    table = Timetable("30 2 * * *", "Europe/Madrid")

    assert local(table, "2026-10-24T12:00:00+02:00", 2) == ["10-25 02:30 +0200", "10-26 02:30 +0100"]


def test_a_look_from_inside_the_fold_does_not_go_back_to_its_first_pass():
    """The trap: begun at the second 02:10, the source offers the 02:30 that lies half an hour in the past."""
    table = Timetable("30 2 * * *", "Europe/Madrid")

    assert local(table, "2026-10-25T02:10:00+01:00", 1) == ["10-26 02:30 +0100"]


def test_every_half_hour_goes_by_real_time_through_both_days():
    table = Timetable("*/30 * * * *", "Europe/Madrid")

    for start in ("2026-03-29T00:00:00+01:00", "2026-10-25T00:00:00+02:00"):
        instants = list(islice(table.instants(datetime.fromisoformat(start)), 12))
        assert {later - earlier for earlier, later in pairwise(instants)} == {timedelta(minutes=30)}


@pytest.mark.parametrize(
    "zone", ["Europe/Madrid", "America/Santiago", "Australia/Lord_Howe", "Asia/Kathmandu"]
)
@pytest.mark.parametrize("expression", ["30 2 * * *", "*/20 0-3 * * *", "0,15,45 1-2 * * SUN", "0 0 L * *"])
@settings(max_examples=20)
@given(start=st.integers(min_value=0, max_value=366 * 24 * 60), day=st.integers(1, 60))
def test_the_instants_do_not_depend_on_where_one_begins(zone: str, expression: str, start: int, day: int):
    """The law that lets any scheduler go on where another died."""
    table = Timetable(expression, zone)
    origin = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=start)
    middle = origin + timedelta(hours=7 * day)
    end = middle + timedelta(days=40)

    whole = list(table.between(origin, end))
    assert whole == sorted(set(whole))
    assert [instant for instant in whole if instant >= middle] == list(table.between(middle, end))
    assert table.latest(origin, end) == (whole[-1] if whole else None)


def test_the_latest_of_a_long_span_is_found_from_its_end():
    table = Timetable("* * * * *")

    assert table.latest(NOON - timedelta(days=3650), NOON + timedelta(seconds=30)) == NOON
    assert Timetable("0 0 29 2 *").latest(NOON - timedelta(days=3650), NOON) == datetime(
        2024, 2, 29, tzinfo=UTC
    )
    assert table.latest(NOON + timedelta(seconds=1), NOON + timedelta(seconds=59)) is None


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("* * * *", "has 4 fields, not 5"),
        ("* * * * * *", "has 6 fields, not 5"),
        ("@daily", "has 1 fields"),
        ("61 * * * *", "bad minute"),
        ("* 24 * * *", "bad hour"),
        ("* * 0 * *", "bad day-of-month"),
        ("* * * FOO *", "bad month"),
        ("* * * * 8", "bad day-of-week"),
        ("*/0 * * * *", "bad minute"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("* * */20 * 1L", "names no day that ever comes"),
        ("* * * * 1L/2", "bad day-of-week"),
        ("* * * * " + "1," * EXPRESSION_LENGTH_MAX, "characters; at most"),
    ],
)
def test_a_bad_expression_is_named_with_what_would_be_right(expression: str, said: str):
    (fault,) = timetable_faults(Timetable(expression))

    assert fault.pointer == "/timetable/expression"
    assert said in fault.message
    assert "minute hour day-of-month month day-of-week" in fault.remedy


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "", "../etc/passwd", "Europe", "/etc/localtime"])
def test_a_bad_zone_is_named(zone: str):
    (fault,) = timetable_faults(Timetable("0 * * * *", zone))

    assert fault.pointer == "/timetable/zone"
    assert "no time zone" in fault.message


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"id": "a b"}, "/id"),
        ({"id": "x" * (SCHEDULE_ID_LENGTH_MAX + 1)}, "/id"),
        ({"tenant": ""}, "/tenant"),
        ({"actor": "a.b"}, "/actor"),
        ({"catch_up_seconds": -1}, "/catch_up_seconds"),
        ({"start_at": datetime(2026, 1, 1)}, "/start_at"),
        ({"end_at": datetime(9999, 1, 1, tzinfo=UTC)}, "/end_at"),
        ({"start_at": NOON, "end_at": NOON}, "/end_at"),
        ({"template": Template(workflow="clip", project="p1")}, "/template/workflow"),
        ({"template": Template(workflow="clip@1", project="")}, "/template/project"),
        (
            {"template": Template(workflow="clip@1", project="p1", input={"speed": 1.5})},
            "/template/input/speed",
        ),
    ],
)
def test_what_can_never_work_is_refused_with_its_place(changes: dict[str, Any], pointer: str):
    check_schedule(hourly())
    with pytest.raises(Refused) as caught:
        check_schedule(hourly(**changes))

    assert [error.pointer for error in caught.value.problem.errors] == [pointer]


def test_ids_of_occurrence_and_cancellation_fit_the_alphabet_at_their_longest():
    schedule = hourly(id="x" * SCHEDULE_ID_LENGTH_MAX)
    stop = stop_command(schedule, NOON, run_id="r", revision=3, successor=NOON + HOUR)

    assert occurrence_id("nightly", at("22:00")) == "schedule-nightly-20261130T220000Z"
    assert is_name(occurrence_id(schedule.id, NOON))
    assert stop.client_command_id is not None and is_name(stop.client_command_id)


def test_an_occurrence_is_the_same_command_whoever_makes_it_and_wherever():
    schedule = hourly()
    there = NOON.astimezone(ZoneInfo("Asia/Tokyo"))

    assert occurrence_command(schedule, NOON) == occurrence_command(schedule, there)
    assert occurrence_command(schedule, NOON).payload == {"workflow": "clip@1", "input": {"scenes": 2}}
    other = occurrence_command(schedule, NOON + HOUR)
    assert other.client_command_id != occurrence_command(schedule, NOON).client_command_id
    assert other.intent_hash() == occurrence_command(schedule, NOON).intent_hash()


def test_the_first_occurrence_is_neither_before_the_start_nor_before_now():
    assert first_at(hourly(), at("11:30")) == NOON
    assert first_at(hourly(), NOON) == NOON
    assert first_at(hourly(start_at=at("15:00")), at("11:30")) == at("15:00")
    assert first_at(hourly(start_at=at("02:00")), at("11:30")) == NOON
    assert first_at(hourly(end_at=NOON), at("11:30")) is None


def test_an_occurrence_on_time_starts_whatever_the_catch_up():
    for catch_up in ("none", "last", "all"):
        found = due(hourly(catch_up=catch_up), next_at=NOON, now=NOON + timedelta(seconds=40), unsettled=())
        assert [(item.instant, item.state) for item in found.occurrences] == [(NOON, "starting")]
        assert (found.next_at, found.missed) == (at("13:00"), None)


AWAY = ("08:00", "11:30")
"""Due since eight, seen at half past eleven: 8, 9, 10 and 11 o'clock were missed."""


@promise("T61")
@pytest.mark.parametrize(
    ("catch_up", "started", "missed"),
    [
        ("none", [], ("08:00", "11:00")),
        ("last", ["11:00"], ("08:00", "10:00")),
        ("all", ["08:00", "09:00", "10:00", "11:00"], None),
    ],
)
def test_after_an_absence_the_catch_up_decides(
    catch_up: Any, started: list[str], missed: tuple[str, str] | None
):
    schedule = hourly(catch_up=catch_up, overlap="allow")
    found = due(schedule, next_at=at(AWAY[0]), now=at(AWAY[1]), unsettled=())

    assert look(schedule, *AWAY) == [(time, "starting") for time in started]
    assert found.next_at == NOON
    assert (found.missed and (found.missed.first, found.missed.last)) == (missed and tuple(map(at, missed)))


def test_what_is_older_than_the_window_is_not_caught_up():
    window = {"catch_up_seconds": 2 * 3600, "overlap": "allow"}

    assert look(hourly(catch_up="all", **window), *AWAY) == [("10:00", "starting"), ("11:00", "starting")]
    assert look(hourly(catch_up="last", **window), *AWAY) == [("11:00", "starting")]
    assert look(hourly(catch_up="last", catch_up_seconds=60), *AWAY) == []
    found = due(hourly(catch_up="all", **window), next_at=at("08:00"), now=at("11:30"), unsettled=())
    assert found.missed is not None and (found.missed.first, found.missed.last) == (at("08:00"), at("09:00"))


def test_a_window_of_no_seconds_still_starts_what_is_on_time():
    for catch_up in ("last", "all"):
        schedule = hourly(catch_up=catch_up, catch_up_seconds=0)
        assert (
            due(schedule, next_at=NOON, now=NOON + timedelta(seconds=30), unsettled=()).occurrences[0].instant
            == NOON
        )


def test_one_that_is_due_right_now_stands_for_the_last_missed_one():
    found = due(hourly(), next_at=at("08:00"), now=NOON, unsettled=())

    assert [item.instant for item in found.occurrences] == [NOON]
    assert found.missed is not None and found.missed.last == at("11:00")


def test_all_of_a_long_absence_come_in_portions_and_each_once():
    schedule = hourly(timetable=Timetable("* * * * *"), catch_up="all", overlap="allow")
    now, next_at, found = NOON, NOON - timedelta(minutes=249), []
    while next_at <= now:
        part = due(schedule, next_at=next_at, now=now, unsettled=())
        assert len(part.occurrences) <= OCCURRENCES_PER_LOOK_MAX
        found += [item.instant for item in part.occurrences]
        assert part.next_at is not None
        next_at = part.next_at

    assert found == [NOON - timedelta(minutes=249 - index) for index in range(250)]
    assert next_at == NOON + MINUTE


def test_nothing_comes_from_the_end_on():
    schedule = hourly(end_at=at("10:00"), catch_up="all", overlap="allow")
    found = due(schedule, next_at=at("08:00"), now=NOON, unsettled=())

    assert [f"{item.instant:%H}" for item in found.occurrences] == ["08", "09"]
    assert found.next_at is None


@promise("T61")
@pytest.mark.parametrize(
    ("overlap", "unsettled", "state", "stops"),
    [
        ("skip", (), "starting", False),
        ("skip", ("running",), "skipped", False),
        ("skip", ("starting",), "skipped", False),
        ("queue", (), "starting", False),
        ("queue", ("running",), "waiting", False),
        ("queue", ("running", *["waiting"] * WAITING_MAX), "skipped", False),
        ("cancel_running", (), "starting", True),
        ("cancel_running", ("running",), "starting", True),
        ("allow", ("running", "running"), "starting", False),
    ],
)
def test_an_earlier_one_at_work_decides_by_the_overlap(overlap: Any, unsettled: Any, state: str, stops: bool):
    found = due(hourly(overlap=overlap), next_at=NOON, now=NOON, unsettled=unsettled)

    assert [(item.state, item.stops_others) for item in found.occurrences] == [(state, stops)]


@pytest.mark.parametrize(
    ("overlap", "states"),
    [
        ("skip", ["starting", "skipped", "skipped", "skipped"]),
        ("queue", ["starting", "waiting", "waiting", "waiting"]),
        ("cancel_running", ["skipped", "skipped", "skipped", "starting"]),
        ("allow", ["starting"] * 4),
    ],
)
def test_several_that_are_caught_up_at_once_overlap_each_other(overlap: Any, states: list[str]):
    found = look(hourly(catch_up="all", overlap=overlap), *AWAY)

    assert [state for _, state in found] == states


def test_a_backfill_holds_both_ends_and_goes_one_by_one_unless_overlap_is_allowed():
    range_ = {"since": at("08:00"), "until": at("10:00"), "now": NOON}

    assert [f"{o.instant:%H} {o.state}" for o in backfill(hourly(), **range_)] == [
        "08 waiting",
        "09 waiting",
        "10 waiting",
    ]
    assert {o.state for o in backfill(hourly(overlap="allow"), **range_)} == {"starting"}
    assert not any(o.stops_others for o in backfill(hourly(overlap="cancel_running"), **range_))


@pytest.mark.parametrize(
    ("since", "until", "said"),
    [
        ("2026-11-30T10:00:00Z", "2026-11-30T09:00:00Z", "is before"),
        ("2026-11-30T10:00:00Z", "2026-11-30T12:00:01Z", "is in the future"),
        ("2026-01-01T00:00:00Z", "2026-11-30T09:00:00Z", "too far"),
    ],
)
def test_a_backfill_that_cannot_be_is_refused(since: str, until: str, said: str):
    with pytest.raises(Refused) as caught:
        backfill(hourly(), since=at(since), until=at(until), now=NOON)

    assert said in caught.value.problem.errors[0].message


def test_the_largest_backfill_is_taken_and_the_next_one_named_where_to_cut():
    schedule = hourly(timetable=Timetable("* * * * *"))
    since = NOON - timedelta(minutes=BACKFILL_MAX)

    assert len(backfill(schedule, since=since + MINUTE, until=NOON, now=NOON)) == BACKFILL_MAX
    with pytest.raises(Refused) as caught:
        backfill(schedule, since=since, until=NOON, now=NOON)
    (error,) = caught.value.problem.errors
    assert "2026-11-30T11:59:00Z" in error.remedy


def test_a_template_with_a_member_we_do_not_know_is_refused():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"workflow": "w@1", "project": "p", "colour": "red"}, Template)
