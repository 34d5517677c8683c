"""Lettering is found where its ink really is, and its contrast is that of the pixels."""

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from kit.footage import moving_gradient
from videoads.renderer.inspect.ink import (
    CONTRAST_MIN,
    LIKENESS_MIN,
    Box,
    contrast_ratio,
    find_template,
    ink_box,
    measured_contrast,
)

WIDTH, HEIGHT = 360, 640


def mask(text, size=30):
    font = ImageFont.load_default(size)
    box = font.getbbox(text)
    image = Image.new("L", (int(box[2]) + 4, int(box[3]) + 4), 0)
    ImageDraw.Draw(image).text((2, 2), text, font=font, fill=255)
    return np.asarray(image)


def lettered(text, *, left, top, ink, ground=None):
    picture = ground if ground is not None else moving_gradient(WIDTH, HEIGHT, tint=(60, 45, 40))(0)
    image = Image.fromarray(picture.copy())
    image.paste(tuple(ink), (left, top), Image.fromarray(mask(text)))
    return np.asarray(image)


@pytest.mark.parametrize(("ink", "tint"), [((250, 245, 230), (60, 45, 40)), ((20, 20, 30), (190, 200, 210))])
@pytest.mark.parametrize(("left", "top"), [(40, 100), (121, 377), (10, 590)])
def test_light_and_dark_lettering_is_found_where_it_stands(ink, tint, left, top):
    ground = moving_gradient(WIDTH, HEIGHT, tint=tint)(5)
    picture = lettered("Slow mornings", left=left, top=top, ink=ink, ground=ground)
    true_box = ink_box(mask("Slow mornings"), left=left, top=top)

    found = find_template(picture, mask("Slow mornings"))
    assert found is not None
    assert found.likeness > 0.7
    assert found.box.inside(true_box, slack=3)
    assert true_box.inside(found.box, slack=3)


def test_lettering_that_is_not_there_or_says_something_else_is_not_found():
    noise = np.random.default_rng(4).integers(0, 255, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    other = lettered("Quick bicycles", left=60, top=300, ink=(250, 250, 250))

    for picture in (noise, other, moving_gradient(WIDTH, HEIGHT, tint=(60, 45, 40))(0)):
        assert find_template(picture, mask("Slow mornings")).likeness < LIKENESS_MIN


def test_lettering_that_hangs_over_the_edge_is_found_there():
    picture = lettered("Slow mornings", left=-60, top=300, ink=(250, 250, 250))

    found = find_template(picture, mask("Slow mornings"))
    assert found is not None
    assert found.box.left < 0


def test_the_ratio_of_black_and_white_is_21_and_that_of_the_web_grey_is_known():
    assert contrast_ratio(np.zeros(3), np.full(3, 255)) == pytest.approx(21.0)
    assert contrast_ratio(np.full(3, 0x76), np.full(3, 255)) == pytest.approx(4.54, abs=0.01)


def test_contrast_is_measured_on_the_pixels():
    flat = np.full((HEIGHT, WIDTH, 3), 255, np.uint8)
    readable = lettered("Slow mornings", left=40, top=100, ink=(0x70, 0x70, 0x70), ground=flat)
    weak = lettered("Slow mornings", left=40, top=100, ink=(0x90, 0x90, 0x90), ground=flat)

    assert measured_contrast(readable, mask("Slow mornings"), left=40, top=100) == pytest.approx(
        4.95, abs=0.2
    )
    assert measured_contrast(weak, mask("Slow mornings"), left=40, top=100) < CONTRAST_MIN


def test_a_bright_spot_behind_one_word_is_not_made_good_by_the_others():
    ground = np.full((HEIGHT, WIDTH, 3), 30, np.uint8)
    ground[:, 190:] = 235
    picture = lettered("Slow mornings", left=40, top=100, ink=(250, 250, 250), ground=ground)

    assert measured_contrast(picture, mask("Slow mornings"), left=40, top=100) < 2


def test_boxes_know_what_lies_inside_and_what_overlaps():
    safe, box = Box(10, 10, 100, 100), Box(20, 20, 60, 60)

    assert box.inside(safe)
    assert not box.moved(50, 0).inside(safe)
    assert box.overlaps(box.moved(39, 0))
    assert not box.overlaps(box.moved(40, 0))
