"""Schedules: which occurrences are due, which were missed, and what becomes of each while an earlier one runs (P25).

Values in, values out: the time is an argument. An occurrence is a command whose id is derived from schedule and instant,
so however many processes admit it, and however often, it is one run. Leaves to others: reading time tables (cron.py),
keeping occurrences (store) and admitting them (engine).
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Literal

import msgspec

from longtake.contracts.commands import PROJECT_CHARACTERS_MAX, Command
from longtake.contracts.ids import is_name
from longtake.contracts.problems import ProblemError, problem
from longtake.errors import Refused, UncanonicalValue
from longtake.workflow.cron import YEAR_MAX, Timetable, just_before, timetable_faults

Overlap = Literal["skip", "queue", "cancel_running", "allow"]
"""What an occurrence does that finds an earlier one at work."""
CatchUp = Literal["none", "last", "all"]
"""What becomes of occurrences that nobody was there for."""
OccurrenceState = Literal["waiting", "starting", "running", "ended", "skipped", "refused"]

SCHEDULE_ID_LENGTH_MAX = 32
"""With the instant it must fit into a client command id, that of a cancellation included."""
ON_TIME_SECONDS = 60
"""An occurrence that is seen within this time was not missed; twice the longest sleep of a scheduler."""
CATCH_UP_SECONDS_MAX = 366 * 86_400
WAITING_MAX = 100
"""How many occurrences may queue behind a running one; later ones are skipped."""
OCCURRENCES_PER_LOOK_MAX = 100
BACKFILL_MAX = 1_000


class Template(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The generation command that every occurrence is."""

    workflow: str
    project: str
    input: dict[str, Any] = {}
    policy: dict[str, Any] = {}
    account: str | None = None
    conversation: str | None = None


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """What its owner said; it is never changed, only paused or deleted."""

    tenant: str
    id: str
    actor: str
    """In whose name the commands are given."""
    timetable: Timetable
    template: Template
    overlap: Overlap = "skip"
    catch_up: CatchUp = "last"
    catch_up_seconds: int = 86_400
    """How far back a missed occurrence is still worth starting."""
    start_at: datetime | None = None
    end_at: datetime | None = None
    """From here on there are no occurrences."""


class Occurrence(msgspec.Struct, frozen=True, kw_only=True):
    """One instant of a schedule and what becomes of it."""

    instant: datetime
    state: OccurrenceState
    stops_others: bool = False
    """Earlier ones that still run are cancelled first."""


class Missed(msgspec.Struct, frozen=True, kw_only=True):
    """Occurrences from `first` to `last` that are not made up for; others in between may have been started."""

    first: datetime
    last: datetime


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at a schedule found."""

    occurrences: tuple[Occurrence, ...]
    next_at: datetime | None
    """When to look again; None when there is nothing more to come."""
    missed: Missed | None = None


def occurrence_id(schedule_id: str, instant: datetime) -> str:
    """The client command id of an occurrence (P25)."""
    return f"schedule-{schedule_id}-{instant.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def occurrence_command(schedule: Schedule, instant: datetime) -> Command:
    """The command of an occurrence: the same for everybody who makes it."""
    template = schedule.template
    payload: dict[str, Any] = {"workflow": template.workflow, "input": template.input}
    if template.policy:
        payload["policy"] = template.policy
    if template.account is not None:
        payload["account"] = template.account
    return Command(
        kind="generation",
        project=template.project,
        conversation=template.conversation,
        payload=payload,
        client_command_id=occurrence_id(schedule.id, instant),
    )


def stop_command(
    schedule: Schedule, instant: datetime, *, run_id: str, revision: int, successor: datetime
) -> Command:
    """The command that cancels the run of an occurrence because the next one has come."""
    return Command(
        kind="cancel",
        project=schedule.template.project,
        targets=(run_id,),
        payload={"reason": f"its schedule's next occurrence came, {occurrence_id(schedule.id, successor)}"},
        client_command_id=f"{occurrence_id(schedule.id, instant)}-stop",
        expected_revision=revision,
    )


def first_at(schedule: Schedule, now: datetime) -> datetime | None:
    """The first occurrence of a new schedule; what lies before its making is for a backfill."""
    since = now if schedule.start_at is None else max(now, schedule.start_at)
    return _before_end(schedule, schedule.timetable.first(just_before(since)))


def due(schedule: Schedule, *, next_at: datetime, now: datetime, unsettled: Sequence[OccurrenceState]) -> Due:
    """Decide on everything that has become due since `next_at`, in view of the occurrences that are not over.

    At most OCCURRENCES_PER_LOOK_MAX at once; `next_at` then lies at the first one left.
    """
    until = now if schedule.end_at is None else min(now, just_before(schedule.end_at))
    edge = max(next_at, now - timedelta(seconds=ON_TIME_SECONDS))
    instants, missed = _chosen(schedule, next_at=next_at, edge=edge, until=until, now=now)
    chosen = instants[:OCCURRENCES_PER_LOOK_MAX]
    after = chosen[-1] if len(instants) > len(chosen) else max(until, just_before(next_at))
    return Due(
        occurrences=_with_overlap(schedule.overlap, chosen, unsettled),
        next_at=_before_end(schedule, schedule.timetable.first(after)),
        missed=missed,
    )


def backfill(
    schedule: Schedule, *, since: datetime, until: datetime, now: datetime
) -> tuple[Occurrence, ...]:
    """The occurrences of a range of the past, one after the other, or all at once where the policy is `allow`.

    They are asked for by name, so none is skipped or cancels another. Raises Refused.
    """
    if since > until:
        raise Refused(
            problem(
                "invalid-parameter",
                "The range of a backfill ends before it begins.",
                ProblemError(
                    "/until", f"{_text(until)} is before {_text(since)}", "give the earlier time as since"
                ),
            )
        )
    if until > now:
        raise Refused(
            problem(
                "invalid-parameter",
                "A backfill is for occurrences of the past; later ones come by themselves.",
                ProblemError(
                    "/until", f"{_text(until)} is in the future", f"give {_text(now)} or an earlier time"
                ),
            )
        )
    instants = list(islice(schedule.timetable.between(since, until), BACKFILL_MAX + 1))
    if len(instants) > BACKFILL_MAX:
        raise Refused(
            problem(
                "invalid-parameter",
                f"The range holds more than {BACKFILL_MAX} occurrences.",
                ProblemError(
                    "/until", "is too far from since", f"end at {_text(instants[-2])}, then go on from there"
                ),
            )
        )
    state: OccurrenceState = "starting" if schedule.overlap == "allow" else "waiting"
    return tuple(Occurrence(instant=instant, state=state) for instant in instants)


def check_schedule(schedule: Schedule) -> None:
    """Refuse what can never work, with every place that is wrong. Raises Refused."""
    faults = [*timetable_faults(schedule.timetable), *_faults(schedule)]
    if not faults:
        faults = _template_faults(schedule)
    if faults:
        raise Refused(problem("invalid-parameter", f"The schedule has {len(faults)} faults.", *faults))


def _chosen(
    schedule: Schedule, *, next_at: datetime, edge: datetime, until: datetime, now: datetime
) -> tuple[list[datetime], Missed | None]:
    """Instants to decide on, and what is given up. `edge` parts the missed from those that are on time."""
    table = schedule.timetable
    on_time = list(islice(table.between(edge, until), OCCURRENCES_PER_LOOK_MAX + 1))
    gone_until = min(just_before(edge), until)
    last_gone = table.latest(next_at, gone_until) if next_at <= gone_until else None
    if last_gone is None:
        return on_time, None
    horizon = max(next_at, min(edge, now - timedelta(seconds=schedule.catch_up_seconds)))
    match schedule.catch_up:
        case "none":
            return on_time, Missed(first=next_at, last=last_gone)
        case "last":
            # One that is due right now does what the missed one would have done.
            if on_time or last_gone < horizon:
                return on_time, Missed(first=next_at, last=last_gone)
            before = table.latest(next_at, just_before(last_gone))
            return [last_gone], None if before is None else Missed(first=next_at, last=before)
        case "all":
            late = list(islice(table.between(horizon, until), OCCURRENCES_PER_LOOK_MAX + 1))
            before = table.latest(next_at, just_before(horizon)) if next_at < horizon else None
            return late, None if before is None else Missed(first=next_at, last=before)


def _with_overlap(
    overlap: Overlap, instants: Sequence[datetime], unsettled: Sequence[OccurrenceState]
) -> tuple[Occurrence, ...]:
    found: list[Occurrence] = []
    waiting = sum(1 for state in unsettled if state == "waiting")
    busy = bool(unsettled)
    for instant in instants:
        state: OccurrenceState = "starting"
        match overlap:
            case "allow":
                pass
            case "skip":
                state = "skipped" if busy else "starting"
            case "queue":
                if busy:
                    state = "waiting" if waiting < WAITING_MAX else "skipped"
                    waiting += state == "waiting"
            case "cancel_running":
                # Of several that are due at once only the last would live.
                state = "starting" if instant == instants[-1] else "skipped"
        busy = True
        stops = overlap == "cancel_running" and state == "starting"
        found.append(Occurrence(instant=instant, state=state, stops_others=stops))
    return tuple(found)


def _before_end(schedule: Schedule, instant: datetime | None) -> datetime | None:
    if instant is None or (schedule.end_at is not None and instant >= schedule.end_at):
        return None
    return instant


def _faults(schedule: Schedule) -> list[ProblemError]:
    faults = []
    if not is_name(schedule.id) or len(schedule.id) > SCHEDULE_ID_LENGTH_MAX:
        remedy = f"use 1 to {SCHEDULE_ID_LENGTH_MAX} characters of A-Z a-z 0-9 _ -"
        faults.append(ProblemError("/id", f"is {schedule.id!r}", remedy))
    for name, value in (("tenant", schedule.tenant), ("actor", schedule.actor)):
        if not is_name(value):
            faults.append(
                ProblemError(f"/{name}", f"is {value!r}", "use 1 to 64 characters of A-Z a-z 0-9 _ -")
            )
    if "@" not in schedule.template.workflow:
        faults.append(
            ProblemError(
                "/template/workflow", f"is {schedule.template.workflow!r}", "use name@version, such as ad@1"
            )
        )
    if not 0 < len(schedule.template.project) <= PROJECT_CHARACTERS_MAX:
        remedy = f"use 1 to {PROJECT_CHARACTERS_MAX} characters"
        faults.append(
            ProblemError("/template/project", f"has {len(schedule.template.project)} characters", remedy)
        )
    if not 0 <= schedule.catch_up_seconds <= CATCH_UP_SECONDS_MAX:
        faults.append(
            ProblemError(
                "/catch_up_seconds",
                f"is {schedule.catch_up_seconds}",
                f"use 0 to {CATCH_UP_SECONDS_MAX}",
            )
        )
    for name, moment in (("start_at", schedule.start_at), ("end_at", schedule.end_at)):
        if moment is not None and moment.tzinfo is None:
            faults.append(ProblemError(f"/{name}", "has no offset", "end it with Z or +hh:mm"))
        elif moment is not None and moment.year > YEAR_MAX:
            faults.append(
                ProblemError(f"/{name}", f"is in the year {moment.year}", f"use one up to {YEAR_MAX}")
            )
    if not faults and schedule.start_at and schedule.end_at and schedule.end_at <= schedule.start_at:
        faults.append(ProblemError("/end_at", "is not after start_at", "give a later time"))
    return faults


def _template_faults(schedule: Schedule) -> list[ProblemError]:
    try:
        occurrence_command(schedule, datetime(2000, 1, 1, tzinfo=UTC)).intent_hash()
    except UncanonicalValue as error:
        pointer = error.pointer.removeprefix("/payload")
        return [ProblemError(f"/template{pointer}", error.message, error.remedy)]
    return []


def _text(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
