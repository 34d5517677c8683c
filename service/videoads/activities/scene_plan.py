"""The scenes of a script as orders for clips: what the editor's autopilot grows by. Free, and nobody outside is asked."""

import msgspec

import longtake
from longtake import Activity, Call, Outcome
from videoads.script import Script
from videoads.script_requests import shot_requests


class ScenesPlan(Activity):
    """Input: {script, product?, model, retry_first_delay_ms}. Result: {scenes: [{shot, model, product?}], retry_first_delay_ms}."""

    name = "scenes.plan@1"
    calls_out = False
    pool = "short"

    async def execute(self, call: Call) -> Outcome:
        """One order a shot; the product's picture goes where the script shows it."""
        script = msgspec.convert(call.input["script"], Script)
        product = call.input.get("product")
        scenes = [
            {
                "shot": request,
                "model": call.input["model"],
                **({"product": product} if product is not None and shot.shows_product else {}),
            }
            for shot, request in zip(script.shots, shot_requests(script), strict=True)
        ]
        return longtake.Succeeded(
            result={"scenes": scenes, "retry_first_delay_ms": call.input["retry_first_delay_ms"]}
        )
