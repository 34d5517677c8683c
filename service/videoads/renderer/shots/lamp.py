"""The bicycle lamp: a ribbed barrel with a lens, drawn at any angle from its side to its face."""

import math

from videoads.renderer.shots.canvas import Canvas, Stops
from videoads.renderer.shots.colour import Rgb, mix
from videoads.renderer.shots.sprite import soft_disc
from videoads.renderer.shots.stage import Point, Stage

RADIUS, LENGTH = 150.0, 330.0
RIBS = 6
ARC = 22


class Lamp:
    """Paints the lamp about its middle."""

    def __init__(self, stage: Stage, tones: dict[str, Rgb], size: float = 1.0) -> None:
        self.size, self.tones = size, tones
        self.lens = stage.svg("lens", size=0.84 * size, extra=tones)
        self.accent, self.light = stage.colour("accent"), stage.colour("light")
        night, haze = tones["night"], tones["haze"]
        self.barrel: Stops = [
            (0, mix(haze, self.light, 0.5)), (0.05, mix(night, haze, 0.75)), (0.22, mix(night, haze, 0.32)),
            (0.5, mix(night, haze, 0.1)), (0.8, night), (0.94, mix(night, self.accent, 0.22)), (1, mix(night, self.accent, 0.55)),
        ]  # fmt: skip
        self.groove: Stops = [
            (0, mix(night, haze, 0.3)),
            (0.3, mix(night, (0, 0, 0), 0.3)),
            (1, mix(night, (0, 0, 0), 0.6)),
        ]
        self.ridge: Stops = [(0, mix(haze, self.light, 0.75)), (0.12, mix(night, haze, 0.85)), (0.5, mix(night, haze, 0.25)),
                             (1, mix(night, self.accent, 0.4))]  # fmt: skip

    def paint(
        self, canvas: Canvas, x: float, y: float, angle: float, *, on: float = 0.0, depth: float = 1.0
    ) -> Point:
        """At angle 0 the lamp is seen from its side, at pi / 2 it looks at the eye. Gives the lens's middle."""
        cosine, sine = math.cos(angle), max(0.04, math.sin(angle))
        size = self.size
        half = LENGTH / 2 * size * cosine
        front, back = x + half, x - half
        radius, rear = RADIUS * size, RADIUS * 0.8 * size
        self._mount(canvas, x, y, cosine, sine, depth)
        self._hull(canvas, back, rear, front, radius, y, sine, self.barrel, depth)
        for rib in range(RIBS):
            place = -0.4 + 0.58 * rib / (RIBS - 1)
            wide = RADIUS * (0.9 + 0.1 * (place + 0.5)) * size * (0.82 + 0.2 * (place + 0.5))
            at = x + place * LENGTH * size * cosine
            self._band(canvas, at, wide, y, sine, 13 * size * cosine, self.groove, depth)
            self._band(
                canvas, at + 13 * size * cosine, wide * 1.01, y, sine, 7 * size * cosine, self.ridge, depth
            )
        self._hull(
            canvas,
            front - 46 * size * cosine,
            radius * 0.99,
            front,
            radius * 1.05,
            y,
            sine,
            self.barrel,
            depth,
        )
        self._button(canvas, x + 40 * size * cosine, y - radius * 0.98, cosine, sine, on, depth)
        lens = 2.1 * radius / self.lens.width
        canvas.draw(self.lens, front, y, size=(lens * sine, lens), depth=depth)
        if on > 0:
            wide = radius * 2.0
            canvas.light(soft_disc(0.9), mix(self.light, (255, 255, 255), 0.6), front, y, wide * sine * 1.06, wide * 1.06,
                         depth=depth, strength=on)  # fmt: skip
        return front, y

    def _ellipse(
        self, x: float, y: float, wide: float, high: float, first: float, last: float
    ) -> list[Point]:
        return [(x + wide * math.cos(first + (last - first) * s / ARC), y + high * math.sin(first + (last - first) * s / ARC))
                for s in range(ARC + 1)]  # fmt: skip

    def _hull(self, canvas: Canvas, back: float, rear: float, front: float, radius: float, y: float, sine: float,
              fill: Stops, depth: float) -> None:  # fmt: skip
        half = math.pi / 2
        near = self._ellipse(front, y, radius * sine, radius, -half, half)
        far = self._ellipse(back, y, rear * sine, rear, half, 3 * half)
        canvas.polygon(near + far, fill, depth=depth)

    def _band(self, canvas: Canvas, x: float, radius: float, y: float, sine: float, thick: float, fill: Stops,
              depth: float) -> None:  # fmt: skip
        half = math.pi / 2
        arc = self._ellipse(x, y, radius * sine, radius, half, 3 * half)
        canvas.polygon(arc + [(a + thick, b) for a, b in reversed(arc)], fill, depth=depth)

    def _button(
        self, canvas: Canvas, x: float, y: float, cosine: float, sine: float, on: float, depth: float
    ) -> None:
        size = self.size
        wide, high = 40 * size * (0.4 + 0.6 * cosine), 12 * size
        canvas.polygon(
            self._ellipse(x, y + 3, wide * 1.2, high * 1.35, 0, math.tau), self.tones["night"], depth=depth
        )
        canvas.polygon(
            self._ellipse(x, y - 1, wide, high, 0, math.tau),
            mix(self.accent, self.light, 0.5 * on),
            depth=depth,
        )
        canvas.glow(self.accent, x, y, 170 * size, soft_disc(2.0), depth=depth, strength=0.25 + 0.5 * on)

    def _mount(self, canvas: Canvas, x: float, y: float, cosine: float, sine: float, depth: float) -> None:
        size = self.size
        wide = (70 * cosine + 46 * sine) * size
        top, foot = y + RADIUS * 0.8 * size, y + RADIUS * 1.52 * size
        night, haze = self.tones["night"], self.tones["haze"]
        stem: Stops = [(0, night), (0.6, mix(night, haze, 0.24)), (1, mix(night, self.accent, 0.3))]
        canvas.polygon(
            [(x - wide, top), (x + wide, top), (x + wide * 0.72, foot), (x - wide * 0.72, foot)],
            stem,
            depth=depth,
        )
        canvas.polygon([(x - wide * 1.25, foot - 6), (x + wide * 1.25, foot - 6), (x + wide * 1.25, foot + 34 * size),
                        (x - wide * 1.25, foot + 34 * size)],
                       [(0, mix(haze, self.light, 0.3)), (0.16, mix(night, haze, 0.4)), (1, night)], depth=depth)  # fmt: skip
