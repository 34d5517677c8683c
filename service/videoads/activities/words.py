"""The script: the brief laid out in time. Free, repeatable, and nobody outside is asked."""

from typing import Any

import msgspec

import longtake
from longtake import Activity, Artifact, Call, Outcome
from videoads.brief import BriefError, parse_brief
from videoads.script import write_script
from videoads.script_requests import music_request, shot_requests, speech_request

ENDINGS = {"image/svg+xml": ".svg", "image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp"}


class ScriptRevise(Activity):
    """Input: {brief, before}. Result: {script, changed, notes}: the script as this turn leaves it."""

    name = "script.revise@1"
    calls_out = False
    pool = "short"

    async def execute(self, call: Call) -> Outcome:
        """Write it anew, and say which parts of it are different."""
        script = _script_of(call.input["brief"])
        try:
            old = _script_of(call.input["before"])
        except BriefError:
            old = {}  # the turn mends a brief that could not be written
        return longtake.Succeeded(
            result={
                "script": script,
                "changed": sorted(name for name, value in script.items() if old.get(name) != value),
                "notes": script["notes"],
            }
        )


class ScriptWrite(Activity):
    """Input: {brief}. Result: {script, shots, speech, music, notes}; artifacts logo and product when there are any."""

    name = "script.write@1"
    calls_out = False
    pool = "short"

    async def execute(self, call: Call) -> Outcome:
        """Write it."""
        brief = parse_brief(msgspec.json.encode(call.input["brief"]), base=None)
        script = write_script(brief)
        artifacts: list[Artifact] = []
        for name, picture in (("logo", brief.logo), ("product", brief.product_picture)):
            if picture is not None:
                artifacts.append(
                    await call.artifacts.put(
                        picture.content(), name=name, kind=name, content_type=picture.media_type
                    )
                )
        document: dict[str, Any] = msgspec.to_builtins(script)
        return longtake.Succeeded(
            result={
                "script": document,
                "shots": shot_requests(script),
                "speech": speech_request(script),
                "music": music_request(script),
                "notes": list(script.notes),
            },
            artifacts=tuple(artifacts),
        )


def _script_of(brief: Any) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(
        write_script(parse_brief(msgspec.json.encode(brief), base=None))
    )
    return document
