"""Daylight: the sky, sun and clouds that the service's pieces share."""

import math

from PIL import Image

from videoads.renderer.shots.canvas import Canvas
from videoads.renderer.shots.colour import mix
from videoads.renderer.shots.sprite import crisp_disc, gradient, soft_disc
from videoads.renderer.shots.stage import Stage

WHITE = (255, 255, 255)
CLEAR_SKY = (38, 150, 245)
CLOUDS = 5


class Daylight:
    """A bright sky in the brand's colour with a sun in its second one."""

    def __init__(self, stage: Stage, horizon: float, salt: int) -> None:
        self.stage = stage
        accent = mix(stage.colour("accent"), CLEAR_SKY, 0.4)
        at = stage.place_in_backdrop(0, horizon)[1]
        pale = mix(accent, WHITE, 0.86)
        stops = [(0, mix(accent, WHITE, 0.3)), (at * 0.55, mix(accent, WHITE, 0.58)), (at, pale), (1, mix(pale, stage.colour("light"), 0.2))]  # fmt: skip
        self.sky: Image.Image = gradient(*stage.backdrop_pixels(), stops, seed=salt)
        self.cloud = stage.svg("cloud", size=1.2)
        self.places = stage.random(salt).random((CLOUDS, 3))

    def paint(
        self, canvas: Canvas, seconds: float, *, sun: tuple[float, float], rise: float = 1.0, clouds_at: float = 300.0
    ) -> None:  # fmt: skip
        """Sky, sun with turning rays, drifting clouds."""
        light = self.stage.colour("light")
        canvas.backdrop(self.sky, depth=0.1)
        x, y = sun
        canvas.glow(mix(light, WHITE, 0.4), x, y, 900 * rise, soft_disc(1.8), depth=0.12, strength=0.75)
        for ray in range(12):
            angle = seconds * 0.35 + ray * math.tau / 12
            first, last = 112 * rise, (150 + 16 * math.sin(seconds * 3 + ray * 2)) * rise
            c, s = math.cos(angle), math.sin(angle)
            canvas.polygon([(x + c * first - s * 6, y + s * first + c * 6), (x + c * last - s * 3, y + s * last + c * 3),
                            (x + c * last + s * 3, y + s * last - c * 3), (x + c * first + s * 6, y + s * first - c * 6)],
                           mix(light, WHITE, 0.25), depth=0.12, opacity=0.9)  # fmt: skip
        canvas.shade(
            crisp_disc(200, 0, 0.02), mix(light, WHITE, 0.12), x, y, 184 * rise, 184 * rise, depth=0.12
        )
        left, _, right, _ = self.stage.span()
        reach = right - left + 500
        for number, (a, b, size) in enumerate(self.places):
            near = 0.5 + 0.5 * size
            across = left - 250 + (a * reach + number * reach / CLOUDS + seconds * (26 + 46 * near)) % reach
            canvas.draw(
                self.cloud,
                across,
                clouds_at + (b - 0.5) * 340,
                size=0.55 + 0.65 * near,
                depth=0.15 + 0.15 * near,
                opacity=0.92,
            )
