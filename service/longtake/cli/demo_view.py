"""What one sees while a demo works: a live table on a terminal, plain lines elsewhere.

Follows the run by its events (SSE) and reads steps and summary (GET) when one has come. ASCII terminals get ASCII.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from longtake.cli.output import STATUS_STYLES
from longtake.cli.watching import QUIET, describe
from longtake.client import Client, EventSeen, StepNow
from longtake.contracts.summary import Summary

REFRESH_PER_SECOND = 8
LOOK_SECONDS = 0.5
STEPS_SHOWN_MAX = 24

OnEvent = Callable[[EventSeen], None]


class DemoView:
    """Shows one run at a time."""

    def __init__(self, console: Console, *, live: bool) -> None:
        self._console = console
        self._live = live and console.is_terminal

    def say(self, text: str = "", style: str = "") -> None:
        """One line."""
        self._console.print(Text(text, style=style))

    async def follow(self, client: Client, run_id: str) -> Summary:
        """Show a run until it has ended, or waits for a person; return its summary then."""
        if self._live:
            return await self._follow_live(client, run_id)
        return await self._follow_plain(client, run_id)

    async def _follow_plain(self, client: Client, run_id: str) -> Summary:
        async for event in client.stream(run_id):
            if event.type not in QUIET:
                self.say("  " + describe(event))
            if may_block(event):
                summary = await client.summary(run_id)
                if summary.status == "blocked":
                    return summary
        return await client.summary(run_id)

    async def _follow_live(self, client: Client, run_id: str) -> Summary:
        summary = await client.summary(run_id)
        changed = asyncio.Event()
        reading = asyncio.create_task(_read(client, run_id, changed))
        try:
            with Live(console=self._console, refresh_per_second=REFRESH_PER_SECOND, transient=False) as live:
                while True:
                    ended = reading.done()
                    summary = await client.summary(run_id)
                    live.update(self._picture(summary, await client.steps(run_id)))
                    if ended or summary.status == "blocked":
                        break
                    changed.clear()
                    waiting = asyncio.create_task(changed.wait())
                    await asyncio.wait(
                        {waiting, reading}, timeout=LOOK_SECONDS, return_when="FIRST_COMPLETED"
                    )
                    waiting.cancel()
            if reading.done():
                await reading
            return summary
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading

    def _picture(self, summary: Summary, steps: list[StepNow]) -> Group:
        ascii_only = self._console.options.ascii_only
        grid = Table.grid(padding=(0, 2))
        for step in steps[:STEPS_SHOWN_MAX]:
            tries = f"attempt {step.attempt}" if step.attempt > 1 else ""
            percent = f"{step.progress} %" if step.progress is not None and step.status == "running" else ""
            grid.add_row(
                _mark(step.status, ascii_only=ascii_only),
                Text(step.label),
                Text(step.status.replace("_", " "), style=STATUS_STYLES.get(step.status, "dim")),
                Text(" ".join(filter(None, (tries, percent))), style="yellow"),
            )
        progress = summary.progress
        bar = Table.grid(padding=(0, 2))
        bar.add_row(
            ProgressBar(total=max(progress.total, 1), completed=progress.completed, width=40),
            Text(f"{progress.completed}/{progress.total}"),
            Text(f"{summary.cost.charged_credits} credits charged"),
            Text(summary.label, style="bold"),
        )
        return Group(grid, Text(), bar)


def may_block(event: EventSeen) -> bool:
    """Whether a run may wait for a person after this event."""
    return "blocked" in event.type or event.type.startswith("step_")


def _mark(status: str, *, ascii_only: bool) -> Text | Spinner:
    if status in ("running", "waiting_external", "reconciling", "queued"):
        return Spinner("line" if ascii_only else "dots", style="cyan")
    marks = {
        "succeeded": ("+", "✓"),
        "failed": ("x", "✗"),
        "blocked": ("!", "!"),
        "retry_scheduled": ("~", "↻"),
    }
    plain, nice = marks.get(status, ("-", "·"))
    return Text(plain if ascii_only else nice, style=STATUS_STYLES.get(status, "dim"))


async def _read(client: Client, run_id: str, changed: asyncio.Event) -> None:
    async for _ in client.stream(run_id):
        changed.set()
    changed.set()
