"""A request that cannot be drawn is refused with the field and the remedy."""

from typing import Any

import msgspec
import pytest
from PIL import Image

from kit.shot_requests import WARM, small_request
from videoads.renderer.shots import ShotError, ShotRequest, open_shot


def changed(**fields: Any) -> ShotRequest:
    return msgspec.structs.replace(small_request(), **fields)


@pytest.mark.parametrize(
    ("fields", "pointer", "remedy"),
    [
        ({"frames": 0}, "/frames", "use 1 to"),
        ({"frames": 10**6}, "/frames", "use 1 to"),
        ({"fps": 0}, "/fps", "use 1 to"),
        ({"width": 8}, "/width", "use 16 to"),
        ({"width": 91}, "/width", "even number"),
        ({"height": 99999}, "/height", "use 16 to"),
        ({"palette": msgspec.structs.replace(WARM, accent="red")}, "/palette/accent", "#rrggbb"),
        ({"palette": msgspec.structs.replace(WARM, light="#ffff")}, "/palette/light", "#rrggbb"),
        ({"palette": msgspec.structs.replace(WARM, ink="#00000g")}, "/palette/ink", "#rrggbb"),
    ],
)
def test_a_bad_field_is_named_with_what_would_be_right(
    fields: dict[str, Any], pointer: str, remedy: str
) -> None:
    with pytest.raises(ShotError, match=remedy) as refused:
        open_shot(changed(**fields))

    assert refused.value.pointer == pointer
    assert str(refused.value).startswith(pointer)


def test_a_good_request_is_not_refused() -> None:
    assert open_shot(changed(width=92, frames=1800)).set_piece == "abstract"


@pytest.mark.parametrize("piece", ["espresso.product", "light.product"])
@pytest.mark.parametrize("suffix", ["png", "jpg", "webp"])
def test_the_brief_s_own_product_turns_in_instead_of_ours(piece: str, suffix: str, tmp_path: Any) -> None:
    path = tmp_path / f"product.{suffix}"
    Image.new("RGB", (60, 90), (20, 200, 60)).save(path)
    request = small_request(piece, frames=30)

    own = open_shot(msgspec.structs.replace(request, product_picture=str(path))).frame(20)
    ours = open_shot(request).frame(20)

    greens = sum(1 for r, g, b in own.get_flattened_data() if g > 120 and g > 2 * r and g > 2 * b)
    assert greens > 300
    assert sum(1 for r, g, b in ours.get_flattened_data() if g > 120 and g > 2 * r and g > 2 * b) == 0


def test_an_unreadable_product_picture_is_refused(tmp_path: Any) -> None:
    broken = tmp_path / "product.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n no picture")

    for path in (broken, tmp_path / "absent.png"):
        with pytest.raises(ShotError, match="PNG, JPEG or WebP") as refused:
            open_shot(msgspec.structs.replace(small_request("espresso.product"), product_picture=str(path)))
        assert refused.value.pointer == "/product_picture"
