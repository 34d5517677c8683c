"""Cron: the instants that an expression names in a time zone, always later ones, always in UTC.

Days on which the clock is put forward or back follow Debian's cron: a time of day that does not exist comes at the first
moment that does, a time of day that exists twice comes the first time; expressions that begin with a star in the minute or
the hour go by real time. Leaves to others: what is done at an instant (schedule.py), and what time it is.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError

from longtake.contracts.problems import ProblemError

FIELDS = ("minute", "hour", "day-of-month", "month", "day-of-week")
EXPRESSION_LENGTH_MAX = 256
YEAR_MAX = 2200
"""Times beyond it are a slip of the pen, and the calendar ends at 9999."""

_FIRST_LOOK = timedelta(hours=1)
_LOOK_GROWTH = 8


class Timetable(msgspec.Struct, frozen=True):
    """A cron expression of five fields and the IANA time zone it is read in."""

    expression: str
    zone: str = "UTC"

    def instants(self, after: datetime) -> Iterator[datetime]:
        """The instants later than `after`, in order and without end; empty when the expression names no day."""
        last = after
        source = CronSim(self.expression, after.astimezone(ZoneInfo(self.zone)))
        while (found := next(source, None)) is not None:
            instant = found.astimezone(UTC)
            # Begun inside the doubled hour, the source counts it again from its first pass.
            if instant > last:
                last = instant
                yield instant

    def first(self, after: datetime) -> datetime | None:
        """The first instant later than `after`."""
        return next(self.instants(after), None)

    def between(self, since: datetime, until: datetime) -> Iterator[datetime]:
        """The instants from `since` to `until`, both included."""
        return takewhile(lambda instant: instant <= until, self.instants(just_before(since)))

    def latest(self, since: datetime, until: datetime) -> datetime | None:
        """The last instant from `since` to `until`, found from the end: a long span costs no more than a short one."""
        look = _FIRST_LOOK
        while True:
            start = max(since, until - look)
            found = None
            for found in self.between(start, until):
                pass
            if found is not None or start <= since:
                return found
            look *= _LOOK_GROWTH


def just_before(instant: datetime) -> datetime:
    """The last moment before an instant, so that "later than" includes it."""
    return instant - timedelta(microseconds=1)


def timetable_faults(timetable: Timetable) -> list[ProblemError]:
    """What is wrong with an expression or a zone, each with its place."""
    faults = []
    if (fault := _expression_fault(timetable.expression)) is not None:
        faults.append(ProblemError("/timetable/expression", fault, _EXPRESSION_REMEDY))
    if not _is_zone(timetable.zone):
        faults.append(
            ProblemError(
                "/timetable/zone",
                f"{timetable.zone!r} is no time zone known here",
                "use a name of the IANA list, such as UTC or Europe/Madrid",
            )
        )
    return faults


_EXPRESSION_REMEDY = "use minute hour day-of-month month day-of-week, such as '30 2 * * MON-FRI'"


def _expression_fault(expression: str) -> str | None:
    if len(expression) > EXPRESSION_LENGTH_MAX:
        return f"has {len(expression)} characters; at most {EXPRESSION_LENGTH_MAX} are taken"
    given = len(expression.split())
    if given != len(FIELDS):
        return f"{expression!r} has {given} fields, not {len(FIELDS)}"
    try:
        source = CronSim(expression, datetime(2024, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        return f"{expression!r} has a bad {str(error).removeprefix('Bad ')}"
    return None if next(source, None) is not None else f"{expression!r} names no day that ever comes"


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # KeyError: unknown. ValueError: a path out of the database. OSError: a folder of it.
        return False
    return True
