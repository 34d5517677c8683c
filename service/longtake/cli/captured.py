"""Captured runs: one run a file, as the store held it one day - its plan, its events to the byte, its read model.

`longtake plan check --histories` compares their plans with deployed code; tests replay them. Leaves to others: taking
them out of a store (tools/capture_history.py of the source tree).
"""

import gzip
import uuid
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec

from longtake.contracts.envelope import StoredEvent
from longtake.errors import ConfigurationError

FORMAT = 1
SUFFIXES = (".jsonl", ".jsonl.gz")
RUN_COLUMNS = {"ended_at", "blockers", "head"}
"""What a reader asks of the run's row."""
FILE_BYTES_MAX = 64 * 1024 * 1024
"""The longest file that is read, unpacked."""


class CapturedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run: who it is, what happened to it, and what the store said of it then."""

    what: str
    tenant: str
    run_id: uuid.UUID
    workflow: str
    workflow_version: int
    fingerprint: str
    plan: bytes
    input: bytes
    policy: bytes
    events: tuple[StoredEvent, ...]
    run: dict[str, Any]
    summary: dict[str, Any]
    steps: tuple[dict[str, Any], ...]
    ledger: tuple[dict[str, Any], ...]

    @property
    def active(self) -> bool:
        """Whether the run had not ended when it was captured."""
        return self.run["ended_at"] is None


class _Header(msgspec.Struct, frozen=True, tag_field="line", tag="header"):
    format: int
    what: str
    tenant: str
    run_id: uuid.UUID
    workflow: str
    workflow_version: int
    fingerprint: str
    plan: str
    input: str
    policy: str


class _Event(msgspec.Struct, frozen=True, tag_field="line", tag="event"):
    seq: int
    id: uuid.UUID
    type: str
    version: int
    data: str
    meta: str
    recorded_at: datetime
    store_epoch: int
    hash: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class _End(msgspec.Struct, frozen=True, tag_field="line", tag="end"):
    run: dict[str, Any]
    summary: dict[str, Any]
    steps: tuple[dict[str, Any], ...]
    ledger: tuple[dict[str, Any], ...]


_decoder: msgspec.json.Decoder[_Header | _Event | _End] = msgspec.json.Decoder(_Header | _Event | _End)


def captured_files(folder: Path) -> list[Path]:
    """Files of captured runs in a folder, by name. Raises ConfigurationError when there is none."""
    found = sorted(path for path in folder.glob("*") if path.name.endswith(SUFFIXES))
    if not found:
        raise ConfigurationError(
            f"{folder} holds no captured run: its files must end with {' or '.join(SUFFIXES)}"
        )
    return found


def read_captured(path: Path) -> CapturedRun:
    """Read one file. Raises ConfigurationError naming the file and the line that is wrong."""
    lines = [_line(path, number, line) for number, line in enumerate(_lines(path), start=1)]
    header, *events, end = lines if len(lines) > 1 else (None, None)
    if not isinstance(header, _Header) or not isinstance(end, _End):
        raise ConfigurationError(f"{path} must have a header in its first line and an end in its last")
    if header.format != FORMAT:
        raise ConfigurationError(f"{path} has format {header.format}; this program reads format {FORMAT}")
    for name in ("plan", "input", "policy"):
        try:
            msgspec.json.decode(getattr(header, name))
        except msgspec.DecodeError as error:
            raise ConfigurationError(f"line 1 of {path}: its {name} is not JSON: {error}") from error
    if lacking := sorted(RUN_COLUMNS - end.run.keys()):
        raise ConfigurationError(f"the last line of {path}: its run lacks {', '.join(lacking)}")
    return CapturedRun(
        what=header.what,
        tenant=header.tenant,
        run_id=header.run_id,
        workflow=header.workflow,
        workflow_version=header.workflow_version,
        fingerprint=header.fingerprint,
        plan=header.plan.encode(),
        input=header.input.encode(),
        policy=header.policy.encode(),
        events=tuple(_stored(header, event) for event in events if isinstance(event, _Event)),
        run=end.run,
        summary=end.summary,
        steps=end.steps,
        ledger=end.ledger,
    )


def _lines(path: Path) -> Sequence[bytes]:
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                content = file.read(FILE_BYTES_MAX + 1)
        else:
            with path.open("rb") as file:
                content = file.read(FILE_BYTES_MAX + 1)
    except (OSError, EOFError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    if len(content) > FILE_BYTES_MAX:
        raise ConfigurationError(f"{path} is longer than {FILE_BYTES_MAX} bytes")
    return content.splitlines()


def _line(path: Path, number: int, line: bytes) -> _Header | _Event | _End:
    try:
        return _decoder.decode(line)
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"line {number} of {path} is none of a captured run: {error}") from error


def _stored(header: _Header, event: _Event) -> StoredEvent:
    return StoredEvent(
        tenant=header.tenant,
        run_id=header.run_id,
        seq=event.seq,
        id=event.id,
        type=event.type,
        version=event.version,
        data=event.data.encode(),
        meta=event.meta.encode(),
        store_epoch=event.store_epoch,
        recorded_at=event.recorded_at,
        hash=bytes.fromhex(event.hash),
    )
