"""film.takes@1: many stills and clips in one run, each on its own, for a film of a given number of scenes.

The shape of GenFlick's incident (G01): thirty scenes are 31 stills and 30 clips, 61 jobs of one command.
"""

from collections.abc import Mapping
from typing import Any

from longtake import ExpectedArtifact, InvalidInput, Plan, ProblemError, Retry, Step

POLICY: dict[str, Any] = {
    "still_price_credits": 1,
    "clip_price_credits": 2,
    "clip_model": "synthetic-shot-1",
    "still_model": "synthetic-still-1",
    "max_parallel": 8,
    "retry_first_delay_ms": 200,
}
SCENES_MAX = 100
PALETTE = {
    "background": "#10202b",
    "surface": "#dfe8ec",
    "ink": "#0c171f",
    "accent": "#d98032",
    "light": "#fff1d6",
}


def build(given: Any, policy: Mapping[str, Any]) -> Plan:
    """Plan {"scenes": n}: one still a scene and one for the closing card, one clip a scene."""
    scenes = given.get("scenes") if isinstance(given, dict) else None
    if not isinstance(scenes, int) or isinstance(scenes, bool) or not 1 <= scenes <= SCENES_MAX:
        raise InvalidInput(
            (ProblemError("/scenes", f"is {scenes!r}", f"give a whole number from 1 to {SCENES_MAX}"),)
        )
    retry = Retry(max_attempts=3, first_delay_ms=policy["retry_first_delay_ms"])

    def shot(number: int) -> dict[str, Any]:
        return {
            "prompt": f"scene {number} of {scenes}, soft moving shapes",
            "frames": 24,
            "fps": 30,
            "width": 90,
            "height": 160,
            "seed": 7,
            "palette": PALETTE,
            "title": "takes",
        }

    return (
        Plan(scopes=("full_generation",), max_parallel=policy["max_parallel"])
        .fan_out(
            "stills",
            range(1, scenes + 2),
            lambda number, _: Step(
                f"still.generate:{number}",
                activity="still.generate@1",
                phase="stills",
                label=f"Still {number} of {scenes + 1}",
                input={"shot": shot(number), "model": policy["still_model"]},
                price=policy["still_price_credits"],
                retry=retry,
                artifacts=(ExpectedArtifact("still", "still"),),
            ),
        )
        .fan_out(
            "clips",
            range(1, scenes + 1),
            lambda number, _: Step(
                f"clip.generate:{number}",
                activity="clip.generate@1",
                phase="clips",
                label=f"Clip {number} of {scenes}",
                input={"shot": shot(number), "model": policy["clip_model"]},
                price=policy["clip_price_credits"],
                retry=retry,
                artifacts=(ExpectedArtifact("clip", "clip"),),
            ),
        )
    )
