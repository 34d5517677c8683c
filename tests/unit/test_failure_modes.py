"""The page of failure modes names each of them once, and tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "failure-modes.md"
NUMBERS = [f"F{number:02d}" for number in range(1, 83)]


def rows(page: str) -> dict[str, str]:
    """By number, what shows the failure mode harmless."""
    return {row[1]: row[2] for row in re.finditer(r"^\| (F\d\d) \|.*\|.*\| (.*) \|$", page, re.MULTILINE)}


def problems(page: str) -> list[str]:
    """What is wrong with the page."""
    found = rows(page)
    wrong = [f"{number} has no row" for number in NUMBERS if number not in found]
    for number, shown in found.items():
        links = re.findall(r"\[`([^`]+)`\]\(\.\./([^)]+)\)", shown)
        if (
            not links
            and "*later" not in shown
            and "`make" not in shown
            and ".md" not in shown
            and "pool.py" not in shown
        ):
            wrong.append(f"{number} is shown by nothing")
        for name, path in links:
            file = ROOT / path
            if not file.exists():
                wrong.append(f"{number}: there is no {path}")
            elif (
                name.startswith("test_")
                and not name.endswith(".py")
                and f"def {name}(" not in file.read_text()
            ):
                wrong.append(f"{number}: {path} has no {name}")
    return wrong


def test_each_failure_mode_is_shown_by_a_test_that_exists() -> None:
    assert problems(PAGE.read_text()) == []


def test_a_row_that_is_missing_and_a_test_that_is_gone_are_found() -> None:
    page = PAGE.read_text()
    assert problems(page.replace("| F31 |", "| F99 |", 1)) != []
    gone = page.replace("test_a_retired_name", "").replace(
        "[`test_a_stream_with_hardly_any_room_delays_and_loses_nothing`]", "[`test_a_retired_name`]"
    )
    assert problems(gone) == [
        "F18: tests/integration/engine/test_hostile_transport.py has no test_a_retired_name"
    ]
