"""Conditions: when a step runs, said as data (design.md 6). No code, no text that is evaluated.

`{"op": "eq", "ref": {"$ref": ...}, "value": ...}`, and `{"all": [...]}`, `{"any": [...]}`, `{"not": ...}` over such.
A pointer that names nothing makes its comparison false, whatever the operator; so does a value of another JSON type.
Leaves to others: when a condition is judged (joins.py).
"""

from collections.abc import Callable, Iterator
from typing import Any

from longtake.contracts.problems import ProblemError
from longtake.workflow.refs import MARK, BadReference, Reference, find_references, is_pointer

OPERATORS: tuple[str, ...] = ("eq", "ne", "lt", "le", "gt", "ge", "in", "exists")
ORDERED = frozenset({"lt", "le", "gt", "ge"})
DEPTH_MAX = 16
TERMS_MAX = 64

ABSENT: Any = object()
"""What a look-up answers for a pointer that names nothing."""

Condition = dict[str, Any]


def condition(op: str, ref: dict[str, Any], value: Any = None) -> Condition:
    """Compare (a part of) what a step will have made with a value; `exists` takes none."""
    return {"op": op, "ref": ref} if op == "exists" else {"op": op, "ref": ref, "value": value}


def all_of(*conditions: Condition) -> Condition:
    """True when all are."""
    return {"all": list(conditions)}


def any_of(*conditions: Condition) -> Condition:
    """True when one is."""
    return {"any": list(conditions)}


def not_(inner: Condition) -> Condition:
    """True when the other is not."""
    return {"not": inner}


def references_of(document: Condition | None) -> Iterator[Reference]:
    """The references of a condition that is sound."""
    for item in find_references(document or {}):
        if isinstance(item, Reference):
            yield item


def holds(document: Condition, look_up: Callable[[Reference], Any]) -> bool:
    """Judge a sound condition; `look_up` answers ABSENT for what is not there."""
    if "all" in document:
        return all(holds(inner, look_up) for inner in document["all"])
    if "any" in document:
        return any(holds(inner, look_up) for inner in document["any"])
    if "not" in document:
        return not holds(document["not"], look_up)
    found = look_up(next(references_of({"ref": document["ref"]})))
    if found is ABSENT:
        return False
    return _compare(document["op"], found, document.get("value"))


def _compare(op: str, found: Any, value: Any) -> bool:
    if op == "exists":
        return True
    if op == "in":
        return any(_equal(found, item) for item in value)
    if op in ORDERED:
        if _type(found) != _type(value):
            return False
        return bool(
            {"lt": found < value, "le": found <= value, "gt": found > value, "ge": found >= value}[op]
        )
    return _equal(found, value) if op == "eq" else not _equal(found, value)


def _equal(left: Any, right: Any) -> bool:
    # 1 and True are equal in Python and differ in JSON.
    return _type(left) == _type(right) and bool(left == right)


def _type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "number"
        case str():
            return "text"
        case list() | tuple():
            return "list"
        case _:
            return "object"


def faults_of(document: Any, at: str) -> Iterator[ProblemError]:
    """Everything that is wrong with a condition, each with its place and remedy."""
    terms = [0]
    yield from _faults(document, at, 0, terms)
    if terms[0] > TERMS_MAX:
        yield ProblemError(
            at, f"{terms[0]} comparisons are too many", f"use at most {TERMS_MAX}, or let an activity decide"
        )


def _faults(document: Any, at: str, depth: int, terms: list[int]) -> Iterator[ProblemError]:
    if not isinstance(document, dict):
        yield ProblemError(
            at, f"{document!r} is no condition", "make it with condition(), all_of(), any_of(), not_()"
        )
        return
    if depth > DEPTH_MAX:
        yield ProblemError(at, "the condition nests too deep", f"nest at most {DEPTH_MAX} levels")
        return
    for word in ("all", "any"):
        if word in document:
            if set(document) != {word} or not isinstance(document[word], list) or not document[word]:
                yield ProblemError(
                    f"{at}/{word}",
                    f"{word!r} stands alone over a list",
                    f'write {{"{word}": [condition, ...]}}',
                )
                return
            for index, inner in enumerate(document[word]):
                yield from _faults(inner, f"{at}/{word}/{index}", depth + 1, terms)
            return
    if "not" in document:
        if set(document) != {"not"}:
            yield ProblemError(
                f"{at}/not", "'not' stands alone over one condition", 'write {"not": condition}'
            )
            return
        yield from _faults(document["not"], f"{at}/not", depth + 1, terms)
        return
    terms[0] += 1
    yield from _comparison_faults(document, at)


def _comparison_faults(document: dict[str, Any], at: str) -> Iterator[ProblemError]:
    op = document.get("op")
    if op not in OPERATORS:
        yield ProblemError(f"{at}/op", f"{op!r} is no operator", f"use one of {', '.join(OPERATORS)}")
        return
    wanted = {"op", "ref"} if op == "exists" else {"op", "ref", "value"}
    if set(document) != wanted:
        yield ProblemError(
            at, f"the members are {sorted(document)}", f"{op} takes exactly {', '.join(sorted(wanted))}"
        )
        return
    yield from _reference_faults(document["ref"], f"{at}/ref")
    if op != "exists":
        yield from _value_faults(op, document["value"], f"{at}/value")


def _reference_faults(ref: Any, at: str) -> Iterator[ProblemError]:
    if not isinstance(ref, dict) or MARK not in ref:
        yield ProblemError(at, f"{ref!r} is no reference", "make it with ref(step, pointer)")
        return
    for item in find_references(ref):
        if isinstance(item, BadReference):
            yield ProblemError(f"{at}{item.place}", item.message, "make references with ref()")
        elif item.group is not None:
            yield ProblemError(at, "a group has no one value to compare", "refer to one step")
        elif not is_pointer(item.pointer):
            yield ProblemError(
                at, f"{item.pointer!r} is no JSON pointer", 'begin it with "/", write ~ as ~0 and / as ~1'
            )


def _value_faults(op: str, value: Any, at: str) -> Iterator[ProblemError]:
    if isinstance(value, float) or (
        isinstance(value, list) and any(isinstance(item, float) for item in value)
    ):
        yield ProblemError(at, "fractions have no canonical form", "compare whole numbers")
    elif op in ORDERED and _type(value) not in ("number", "text"):
        yield ProblemError(
            at, f"{op} compares numbers or texts, not {_type(value)}", "give a whole number or a text"
        )
    elif op == "in" and _type(value) != "list":
        yield ProblemError(at, f"'in' wants a list, not {_type(value)}", "list the values that are taken")
    elif op in ("eq", "ne") and _type(value) in ("list", "object"):
        yield ProblemError(
            at, f"{op} compares single values, not {_type(value)}", "refer to the part that matters"
        )
