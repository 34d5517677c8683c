"""Night's colours: what the bicycle light's pieces share."""

from videoads.renderer.shots.colour import Rgb, mix
from videoads.renderer.shots.stage import Stage


def night_colours(stage: Stage) -> dict[str, Rgb]:
    """`night` (nearly black, blue), `haze` (what distance turns it into) and `beam` (the lamp's own light)."""
    night = mix(stage.colour("dark"), (5, 9, 22), 0.72)
    haze = mix((54, 84, 148), stage.colour("accent"), 0.06)
    return {"night": night, "haze": haze, "beam": mix(stage.colour("light"), (255, 250, 238), 0.45)}
