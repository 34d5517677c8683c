"""The page that builds a workflow and tests it: its code runs here, and is as short as it says."""

import re
from pathlib import Path
from typing import Any

from kit.promises import promise

PAGE = Path(__file__).parents[2] / "docs" / "testing-workflows.md"
LINES_MAX = 50


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]


@promise("H67", "H90")
def test_the_code_of_the_page_runs() -> None:
    names: dict[str, Any] = {}
    for block in blocks():
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - the page's own code, which is the point
    tests = [value for name, value in names.items() if name.startswith("test_")]

    assert 3 == len(tests)
    for test in tests:
        test()


def test_workflow_and_test_are_under_fifty_lines_each() -> None:
    assert [True, True] == [len(lines_of(block)) < LINES_MAX for block in blocks()]


def test_a_page_whose_workflow_is_wrong_would_fail() -> None:
    """The broken variant: without its compensation, the studio stays booked."""
    names: dict[str, Any] = {}
    broken = blocks()[0].replace(', compensate="studio.unbook@1"', "")
    assert broken != blocks()[0]
    for block in (broken, blocks()[1]):
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - as above
    try:
        names["test_a_film_that_fails_gives_the_studio_and_the_money_back"]()
    except (AssertionError, LookupError):
        return
    raise AssertionError("nobody missed the compensation")
