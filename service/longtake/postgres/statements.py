"""Statements: named SQL read from queries/*.sql. Python holds none.

A file is a list of blocks, each `-- name: noun_verb`, one sentence, then the statement with its $n explained.
"""

import re
from functools import cache
from importlib import resources

_HEADER = re.compile(r"^-- name: ([a-z0-9_]+)$", re.MULTILINE)


@cache
def _all() -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in sorted(resources.files("longtake.postgres.queries").iterdir(), key=lambda item: item.name):
        if not entry.name.endswith(".sql"):
            continue
        parts = _HEADER.split(entry.read_text(encoding="utf-8"))
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"two statements are named {name}")
            found[name] = f"-- {name}\n" + body.strip().rstrip(";")
    return found


def statement(name: str) -> str:
    """Return the SQL of that name; KeyError when there is none."""
    return _all()[name]
