"""The rule for migrations: what an earlier file made stays as the previous release uses it (expand, then contract).

While an upgrade runs, old and new processes work on one schema, and a roll back puts old code on the new one. So a
migration may add, and may not drop, rename, retype or tighten what an earlier one made.
"""

import re
from collections.abc import Iterable

_COMMENT = re.compile(r"--[^\n]*")
_TABLE = re.compile(r"\bcreate table (?:if not exists )?longtake\.(\w+)")
_ALTERED = re.compile(r"\balter table (?:if exists )?(?:only )?longtake\.(\w+) (.*)", re.DOTALL)
_DROP = re.compile(r"^drop (table|view|schema|sequence|type|function|trigger)\b")
_UNIQUE = re.compile(r"^create unique index .*? on longtake\.(\w+)")
_FORBIDDEN = (
    (re.compile(r"\bdrop (?!default\b|not null\b)"), "drops"),
    (re.compile(r"\bdrop default\b"), "tightens"),
    (re.compile(r"\brename\b"), "renames"),
    (re.compile(r"\balter (?:column )?\w+ (?:set data )?type\b"), "retypes"),
    (re.compile(r"\bset not null\b"), "tightens"),
    (re.compile(r"\badd (?:constraint|check|unique|primary key|foreign key|exclude)\b"), "tightens"),
    (
        re.compile(r"\badd (?:column )?(?!constraint\b).*\b(?:check|unique|references|primary key)\b"),
        "tightens",
    ),
)


def narrowings(files: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """(file, what it does) for each statement that takes away from an earlier file; `files` are (name, SQL) in order."""
    found: list[tuple[str, str]] = []
    for name, sql in files:
        plain = " ".join(_COMMENT.sub("", sql).lower().split())
        own = set(_TABLE.findall(plain))
        for statement in (part.strip() for part in plain.split(";")):
            found += [(name, said) for said in _said(statement, own)]
    return found


def _said(statement: str, own: set[str]) -> list[str]:
    if _DROP.search(statement):
        return [f"drops: {statement}"]
    if (index := _UNIQUE.search(statement)) and index[1] not in own:
        return [f"tightens: {statement}"]
    altered = _ALTERED.search(statement)
    if altered is None or altered[1] in own:
        return []
    change = altered[2]
    said = [f"{word}: {altered[1]} {change}" for pattern, word in _FORBIDDEN if pattern.search(change)]
    said += [
        f"tightens: {altered[1]} {action}"
        for action in re.findall(r"\badd (?:column )?(?!constraint\b)\w+ [^,]*", change)
        if "not null" in action and "default" not in action and "generated" not in action
    ]
    return said[:1]
