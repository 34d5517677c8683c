"""Clips and stills: submitted, polled, looked up by our own id."""

import tempfile
from pathlib import Path
from typing import Any, ClassVar

from longtake import Call, Outcome
from videoads.activities import speech_acts
from videoads.activities.provider_work import ProviderWork
from videoads.providers import contract
from videoads.providers.clips import ClipsClient


class ClipGenerate(ProviderWork[ClipsClient]):
    """A moving shot from a prompt. Input: {shot, product?: artifact}."""

    name = "clip.generate@1"
    medium = "clip"
    media_types: ClassVar[tuple[str, ...]] = ("video/mp4", "video/webm")

    async def provider(self) -> ClipsClient:
        """The clip provider."""
        return (await self.outsiders.clients()).clips

    async def execute(self, call: Call) -> Outcome:
        """Offer the task once."""
        client = await self.client(call)
        request: dict[str, Any] = {"shot": call.input["shot"]}
        product = call.input.get("product")
        if product is not None:
            with tempfile.TemporaryDirectory(prefix="videoads-") as folder:
                path = Path(folder) / "product"
                await call.artifacts.fetch(product["object_key"], path)
                request["product_picture_sha256"] = await client.upload(path)
        deadline = speech_acts.deadline_in(speech_acts.SUBMIT_SECONDS_MAX)
        return await speech_acts.submitted(await client.submit(request, call.token, deadline), self.outsiders)

    def result(self, report: contract.Document) -> dict[str, object]:
        """The set piece, what is to be said of it, and where call-outs may point, in thousandths."""
        anchors = report.get("anchors") or []
        return {
            "set_piece": str(report.get("set_piece", "")),
            "note": str(report.get("note", "")),
            "anchors": [[round(x * 1000), round(y * 1000)] for x, y in anchors],
        }


class StillGenerate(ClipGenerate):
    """One picture from a prompt."""

    name = "still.generate@1"
    medium = "still"
    media_types = ("image/png", "image/jpeg", "image/webp")

    async def provider(self) -> ClipsClient:
        """The still provider, which speaks like the clip provider."""
        return (await self.outsiders.clients()).stills

    def result(self, report: contract.Document) -> dict[str, object]:
        """Nothing is needed of a still but the picture."""
        return {}
