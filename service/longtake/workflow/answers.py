"""Answers of people: the JSON Schema an input step asks with, and whether an answer keeps to it (H64, H67).

Draft 2020-12. The network is never asked: a reference leads to a place in the same schema. Patterns take linear time, so
no answer can hold up a decision. Leaves to others: which step an answer is for (answering.py).
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

from longtake.contracts.codec import canonical, escape_pointer
from longtake.contracts.problems import ProblemError
from longtake.errors import UncanonicalValue

ANSWER_BYTES_MAX = 64 * 1024
"""Longest answer, and longest payload of an event; an event of a run keeps either whole."""

FAULTS_MAX = 20
"""A value with more faults than this is another kind of value; the rest would drown that."""

WORDS_MAX = 300
"""Longest message about one fault."""

SCHEMAS_CACHED_MAX = 256


def schema_faults(schema: Any, at: str) -> Iterator[ProblemError]:
    """What is wrong with the schema of an answer, at its place in the plan."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield ProblemError(
            f"{at}/type" if isinstance(schema, dict) else at, "an answer is an object", 'say "type": "object"'
        )
        return
    for place, reference in _references(schema, at):
        if not isinstance(reference, str) or not reference.startswith("#"):
            yield ProblemError(
                place, f"{reference!r} leads out of the schema", 'refer to "#/$defs/..." of this schema'
            )
            return
    try:
        _compiled(canonical(schema))
    except UncanonicalValue as error:
        yield ProblemError(f"{at}{error.pointer}", error.message, error.remedy)
    except ValidationError as error:
        yield ProblemError(
            at + _pointer(error.instance_path), _words(error), "write it as JSON Schema, draft 2020-12"
        )


def default_faults(schema: dict[str, Any], default: Any, at: str) -> Iterator[ProblemError]:
    """Where the default of a gate breaks its own schema."""
    for fault in answer_faults(schema, default, at):
        yield ProblemError(
            fault.pointer, f"the default is no answer: {fault.message}", "mend the default, or the schema"
        )


def answer_faults(schema: dict[str, Any], answer: Any, at: str) -> tuple[ProblemError, ...]:
    """Where an answer breaks the schema; empty when it is taken."""
    faults = size_faults(answer, at)
    if faults:
        return faults
    found: list[ProblemError] = []
    for error in _compiled(canonical(schema)).iter_errors(answer):
        remedy = f"the schema says at {_pointer(error.schema_path) or '/'} what is taken"
        found.append(ProblemError(at + _pointer(error.instance_path), _words(error), remedy))
        if len(found) == FAULTS_MAX:
            break
    return tuple(found)


def size_faults(value: Any, at: str) -> tuple[ProblemError, ...]:
    """Why a value cannot be kept in an event: it is too long, or has no canonical form."""
    try:
        size = len(canonical(value))
    except UncanonicalValue as error:
        return (ProblemError(at + error.pointer, error.message, error.remedy),)
    except RecursionError:
        return (ProblemError(at, "it is nested too deeply", "send a flatter value"),)
    if size <= ANSWER_BYTES_MAX:
        return ()
    return (
        ProblemError(
            at, f"it has {size} bytes, at most {ANSWER_BYTES_MAX} are taken", "store it, and send its key"
        ),
    )


@lru_cache(maxsize=SCHEMAS_CACHED_MAX)
def _compiled(schema: bytes) -> Draft202012Validator:
    return Draft202012Validator(schema.decode(), retriever=_refuse, pattern_options=RegexOptions())


def _refuse(reference: str) -> Any:
    raise ValueError(f"{reference} is not asked")


def _references(value: Any, at: str) -> Iterator[tuple[str, Any]]:
    waiting: list[tuple[str, Any]] = [(at, value)]
    while waiting:
        place, item = waiting.pop()
        if isinstance(item, dict):
            for key, inner in item.items():
                below = f"{place}/{escape_pointer(str(key))}"
                if key in ("$ref", "$dynamicRef", "$schema", "$id") and not isinstance(inner, dict):
                    if key in ("$ref", "$dynamicRef"):
                        yield below, inner
                    continue
                waiting.append((below, inner))
        elif isinstance(item, list | tuple):
            waiting.extend((f"{place}/{index}", inner) for index, inner in enumerate(item))


def _pointer(path: Iterable[str | int]) -> str:
    return "".join(f"/{escape_pointer(str(part))}" for part in path)


def _words(error: ValidationError) -> str:
    return error.message if len(error.message) <= WORDS_MAX else error.message[: WORDS_MAX - 3] + "..."
