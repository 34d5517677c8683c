"""What every test shares: the kit on the import path and the names of our marks."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# The same examples each time, however slow the machine: a red line is of the change, not of the day.
# LONGTAKE_EXAMPLES=searching draws new ones on every run, and ten times as many.
settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.register_profile("searching", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("LONGTAKE_EXAMPLES", "steady"))

pytest_plugins = ["kit.left_out", "kit.servers"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "promise(*ids): the mission items this test proves")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A name for a value that has none: with its address in it, workers would disagree about a test's name."""
    if hasattr(val, "__name__") or " at 0x" not in repr(val):
        return None
    return f"{argname}-{type(val).__name__}"
