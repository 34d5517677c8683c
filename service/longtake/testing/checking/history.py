"""Histories: read from one file a process, put on one clock, and paired: a call with its answer (4.6)."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from longtake.errors import LongtakeError
from longtake.telemetry.recorder import Beginning, Op

CLIENT_KINDS = frozenset(
    {
        "retry",
        "cancel",
        "provide_input",
        "input",
        "pause",
        "resume",
        "send_event",
        "steer",
        "fork",
        "follow_up",
    }
)
"""What `f` may be instead of "command"."""
CLIENT = CLIENT_KINDS | {"start", "command", "read", "list"}
ADMITTED = CLIENT_KINDS | {"start", "command"}
"""What becomes a row of commands."""

WITNESS_PREFIX = "witness"
"""How the names of a provider's own files begin, when they lie in the same directory."""


class HistoryUnreadable(LongtakeError):
    """A line, other than the last that a process wrote, that is no op. Names file and line."""


class Call(msgspec.Struct, kw_only=True):
    """A call with its end. `info` and calls without an end may have happened at any time after `begun`, or never."""

    proc: str
    f: str
    key: str
    asked: Any
    told: Any
    type: Literal["ok", "fail", "info"]
    begun: float
    ended: float
    """Infinite when nobody knows."""
    id: int

    @property
    def kind(self) -> str:
        """The kind of command, the name of the call for others."""
        kind = (
            self.asked.get("kind", self.f) if isinstance(self.asked, dict) and self.f == "command" else self.f
        )
        return "provide_input" if kind == "input" else str(kind)

    @property
    def command(self) -> str:
        """The client command id."""
        if self.f == "start":
            return self.key
        return str(self.asked.get("id", "")) if isinstance(self.asked, dict) else ""

    def said(self, name: str) -> Any:
        """A member of the answer, None when it has none."""
        return self.told.get(name) if isinstance(self.told, dict) else None

    def __str__(self) -> str:
        end = "..." if math.isinf(self.ended) else f"{self.ended:.3f}"
        return f"[{self.begun:.3f}-{end}] {self.proc} {self.f} {self.key} {self.asked} -> {self.type} {self.told}"


class _Line(msgspec.Struct, kw_only=True):
    """Tells a beginning from an op."""

    begin: str | None = None


_line = msgspec.json.Decoder(_Line)
_op = msgspec.json.Decoder(Op)
_beginning = msgspec.json.Decoder(Beginning)


def read_history(directory: Path) -> list[Op]:
    """All ops of a directory of JSONL files in the order of time, ids made unique; witnesses are left out.

    A session's last line may be torn; raises HistoryUnreadable for any other.
    """
    sessions = [
        found
        for path in sorted(directory.glob("*.jsonl"))
        if not path.name.startswith(WITNESS_PREFIX)
        for found in _sessions(path)
    ]
    one_machine = len({begin.boot for begin, _ in sessions}) <= 1
    ops: list[Op] = []
    base = 0
    for begin, lines in sessions:
        shift = 0.0 if one_machine else begin.wall - begin.monotonic
        last = 0
        for op in lines:
            op.t += shift
            last = max(last, op.id)
            op.id += base
        base += last
        ops += lines
    ops.sort(key=lambda op: (op.t, op.type != "invoke"))
    return ops


def _sessions(path: Path) -> Iterator[tuple[Beginning, list[Op]]]:
    """Sessions of one file. Several may write at once, so a session is told by the name before its '#'."""
    found: dict[str, tuple[Beginning, list[Op]]] = {}
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            name = _line.decode(line).begin
            if name is not None:
                if name in found:
                    yield found[name]
                found[name] = (_beginning.decode(line), [])
                continue
            op = _op.decode(line)
        except msgspec.MsgspecError as error:
            following = next((other for other in lines[number:] if other), b"")
            if not following or following.startswith(b'{"begin"'):
                continue  # its writer was killed
            raise HistoryUnreadable(f"{path}:{number}: {error}") from error
        session = found.get(op.proc.partition("#")[0])
        if session is None:
            raise HistoryUnreadable(f"{path}:{number}: {op.proc} has no beginning")
        session[1].append(op)
    yield from found.values()


def calls(ops: Sequence[Op]) -> list[Call]:
    """Pair calls with their ends, in the order in which they began. Raises HistoryUnreadable for an end without a call."""
    found: dict[int, Call] = {}
    for op in ops:
        if op.type == "invoke":
            found[op.id] = Call(
                proc=op.proc,
                f=op.f,
                key=op.key,
                asked=op.value,
                told=None,
                type="info",
                begun=op.t,
                ended=math.inf,
                id=op.id,
            )
            continue
        call = found.get(op.id)
        if call is None:
            raise HistoryUnreadable(f"op {op.id} of {op.proc} at {op.t:.3f} ends and was never begun")
        call.type, call.told = op.type, op.value
        if op.type != "info":
            call.ended = op.t
    return list(found.values())
