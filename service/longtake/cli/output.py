"""What commands print: tables for people, one JSON document a line for programs."""

import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

Json = Annotated[bool, Parameter(name="--json", negative=(), help="Print JSON for programs")]
"""The option that every command has."""

PIPE_WIDTH = 200
"""Columns where nobody looks at a terminal."""

STATUS_STYLES = {
    "completed": "green",
    "succeeded": "green",
    "running": "cyan",
    "failed": "red",
    "blocked": "magenta",
    "cancelled": "dim",
    "ok": "green",
    "warn": "yellow",
    "fail": "red",
}


def console() -> Console:
    """The console for people; rich reads NO_COLOR and the terminal."""
    made = Console(highlight=False, soft_wrap=True)
    if not made.is_terminal:
        made.width = PIPE_WIDTH
    return made


def print_json(value: Any) -> None:
    """One document, one line."""
    sys.stdout.write(msgspec.json.encode(value, enc_hook=str).decode() + "\n")
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, status_column: int = -1) -> None:
    """A plain table; the status column in its colour."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(columns):
        # The first column names the row and is copied: it stays whole.
        table.add_column(name, overflow="fold", no_wrap=index == 0)
    for row in rows:
        cells = [Text("" if cell is None else str(cell)) for cell in row]
        if status_column >= 0:
            cells[status_column].stylize(STATUS_STYLES.get(cells[status_column].plain, ""))
        table.add_row(*cells)
    console().print(table)


def print_line(text: str) -> None:
    """A line for people, as it is."""
    console().print(Text(text))
