"""Cursors: opaque, signed, and of one query."""

import uuid
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.api.cursor import Cursor, read_cursor, write_cursor
from longtake.errors import Refused

SECRET = b"s" * 32
HERE = Cursor(datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC), uuid.UUID(int=7))
QUERY = {"tenant": "acme", "project": "p1", "status": None, "workflow": None}


def test_a_cursor_comes_back_as_it_was():
    assert read_cursor(SECRET, write_cursor(SECRET, HERE, query=QUERY), query=QUERY) == HERE


@pytest.mark.parametrize(
    "changed", [{"tenant": "rival"}, {"project": None}, {"status": "running"}, {"workflow": "x"}]
)
def test_a_cursor_of_another_query_is_refused(changed):
    text = write_cursor(SECRET, HERE, query=QUERY)

    with pytest.raises(Refused) as refused:
        read_cursor(SECRET, text, query={**QUERY, **changed})

    assert refused.value.problem.slug == "bad-cursor"


def test_a_cursor_of_another_server_is_refused():
    with pytest.raises(Refused):
        read_cursor(b"t" * 32, write_cursor(SECRET, HERE, query=QUERY), query=QUERY)


@given(st.text(max_size=600))
def test_any_text_is_refused_and_nothing_else_happens(text):
    with pytest.raises(Refused):
        read_cursor(SECRET, text, query=QUERY)


@given(st.integers(min_value=0), st.integers(min_value=1, max_value=63))
def test_one_changed_character_is_noticed(place, shift):
    text = write_cursor(SECRET, HERE, query=QUERY)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    # The last character has spare bits, which mean nothing.
    at = place % (len(text) - 1)
    changed = text[:at] + alphabet[(alphabet.index(text[at]) + shift) % 64] + text[at + 1 :]

    with pytest.raises(Refused):
        read_cursor(SECRET, changed, query=QUERY)
