"""The end of every run says what was left out, and an unknown need is an error, not a silent gap."""

import subprocess
import sys
from pathlib import Path

KIT = Path(__file__).parents[1] / "kit"

SUITE = """
import pytest

@pytest.mark.needs({need!r})
def test_somewhere_else(): raise AssertionError

def test_here(): pass
"""


def _run(folder: Path, need: str, *options: str) -> tuple[int, list[str]]:
    (folder / "conftest.py").write_text(
        f"import sys; sys.path.insert(0, {str(KIT.parent)!r})\n"
        "from kit import left_out\n"
        "left_out.NEEDS['moon'] = (lambda: False, 'not on the moon')\n"
        "left_out.NEEDS['earth'] = (lambda: True, 'not on earth')\n"
        "pytest_plugins = ['kit.left_out']\n"
    )
    (folder / "test_it.py").write_text(SUITE.format(need=need))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:schemathesis",
        *options,
    ]
    done = subprocess.run([*command, str(folder)], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, [*done.stderr.splitlines(), *done.stdout.splitlines()]


def test_a_test_that_cannot_run_here_is_listed_with_its_reason(tmp_path: Path) -> None:
    """Before pytest's summary, which stays the last line."""
    status, lines = _run(tmp_path, "moon")

    assert 0 == status
    assert "- test_it.py::test_somewhere_else: not on the moon" in lines
    assert "1 passed, 1 deselected" in lines[-1]


def test_workers_in_parallel_list_the_same(tmp_path: Path) -> None:
    status, lines = _run(tmp_path, "moon", "--numprocesses", "2")

    assert 0 == status
    assert 1 == lines.count("- test_it.py::test_somewhere_else: not on the moon")
    assert "1 passed" in lines[-1]


def test_a_need_that_is_met_runs(tmp_path: Path) -> None:
    """The broken variant: this test would fail if everything marked were dropped."""
    status, _ = _run(tmp_path, "earth")

    assert 1 == status


def test_a_need_nobody_knows_is_an_error(tmp_path: Path) -> None:
    status, lines = _run(tmp_path, "luck")

    assert status not in (0, 1)
    assert "left_out.py does not know" in "\n".join(lines)
