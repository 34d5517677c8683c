"""Narration and music: the request is held open until the sound is its answer."""

from abc import abstractmethod
from pathlib import Path
from typing import Any

from longtake import Call, Outcome
from videoads.activities import speech_acts
from videoads.activities.provider_work import ProviderWork
from videoads.providers import contract
from videoads.providers.held import HeldClient


class HeldWork(ProviderWork[HeldClient]):
    """A sound that comes back inside the request."""

    media_types = ("audio/wav", "audio/x-wav")

    @abstractmethod
    def request(self, call: Call) -> dict[str, Any]:
        """What the provider is asked for."""

    async def execute(self, call: Call) -> Outcome:
        """Ask once and wait for the sound."""
        client = await self.client(call)
        deadline = speech_acts.deadline_in(speech_acts.HELD_SECONDS_MAX)
        match await client.submit(self.request(call), call.token, deadline):
            case contract.Completed() as done:
                return await self.kept(
                    done.content,
                    done.ref,
                    call,
                    media_type=done.media_type,
                    cost=done.cost,
                    report=done.report,
                )
            case other:
                return await speech_acts.submitted(other, self.outsiders)


class NarrationGenerate(HeldWork):
    """Spoken phrases, each inside its window. Input: {speech}."""

    name = "narration.generate@1"
    medium = "narration"

    async def provider(self) -> HeldClient:
        """The voice provider."""
        return (await self.outsiders.clients()).voice

    def request(self, call: Call) -> dict[str, Any]:
        """Lines with their windows."""
        return {"speech": call.input["speech"]}

    async def kept(
        self,
        content: Path | bytes,
        ref: str,
        call: Call,
        *,
        media_type: str,
        cost: int,
        report: contract.Document,
    ) -> Outcome:
        """A narration is of no use without its timings: an answer that lost them is completed from the history."""
        if not report.get("phrases"):
            client = await self.client(call)
            match await client.poll(ref):
                case contract.Succeeded(report=known):
                    report = known
                case other:
                    return speech_acts.polled(other)
        return await super().kept(content, ref, call, media_type=media_type, cost=cost, report=report)

    def result(self, report: contract.Document) -> dict[str, object]:
        """When each phrase is heard, in samples."""
        return {
            "rate": int(report.get("rate", 48000)),
            "phrases": [
                {
                    "text": p["text"],
                    "start_sample": int(p["start_sample"]),
                    "end_sample": int(p["end_sample"]),
                }
                for p in report.get("phrases", [])
            ],
        }


class MusicGenerate(HeldWork):
    """A composed bed. Input: {plan}."""

    name = "music.generate@1"
    medium = "music"

    async def provider(self) -> HeldClient:
        """The music provider."""
        return (await self.outsiders.clients()).music

    def request(self, call: Call) -> dict[str, Any]:
        """The music plan."""
        return {"plan": call.input["plan"]}
