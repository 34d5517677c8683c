"""Watching a run: a live line on a terminal, plain lines elsewhere, one JSON event a line for programs."""

from collections.abc import Mapping

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from longtake.cli.output import console, print_json, print_line
from longtake.cli.ways_out import gates_told
from longtake.client import Client, EventSeen
from longtake.contracts.summary import Summary

_NONE: Mapping[str, str] = {}

SEVERAL = frozenset(
    {"steps_cancelled", "steps_skipped", "steps_abandoned", "spend_cap_reached", "attempts_withdrawn"}
)
"""Events that name several steps by their keys."""

QUIET = frozenset({"steps_scheduled"})
"""Events that say nothing to a person who waits."""


async def watch_run(client: Client, run_id: str, *, as_json: bool) -> Summary:
    """Follow a run to its end and return its last summary."""
    out = console()
    events = {} if as_json else await _events_of(client, run_id)
    if as_json or not out.is_terminal:
        async for event in client.stream(run_id):
            if as_json:
                print_json(event)
            elif event.type not in QUIET:
                print_line(describe(event, events))
        return await client.summary(run_id)
    return await _live(client, run_id, out, events)


def describe(event: EventSeen, events: Mapping[str, str] = _NONE) -> str:
    """One event in a line; `events` says by step which event a wait is for."""
    fields = event.fields
    if event.type == "gates_opened":
        return f"{event.recorded_at:%H:%M:%S}  {gates_told(fields['gates'], events)}"
    if event.type == "event_received":
        return (
            f"{event.recorded_at:%H:%M:%S}  event received {fields['name']}: kept until a step waits for it"
        )
    step = fields.get("step") or ", ".join(fields.get("steps", ()) if event.type in SEVERAL else ())
    attempt = f" (attempt {fields['attempt']})" if fields.get("attempt", 1) > 1 else ""
    said = fields.get("message") or fields.get("evidence") or fields.get("reason") or ""
    words = event.type.replace("_", " ")
    money = f" {fields['amount']} credits" if event.type in ("charged", "refunded") else ""
    tail = f": {said}" if said else ""
    return f"{event.recorded_at:%H:%M:%S}  {words}{money}{' ' + step if step else ''}{attempt}{tail}"


async def _events_of(client: Client, run_id: str) -> dict[str, str]:
    steps = await client.steps(run_id)
    return {step.key: step.event for step in steps if step.event is not None}


async def _live(client: Client, run_id: str, out: Console, events: Mapping[str, str]) -> Summary:
    summary = await client.summary(run_id)
    with Live(_bar(summary), console=out, refresh_per_second=8, transient=True) as live:
        async for event in client.stream(run_id):
            if event.type not in QUIET:
                live.console.print(Text(describe(event, events)))
            summary = await client.summary(run_id)
            live.update(_bar(summary))
    return await client.summary(run_id)


def _bar(summary: Summary) -> Table:
    grid = Table.grid(padding=(0, 2))
    progress = summary.progress
    grid.add_row(
        ProgressBar(total=max(progress.total, 1), completed=progress.completed, width=30),
        Text(f"{progress.completed}/{progress.total}"),
        Text(summary.label),
    )
    return grid
