"""References: places in a step's input that name another step's recorded result (design.md 6).

A reference is plain data, `{"$ref": {"step": key, "pointer": "/result/url"}}`, so a plan that holds some is still a
JSON document with a fingerprint. It names a step, or a group, which stands for the list of its steps in plan order.
What a pointer walks is the step's document: `{"result": ..., "artifacts": {name: ...}, "external_ref": ...}`.
Leaves to others: when a reference is resolved (scheduling.py) and which ones may stand in a plan (validation.py).
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from longtake.contracts.codec import escape_pointer, resolve_pointer

MARK = "$ref"
"""The one key of an object that is a reference."""

DEPTH_MAX = 64
"""How deep a step's input may nest, so that walking it needs no care for the stack."""


class GroupName(msgspec.Struct, frozen=True):
    """The steps of one fan-out, named together: as a dependency a barrier, as a reference a list."""

    group: str


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """Where in an input a reference stands, whom it names and what it wants."""

    place: str
    """JSON pointer inside the input."""
    step: str | None = None
    group: str | None = None
    pointer: str = ""


class BadReference(msgspec.Struct, frozen=True):
    """An object that looks like a reference and is none."""

    place: str
    message: str


def group(name: str) -> GroupName:
    """Name all steps of a fan-out."""
    return GroupName(name)


def ref(target: str | GroupName, pointer: str = "") -> dict[str, Any]:
    """Refer to (a part of) what a step, or every step of a group, will have made."""
    named = {"group": target.group} if isinstance(target, GroupName) else {"step": target}
    return {MARK: {**named, "pointer": pointer}}


def find_references(value: Any) -> Iterator[Reference | BadReference]:
    """Yield every reference of an input with its place, and every object that fails to be one."""
    return _walk(value, "", 0)


def resolve_references(value: Any, look_up: Callable[[Reference], Any]) -> Any:
    """Return the input with each reference replaced by what `look_up` answers."""
    match value:
        case dict() if MARK in value:
            return look_up(_read(value, ""))
        case dict():
            return {key: resolve_references(item, look_up) for key, item in value.items()}
        case list() | tuple():
            return [resolve_references(item, look_up) for item in value]
        case _:
            return value


def walk_pointer(document: Any, pointer: str) -> Any:
    """Return what the pointer names; KeyError when that is nothing."""
    return resolve_pointer(document, pointer)


def is_pointer(text: str) -> bool:
    """Whether a text is a JSON pointer (RFC 6901): empty, or tokens that each begin with a slash."""
    if text == "":
        return True
    if not text.startswith("/"):
        return False
    rest = text.replace("~0", "").replace("~1", "")
    return "~" not in rest


def _walk(value: Any, place: str, depth: int) -> Iterator[Reference | BadReference]:
    if depth > DEPTH_MAX:
        yield BadReference(place, f"the input nests deeper than {DEPTH_MAX}")
        return
    match value:
        case dict() if MARK in value:
            try:
                yield _read(value, place)
            except ValueError as error:
                yield BadReference(place, str(error))
        case dict():
            for key, item in value.items():
                yield from _walk(item, f"{place}/{escape_pointer(str(key))}", depth + 1)
        case list() | tuple():
            for index, item in enumerate(value):
                yield from _walk(item, f"{place}/{index}", depth + 1)
        case _:
            return


def _read(value: dict[str, Any], place: str) -> Reference:
    body = value[MARK]
    if len(value) != 1 or not isinstance(body, dict):
        raise ValueError(f"an object with {MARK} holds nothing else, and an object under it")
    step, group_name, pointer = body.get("step"), body.get("group"), body.get("pointer", "")
    if (step is None) == (group_name is None) or set(body) - {"step", "group", "pointer"}:
        raise ValueError("a reference names either a step or a group, and a pointer")
    if not isinstance(pointer, str) or not isinstance(step if step is not None else group_name, str):
        raise ValueError("the names and the pointer of a reference are texts")  # noqa: TRY004 - a bad document, no bad call
    return Reference(place=place, step=step, group=group_name, pointer=pointer)
