"""The moka pot: an eight-sided lathe body with a handle and a spout that go round with it."""

import math

from videoads.renderer.shots.canvas import Canvas
from videoads.renderer.shots.colour import Rgb, mix
from videoads.renderer.shots.lathe import Lathe, Section
from videoads.renderer.shots.stage import Point, Stage

HEIGHT = 640.0
SLICES = 7
SECTIONS = [
    Section(0, 12, 10, 21, 0, 0.3, 0.5),
    Section(12, 36, 21, 15, 0, 0.3, 0.5, 6),
    Section(36, 48, 13, 22, 0, 0.6, 0.8),
    Section(48, 100, 26, 118, 8, 1.04, 1.0, 5),
    Section(100, 112, 124, 124, 8, 1.12, 1.0),
    Section(112, 338, 122, 90, 8, 1.0, 1.0),
    Section(338, 352, 92, 104, 0, 0.8, 1.0),
    Section(352, 384, 106, 106, 0, 0.98, 1.0),
    Section(384, 396, 102, 98, 0, 0.7, 1.0),
    Section(396, 616, 99, 136, 8, 0.97, 1.0),
    Section(616, 638, 138, 136, 8, 0.84, 0.9),
]
HANDLE: list[Point] = [
    (112, 128), (150, 118), (206, 118), (232, 136), (236, 170), (224, 262), (214, 352), (204, 392), (184, 398),
    (178, 380), (186, 300), (196, 200), (196, 170), (182, 160), (150, 162), (114, 172),
]  # fmt: skip
SPOUT: list[Point] = [(108, 104), (160, 96), (166, 102), (128, 176), (104, 210)]
VALVE = (118.0, 520.0)


class MokaPot:
    """Paints the pot standing on a point, turned by an angle."""

    def __init__(self, stage: Stage, size: float = 1.0) -> None:
        self.size = size
        colour = stage.colour
        shadow = mix(colour("dark"), (30, 30, 34), 0.45)
        metal, shine = (
            mix((166, 162, 160), colour("light"), 0.12),
            mix((255, 252, 246), colour("light"), 0.08),
        )
        self.lathe = Lathe(
            SECTIONS,
            density=stage.scale * size * 1.05,
            colours=(shadow, metal, shine),
            bounce=(colour("accent", "light", 0.25), colour("light")),
        )
        self.grip = mix(colour("dark"), (26, 22, 22), 0.5)
        self.sheen = mix(self.grip, colour("light"), 0.26)
        self.metal, self.shine, self.shadow = metal, shine, shadow

    def paint(self, canvas: Canvas, x: float, y: float, angle: float, *, depth: float = 1.0) -> None:
        """The pot's foot is at (x, y); at angle 0 the handle points right, at pi / 2 towards the eye."""
        parts = sorted(
            [(math.sin(angle), "handle"), (math.sin(angle + math.pi), "spout"), (math.sin(angle + 2.3), "valve"),
             (0.0, "body")]
        )  # fmt: skip
        top = y - HEIGHT * self.size
        for _, part in parts:
            if part == "body":
                sprite = self.lathe.turned(angle + math.pi / 8)
                canvas.draw(sprite, x, top, anchor=(0.5, 0), size=self.size, depth=depth)
            elif part == "handle":
                self._slab(canvas, HANDLE, x, top, angle, 15.0, (self.grip, self.sheen), depth)
            elif part == "spout":
                self._slab(canvas, SPOUT, x, top, angle + math.pi, 22.0, (self.shadow, self.metal), depth)
            elif math.sin(angle + 2.3) > 0:
                self._valve(canvas, x, top, angle + 2.3, depth)

    def _slab(
        self, canvas: Canvas, profile: list[Point], x: float, top: float, angle: float, half: float,
        tones: tuple[Rgb, Rgb], depth: float,
    ) -> None:  # fmt: skip
        """A flat part standing out of the axis: slices of its profile from the far side to the near one."""
        cosine, sine = math.cos(angle), math.sin(angle)
        side = math.copysign(1.0, cosine)
        for slice_ in range(SLICES):
            place = (slice_ / (SLICES - 1) * 2 - 1) * side
            shift = -half * place * sine
            near = (place * side + 1) / 2
            points = [
                (x + self.size * (r * cosine + shift), top + self.size * (v - 0.07 * r * sine))
                for r, v in profile
            ]
            canvas.polygon(points, mix(tones[0], tones[1], near * (0.45 + 0.35 * abs(sine))), depth=depth)

    def _valve(self, canvas: Canvas, x: float, top: float, angle: float, depth: float) -> None:
        across, down = x + self.size * VALVE[0] * math.cos(angle), top + self.size * VALVE[1]
        for radius, tone in ((13.0, self.shadow), (11.0, self.metal), (6.0, self.shine), (4.0, self.metal)):
            wide, high = radius * self.size * max(0.2, math.sin(angle)), radius * self.size
            ring = [
                (across + wide * math.cos(a * math.tau / 20), down + high * math.sin(a * math.tau / 20))
                for a in range(20)
            ]
            canvas.polygon(ring, tone, depth=depth)
