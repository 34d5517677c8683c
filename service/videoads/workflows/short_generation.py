"""short.generation@1: script -> {N clips, narration, music} in parallel -> composition -> film -> verified delivery.

N is the number of scenes of the brief. 15 credits, prepaid, given back whole when the delivery contract fails.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from longtake import ExpectedArtifact, InvalidInput, Plan, ProblemError, Retry, Step, group, ref
from videoads.brief import BriefError, parse_brief

POLICY: dict[str, Any] = {
    "price_credits": 15,
    "clip_model": "synthetic-shot-1",
    "voice_model": "synthetic-voice-1",
    "music_model": "synthetic-music-1",
    "render_model": "synthetic-render-1",
    "max_parallel": 8,
    "retry_first_delay_ms": 1000,
}


def build(given: Any, policy: Mapping[str, Any]) -> Plan:
    """Plan one short from {"brief": ...}. InvalidInput lists everything that is wrong with the brief."""
    brief_document = given.get("brief") if isinstance(given, dict) else None
    if not isinstance(brief_document, dict):
        raise InvalidInput((ProblemError("/brief", "is missing", "give the brief as an object"),))
    try:
        brief = parse_brief(msgspec.json.encode(brief_document), base=None)
    except BriefError as error:
        raise InvalidInput(
            tuple(ProblemError(f"/brief{p.pointer}", p.message, p.remedy) for p in error.problems)
        ) from error
    scenes = brief.scenes
    narrated = brief.narration is not None
    sounds = 2 if narrated else 1
    retry = Retry(max_attempts=3, first_delay_ms=policy["retry_first_delay_ms"])
    plan = Plan(
        scopes=(
            "voice",
            "music",
            "render",
            "full_generation",
            *(f"scene:{n}" for n in range(1, len(scenes) + 1)),
        ),
        cost_cap=policy["price_credits"],
        max_parallel=policy["max_parallel"],
        delivers="delivery.verify",
    ).step(
        "script.write",
        activity="script.write@1",
        phase="script",
        label="Writing the script",
        input={"brief": brief_document},
    )
    plan = plan.fan_out(
        "clips",
        scenes,
        lambda scene, n: Step(
            f"clip.generate:{n}",
            activity="clip.generate@1",
            phase="scenes",
            label=f"Generating scene {n} of {len(scenes)}",
            input={
                "shot": ref("script.write", f"/result/shots/{n - 1}"),
                "model": policy["clip_model"],
                **(
                    {"product": ref("script.write", "/artifacts/product")}
                    if brief.product_picture is not None and scene.shows_product
                    else {}
                ),
            },
            price=1,
            retry=retry,
            artifacts=(ExpectedArtifact("clip", "clip"),),
        ),
    )
    if narrated:
        plan = plan.step(
            "narration.generate",
            activity="narration.generate@1",
            phase="sound",
            label="Speaking the narration",
            input={"speech": ref("script.write", "/result/speech"), "model": policy["voice_model"]},
            price=1,
            retry=retry,
            artifacts=["narration"],
        )
    plan = plan.step(
        "music.generate",
        activity="music.generate@1",
        phase="sound",
        label="Composing the music",
        input={"plan": ref("script.write", "/result/music"), "model": policy["music_model"]},
        price=1,
        retry=retry,
        artifacts=["music"],
    )
    spoken = (
        {
            "narration": ref("narration.generate", "/artifacts/narration"),
            "timings": ref("narration.generate", "/result"),
        }
        if narrated
        else {}
    )
    pictures = {
        name: ref("script.write", f"/artifacts/{name}")
        for name, picture in (("logo", brief.logo), ("product", brief.product_picture))
        if picture is not None
    }
    return (
        plan.step(
            "render.prepare",
            activity="render.prepare@1",
            phase="render",
            label="Setting words and pictures",
            input={
                "script": ref("script.write", "/result/script"),
                "clips": ref(group("clips"), "/artifacts/clip"),
                "anchors": ref(group("clips"), "/result/anchors"),
                "music": ref("music.generate", "/artifacts/music"),
                **spoken,
                **pictures,
            },
            artifacts=["composition"],
        )
        .step(
            "render.submit",
            activity="render.submit@1",
            phase="render",
            label="Rendering the film",
            input={
                "composition": ref("render.prepare", "/artifacts/composition"),
                "media": ref("render.prepare", "/result/media"),
                "model": policy["render_model"],
            },
            price=policy["price_credits"] - len(scenes) - sounds,
            retry=retry,
            artifacts=["film"],
        )
        .step(
            "delivery.verify",
            activity="delivery.verify@1",
            phase="delivery",
            label="Measuring the delivery",
            input={
                "film": ref("render.submit", "/artifacts/film"),
                "composition": ref("render.prepare", "/artifacts/composition"),
                "media": ref("render.prepare", "/result/media"),
            },
            artifacts=["ad", "poster", "contact", "inspection"],
            on_exhausted="fail",
        )
    )
