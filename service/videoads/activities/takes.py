"""Takes of one scene: the first good ones are laid side by side for a person, and the one that was chosen is taken."""

import longtake
from longtake import Activity, Artifact, Call, Outcome


class TakesShortlist(Activity):
    """Input: {clips: [artifact], anchors: [[x, y]], keep}. Result: {takes: [{clip, anchors}]}; artifacts take-1, take-2 ..."""

    name = "takes.shortlist@1"
    calls_out = False
    pool = "short"

    async def execute(self, call: Call) -> Outcome:
        """Keep so many, under the numbers by which a person chooses."""
        takes = [
            {"clip": clip, "anchors": anchors}
            for clip, anchors in zip(call.input["clips"], call.input["anchors"], strict=True)
        ][: call.input["keep"]]
        return longtake.Succeeded(
            result={"takes": takes},
            artifacts=tuple(
                Artifact(**{**take["clip"], "name": f"take-{number}"})
                for number, take in enumerate(takes, start=1)
            ),
        )


class TakeSelect(Activity):
    """Input: {takes, choice}: the number of one of them. Result: {anchors, take}; artifact clip."""

    name = "take.select@1"
    calls_out = False
    pool = "short"

    async def execute(self, call: Call) -> Outcome:
        """Hand on the chosen one under the name by which every scene hands on its clip."""
        takes, choice = call.input["takes"], call.input["choice"]
        if not 1 <= choice <= len(takes):
            return longtake.Failed(
                error_class="invalid_input",
                origin="request",
                message=f"there is no take {choice}: choose 1 to {len(takes)}",
            )
        chosen = takes[choice - 1]
        return longtake.Succeeded(
            result={"anchors": chosen["anchors"], "take": choice}, artifacts=(Artifact(**chosen["clip"]),)
        )
