"""editor.autopilot@1: a whole ad from a brief: script, as many clips as it has scenes, voice, music, film, delivery.

The clips are an expansion: the plan grows by what the script says. Each step is paid when it begins, and the run owns
everything that the ad is made of, by name.
"""

from collections.abc import Mapping
from typing import Any

from longtake import ExpectedArtifact, Plan, Retry, Step, group, ref
from videoads.workflows.editor_film import DELIVERS, with_film
from videoads.workflows.editor_order import every_scope, read_order

AUTOPILOT_POLICY: dict[str, Any] = {
    "clip_price_credits": 2,
    "voice_price_credits": 2,
    "music_price_credits": 2,
    "render_price_credits": 5,
    "clip_model": "synthetic-shot-1",
    "voice_model": "synthetic-voice-1",
    "music_model": "synthetic-music-1",
    "render_model": "synthetic-render-1",
    "max_parallel": 8,
    "retry_first_delay_ms": 1000,
}


def build(given: Any, policy: Mapping[str, Any]) -> Plan:
    """Plan {"brief"}."""
    order = read_order(given)
    brief, narrated = order.brief, order.brief.narration is not None
    retry = Retry(max_attempts=3, first_delay_ms=policy["retry_first_delay_ms"])
    pictures = {
        name: ref("script.write", f"/artifacts/{name}")
        for name, picture in (("logo", brief.logo), ("product", brief.product_picture))
        if picture is not None
    }
    fixed = policy["music_price_credits"] + policy["render_price_credits"]
    fixed += policy["voice_price_credits"] if narrated else 0
    plan = (
        Plan(
            scopes=order.scopes(*every_scope(len(brief.scenes))),
            billing="pay_as_you_go",
            prices={"clip": policy["clip_price_credits"]},
            cost_cap=fixed + policy["clip_price_credits"] * len(brief.scenes),
            max_parallel=policy["max_parallel"],
            delivers=DELIVERS,
        )
        .step(
            "script.write",
            activity="script.write@1",
            phase="script",
            label="Writing the script",
            input={"brief": order.document},
            artifacts=list(pictures),
        )
        .expand(
            "scenes",
            activity="scenes.plan@1",
            fills="clips",
            expands_to=["clip.generate@1"],
            phase="scenes",
            label="Planning the scenes",
            input={
                "script": ref("script.write", "/result/script"),
                "model": policy["clip_model"],
                "retry_first_delay_ms": policy["retry_first_delay_ms"],
                **({"product": pictures["product"]} if "product" in pictures else {}),
            },
        )
    )
    if narrated:
        plan = plan.step(
            "narration.generate",
            activity="narration.generate@1",
            phase="sound",
            label="Speaking the narration",
            input={"speech": ref("script.write", "/result/speech"), "model": policy["voice_model"]},
            price=policy["voice_price_credits"],
            retry=retry,
            artifacts=["narration"],
        )
    plan = plan.step(
        "music.generate",
        activity="music.generate@1",
        phase="sound",
        label="Composing the music",
        input={"plan": ref("script.write", "/result/music"), "model": policy["music_model"]},
        price=policy["music_price_credits"],
        retry=retry,
        artifacts=["music"],
    )
    spoken = {
        "narration": ref("narration.generate", "/artifacts/narration"),
        "timings": ref("narration.generate", "/result"),
    }
    return with_film(
        plan,
        {
            "clips": ref(group("clips"), "/artifacts/clip"),
            "anchors": ref(group("clips"), "/result/anchors"),
            "music": ref("music.generate", "/artifacts/music"),
            **(spoken if narrated else {}),
            **pictures,
        },
        policy,
    )


def scenes_of(result: dict[str, Any]) -> list[Step]:
    """The steps that the planned scenes become, in the order of the film."""
    scenes = result["scenes"]
    return [
        Step(
            f"scenes:{number}",
            activity="clip.generate@1",
            phase="scenes",
            label=f"Generating scene {number} of {len(scenes)}",
            input=scene,
            price_key="clip",
            retry=Retry(max_attempts=3, first_delay_ms=result["retry_first_delay_ms"]),
            artifacts=(ExpectedArtifact("clip", "clip"),),
        )
        for number, scene in enumerate(scenes, start=1)
    ]
