"""Recording what roles do: stores and publishers that note some of their calls in a history (4.6).

One wrapper for all: it knows the names of the calls that are noted and no signature. What is noted of arguments and
answers are the ids, fences and revisions in them, never contents.
"""

import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from longtake.errors import DecisionRefused, LockTimeout
from longtake.telemetry.recorder import Recorder

T = TypeVar("T")

Noted = Mapping[str, "str | Mapping[str, str]"]
"""Method to the name of its op; a table instead of a name: what the method returns is recorded by that table."""

DECISIONS: Noted = {"commit": "decide"}
WORK: Noted = {
    "claim": "claim",
    "open_call": "open_call",
    "report": "report",
    "put_back": "put_back",
    "release": "release",
}
LEASES: Noted = {"renew": "renew"}
SWEEPS: Noted = {"expire_leases": "expire"}
PUBLISHER: Noted = {"publish": "publish"}
INBOX: Noted = {"insert_callback": "keep_callback"}
_FETCHES = {"fetch": "fetch"}
TRANSPORT: Noted = {"commands": _FETCHES, "effects": _FETCHES, "callbacks": _FETCHES}

KEPT = frozenset(
    {"id", "effect_id", "run_id", "step", "attempt", "kind", "fence", "owner", "expected_revision", "seq", "committed",
     "message_id", "subject", "duplicate", "generation", "events"}
)  # fmt: skip
"""Members of structs that say which rows a call was about."""
ITEMS_MAX = 256
SURE = (DecisionRefused, LockTimeout)
"""After these nothing stands; whatever else is raised may hide a commit."""


def history_of(directory: Path | None, owner: str) -> Recorder | None:
    """The recorder of one process, in a file of its own; None when nothing is recorded."""
    return None if directory is None else Recorder(directory / f"{owner}.jsonl", owner)


def recorded(target: T, recorder: Recorder | None, noted: Noted) -> T:
    """The target itself, or a stand-in that notes these calls of it."""
    return target if recorder is None else cast(T, _Recorded(target, recorder, noted))


class _Recorded:
    """Stands before an object; all that is not noted goes straight to it."""

    def __init__(self, target: Any, recorder: Recorder, noted: Noted) -> None:
        self._target = target
        self._recorder = recorder
        self._noted = noted

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        as_what = self._noted.get(name)
        if as_what is None:
            return found
        return self._call(as_what, found) if isinstance(as_what, str) else self._made(as_what, found)

    def _call(self, f: str, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **named: Any) -> Any:
            op = self._recorder.invoke(f, "", brief([*args, named] if named else list(args)))
            try:
                answer = await method(*args, **named)
            except SURE as error:
                self._recorder.fail(op, type(error).__name__)
                raise
            except BaseException as error:
                self._recorder.info(op, type(error).__name__)
                raise
            self._recorder.ok(op, brief(answer))
            return answer

        return call

    def _made(self, noted: Mapping[str, str], method: Callable[..., Any]) -> Callable[..., Any]:
        async def make(*args: Any, **named: Any) -> Any:
            return recorded(await method(*args, **named), self._recorder, noted)

        return make


def brief(value: Any) -> Any:
    """The ids and numbers of a value, at most so many of each list."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__ if name in KEPT}
        return {name: len(item) if name == "events" else brief(item) for name, item in fields.items()}
    if isinstance(value, Mapping):
        return {str(key): brief(item) for key, item in list(value.items())[:ITEMS_MAX]}
    if isinstance(value, list | tuple | set | frozenset):
        return [brief(item) for item in list(value)[:ITEMS_MAX]]
    return type(value).__name__
