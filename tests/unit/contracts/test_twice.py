"""A member that stands twice in its object is found, wherever it stands; what stands once is not."""

import msgspec
import pytest

from longtake.contracts.codec import DEPTH_MAX, canonical
from longtake.contracts.twice import named_twice
from longtake.errors import UncanonicalValue


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        (b'{"a":1,"a":2}', "/a"),
        (b'{"a":{"b/c":1,"b/c":1}}', "/a/b~1c"),
        (b'[0,[{"x":1},{"x":1,"y":2,"x":3}]]', "/1/1/x"),
        (b'{"\\u0061":1,"a":2}', "/a"),
        (b'{"a":{"b":1},"c":{"b":1}}', None),
        (b'{"a":' + b"9" * 10_000 + b"}", None),
        (b'"a"', None),
    ],
)
def test_a_member_that_stands_twice_is_named(raw, pointer):
    assert named_twice(raw) == pointer


def test_the_fast_decoder_would_not_have_noticed():
    assert msgspec.json.decode(b'{"a":1,"a":2}') == {"a": 2}


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = {"a": value}
    return value


def test_what_nests_as_deep_as_is_allowed_has_canonical_bytes_and_what_nests_deeper_has_none():
    assert canonical(nested(DEPTH_MAX)).count(b"{") == DEPTH_MAX
    for depth in (DEPTH_MAX + 1, 5000):
        with pytest.raises(UncanonicalValue, match="nests deeper than"):
            canonical(nested(depth))
