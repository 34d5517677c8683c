"""A data directory has one holder, and the next one learns which."""

import os
from pathlib import Path

import pytest

from longtake.embedded import DataDirBusy, DataDirUnusable
from longtake.embedded.lock import LOCK_NAME, DataDirLock


def test_the_second_lock_is_refused_with_pid_and_command(tmp_path: Path) -> None:
    with DataDirLock(tmp_path):
        with pytest.raises(DataDirBusy) as refusal:
            DataDirLock(tmp_path).take()

        assert os.getpid() == refusal.value.pid
        assert refusal.value.command
        assert str(tmp_path) in str(refusal.value)


def test_a_released_lock_can_be_taken_and_both_ways_twice(tmp_path: Path) -> None:
    lock = DataDirLock(tmp_path)
    lock.release()
    lock.take()
    lock.take()
    lock.release()
    lock.release()

    with DataDirLock(tmp_path):
        assert str(os.getpid()) in (tmp_path / LOCK_NAME).read_text()
    assert "" == (tmp_path / LOCK_NAME).read_text()


def test_the_text_of_a_dead_holder_keeps_nobody_out(tmp_path: Path) -> None:
    """A file with text is no lock: only the kernel's is."""
    (tmp_path / LOCK_NAME).write_text("1\nlongtake up\n")

    with DataDirLock(tmp_path):
        assert (tmp_path / LOCK_NAME).read_text().startswith(f"{os.getpid()}\n")


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataDirUnusable, match="lock file cannot be opened"):
        DataDirLock(tmp_path / "none").take()
