"""The lock on a data directory: one holder at a time, and the next one is told who it is.

The kernel drops the lock when its holder dies, however it dies, so a lock left behind by a killed process
never needs healing: only its text is stale, and nobody reads the text while the lock is free.
"""

import fcntl
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from .errors import DataDirBusy, DataDirUnusable

LOCK_NAME = "longtake.lock"
COMMAND_LENGTH_MAX = 200


class DataDirLock:
    """Holds `data_dir` for this process from `take` to `release`; both may be called twice."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._descriptor: int | None = None

    def take(self) -> None:
        """Take the lock, or raise `DataDirBusy` naming the holder."""
        if self._descriptor is not None:
            return
        path = self._data_dir / LOCK_NAME
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DataDirUnusable(
                self._data_dir,
                f"its lock file cannot be opened ({error.strerror})",
                "Choose a directory that you may write to.",
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid, command = _read_holder(descriptor)
            os.close(descriptor)
            raise DataDirBusy(self._data_dir, pid, command) from None
        os.ftruncate(descriptor, 0)
        command = " ".join(sys.argv)[:COMMAND_LENGTH_MAX] or "python"
        os.pwrite(descriptor, f"{os.getpid()}\n{command}\n".encode(errors="surrogateescape"), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back; the file stays, because removing it would let two holders in."""
        if self._descriptor is None:
            return
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
        self._descriptor = None

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _read_holder(descriptor: int) -> tuple[int | None, str]:
    lines = os.pread(descriptor, 4096, 0).decode(errors="replace").splitlines()
    if len(lines) < 2 or not lines[0].isdigit():
        return None, ""
    return int(lines[0]), lines[1]
