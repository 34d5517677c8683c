"""Bytes: how contracts become JSON, and the canonical bytes that digests are taken over (P15, P22).

Canonical bytes are msgspec's sorted JSON with floats and non-ASCII keys refused; for such input they equal RFC 8785
(a property test holds them to it).
"""

import hashlib
from typing import Any

import msgspec

from longtake.errors import UncanonicalValue

_canonical = msgspec.json.Encoder(order="sorted")
_plain = msgspec.json.Encoder()

INTEGER_MAX = 2**53 - 1
"""The largest integer that every JSON reader keeps (RFC 8785 inherits it from I-JSON)."""
DEPTH_MAX = 100
"""How deep a value may nest, so that whoever walks it needs no care for the stack."""
TOO_DEEP = (f"it nests deeper than {DEPTH_MAX}", "send it flatter, or as text")


def to_json(value: Any) -> bytes:
    """Encode a contract as compact JSON in declaration order."""
    return _plain.encode(value)


def canonical(value: Any) -> bytes:
    """Return the canonical JSON bytes of a value.

    Raises UncanonicalValue, with a JSON pointer, for floats, keys beyond ASCII, integers beyond 2^53-1, U+0000, and what
    nests deeper than DEPTH_MAX.
    """
    try:
        plain = msgspec.to_builtins(value, str_keys=True)
    except RecursionError as error:
        raise UncanonicalValue("", *TOO_DEEP) from error
    _refuse_uncanonical(plain, "", 0)
    return _canonical.encode(plain)


def digest(value: Any) -> str:
    """SHA-256 of the canonical bytes, as hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _refuse_uncanonical(value: Any, pointer: str, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise UncanonicalValue(pointer, *TOO_DEEP)
    match value:
        case bool() | None:
            return
        case float():
            raise UncanonicalValue(pointer, "a float has no canonical form", "use integer units or a string")
        case int():
            if not -INTEGER_MAX <= value <= INTEGER_MAX:
                raise UncanonicalValue(pointer, "the integer exceeds 2^53-1", "use a smaller number, or text")
        case str():
            if "\x00" in value:
                raise UncanonicalValue(pointer, "the text contains U+0000", "remove the character")
        case dict():
            for key, item in value.items():
                if not key.isascii() or "\x00" in key:
                    raise UncanonicalValue(f"{pointer}/{key}", "the key is not plain ASCII", "rename the key")
                _refuse_uncanonical(item, f"{pointer}/{escape_pointer(key)}", depth + 1)
        case list() | tuple():
            for index, item in enumerate(value):
                _refuse_uncanonical(item, f"{pointer}/{index}", depth + 1)
        case _:
            raise UncanonicalValue(pointer, f"{type(value).__name__} is not JSON", "use plain JSON values")


def escape_pointer(token: str) -> str:
    """Escape one reference token of a JSON pointer (RFC 6901)."""
    return token.replace("~", "~0").replace("/", "~1")


def resolve_pointer(document: Any, pointer: str) -> Any:
    """Return what a JSON pointer (RFC 6901) names in a document; KeyError when it names nothing."""
    if pointer == "":
        return document
    value = document
    for token in pointer.removeprefix("/").split("/"):
        name = token.replace("~1", "/").replace("~0", "~")
        match value:
            case dict():
                value = value[name]
            case list() | tuple():
                if not (name.isascii() and name.isdigit()) or int(name) >= len(value):
                    raise KeyError(pointer)
                value = value[int(name)]
            case _:
                raise KeyError(pointer)
    return value
