"""The canvas: depth moves layers, light only brightens, sprites keep their place and their colours."""

from importlib.resources import files

import numpy as np
import pytest
from PIL import Image

from kit.shot_requests import NIGHT, WARM, small_request
from videoads.renderer.shots.canvas import Camera, Canvas, Ray
from videoads.renderer.shots.colour import lightness, named_colours, recolour, rgb
from videoads.renderer.shots.sprite import (
    Sprite,
    Turned,
    blurred,
    drawing_source,
    soft_disc,
    sprite_from_picture,
)
from videoads.renderer.shots.stage import Stage


def stage() -> Stage:
    return Stage(small_request(width=180, height=320))


def dot(size: int = 40) -> Sprite:
    picture = Image.new("RGBA", (size, size))
    picture.paste((255, 0, 0, 255), (size // 4, size // 4, size * 3 // 4, size * 3 // 4))
    return sprite_from_picture(picture, size * 4.0, size * 4.0)


def middle_of_light(canvas: Canvas) -> tuple[float, float]:
    light = np.asarray(canvas.picture.convert("L"), np.float64)
    rows, columns = np.indices(light.shape)
    return float((columns * light).sum() / light.sum()), float((rows * light).sum() / light.sum())


def test_a_nearer_layer_moves_more_than_a_farther_one() -> None:
    shifts = []
    for depth in (0.2, 1.0, 1.6):
        canvas = Canvas(stage(), Camera(x=60))
        canvas.draw(dot(), 360, 640, depth=depth)
        shifts.append(89.5 - middle_of_light(canvas)[0])

    assert shifts == pytest.approx([3.0, 15.0, 24.0], abs=0.7)


def test_a_sprite_moves_by_parts_of_a_pixel() -> None:
    """A slow camera never jumps: a tenth of a pixel is seen in the picture."""
    places = []
    for shift in (0.0, 0.4, 0.8, 1.2):
        canvas = Canvas(stage(), Camera())
        canvas.draw(dot(), 360 + shift, 640)
        places.append(middle_of_light(canvas)[0])

    steps = np.diff(places)
    assert steps == pytest.approx([0.1] * 3, abs=0.05)


def test_light_only_brightens_and_never_clips_hard() -> None:
    canvas = Canvas(stage(), Camera())
    canvas.picture.paste((90, 140, 200), (0, 0, 180, 320))
    before = np.asarray(canvas.picture).copy()
    canvas.glow((255, 200, 120), 360, 640, 500, soft_disc(1.5))
    canvas.lights(Ray(soft_disc(1.5), (255, 200, 120), 300, 500, 400, 400))

    after = np.asarray(canvas.picture)
    assert (after >= before).all() and after.mean() > before.mean() + 5


def test_lights_gathered_on_a_coarse_picture_look_like_lights_alone() -> None:
    alone, gathered = (Canvas(stage(), Camera()) for _ in range(2))
    alone.light(soft_disc(1.8), (255, 180, 90), 300, 500, 600, 600)
    gathered.lights(Ray(soft_disc(1.8), (255, 180, 90), 300, 500, 600, 600))

    apart = np.abs(np.asarray(alone.picture, np.int16) - np.asarray(gathered.picture, np.int16))
    assert apart.mean() < 1.5 and apart.max() < 24


def test_an_empty_border_is_dropped_and_the_sprite_stays_where_it_was() -> None:
    sprite = dot()
    assert sprite.mask is not None and sprite.mask.size == (24, 24)

    canvas = Canvas(stage(), Camera())
    canvas.draw(sprite, 360, 640)
    assert middle_of_light(canvas) == pytest.approx((89.5, 159.5), abs=0.6)


def test_blur_and_rotation_keep_the_middle_and_the_colour() -> None:
    for sprite in (blurred(dot(), 3), Turned(dot(), 8).at(0.125)):
        canvas = Canvas(stage(), Camera())
        canvas.draw(sprite, 360, 640)
        assert middle_of_light(canvas) == pytest.approx((89.5, 159.5), abs=0.8)
        red, green, blue = np.asarray(canvas.picture, np.float32).reshape(-1, 3).max(axis=0)
        assert red > 180 and green == blue == 0


def test_a_gradient_runs_down_a_polygon() -> None:
    canvas = Canvas(stage(), Camera())
    canvas.polygon([(200, 300), (520, 300), (520, 980), (200, 980)], [(0, (250, 0, 0)), (1, (0, 0, 250))])

    top, foot = canvas.picture.getpixel((90, 80)), canvas.picture.getpixel((90, 240))
    assert isinstance(top, tuple) and isinstance(foot, tuple)
    assert min(top[0], foot[2]) > 230
    assert max(top[2], foot[0]) < 20


@pytest.mark.parametrize("palette", [WARM, NIGHT])
def test_dark_is_dark_and_pale_is_pale_in_either_kind_of_palette(palette: object) -> None:
    colours = named_colours(palette)  # type: ignore[arg-type]  # parametrised: a Palette

    assert lightness(colours["dark"]) < 0.2
    assert lightness(colours["pale"]) > 0.7


def test_every_drawing_takes_the_brand_s_colours_whole() -> None:
    """No placeholder is left in any drawing; an unknown name is an error, not a black shape."""
    extra = {name: (9, 9, 9) for name in ("night", "haze", "beam", "near")}
    names = sorted(entry.name[:-4] for entry in files("videoads.renderer.shots").joinpath("art").iterdir())
    assert len(names) > 30
    for name in names:
        coloured = recolour(drawing_source(name), named_colours(WARM) | extra)
        assert "@" not in coloured, name

    with pytest.raises(KeyError):
        recolour('<path fill="@acent"/>', named_colours(WARM))


def test_a_share_mixes_two_colours() -> None:
    assert recolour("@white~black50 @accent", named_colours(WARM)) == "#808080 #c2562d"
    assert rgb("#c2562d") == (194, 86, 45)
