"""The film: composed from what the other steps made, then rendered by the render provider."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

import longtake
from longtake import Activity, Call, Outcome
from videoads.activities import speech_acts
from videoads.activities.provider_work import ProviderWork
from videoads.providers import contract
from videoads.providers.render import RenderClient
from videoads.script import Script


class RenderPrepare(Activity):
    """Set words, pictures and sound into a composition. Free and repeatable.

    Input: {script, clips: [{artifact, anchors}], narration?, timings?, music, logo?, product?}.
    Result: {media: {key: object key}}; artifact: composition.
    """

    name = "render.prepare@1"
    calls_out = False

    async def execute(self, call: Call) -> Outcome:
        """Compose."""
        # The renderer's libraries are loaded by the worker that composes, not by whoever imports the application.
        from videoads.renderer.composing import Anchor, MediaKeys, compose
        from videoads.renderer.composition import CompositionError, SpokenPhrase, Timings, composition_as_json

        given = call.input
        script = msgspec.convert(given["script"], Script)
        media = media_of(given)
        timings = None
        if "narration" in media:
            spoken = given["timings"]
            timings = Timings(
                spoken["rate"],
                tuple(
                    SpokenPhrase(planned.key, said["text"], said["start_sample"], said["end_sample"])
                    for planned, said in zip(script.phrases, spoken["phrases"], strict=True)
                ),
            )
        keys = MediaKeys(
            clips=tuple(f"clip-{number}" for number in range(1, len(script.shots) + 1)),
            music="music",
            narration="narration" if timings is not None else None,
            logo="logo" if "logo" in media else None,
            product_picture="product" if "product" in media else None,
            anchors=tuple(tuple(Anchor(x, y) for x, y in anchors) for anchors in given["anchors"]),
        )
        try:
            composition = compose(script, keys, timings)
        except CompositionError as error:
            return longtake.Failed(error_class="invalid_input", origin="content", message=str(error))
        artifact = await call.artifacts.put(
            composition_as_json(composition),
            name="composition",
            kind="composition",
            content_type="application/json",
        )
        return longtake.Succeeded(result={"media": media}, artifacts=(artifact,))


class RenderSubmit(ProviderWork[RenderClient]):
    """The finished film from a composition and its media. Input: {composition, media}."""

    name = "render.submit@1"
    medium = "film"
    media_types = ("video/mp4", "video/webm")

    async def provider(self) -> RenderClient:
        """The render provider."""
        return (await self.outsiders.clients()).render

    async def execute(self, call: Call) -> Outcome:
        """Give the provider the media, then ask for the film, once; a signed webhook will tell."""
        client = await self.client(call)
        with tempfile.TemporaryDirectory(prefix="videoads-") as folder:
            composition = Path(folder) / "composition.json"
            await call.artifacts.fetch(call.input["composition"]["object_key"], composition)
            media: dict[str, str] = {}
            for key, object_key in call.input["media"].items():
                path = Path(folder) / key
                await call.artifacts.fetch(object_key, path)
                media[key] = await client.upload(path)
            request = {
                "composition": msgspec.json.decode(composition.read_bytes()),
                "media": media,
                "webhook": {
                    "url": call.callback_url("render"),
                    "secret": self.outsiders.webhook_secret(),
                    "custom_data": {"token": call.token},
                },
            }
        deadline = speech_acts.deadline_in(speech_acts.SUBMIT_SECONDS_MAX)
        match await client.submit(request, call.token, deadline):
            case contract.Accepted(ref=ref, cost_estimate=cost):
                # The webhook is expected; a slow poll is the net below it.
                return longtake.Submitted(external_ref=ref, poll_after_seconds=15, provider_cost=cost)
            case other:
                return await speech_acts.submitted(other, self.outsiders)


def media_of(given: Mapping[str, Any]) -> dict[str, str]:
    """Media keys of the composition and the objects they stand for."""
    media = {
        f"clip-{number}": artifact["object_key"] for number, artifact in enumerate(given["clips"], start=1)
    }
    for name in ("narration", "music", "logo", "product"):
        if given.get(name) is not None:
            media[name] = given[name]["object_key"]
    return media
