"""Data directories that are short, as sockets want them, and gone afterwards."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """An empty directory for one pair of servers."""
    home = Path(tempfile.mkdtemp(prefix="lt-"))
    try:
        yield home / "data"
    finally:
        shutil.rmtree(home, ignore_errors=True)
