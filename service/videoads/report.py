"""The report of one finished run: a single HTML page that needs no server, no network and no script.

`report_page` is pure: plain values as the API answers them in, a page out. `write_report` puts the film and its poster
inside the page and writes it. What the page says is what the API said; nothing is worked out anew but the picture of
the timeline, whose drawing is `report_timeline`'s.
"""

import base64
import html
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from videoads.report_style import STYLE
from videoads.report_timeline import seconds_between, timeline_svg

Row = Mapping[str, Any]
"""A JSON object of the API; Any because the API's documents are open to new members."""

EVENT_DATA_CHARACTERS_MAX = 6_000
EVENTS_MAX = 2_000
_VIDEO_TYPES = {".mp4": "video/mp4", ".webm": "video/webm"}


def write_report(
    out: Path,
    *,
    summary: Row,
    steps: Sequence[Row],
    attempts: Sequence[Row],
    ledger: Sequence[Row],
    events: Sequence[Row],
    film: Path,
    poster: Path,
    inspection: Row,
) -> Path:
    """Write the page with film and poster inside it and return its path."""
    page = report_page(
        summary=summary,
        steps=steps,
        attempts=attempts,
        ledger=ledger,
        events=events,
        film=_data_url(film, _VIDEO_TYPES.get(film.suffix, "video/mp4")),
        poster=_data_url(poster, "image/png" if poster.suffix == ".png" else "image/jpeg"),
        inspection=inspection,
    )
    out.write_text(page, encoding="utf-8")
    return out


def report_page(
    *,
    summary: Row,
    steps: Sequence[Row],
    attempts: Sequence[Row],
    ledger: Sequence[Row],
    events: Sequence[Row],
    film: str,
    poster: str,
    inspection: Row,
) -> str:
    """The page as text; `film` and `poster` are data URLs."""
    title = f"{summary.get('workflow', 'run')} · {summary.get('status', '')}"
    sections = (
        _head(summary, steps, events),
        _stage(film, poster, summary, inspection),
        _section("Timeline", "Each bar is one attempt of one step.", timeline_svg(steps, attempts)),
        _section("Delivery contract", _inspection_words(inspection), _inspection_table(inspection)),
        _section(
            "Ledger", "Money moves in the same transaction as the work it pays for.", _ledger_table(ledger)
        ),
        _section("Steps", "", _steps_table(steps, attempts)),
        _section("History", "Each event's hash covers the one before it.", _events_list(events)),
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:; media-src data:\">\n"
        f"<title>{_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(sections)
        + f"\n<footer>Run <code>{_text(summary.get('run_id', ''))}</code></footer>\n</main>\n</body>\n</html>\n"
    )


def _head(summary: Row, steps: Sequence[Row], events: Sequence[Row]) -> str:
    status = str(summary.get("status", "unknown"))
    progress = summary.get("progress") or {}
    cost = summary.get("cost") or {}
    net = cost.get("net_credits", 0)
    facts = [
        ("Steps", f"{progress.get('completed', 0)} of {progress.get('total', len(steps))}"),
        ("Took", _duration(events)),
        ("Charged", f"{cost.get('charged_credits', 0)} credits"),
        ("Net", f"{net} credits"),
        ("Revision", str(summary.get("revision", ""))),
    ]
    cells = "".join(f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in facts)
    failure = summary.get("failure")
    trouble = (
        f'<p class="trouble">{_text(failure.get("message", ""))}</p>' if isinstance(failure, Mapping) else ""
    )
    return (
        f'<header><p class="eyebrow">{_text(summary.get("workflow", ""))}@'
        f"{_text(summary.get('workflow_version', ''))}</p>"
        f'<h1>{_text(summary.get("label", ""))}</h1><span class="pill {_tone(status)}">{_text(status)}</span>'
        f'{trouble}<dl class="facts">{cells}</dl></header>'
    )


def _stage(film: str, poster: str, summary: Row, inspection: Row) -> str:
    checks = list(inspection.get("checks", ()))
    highlights = "".join(
        f"<li><span>{_text(_words(check['name']))}</span><b>{_text(check.get('measured', ''))}</b></li>"
        for check in checks
        if check.get("name")
        in ("geometry", "duration", "cuts", "contrast", "loudness", "true_peak", "ducking")
    )
    return (
        '<section class="stage"><figure>'
        f'<video controls playsinline preload="metadata" poster="{_text(poster)}" src="{_text(film)}"></video>'
        "</figure>"
        f'<aside><h2>The film</h2><p class="quiet">It is inside this page; nothing is fetched.</p>'
        f'<ul class="highlights">{highlights}</ul></aside></section>'
    )


def _section(title: str, words: str, body: str) -> str:
    quiet = f'<p class="quiet">{_text(words)}</p>' if words else ""
    return f"<section><h2>{_text(title)}</h2>{quiet}{body}</section>"


def _inspection_words(inspection: Row) -> str:
    checks = list(inspection.get("checks", ()))
    good = sum(1 for check in checks if check.get("passed"))
    return f"{good} of {len(checks)} promises hold, each measured on the finished file."


def _inspection_table(inspection: Row) -> str:
    rows = []
    for check in inspection.get("checks", ()):
        good = bool(check.get("passed"))
        where = f" · frame {check['frame']}" if check.get("frame") is not None else ""
        remedy = f'<small class="remedy">{_text(check["remedy"])}</small>' if check.get("remedy") else ""
        rows.append(
            f'<tr><td><span class="mark {"good" if good else "bad"}">{"✓" if good else "✕"}</span></td>'
            f"<td>{_text(_words(check.get('name', '')))}{_text(where)}</td>"
            f'<td class="measure">{_text(check.get("measured", ""))}{remedy}</td>'
            f'<td class="quiet measure">{_text(check.get("expected", ""))}</td></tr>'
        )
    return _table(("", "Promise", "Measured", "Expected"), rows)


def _ledger_table(ledger: Sequence[Row]) -> str:
    if not ledger:
        return '<p class="quiet">No money moved.</p>'
    rows = []
    for entry in ledger:
        kind = str(entry.get("kind", entry.get("type", "")))
        amount = entry.get("amount", entry.get("credits", ""))
        note = entry.get("reason") or entry.get("step") or ""
        rows.append(
            f"<tr><td>{_text(_clock(entry))}</td><td>{_text(kind)}</td><td class=number>{_text(amount)}</td>"
            f"<td><code>{_text(entry.get('key', ''))}</code></td><td class=quiet>{_text(note)}</td></tr>"
        )
    return _table(("When", "What", "Credits", "Key", "Why"), rows)


def _steps_table(steps: Sequence[Row], attempts: Sequence[Row]) -> str:
    tries: dict[str, int] = {}
    for attempt in attempts:
        key = str(attempt.get("step", attempt.get("step_key", "")))
        tries[key] = max(tries.get(key, 0), int(attempt.get("attempt", 1)))
    rows = []
    for step in steps:
        key = str(step.get("key", ""))
        status = str(step.get("status", step.get("state", "")))
        rows.append(
            f"<tr><td><code>{_text(key)}</code></td><td>{_text(step.get('label', ''))}</td>"
            f'<td><span class="pill small {_tone(status)}">{_text(status)}</span></td>'
            f"<td class=number>{_text(tries.get(key, step.get('attempt', '')))}</td></tr>"
        )
    return _table(("Step", "Label", "Status", "Attempts"), rows)


def _events_list(events: Sequence[Row]) -> str:
    items = []
    for event in list(events)[:EVENTS_MAX]:
        data = json.dumps(event.get("data", {}), ensure_ascii=False, indent=2, sort_keys=True, default=str)
        if len(data) > EVENT_DATA_CHARACTERS_MAX:
            data = data[:EVENT_DATA_CHARACTERS_MAX] + "\n… (longer; the whole is in history.ndjson)"
        digest = str(event.get("hash", ""))
        items.append(
            f'<details><summary><span class="seq">{_text(event.get("seq", ""))}</span>'
            f"<b>{_text(event.get('type', ''))}</b><span class=quiet>{_text(_clock(event))}</span>"
            f'<code class="hash" title="{_text(digest)}">{_text(digest[:16])}</code></summary>'
            f"<p class=quiet>hash <code>{_text(digest)}</code></p><pre>{_text(data)}</pre></details>"
        )
    left = len(events) - EVENTS_MAX
    rest = f'<p class="quiet">{left} more events are in history.ndjson.</p>' if left > 0 else ""
    return f'<div class="events">{"".join(items)}</div>{rest}'


def _table(heads: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in heads)
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _duration(events: Sequence[Row]) -> str:
    if not events:
        return "–"
    seconds = seconds_between(events[0].get("recorded_at"), events[-1].get("recorded_at"))
    return "–" if seconds is None else f"{seconds:.1f} s"


def _clock(row: Row) -> str:
    value = row.get("recorded_at") or row.get("at") or ""
    try:
        return datetime.fromisoformat(str(value)).strftime("%H:%M:%S.%f")[:-3]
    except ValueError:
        return str(value)


def _tone(status: str) -> str:
    if status in ("completed", "succeeded", "applied", "reconciled"):
        return "good"
    if status in ("failed", "timed_out", "rejected"):
        return "bad"
    if status in ("blocked", "needs_input", "cancelled", "cancelling", "superseded", "unknown"):
        return "warn"
    return "busy"


def _words(name: object) -> str:
    return str(name).replace("_", " ")


def _text(value: object) -> str:
    return html.escape(str(value), quote=True)


def _data_url(path: Path, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"
