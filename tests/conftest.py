"""What every test shares: the kit on the import path and the names of our marks."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest_plugins = ["kit.left_out", "kit.servers"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "promise(*ids): the mission items this test proves")
