"""Every branch of the pure core is taken by its own tests: measured here, printed, and held to a floor."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOOR_PERCENT = 98
LEFT_OUT = "tests/unit/workflow/test_advertised.py"
"""Walks through every state of a thousand plans, for minutes, and takes no branch that nothing else takes."""


def _coverage(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "coverage", *arguments],
        cwd=ROOT,
        env={**os.environ, "COVERAGE_FILE": str(folder / "coverage"), "PYTHONPATH": str(ROOT / "service")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.timeout(1200)
def test_the_tests_of_the_core_take_its_branches(tmp_path, capsys):
    _coverage(
        tmp_path, "run", "--branch", "--source", "longtake.workflow", "-m", "pytest", "tests/unit/workflow", "-q", "-x",
        "-p", "no:cacheprovider", "-p", "no:xdist", f"--ignore={LEFT_OUT}",
    )  # fmt: skip
    report = _coverage(tmp_path, "report")
    total = re.search(r"^TOTAL .* (\d+)%$", report, re.MULTILINE)
    assert total is not None, report
    with capsys.disabled():
        print(f"\nbranch coverage of longtake.workflow: {total[1]} % (floor {FLOOR_PERCENT} %)")

    assert int(total[1]) >= FLOOR_PERCENT, report


def test_a_core_without_its_tests_would_be_noticed(tmp_path):
    """The same measurement over a handful of tests falls below the floor."""
    _coverage(
        tmp_path, "run", "--branch", "--source", "longtake.workflow", "-m", "pytest", "tests/unit/workflow/test_mermaid.py",
        "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
    )  # fmt: skip
    total = re.search(r"^TOTAL .* (\d+)%$", _coverage(tmp_path, "report"), re.MULTILINE)

    assert total is not None
    assert int(total[1]) < FLOOR_PERCENT
