"""The file as an object: missing, empty, another size, other bytes and a late index are each told apart."""

import hashlib

import numpy as np
import pytest

from kit.footage import write_film
from kit.promises import promise
from videoads.renderer.inspect.container import check_digest, check_index_first, check_object, top_level_boxes


@pytest.fixture
def film(tmp_path):
    return write_film(tmp_path / "film.mp4", [np.full((32, 32, 3), i * 9, np.uint8) for i in range(20)])


@promise("H02")
def test_a_missing_and_an_empty_object_are_refused(tmp_path):
    empty = tmp_path / "empty.mp4"
    empty.touch()

    assert not check_object(tmp_path / "missing.mp4", expected_bytes=None).passed
    assert not check_object(empty, expected_bytes=None).passed


def test_an_object_of_another_size_is_refused(film):
    size = film.stat().st_size

    assert check_object(film, expected_bytes=size).passed
    assert not check_object(film, expected_bytes=size + 1).passed


def test_other_bytes_are_refused(film):
    digest = hashlib.sha256(film.read_bytes()).hexdigest()
    assert check_digest(film, expected_sha256=digest).passed

    content = bytearray(film.read_bytes())
    content[-1] ^= 1
    film.write_bytes(content)
    check = check_digest(film, expected_sha256=digest)
    assert not check.passed
    assert digest in check.expected


def test_an_index_behind_the_media_is_refused(tmp_path, film):
    late = write_film(
        tmp_path / "late.mp4", [np.full((32, 32, 3), i * 9, np.uint8) for i in range(20)], faststart=False
    )

    assert check_index_first(film).passed
    check = check_index_first(late)
    assert not check.passed
    assert "faststart" in check.remedy


def test_the_walk_over_boxes_ends_on_any_bytes(tmp_path):
    for number, content in enumerate((b"", b"\x00" * 64, b"\xff" * 64, b"\x00\x00\x00\x01ftyp\x00", b"abc")):
        path = tmp_path / str(number)
        path.write_bytes(content)

        assert isinstance(top_level_boxes(path), list)
