"""What every workflow of the editor is given: a brief, the ad of the project that it belongs to, and a few numbers.

`read_order` checks the input and lays the brief out in time, so that plans can freeze exact words, seeds and lengths. The
scopes of an ad are named here. Leaves to others: what is done with them (the other editor_ modules).
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from longtake import InvalidInput, ProblemError
from videoads.brief import Brief, BriefError, parse_brief
from videoads.script import Script, write_script

__all__ = [
    "Order",
    "every_scope",
    "problem_at",
    "read_ad",
    "read_brief_of",
    "read_order",
    "scoped",
    "whole_number",
]

AD = re.compile(r"[a-z0-9][a-z0-9-]{0,31}\Z")
SEED_MAX = 2**31 - 1


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A checked input."""

    given: Mapping[str, Any]
    document: dict[str, Any]
    """The brief as it was given; plans keep this form."""
    brief: Brief
    script: Script
    ad: str
    """Which ad of the project; empty for the project's only one."""

    def scopes(self, *names: str) -> tuple[str, ...]:
        """The names as this ad's own."""
        return scoped(self.ad, names)

    def scene(self) -> int:
        """The scene that the input names, from 1."""
        return whole_number(self.given, "scene", low=1, high=len(self.brief.scenes))

    def seed(self) -> int | None:
        """The seed that the input asks for, if it does."""
        return None if "seed" not in self.given else whole_number(self.given, "seed", low=0, high=SEED_MAX)


def read_order(given: Any, *members: str) -> Order:
    """Read {"brief", "ad"?, ...members}. InvalidInput lists what is wrong with the brief, or the strange members."""
    if not isinstance(given, dict):
        raise problem_at("", "is no object", "give an object with a brief")
    known = ("brief", "ad", *members)
    strange = [name for name in given if name not in known]
    if strange:
        raise InvalidInput(
            tuple(
                ProblemError(f"/{name}", "is unknown", f"use some of {', '.join(known)}") for name in strange
            )
        )
    ad = read_ad(given, "/ad")
    brief = read_brief_of(given, "/brief")
    return Order(given=given, document=given["brief"], brief=brief, script=write_script(brief), ad=ad)


def read_brief_of(given: Mapping[str, Any], pointer: str) -> Brief:
    """The brief of an object, which stands at `pointer`."""
    document = given.get("brief")
    if not isinstance(document, dict):
        raise problem_at(pointer, "is missing", "give the brief as an object")
    try:
        return parse_brief(msgspec.json.encode(document), base=None)
    except BriefError as error:
        raise InvalidInput(
            tuple(ProblemError(f"{pointer}{p.pointer}", p.message, p.remedy) for p in error.problems)
        ) from error


def read_ad(given: Mapping[str, Any], pointer: str) -> str:
    """The name of an ad of the project, or an empty one."""
    ad = given.get("ad", "")
    if not isinstance(ad, str) or (ad and AD.match(ad) is None):
        raise problem_at(pointer, f"is {ad!r}", "use up to 32 small letters, digits and hyphens")
    return ad


def scoped(ad: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Scopes of one ad: as they are called in a project with one ad, and behind its name in a project with several."""
    return tuple(f"{ad}:{name}" for name in names) if ad else names


def every_scope(scenes: int) -> tuple[str, ...]:
    """Everything that an ad of so many scenes is made of: broad workflows own all of it by name (H55)."""
    return ("voice", "music", "render", "full_generation", *(f"scene:{n}" for n in range(1, scenes + 1)))


def whole_number(
    given: Mapping[str, Any], name: str, *, low: int, high: int, default: int | None = None
) -> int:
    """A member that is a whole number within bounds."""
    value = given.get(name, default)
    if type(value) is not int or not low <= value <= high:
        raise problem_at(f"/{name}", f"is {value!r}", f"give a whole number from {low} to {high}")
    return value


def problem_at(pointer: str, message: str, remedy: str) -> InvalidInput:
    """One thing that is wrong with an input."""
    return InvalidInput((ProblemError(pointer, message, remedy),))
