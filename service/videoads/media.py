"""The media of an ad, by the place that each has in it: `scene:2`, `voice`, `music`. Read out of what runs recorded.

Pure. An editor keeps the newest of each, makes a film of them (`render_input` of editor.render@1), and asks whether a film
is still made of them (`videoads.freshness`).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from longtake import InvalidInput, ProblemError
from videoads.workflows.film_export import Told

__all__ = ["Medium", "media_made", "render_input"]

SCENE = re.compile(r"(?:scene\.generate|scene\.select|scene\.run|clip\.generate|scenes):([1-9][0-9]*)\Z")
SOUNDS = {"narration.generate": ("voice", "narration"), "music.generate": ("music", "music")}


class Medium(msgspec.Struct, frozen=True, kw_only=True):
    """One medium in its place."""

    slot: str
    artifact: Mapping[str, Any]
    result: Mapping[str, Any] = {}
    """What was said of it: anchors of a clip, timings of a narration."""

    @property
    def sha256(self) -> str:
        """The digest of its bytes."""
        return str(self.artifact["sha256"])


def media_made(history: Iterable[Told]) -> dict[str, Medium]:
    """What a run made, by place: of any workflow that generates scenes, voice or music; the last of each."""
    found: dict[str, Medium] = {}
    for event in history:
        if event.type != "step_succeeded":
            continue
        slot, name = _place(event.fields["step"])
        files = {item["name"]: item for item in event.fields.get("artifacts", ())}
        if slot is None or name not in files:
            continue
        result = event.fields.get("result", {})
        if "run_id" in result:  # another run made it, and what it said stands one level deeper
            result = result.get("result", {})
        found[slot] = Medium(slot=slot, artifact=files[name], result=result)
    return found


def render_input(brief: Mapping[str, Any], media: Mapping[str, Medium]) -> dict[str, Any]:
    """The input of editor.render@1 for a brief and the media of its places. InvalidInput names those that are missing."""
    slots = [f"scene:{number}" for number in range(1, len(brief["scenes"]) + 1)]
    spoken = ["voice"] if brief.get("narration") is not None else []
    missing = [slot for slot in (*slots, "music", *spoken) if slot not in media]
    if missing:
        raise InvalidInput(
            tuple(ProblemError(f"/{slot}", "is missing", "give a run that made it") for slot in missing)
        )
    given: dict[str, Any] = {
        "scenes": [
            {"clip": dict(media[slot].artifact), "anchors": media[slot].result.get("anchors", [])}
            for slot in slots
        ],
        "music": dict(media["music"].artifact),
    }
    if spoken:
        given["narration"] = dict(media["voice"].artifact)
        given["timings"] = dict(media["voice"].result)
    return {"brief": dict(brief), "media": given}


def _place(step: str) -> tuple[str | None, str]:
    scene = SCENE.match(step)
    if scene is not None:
        return f"scene:{scene[1]}", "clip"
    return SOUNDS.get(step, (None, ""))
