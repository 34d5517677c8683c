"""A brief that avoids GPL encoders is rendered, kept and delivered as WebM, from the provider to the artifact."""

import json
from pathlib import Path

import msgspec
import pytest

import longtake
from kit.calls import call_of, stored
from kit.film_briefs import brief
from kit.promises import promise
from kit.providers import ProviderBench
from videoads.activities.delivery import DeliveryVerify
from videoads.activities.film import RenderSubmit
from videoads.outsiders import Outsiders
from videoads.renderer import testbed
from videoads.renderer.composition import media_of

pytestmark = pytest.mark.timeout(240)


@promise("H69")
async def test_a_film_without_gpl_encoders_is_delivered_as_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rendered by the provider, stored as video/webm, measured by its own profile, published as the ad."""
    given = brief(seconds=4.8, size={"width": 360, "height": 640}, profile="vp9-opus")
    prepared = testbed.prepare(given, cache=tmp_path / "media")
    providers = ProviderBench(
        tmp_path / "providers", arguments=["--speed", "50", "--profile", "plain"], real_media=True
    )
    await providers.start()
    monkeypatch.setenv("VIDEOADS_PROVIDERS_URL", providers.base_url)
    monkeypatch.setenv("VIDEOADS_WEBHOOK_SECRET", "whsec_" + "bG9uZ3Rha2UtdGVzdC1zZWNyZXQtMDAwMDAwMDAwMDE=")
    outsiders = Outsiders()
    try:
        ask = call_of(tmp_path / "objects", {})
        composition = await stored(
            ask, tmp_path / "media" / "composition.json", kind="composition", content_type="application/json"
        )
        media = {
            key: (await stored(ask, prepared.media(key), kind="medium", content_type="x/y"))["object_key"]
            for _, key in media_of(prepared.composition)
        }
        submit = RenderSubmit(outsiders)
        accepted = await submit.execute(
            call_of(tmp_path / "objects", {"composition": composition, "media": media})
        )
        assert isinstance(accepted, longtake.Submitted), accepted
        await providers.wait(token="token-1", state="succeeded")
        rendered = await submit.poll(call_of(tmp_path / "objects", {}, external_ref=accepted.external_ref))
    finally:
        await outsiders.forget()
        await providers.stop()

    assert isinstance(rendered, longtake.Succeeded), rendered
    (film,) = rendered.artifacts
    assert film.content_type == "video/webm"

    asked = {"film": msgspec.to_builtins(film), "composition": composition, "media": media}
    delivered = await DeliveryVerify().execute(call_of(tmp_path / "objects", asked))

    assert isinstance(delivered, longtake.Succeeded), delivered
    kinds = {artifact.kind: artifact.content_type for artifact in delivered.artifacts}
    assert kinds == {
        "ad": "video/webm",
        "poster": "image/jpeg",
        "contact": "image/jpeg",
        "inspection": "application/json",
    }

    mistaken = json.loads((tmp_path / "media" / "composition.json").read_bytes())
    mistaken["output"]["profile"] = "h264-aac"
    (tmp_path / "mistaken.json").write_text(json.dumps(mistaken))
    other = await stored(ask, tmp_path / "mistaken.json", kind="composition", content_type="application/json")
    refused = await DeliveryVerify().execute(call_of(tmp_path / "objects", {**asked, "composition": other}))
    assert isinstance(refused, longtake.Failed) and "codecs" in refused.message, refused
