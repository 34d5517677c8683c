"""Every set piece: the same pixels for the same frame, movement in every second, any length and shape."""

import msgspec
import pytest
from PIL import Image

from kit.motion import difference, longest_freeze
from kit.shot_requests import PROMPTS, small_request
from videoads.renderer.shots import ShotError, open_shot

ALL = sorted(PROMPTS)
MOVES = 0.05
SECOND_MOVES = 0.8


@pytest.mark.parametrize("piece", ALL)
def test_a_frame_is_the_same_whatever_was_painted_before(piece: str) -> None:
    request = small_request(piece)
    forwards, backwards = open_shot(request), open_shot(request)
    indices = [0, 5, 11, 23]

    first = {index: forwards.frame(index).tobytes() for index in indices}
    second = {index: backwards.frame(index).tobytes() for index in reversed(indices)}

    assert first == second
    assert len(set(first.values())) == len(indices)


@pytest.mark.parametrize("piece", ALL)
def test_the_picture_changes_in_every_second_and_never_freezes(piece: str) -> None:
    """Three seconds: each second's ends differ plainly, and no three neighbours are alike."""
    shot = open_shot(small_request(piece, frames=90))
    pictures = [shot.frame(index) for index in range(90)]

    seconds = [difference(pictures[start], pictures[start + 29]) for start in (0, 30, 60)]
    assert min(seconds) >= SECOND_MOVES, seconds
    assert longest_freeze(pictures, MOVES) <= 2


def test_the_measure_of_movement_sees_a_freeze() -> None:
    """The check above can fail: the same shot with one second held is caught."""
    shot = open_shot(small_request("espresso.pour", frames=60))
    pictures = [shot.frame(index) for index in range(60)]
    held = [*pictures[:20], *[pictures[20]] * 20, *pictures[40:]]

    assert longest_freeze(pictures, MOVES) <= 2
    assert longest_freeze(held, MOVES) >= 18
    assert difference(held[20], held[38]) < SECOND_MOVES


@pytest.mark.parametrize("piece", ALL)
@pytest.mark.parametrize("frames", [1, 24, 300])
def test_any_number_of_frames_can_be_drawn_from_first_to_last(piece: str, frames: int) -> None:
    shot = open_shot(small_request(piece, frames=frames))

    for index in {0, frames // 2, frames - 1}:
        assert shot.frame(index).size == (90, 160)


@pytest.mark.parametrize("piece", ALL)
@pytest.mark.parametrize("size", [(128, 72), (54, 96), (96, 96), (40, 160), (160, 24)])
def test_any_shape_of_frame_is_filled_to_its_edges(piece: str, size: tuple[int, int]) -> None:
    """No black border: every edge of the frame has light in it somewhere in the shot."""
    width, height = size
    shot = open_shot(small_request(piece, width=width, height=height))
    picture = shot.frame(20)

    assert picture.size == size and picture.mode == "RGB"
    for edge in (
        (0, 0, width, 1),
        (0, height - 1, width, height),
        (0, 0, 1, height),
        (width - 1, 0, width, height),
    ):
        assert max(high for _, high in picture.crop(edge).getextrema()) > 4  # type: ignore[misc]  # an RGB picture: pairs


@pytest.mark.parametrize("piece", ALL)
def test_another_seed_is_another_picture(piece: str) -> None:
    first = open_shot(small_request(piece, seed=1)).frame(12)
    second = open_shot(small_request(piece, seed=2)).frame(12)

    assert first.tobytes() != second.tobytes()


@pytest.mark.parametrize("piece", ALL)
def test_the_brand_s_colours_reach_the_picture(piece: str) -> None:
    """The same shot in a green brand looks different: sprites are recoloured, not only backgrounds."""
    request = small_request(piece)
    green = type(request.palette)("#f0fff4", "#ffffff", "#06281a", "#0e9f5b", "#c8ffd9")
    other = type(request)(**{f: getattr(request, f) for f in request.__struct_fields__} | {"palette": green})

    assert difference(open_shot(request).frame(12), open_shot(other).frame(12)) > 3


def test_call_out_anchors_are_two_points_inside_the_frame() -> None:
    for piece in ALL:
        for shape in ((90, 160), (160, 90)):
            anchors = open_shot(small_request(piece, width=shape[0], height=shape[1])).anchors
            assert len(anchors) == 2
            assert all(0.08 <= x <= 0.92 and 0.12 <= y <= 0.88 for x, y in anchors)


def test_a_frame_outside_the_shot_is_refused_with_the_range() -> None:
    shot = open_shot(small_request())

    with pytest.raises(ShotError, match="frames 0 to 23"):
        shot.frame(24)
    with pytest.raises(ShotError, match="frames 0 to 23"):
        shot.frame(-1)


def test_an_abstract_shot_says_that_nothing_fitted() -> None:
    shot = open_shot(small_request("abstract"))

    assert shot.set_piece == "abstract"
    assert "no set piece fits" in shot.note
    assert isinstance(shot.frame(0), Image.Image)


def test_the_triptych_goes_where_the_prompt_says() -> None:
    """A terrace is a terrace, a train is a train, and a desk at noon has daylight."""
    request = small_request("espresso.triptych")
    prompts = (
        "Coffee: kitchen, desk, train",
        "Coffee: kitchen, desk, terrace",
        "Coffee: kitchen, desk at noon, train",
    )
    train, terrace, noon = (
        open_shot(msgspec.structs.replace(request, prompt=prompt)).frame(23) for prompt in prompts
    )
    middle, foot = (0, 60, 90, 100), (0, 112, 90, 160)

    assert difference(train.crop(foot), terrace.crop(foot)) > 8
    assert difference(train.crop(middle), terrace.crop(middle)) == 0
    assert difference(train.crop(middle), noon.crop(middle)) > 20
