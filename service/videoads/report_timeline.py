"""The timeline of a run as one SVG: a lane for each step, a bar for each attempt, time from left to right.

Colours come from the page's style, so that the drawing follows light and dark.
"""

import html
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

Row = Mapping[str, Any]

WIDTH = 960
LABEL_WIDTH = 210
LANE = 30
BAR = 14
TICKS_MAX = 8
BAR_WIDTH_MIN = 3.0

_STARTS = ("started_at", "claimed_at", "queued_at", "created_at")
_ENDS = ("finished_at", "closed_at", "ended_at", "settled_at")


def timeline_svg(steps: Sequence[Row], attempts: Sequence[Row]) -> str:
    """Draw the attempts of all steps; without a single time there is nothing to draw and a sentence says so."""
    rows = list(attempts) or [{**step, "step": step.get("key")} for step in steps]
    moments = [
        at for row in rows for at in (_moment(row, ("queued_at", *_STARTS)), _moment(row, _ENDS)) if at
    ]
    if not moments:
        return '<p class="quiet">No attempt recorded a time.</p>'
    first, last = min(moments), max(moments)
    span = max((last - first).total_seconds(), 0.001)
    room = WIDTH - LABEL_WIDTH - 20

    def x(moment: datetime) -> float:
        return LABEL_WIDTH + room * (moment - first).total_seconds() / span

    known = [str(step.get("key", "")) for step in steps]
    lanes = list(dict.fromkeys([*known, *(_step(row) for row in rows)]))
    place = {key: index for index, key in enumerate(lanes)}
    height = LANE * len(lanes) + 34
    words = f"Timeline of {len(lanes)} steps over {span:.1f} seconds"
    parts = [f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{_text(words)}">']
    step = _tick_seconds(span)
    for number in range(int(span / step) + 1):
        at = LABEL_WIDTH + room * number * step / span
        parts.append(f'<line class="grid" x1="{at:.1f}" y1="0" x2="{at:.1f}" y2="{height - 24}"/>')
        parts.append(
            f'<text class="tick" x="{at:.1f}" y="{height - 8}" text-anchor="middle">{number * step:g} s</text>'
        )
    for key, index in place.items():
        y = index * LANE + LANE / 2
        parts.append(
            f'<line class="lane" x1="0" y1="{(index + 1) * LANE}" x2="{WIDTH}" y2="{(index + 1) * LANE}"/>'
        )
        parts.append(f'<text class="name" x="4" y="{y + 4:.1f}">{_text(_short(key))}</text>')
    for row in rows:
        started, ended = _moment(row, _STARTS), _moment(row, _ENDS) or last
        if started is None:
            continue
        y = place[_step(row)] * LANE + (LANE - BAR) / 2
        queued = _moment(row, ("queued_at",))
        if queued is not None and queued < started:
            parts.append(
                f'<rect class="waiting" x="{x(queued):.1f}" y="{y + BAR / 2 - 1:.1f}" '
                f'width="{x(started) - x(queued):.1f}" height="2"/>'
            )
        status = str(row.get("status", row.get("state", "")))
        width = max(BAR_WIDTH_MIN, x(ended) - x(started))
        seconds = (ended - started).total_seconds()
        number = row.get("attempt", 1)
        parts.append(
            f'<rect class="bar {tone_of(status)}" x="{x(started):.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{BAR}" rx="4"><title>{_text(_step(row))} · attempt {_text(number)} · {_text(status)} · '
            f"{seconds:.2f} s</title></rect>"
        )
        if int(number or 1) > 1:
            parts.append(
                f'<text class="attempt" x="{x(started) + width + 4:.1f}" y="{y + BAR - 3:.1f}">#{_text(number)}</text>'
            )
    parts.append("</svg>")
    return '<div class="wide">' + "".join(parts) + "</div>"


def seconds_between(first: object, last: object) -> float | None:
    """Seconds from one ISO moment to another; None when either is none."""
    try:
        return (datetime.fromisoformat(str(last)) - datetime.fromisoformat(str(first))).total_seconds()
    except (ValueError, TypeError):
        return None


def tone_of(status: str) -> str:
    """The class a bar of that status wears."""
    if status in ("succeeded", "completed", "applied", "reconciled"):
        return "good"
    if status in ("failed", "timed_out", "rejected"):
        return "bad"
    if status in ("unknown", "cancelled", "throttled", "blocked", "reconciling"):
        return "warn"
    return "busy"


def _tick_seconds(span: float) -> float:
    """The round number of seconds that divides the span into few parts."""
    power = 10.0 ** math.floor(math.log10(span / TICKS_MAX))
    return next(step * power for step in (1, 2, 5, 10) if step * power * TICKS_MAX >= span)


def _step(row: Row) -> str:
    return str(row.get("step", row.get("step_key", row.get("key", ""))))


def _moment(row: Row, names: Sequence[str]) -> datetime | None:
    for name in names:
        value = row.get(name)
        if value:
            try:
                return datetime.fromisoformat(str(value))
            except ValueError:
                continue
    return None


def _short(key: str) -> str:
    return key if len(key) <= 28 else key[:27] + "…"


def _text(value: object) -> str:
    return html.escape(str(value), quote=True)
