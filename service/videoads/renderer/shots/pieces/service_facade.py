"""A house front in the morning: window after window turns from dull to clear and lights up."""

import math

from videoads.renderer.shots.canvas import Camera, Canvas
from videoads.renderer.shots.colour import mix
from videoads.renderer.shots.daylight import WHITE, Daylight
from videoads.renderer.shots.easing import between, overshoot, pulse, smooth, span
from videoads.renderer.shots.sparkle import paint_sparkle
from videoads.renderer.shots.sprite import Sprite, blurred, gradient, soft_disc
from videoads.renderer.shots.stage import Point, Stage

GROUND, HOUSE = 1130.0, 980.0
COLUMNS, ROWS = (190.0, 360.0, 530.0), (318.0, 560.0)
SIZE = 0.86
GROUND_PANES = (190.0, 530.0)


class ServiceFacade:
    """Sky, city, house with its panes, lawn, trees at both sides and leaves near the eye."""

    anchors: tuple[Point, ...] = ((190.0, 500.0), (530.0, 730.0))

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.day = Daylight(stage, 1000, 61)
        self.city = stage.svg("city_day", size=1.2)
        self.house = stage.svg("facade")
        self.dull, self.clear = stage.svg("pane_dull"), stage.svg("pane_clear")
        self.box = stage.svg("flowerbox")
        self.tree = stage.svg("tree_day", size=1.3)
        self.near = blurred(stage.svg("tree_day", size=1.5), 9 * stage.scale)
        width, height = stage.frame_pixels()
        lawn = [
            (0, mix((150, 205, 120), stage.colour("light"), 0.25)),
            (0.3, (96, 176, 104)),
            (1, (52, 130, 92)),
        ]
        self.lawn = Sprite(gradient(width, height, lawn), None, 8, 8)
        top = GROUND - HOUSE
        panes = [(x, top + y) for y in ROWS for x in COLUMNS] + [(x, top + 826) for x in GROUND_PANES]
        order = stage.random(62).permutation(len(panes))
        panes = [(360 + (x - 360) * SIZE, GROUND - (GROUND - y) * SIZE) for x, y in panes]
        self.panes = [
            (*panes[int(place)], 0.06 + 0.78 * number / len(panes)) for number, place in enumerate(order)
        ]

    def camera(self, t: float) -> Camera:
        """Rise along the front."""
        eased = smooth(t)
        return Camera(between(26, -20, eased), between(46, -30, eased), between(1.08, 1.0, eased))

    def paint(self, canvas: Canvas, t: float, seconds: float) -> None:
        """Far to near; each pane clears at its own time with a glint."""
        self.day.paint(canvas, seconds, sun=(590, 210), clouds_at=250)
        canvas.strip(self.city, GROUND + 10, depth=0.35, start=-260 - 8 * seconds, size=1.2)
        left, _, right, _ = self.stage.span()
        lawn = [(left + (right - left) * i / 12, GROUND - 8 + 10 * math.sin(i * 1.3)) for i in range(13)]
        canvas.below(lawn, self.lawn, depth=0.85)
        canvas.shade(
            soft_disc(1.0), self.stage.colour("dark"), 400, GROUND, 820, 70, depth=0.85, opacity=0.35
        )
        canvas.draw(self.house, 360, GROUND, anchor=(0.5, 1), size=SIZE, depth=0.85)
        for x, y, when in self.panes:
            cleared = smooth(span(t, when, when + 0.1))
            size = 1 + 0.12 * pulse(span(t, when, when + 0.2))
            if cleared < 1:
                canvas.draw(self.dull, x, y, size=size * SIZE, depth=0.85)
            if cleared > 0:
                canvas.light(
                    soft_disc(1.6),
                    self.stage.colour("light"),
                    x,
                    y,
                    330,
                    380,
                    depth=0.85,
                    strength=0.5 * cleared,
                )
                canvas.draw(self.clear, x, y, size=size * SIZE, depth=0.85, opacity=cleared)
                self._shine(canvas, x, y, (t - when) * 2.2)
            bloom = overshoot(span(t, when + 0.04, when + 0.2))
            if y < 800 and bloom > 0.02:
                canvas.draw(self.box, x, y + 100, anchor=(0.5, 1), size=(0.84, 0.84 * bloom), depth=0.86)
            glint = (
                pulse(span(t, when + 0.02, when + 0.2)) + 0.5 * cleared * math.sin(seconds * 2.4 + x + y) ** 8
            )
            paint_sparkle(canvas, x + 30, y - 52, 150, min(1.0, glint), depth=0.87)
        for x, size, depth in ((-4.0, 1.25, 1.0), (716.0, 1.4, 1.05)):
            sway = 1 + 0.014 * math.sin(seconds * 2.2 + x)
            canvas.draw(self.tree, x, GROUND + 60, anchor=(0.5, 1), size=(size, size * sway), depth=depth)
        canvas.draw(self.near, -60 - 30 * t, 1420, anchor=(0.5, 1), size=1.9, depth=1.7)
        canvas.draw(self.near, 800 + 30 * t, 1470, anchor=(0.5, 1), size=2.0, depth=1.8)

    def _shine(self, canvas: Canvas, x: float, y: float, since: float) -> None:
        if not 0 < since < 1:
            return
        at = x - 46 + 92 * smooth(since)
        canvas.polygon([(at - 10, y - 72), (at + 8, y - 72), (at - 6, y + 60), (at - 24, y + 60)], WHITE, depth=0.85,
                       opacity=0.8 * pulse(since))  # fmt: skip
