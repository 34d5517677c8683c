"""The recorder: one process writes down what it asked for and what it was told, a line at a time (4.6).

A line goes to the kernel in one write, so SIGKILL costs at most the end of the last one. What a client writes:

    f        key                 value of invoke                            value of ok
    start    client command id   {"kind", "actor"?, "tenant"?}              {"run_id", "revision", "status"}
    command  run id              {"kind", "id": client command id,          {"revision", "status"}
                                  "expected_revision"?}
    read     run id              -                                          {"revision", "epoch", "status", "actions"}
    list     project             -                                          {"runs": [...]}

A command's kind may also stand in `f` itself ("cancel", "retry", ...). `ok` is an acceptance, `fail` a definite refusal (value
{"problem": slug}), `info` an answer that never came. A nemesis writes `fault` (invoke when it strikes, ok when it is
healed) and `restore` (ok when the store was taken back; key: the new store epoch). Roles write what recording.py says.
Leaves to others: reading and judging (testing/checking).
"""

import itertools
import os
import time
from pathlib import Path
from typing import Any, Literal

import msgspec

OpType = Literal["invoke", "ok", "fail", "info"]

_encoder = msgspec.json.Encoder(enc_hook=repr)
BOOT = Path("/proc/sys/kernel/random/boot_id")


class Op(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One line: a call, or what became of it. `t` is in seconds of the monotonic clock of the machine."""

    t: float
    proc: str
    f: str
    type: OpType
    key: str = ""
    value: Any = None
    id: int


class Beginning(msgspec.Struct, kw_only=True):
    """The first line of a session: whose clock the times after it are on."""

    begin: str
    pid: int
    boot: str
    wall: float
    """Seconds since 1970."""
    monotonic: float
    """The same moment on the clock of the ops, in seconds."""


class Recorder:
    """The history of one session. Several may write to one file; a process that died leaves its open calls open."""

    def __init__(self, path: Path, proc: str) -> None:
        """Raises OSError when the file cannot be opened for appending."""
        self.path = path
        self.proc = proc
        self._name = proc
        self._lives = 1
        self._ids = itertools.count(1)
        self._open: dict[int, Op] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        boot = BOOT.read_text().strip() if BOOT.exists() else ""
        begin = Beginning(
            begin=proc, pid=os.getpid(), boot=boot, wall=time.time(), monotonic=time.monotonic()
        )
        # The line of a process that was killed may have no end.
        torn = os.fstat(self._file).st_size > 0 and not path.read_bytes().endswith(b"\n")
        self._put((b"\n" if torn else b"") + _encoder.encode(begin) + b"\n")

    def invoke(self, f: str, key: str = "", value: Any = None) -> int:
        """Note a call before it is made; returns its id."""
        id_ = next(self._ids)
        self._open[id_] = self._write("invoke", f, key, value, id_)
        return id_

    def ok(self, id_: int, value: Any = None) -> None:
        """The call has happened, and this is its answer."""
        self._end("ok", id_, value)

    def fail(self, id_: int, value: Any = None) -> None:
        """The call has certainly not happened."""
        self._end("fail", id_, value)

    def info(self, id_: int, value: Any = None) -> None:
        """Nobody knows whether the call has happened or will: it stays open, and this session goes on as another."""
        self._end("info", id_, value)
        self._lives += 1
        self._name = f"{self.proc}#{self._lives}"

    def close(self) -> None:
        """Close the file; what is open stays open."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _end(self, type_: OpType, id_: int, value: Any) -> None:
        begun = self._open.pop(id_)
        self._write(type_, begun.f, begun.key, value, id_, proc=begun.proc)

    def _write(self, type_: OpType, f: str, key: str, value: Any, id_: int, proc: str | None = None) -> Op:
        op = Op(
            t=time.monotonic(), proc=proc or self._name, f=f, type=type_, key=str(key), value=value, id=id_
        )
        self._put(_encoder.encode(op) + b"\n")
        return op

    def _put(self, line: bytes) -> None:
        if self._file >= 0:
            os.write(self._file, line)
