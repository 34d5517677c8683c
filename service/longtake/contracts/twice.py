"""JSON that names a member twice: readers disagree about such an object, so nobody should act on one.

The fast decoder takes the last of the two in silence; this one looks. Leaves to others: what becomes of it.
"""

import json
from typing import Any

from longtake.contracts.codec import escape_pointer


class _Twice:
    """An object with a member that stands twice in it."""

    def __init__(self, members: dict[str, Any], name: str) -> None:
        self.members = members
        self.name = name


def named_twice(raw: bytes) -> str | None:
    """The JSON pointer of a member that stands twice in its object, or None. `raw` is JSON that was decoded before."""
    found = False

    def read(pairs: list[tuple[str, Any]]) -> Any:
        nonlocal found
        members = dict(pairs)
        if len(members) == len(pairs):
            return members
        found = True
        names = [name for name, _ in pairs]
        return _Twice(members, next(name for name in names if names.count(name) > 1))

    # Numbers are not looked at, however long they are.
    document = json.loads(raw, object_pairs_hook=read, parse_int=str, parse_float=str)
    return _pointer_in(document) if found else None


def _pointer_in(document: Any) -> str | None:
    seen: list[tuple[str, Any]] = [("", document)]
    for pointer, value in seen:  # grows while it is walked; each value enters once
        match value:
            case _Twice():
                return f"{pointer}/{escape_pointer(value.name)}"
            case dict():
                seen += [(f"{pointer}/{escape_pointer(name)}", item) for name, item in value.items()]
            case list():
                seen += [(f"{pointer}/{index}", item) for index, item in enumerate(value)]
            case _:
                pass
    return None
