"""The pour, close: a stream falls from the spout, coffee rises in the glass and its crema with it."""

import math

import numpy as np

from videoads.renderer.shots.canvas import Camera, Canvas
from videoads.renderer.shots.colour import mix
from videoads.renderer.shots.easing import between, clamp, depart, smooth, span
from videoads.renderer.shots.sprite import blurred, crisp_disc, radial, soft_disc
from videoads.renderer.shots.stage import Point, Stage
from videoads.renderer.shots.steam import paint_steam

GLASS_X, GLASS_FOOT, GLASS_SIZE = 360.0, 1010.0, 1.18
MOUTH, TABLE = 400.0, 968.0
BOTTOM, TOP = 416.0, 120.0
BOKEH, DROPS, BUBBLES = 18, 14, 22


class EspressoPour:
    """Lights out of focus, table, glass, stream, crema, splashes, steam, a near leaf of light."""

    anchors: tuple[Point, ...] = ((300.0, 720.0), (380.0, 520.0))

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        colour = stage.colour
        width, height = stage.backdrop_pixels()
        room = [(0, mix(colour("accent"), colour("dark"), 0.34)), (0.5, mix(colour("accent"), colour("dark"), 0.66)),
                (1.0, mix(colour("dark"), (10, 6, 4), 0.35))]  # fmt: skip
        self.room = radial(width, height, room, centre=stage.place_in_backdrop(470, 520), reach=0.68, seed=8)
        wood = [(0, mix(colour("accent"), colour("dark"), 0.42)), (0.3, mix(colour("accent"), colour("dark"), 0.7)),
                (1, mix(colour("dark"), (8, 5, 3), 0.3))]  # fmt: skip
        self.table = stage.ground(TABLE, wood, seed=9)
        self.back, self.front = (
            stage.svg("glass_back", size=GLASS_SIZE),
            stage.svg("glass_front", size=GLASS_SIZE),
        )
        self.spout = stage.svg("spout")
        self.lights = stage.random(11).random((BOKEH, 5))
        self.drops = stage.random(12).random((DROPS, 4))
        self.bubbles = stage.random(13).random((BUBBLES, 3))
        self.near = blurred(stage.svg("bean"), 10 * stage.scale)
        self.coffee, self.deep = (
            mix((92, 44, 18), colour("accent"), 0.15),
            mix((30, 12, 5), colour("dark"), 0.4),
        )
        self.crema, self.crema_light = (
            mix((202, 138, 74), colour("light"), 0.18),
            mix((240, 196, 132), colour("light"), 0.3),
        )

    def camera(self, t: float) -> Camera:
        """Close in and sink with a slight drift."""
        eased = smooth(t)
        return Camera(between(-24, 22, eased), between(-26, 34, eased), between(1.02, 1.13, eased))

    def paint(self, canvas: Canvas, t: float, seconds: float) -> None:
        """Room, bokeh, glass back, liquid, stream, glass front, spout, steam."""
        colour = self.stage.colour
        canvas.backdrop(self.room, depth=0.25)
        canvas.ground(self.table, TABLE, depth=0.6)
        for x, y, size, hue, depth in self.lights:
            tint = colour("light", "accent", 0.25 + 0.6 * hue)
            wide = 60 + 130 * size
            beat = 0.2 + 0.14 * math.sin(seconds * (1.2 + hue) + x * 20)
            canvas.light(crisp_disc(160, 0.45, 0.07), tint, x * 860 - 70 + 14 * math.sin(seconds * 0.8 + y * 9),
                         120 + y * 760, wide, wide, depth=0.2 + 0.35 * depth, strength=beat)  # fmt: skip
        canvas.glow(
            colour("light"),
            470,
            560,
            900,
            soft_disc(1.8),
            depth=0.3,
            strength=0.34 + 0.05 * math.sin(seconds * 2),
        )
        canvas.shade(soft_disc(1.0), colour("black"), GLASS_X - 30, GLASS_FOOT - 2, 660, 110, opacity=0.75)
        canvas.draw(self.back, GLASS_X, GLASS_FOOT, anchor=(0.5, 0.95), size=GLASS_SIZE)
        fill = 0.04 + 0.86 * smooth(span(t, 0.04, 1.12)) / smooth(1.0)
        surface = between(BOTTOM, TOP, fill)
        self._liquid(canvas, surface, seconds, t)
        flow = smooth(span(t, 0.0, 0.07)) * (1 - 0.65 * smooth(span(t, 0.9, 1.0)))
        self._stream(canvas, self._down(surface), seconds, flow)
        self._splash(canvas, self._down(surface), seconds, flow)
        canvas.draw(self.front, GLASS_X, GLASS_FOOT, anchor=(0.5, 0.95), size=GLASS_SIZE)
        canvas.glow(colour("light"), GLASS_X + 60, GLASS_FOOT + 30, 420, soft_disc(2.0), strength=0.3)
        canvas.draw(self.spout, GLASS_X, MOUTH + 12, anchor=(0.5, 1.0), depth=1.06)
        paint_steam(canvas, GLASS_X - 70, self._down(surface) + 10, width=330, height=520, seconds=seconds,
                    colour=colour("pale", "white", 0.4), strength=0.28 + 0.3 * t)  # fmt: skip
        paint_steam(canvas, GLASS_X + 96, self._down(surface) + 16, width=300, height=420, seconds=seconds + 2.2, phase=2,
                    colour=colour("pale", "white", 0.4), strength=0.2 + 0.26 * t)  # fmt: skip
        canvas.draw(self.near, 90 - 50 * t, 1190, size=3.0, depth=1.9)
        canvas.draw(self.near, 640 + 40 * t, 1250, size=3.6, depth=2.2)

    def _down(self, in_glass: float) -> float:
        return GLASS_FOOT - (460 * 0.95 - in_glass) * GLASS_SIZE

    def _half(self, in_glass: float) -> float:
        return (158 - 0.1 * (in_glass - 40)) * GLASS_SIZE

    def _oval(self, y: float, half: float, high: float, steps: int = 30) -> list[Point]:
        return [(GLASS_X + half * math.cos(a * math.tau / steps), y + high * math.sin(a * math.tau / steps))
                for a in range(steps)]  # fmt: skip

    def _bowl(self, first: float, last: float) -> list[Point]:
        """The liquid's outline between two heights in the glass: straight sides, round edges front."""
        top, foot = self._half(first), self._half(last)
        arcs = np.linspace(0, math.pi, 16)
        upper = [(GLASS_X - top * math.cos(a), self._down(first) + 17 * math.sin(a)) for a in arcs]
        lower = [(GLASS_X + foot * math.cos(a), self._down(last) + 19 * math.sin(a)) for a in arcs]
        return [(float(x), float(y)) for x, y in upper + lower]

    def _liquid(self, canvas: Canvas, surface: float, seconds: float, t: float) -> None:
        thick = 20 + 40 * smooth(t)
        foot = BOTTOM - 4
        top = self._down(surface)
        deep = max(1.0, self._down(foot) + 19 - top)
        milk = min(0.8, thick * GLASS_SIZE / deep)
        canvas.polygon(self._bowl(surface, foot), [
            (0, self.crema), (milk * 0.55, mix(self.crema, self.coffee, 0.22)), (milk, mix(self.coffee, self.crema, 0.1)),
            (milk + (1 - milk) * 0.3, mix(self.coffee, self.deep, 0.55)), (1, self.deep),
        ])  # fmt: skip
        glow = clamp((foot - surface) / 300)
        canvas.light(soft_disc(1.6), self.stage.colour("accent", "light", 0.3), GLASS_X + 96, self._down(foot) - 60,
                     260, 330 * glow + 40, strength=0.5)  # fmt: skip
        canvas.polygon(
            self._bowl(surface, min(foot, surface + 5)), mix(self.crema, self.crema_light, 0.4), opacity=0.6
        )
        y, half = self._down(surface), self._half(surface) - 2
        canvas.polygon(self._oval(y, half, 17), self.crema)
        for ring in range(3):
            spread = (seconds * 1.1 + ring / 3) % 1
            canvas.polygon(self._oval(y, half * (0.1 + 0.85 * spread), 16 * (0.1 + 0.85 * spread)), self.crema_light,
                           opacity=0.42 * (1 - spread))  # fmt: skip
        for x, z, size in self.bubbles:
            angle = x * math.tau + seconds * (0.35 + 0.3 * z)
            out = 0.3 + 0.62 * z
            wide = 5 + 9 * size
            canvas.shade(crisp_disc(64, 0.7, 0.2), self.crema_light, GLASS_X + half * out * math.cos(angle),
                         y + 15 * out * math.sin(angle), wide, wide * 0.5, opacity=0.75)  # fmt: skip

    def _stream(self, canvas: Canvas, end: float, seconds: float, flow: float) -> None:
        if flow <= 0:
            return
        tip = between(MOUTH, end, depart(flow * 1.0) if flow < 1 else 1.0) if flow < 0.3 else end
        steps = 26
        left, right, shine = [], [], []
        for step in range(steps + 1):
            down = step / steps
            y = between(MOUTH - 4, tip + 6, down)
            half = (15 - 7.5 * min(1.0, down * 1.7) + 4 * max(0.0, down - 0.9) * 10) * (0.5 + 0.5 * flow)
            half *= 1 + 0.1 * math.sin(down * 19 - seconds * 24)
            x = GLASS_X + 3.2 * down * math.sin(down * 6 - seconds * 9)
            left.append((x - half, y))
            right.append((x + half, y))
            shine.append((x - half * 0.42, y))
        canvas.polygon(left + right[::-1], mix(self.deep, self.coffee, 0.35))
        inner = [(x + 5, y) for x, y in left]
        canvas.polygon(inner + right[::-1], mix(self.coffee, self.crema, 0.35))
        canvas.polygon(shine + [(x + 3.2, y) for x, y in shine[::-1]], self.crema_light, opacity=0.9)

    def _splash(self, canvas: Canvas, surface: float, seconds: float, flow: float) -> None:
        for x, speed, delay, size in self.drops:
            age = (seconds * 1.7 + delay) % 1
            across = GLASS_X + (x - 0.5) * 210 * age
            up = (150 + 90 * speed) * age - 300 * age * age
            if up > 0:
                wide = (5 + 6 * size) * (1 - 0.5 * age)
                canvas.shade(
                    crisp_disc(64, 0.0, 0.15),
                    self.crema,
                    across,
                    surface - up,
                    wide,
                    wide,
                    opacity=flow * 0.95,
                )
