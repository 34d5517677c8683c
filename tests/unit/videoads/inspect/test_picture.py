"""The moving picture is judged rightly: cuts are found where they are, stillness and black are refused."""

import numpy as np
import pytest

from kit.footage import FPS, moving_gradient, sequence, write_film
from videoads.renderer.inspect import picture
from videoads.renderer.inspect.decoding import FilmUnreadable, decode_film

WIDTH, HEIGHT = 90, 160
RED, BLUE, GREEN = (170, 60, 60), (50, 70, 170), (70, 150, 80)


def gradient(tint):
    return moving_gradient(WIDTH, HEIGHT, tint=tint)


def thumbnails(path, pictures):
    write_film(path, pictures)
    return decode_film(path, whole_frames=()).thumbnails


def test_every_hard_cut_is_found_at_its_frame_and_no_other(tmp_path):
    film = sequence((gradient(RED), 24), (gradient(BLUE), 36), (gradient(GREEN), 30))

    assert picture.shot_changes(thumbnails(tmp_path / "film.mp4", film)) == (24, 60)


def test_a_fast_pan_is_not_a_cut(tmp_path):
    film = sequence((moving_gradient(WIDTH, HEIGHT, tint=RED, speed=15), 60))

    assert picture.shot_changes(thumbnails(tmp_path / "film.mp4", film)) == ()


def test_a_wipe_over_many_frames_is_not_a_hard_cut(tmp_path):
    before, after = gradient(RED), gradient(BLUE)

    def wiped(index):
        left, right = before(index), after(index)
        edge = WIDTH * max(0, min(12, index - 24)) // 12
        right[:, edge:] = left[:, edge:]
        return right

    assert picture.shot_changes(thumbnails(tmp_path / "film.mp4", sequence((wiped, 60)))) == ()


def test_a_picture_that_moves_passes_and_one_that_freezes_for_a_second_is_refused(tmp_path):
    moving = thumbnails(tmp_path / "good.mp4", sequence((gradient(RED), 90)))
    frozen = thumbnails(
        tmp_path / "frozen.mp4",
        sequence((gradient(RED), 40), (lambda _: gradient(RED)(39), 35), (gradient(RED), 15)),
    )

    assert picture.still_second(moving, FPS) is None
    still = picture.still_second(frozen, FPS)
    assert still is not None
    assert 39 <= still[0] <= 45


def test_a_freeze_that_straddles_two_full_seconds_is_seen(tmp_path):
    frozen = thumbnails(
        tmp_path / "frozen.mp4",
        sequence((gradient(RED), 45), (lambda _: gradient(RED)(44), 34), (gradient(RED), 41)),
    )

    assert picture.still_second(frozen, FPS) is not None


def test_black_is_refused_and_a_dark_picture_with_a_light_in_it_is_not(tmp_path):
    def night(index):
        dark = np.full((HEIGHT, WIDTH, 3), 6, np.uint8)
        dark[60:90, 20 + index % 20 : 50 + index % 20] = 180
        return dark

    black = thumbnails(
        tmp_path / "black.mp4",
        sequence(
            (gradient(RED), 30), (lambda _: np.zeros((HEIGHT, WIDTH, 3), np.uint8), 6), (gradient(RED), 30)
        ),
    )

    assert picture.black_run(thumbnails(tmp_path / "night.mp4", sequence((night, 30)))) is None
    assert picture.black_run(black) == (30, 6)


def test_the_distance_of_layouts_forgives_movement_and_not_another_scene():
    shot, other = gradient(RED), gradient(BLUE)
    frames = np.stack([shot(0), shot(2), other(0)])

    assert picture.layout_distance(frames, 0, 1) < 0.05
    assert picture.layout_distance(frames, 0, 2) > 0.15


def test_a_film_that_was_cut_off_says_after_which_frame(tmp_path):
    path = write_film(tmp_path / "film.mp4", sequence((gradient(RED), 60)), crf=5)
    whole = decode_film(path, whole_frames=(59,))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 6 // 10])
    cut = decode_film(path, whole_frames=())

    assert (whole.frames, whole.interruption, list(whole.whole)) == (60, None, [59])
    assert cut.frames < 60
    assert cut.interruption or cut.declared_frames == 60


@pytest.mark.parametrize("content", [b"", b"not a film at all", b"\x00\x00\x00\x18ftypisom" + b"\x00" * 400])
def test_what_is_no_film_is_said_to_be_unreadable(tmp_path, content):
    path = tmp_path / "film.mp4"
    path.write_bytes(content)

    with pytest.raises(FilmUnreadable, match="open|video"):
        decode_film(path, whole_frames=())
