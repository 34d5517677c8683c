"""Kept evidence: histories, the witness and the store of one campaign in one directory, judged again at any time."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import msgspec

from longtake.telemetry.recorder import Op
from longtake.testing.checking.history import HistoryUnreadable, read_history
from longtake.testing.checking.store import StoreDump
from longtake.testing.checking.witness import WitnessLine, read_witness

STORE = "store.json.gz"


def keep_store(directory: Path, store: StoreDump) -> Path:
    """Put a dump beside the histories."""
    path = directory / STORE
    path.write_bytes(gzip.compress(msgspec.json.encode(store), mtime=0))
    return path


def read_kept_store(directory: Path) -> StoreDump:
    """The dump beside the histories. Raises HistoryUnreadable when there is none or it is none."""
    path = directory / STORE
    try:
        return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=StoreDump)
    except (OSError, EOFError, msgspec.MsgspecError) as error:
        raise HistoryUnreadable(f"{path}: {error}") from error


def read_kept(directory: Path) -> tuple[list[Op], StoreDump, Sequence[WitnessLine]]:
    """Everything that `judge` wants."""
    return read_history(directory), read_kept_store(directory), read_witness(directory)
