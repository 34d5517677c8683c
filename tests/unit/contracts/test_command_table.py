"""The table of kinds is closed and whole, and the page about commands is made of it."""

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from kit.promises import promise
from longtake.contracts.command_table import ACTION_KINDS, DECLARED_STARTS, START_KINDS, TABLE, CommandKind
from longtake.contracts.commands import CommandStatus
from longtake.contracts.summary import Action
from longtake.workflow.actions import ACTIONS

PAGE = Path(__file__).parents[3] / "docs" / "commands.md"


def commands_table() -> str:
    """The table as the page shows it."""
    rows = [
        "| kind | action | run | revision | allowed from | payload | money | scopes | ends as |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in TABLE.values():
        fields = msgspec.structs.fields(row.body)
        payload = ", ".join(f"`{field.name}`" + ("" if field.required else "?") for field in fields) or "none"
        run = "names one" if row.needs_run else ""
        run += (
            " and starts one" if row.needs_run and row.starts_run else "starts one" if row.starts_run else ""
        )
        cells = (
            f"`{row.kind}`",
            "" if row.action is None else f"`{row.action}`",
            run,
            "yes" if row.needs_revision else "no",
            row.allowed,
            payload,
            row.money,
            row.scopes,
            ", ".join(row.ends_as),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def shown(page: str) -> str:
    found = re.search(r"<!-- commands -->\n(.*?)<!-- /commands -->", page, re.DOTALL)
    assert found is not None
    return found[1]


@promise("G15")
def test_the_page_has_the_table_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert commands_table() == shown(page), "put commands_table() between the marks of docs/commands.md"


def test_a_row_that_the_page_lacks_would_be_noticed() -> None:
    page = PAGE.read_text(encoding="utf-8").replace("| `pause`", "| `halt`")

    assert commands_table() != shown(page)


@promise("G15", "G16")
def test_the_table_is_closed() -> None:
    assert set(get_args(CommandKind)) == set(TABLE)
    assert all(kind == row.kind for kind, row in TABLE.items())
    assert {status for row in TABLE.values() for status in row.ends_as} <= set(get_args(CommandStatus))
    assert set(get_args(Action)) == set(ACTION_KINDS) == set(ACTIONS)


@pytest.mark.parametrize("row", TABLE.values(), ids=lambda row: row.kind)
def test_a_row_agrees_with_itself(row) -> None:
    """Whoever needs a revision needs a run, whoever names none is advertised by none, and a start ends in a run."""
    assert row.needs_run or not row.needs_revision
    assert (row.action is not None) == row.needs_run
    assert row.starts_run == ("running" in row.ends_as) == (row.kind in START_KINDS)
    assert "rejected" == row.ends_as[0]
    assert not row.starts_run or row.kind in (*DECLARED_STARTS, "steer", "fork")
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"nobody_knows": 1}, row.body)
