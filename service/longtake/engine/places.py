"""Places: what msgspec says of a wrong value, as a JSON pointer with a remedy.

Leaves to others: which shape is asked for (commands.py).
"""

import re
from collections.abc import Sequence
from typing import get_args

import msgspec

from longtake.contracts.command_table import TABLE, OnConflict
from longtake.contracts.problems import ProblemError

CHOICES: dict[str, tuple[str, ...]] = {"kind": tuple(TABLE), "on_conflict": get_args(OnConflict)}
"""Members that take some words only."""

_missing = re.compile(r"missing required field `([^`]+)`")


def place_of(error: msgspec.ValidationError, shape: type[msgspec.Struct], prefix: str = "") -> ProblemError:
    """Turn `... - at `$.a[0]`` into a JSON pointer, and say what would be right there."""
    message, _, path = str(error).partition(" - at `$")
    pointer = prefix + path.rstrip("`").replace("[", ".").replace("]", "").replace(".", "/")
    missing = _missing.search(message)
    if missing is not None:
        return ProblemError(f"{pointer}/{missing.group(1)}", "is absent", "send it")
    if "unknown field" in message and pointer == prefix:
        return ProblemError(pointer, message, _members_of(shape.__struct_fields__))
    choices = CHOICES.get(pointer.rpartition("/")[2])
    if choices is not None:
        return ProblemError(pointer, message, f"use one of: {', '.join(choices)}")
    return ProblemError(pointer, message, "see the schema `command` under schemas/")


def _members_of(names: Sequence[str]) -> str:
    return (
        f"leave it out; the members are: {', '.join(names)}" if names else "leave it out; it has no members"
    )
