"""When a stream counts as having lost what it had acknowledged."""

import pytest

from longtake.jetstream.sequences import Sequences


def filled(*numbers: int) -> Sequences:
    sequences = Sequences()
    for number in numbers:
        assert not sequences.stored("S", number)
    return sequences


def test_numbers_that_rise_say_nothing() -> None:
    sequences = filled(1, 2, 9)
    sequences.link_lost()
    assert not sequences.stored("S", 10)
    sequences.looked("S", 10, expected=10)
    assert sequences.behind == ()


def test_a_number_given_away_before_the_link_was_lost_tells_once() -> None:
    sequences = filled(1, 2, 3)
    sequences.link_lost()
    assert sequences.stored("S", 3)
    assert not sequences.stored("S", 4)
    assert sequences.behind == ("S",)


def test_within_one_link_no_order_is_read_into_the_answers() -> None:
    sequences = filled(1, 3)
    assert not sequences.stored("S", 2)
    assert sequences.behind == ()


@pytest.mark.parametrize(("last", "behind"), [(2, ("S",)), (3, ()), (7, ())])
def test_a_look_compares_with_what_was_known_when_it_began(last: int, behind: tuple[str, ...]) -> None:
    sequences = filled(1, 2, 3)
    expected = sequences.highest("S")
    assert not sequences.stored("S", 4)  # answered while the look was under way
    sequences.looked("S", last, expected=expected)
    assert sequences.behind == behind


def test_what_a_look_saw_is_a_mark_for_who_publishes_nothing() -> None:
    sequences = Sequences()
    sequences.looked("S", 9, expected=sequences.highest("S"))
    sequences.link_lost()
    sequences.looked("S", 8, expected=sequences.highest("S"))
    assert sequences.behind == ("S",)


def test_another_link_does_not_lower_a_mark() -> None:
    sequences = filled(9)
    sequences.link_lost()
    sequences.link_lost()
    assert sequences.highest("S") == 9


def test_a_stream_made_anew_counts_from_one_again() -> None:
    sequences = filled(9)
    sequences.link_lost()
    sequences.forget("S")
    assert not sequences.stored("S", 1)
    assert sequences.highest("S") == 1
