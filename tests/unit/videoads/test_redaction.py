"""What a provider's webhook leaves with us: the names we asked for, none of its secrets and none of its addresses."""

import json

import pytest

from kit.promises import promise
from videoads.outsiders import Outsiders
from videoads.providers.synthetic.callbacks import signature_headers

SECRET_WORDS = ("sk-live-1", "https://signed.example/film.mp4?sig=1", "bearer")


@promise("H42")
def test_a_callback_is_redacted_before_anything_of_it_can_be_kept(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The known fields pass; an unknown one, a nested one and one of another type do not."""
    monkeypatch.setenv("VIDEOADS_PROVIDERS_DIR", str(tmp_path))
    outsiders = Outsiders()
    raw = json.dumps(
        {
            "type": "render.completed",
            "render_id": "r-1",
            "out_name": "lt1",
            "status": {"token": SECRET_WORDS[0]},
            "url": SECRET_WORDS[1],
            "custom_data": {"authorization": SECRET_WORDS[2]},
        }
    ).encode()

    kept = outsiders.verify_render(signature_headers(outsiders.webhook_secret(), "msg_1", raw), raw)

    assert kept is not None
    assert kept.payload == {"type": "render.completed", "render_id": "r-1", "out_name": "lt1"}
    assert not any(word in repr(kept) for word in SECRET_WORDS)
    assert any(word in raw.decode() for word in SECRET_WORDS), "they were there"


@promise("H42")
def test_a_callback_that_is_not_the_providers_is_not_even_read(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIDEOADS_PROVIDERS_DIR", str(tmp_path))
    outsiders = Outsiders()

    assert outsiders.verify_render({}, b"\xff not json") is None
