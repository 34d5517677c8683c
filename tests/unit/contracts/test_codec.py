"""Canonical bytes: RFC 8785 for everything that is taken, and a clear refusal for the rest."""

import msgspec
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from kit.promises import promise
from longtake.contracts.codec import (
    INTEGER_MAX,
    canonical,
    digest,
    escape_pointer,
    resolve_pointer,
    to_json,
)
from longtake.errors import UncanonicalValue

KEYS = st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=8)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-INTEGER_MAX, INTEGER_MAX) | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


@promise("H15")
@given(VALUES)
def test_canonical_bytes_are_those_of_rfc_8785(value: object) -> None:
    assert rfc8785.dumps(value) == canonical(value)


@given(VALUES)
def test_canonical_bytes_read_back_as_the_value(value: object) -> None:
    assert value == msgspec.json.decode(canonical(value))


def test_plain_json_of_the_same_value_may_differ() -> None:
    """The broken variant: an encoder that keeps the order of keys is told apart."""
    assert to_json({"b": 1, "a": 2}) != canonical({"b": 1, "a": 2}) == rfc8785.dumps({"b": 1, "a": 2})


def test_the_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert 64 == len(digest(None))


@pytest.mark.parametrize(
    ("value", "pointer", "message"),
    [
        (0.5, "", "float"),
        (float("nan"), "", "float"),
        ({"x": [1, {"y": 2.0}]}, "/x/1/y", "float"),
        ({"x": INTEGER_MAX + 1}, "/x", "2^53-1"),
        ({"x": -INTEGER_MAX - 1}, "/x", "2^53-1"),
        ({"x": "a\x00b"}, "/x", "U+0000"),
        ({"ü": 1}, "/ü", "ASCII"),
        ({"a\x00": 1}, "/a\x00", "ASCII"),
        ({"a/b": {"c~d": 0.1}}, "/a~1b/c~0d", "float"),
    ],
)
def test_what_has_no_canonical_form_is_refused_at_its_place(
    value: object, pointer: str, message: str
) -> None:
    with pytest.raises(UncanonicalValue) as caught:
        canonical(value)

    assert pointer == caught.value.pointer
    assert message in caught.value.message
    assert caught.value.remedy


@given(VALUES)
def test_every_place_of_a_value_can_be_pointed_at(value: object) -> None:
    def walk(part: object, pointer: str) -> None:
        assert part is resolve_pointer(value, pointer) or part == resolve_pointer(value, pointer)
        match part:
            case dict():
                for key, item in part.items():
                    walk(item, f"{pointer}/{escape_pointer(key)}")
            case list():
                for index, item in enumerate(part):
                    walk(item, f"{pointer}/{index}")

    walk(value, "")


@pytest.mark.parametrize("pointer", ["/x", "/l/2", "/l/-1", "/l/x", "/s/0", "/n/x", "/l/01x", "/l/²"])
def test_a_pointer_to_nothing_is_an_error(pointer: str) -> None:
    with pytest.raises(KeyError):
        resolve_pointer({"l": [1, 2], "s": "text", "n": None}, pointer)
