"""A dark road from the handlebar: lane marks run under a cone of light, posts and trees pass, rain falls."""

import math

import numpy as np
from PIL import Image

from videoads.renderer.shots.canvas import Camera, Canvas
from videoads.renderer.shots.colour import Rgb, mix
from videoads.renderer.shots.easing import between, clamp, smooth, span
from videoads.renderer.shots.night import night_colours
from videoads.renderer.shots.rain import Rain
from videoads.renderer.shots.sprite import blurred, crisp_disc, gradient, grey, soft_disc
from videoads.renderer.shots.stage import Point, Stage

HORIZON, FALL = 600.0, 700.0
SPEED = 3.4
DASH_EVERY, DASH = 1.5, 0.62
FARTHEST = 16.0


class LightRoad:
    """Sky and city far away, the road plane with its marks, the beam on it, the bar near the eye."""

    anchors: tuple[Point, ...] = ((360.0, 1080.0), (400.0, 720.0))

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.tones = night_colours(stage)
        night, haze = self.tones["night"], self.tones["haze"]
        colour = stage.colour
        width, height = stage.backdrop_pixels()
        at = stage.place_in_backdrop(0, HORIZON)[1]
        stops = [(0, mix(night, haze, 0.1)), (at * 0.55, mix(night, haze, 0.34)),
                 (at, mix(mix(night, haze, 0.75), colour("accent"), 0.16)), (at + 0.004, mix(night, haze, 0.3)),
                 (at + 0.2, mix(night, haze, 0.16)), (1, night)]  # fmt: skip
        self.sky = gradient(width, height, stops, seed=11)
        self.city = stage.svg("skyline_night", extra=self.tones)
        self.tree = stage.svg("tree_night", extra=self.tones)
        self.bar = stage.svg("handlebar", size=1.0, extra=self.tones)
        self.near_tree = blurred(stage.svg("tree_night", size=0.6, extra=self.tones), 3 * stage.scale)
        self.beam = _beam()
        self.rain = Rain(stage, 60, 21)
        self.stars = stage.random(22).random((40, 3))
        self.sides = stage.random(23).random((24, 3))

    def camera(self, t: float) -> Camera:
        """A rider's lean through a long bend."""
        eased = smooth(t)
        return Camera(between(-34, 34, eased), between(-18, 16, eased), between(1.0, 1.08, eased))

    def paint(self, canvas: Canvas, t: float, seconds: float) -> None:
        """Far to near."""
        colour, tones = self.stage.colour, self.tones
        on = smooth(span(t, 0.04, 0.16)) * (1 - 0.5 * (0.16 < t < 0.175))
        canvas.backdrop(self.sky, depth=0.12)
        for x, y, size in self.stars:
            wide = 3 + 4 * size
            shine = 0.2 + 0.4 * (0.5 + 0.5 * math.sin(seconds * (2 + 3 * size) + 60 * x))
            canvas.shade(crisp_disc(64, 0, 0.5), colour("white"), x * 900 - 90, y * 420 + 20, wide, wide, depth=0.05,
                         opacity=shine)  # fmt: skip
        canvas.light(soft_disc(1.6), colour("accent"), 400, HORIZON - 60, 1300, 330, depth=0.15, strength=0.5)
        canvas.strip(self.city, HORIZON + 8, depth=0.22, start=-120 - 26 * seconds)
        canvas.light(soft_disc(1.3), colour("accent"), 400, HORIZON - 8, 1400, 190, depth=0.2, strength=0.42)
        self._road(canvas, seconds, on)
        canvas.light(soft_disc(1.2), mix(tones["haze"], colour("accent"), 0.3), 360, HORIZON + 4, 1500, 120, depth=0.3,
                     strength=0.5)  # fmt: skip
        jitter = 1 + 0.012 * math.sin(seconds * 31)
        canvas.light(self.beam, tones["beam"], 366 + 10 * math.sin(seconds * 1.7), HORIZON + 8, 1040 * jitter, 690,
                     anchor=(0.5, 0), depth=0.7, strength=0.95 * on)  # fmt: skip
        self._marks(canvas, seconds, on)
        self._sides(canvas, seconds, on)
        canvas.glow(tones["beam"], 360, HORIZON + 90, 820, soft_disc(2.4), depth=0.4, strength=0.22 * on)
        sway = 7 * math.sin(seconds * 2.3)
        self.rain.paint(canvas, seconds, opacity=0.85, lit=lambda x, y: on * clamp(1.2 - abs(x - 360) / 330) * clamp((y - 420) / 400))  # fmt: skip
        bob = 4 * math.sin(seconds * 9.2)
        canvas.draw(self.bar, 360 + sway, 1296 + bob + self.stage.top, anchor=(0.5, 1), size=1.0, depth=1.15)
        canvas.glow(
            tones["beam"],
            360 + sway,
            1024 + bob + self.stage.top,
            300,
            soft_disc(2.4),
            depth=1.15,
            strength=0.8 * on,
        )

    def _at(self, x: float, distance: float) -> Point:
        """A point of the road's plane, `x` in road widths from the rider's line."""
        bend = 9.0 * max(0.0, distance - 1.0) ** 0.9
        return 360 + bend + x * FALL * 0.62 / distance, HORIZON + FALL / distance

    def _quad(
        self, canvas: Canvas, x: float, half: float, first: float, last: float, tone: Rgb, opacity: float
    ) -> None:  # fmt: skip
        steps = np.linspace(first, last, 4)
        left = [self._at(x - half, float(d)) for d in steps]
        right = [self._at(x + half, float(d)) for d in steps[::-1]]
        canvas.polygon(left + right, tone, depth=0.7, opacity=opacity)

    def _road(self, canvas: Canvas, seconds: float, on: float) -> None:
        asphalt = mix(self.tones["night"], self.tones["haze"], 0.24)
        steps = [FARTHEST * 2.5, 12.0, 6.0, 3.0, 1.6, 1.0, 0.8]
        edge = [self._at(-1.35, d) for d in steps] + [self._at(0.95, d) for d in reversed(steps)]
        canvas.polygon(
            edge,
            [(0, mix(asphalt, self.tones["haze"], 0.25)), (0.3, asphalt), (1, self.tones["night"])],
            depth=0.7,
        )

    def _marks(self, canvas: Canvas, seconds: float, on: float) -> None:
        paint = mix(self.stage.colour("white"), self.stage.colour("light"), 0.35)
        run = seconds * SPEED
        number = int(run / DASH_EVERY)
        for step in range(int(FARTHEST / DASH_EVERY) + 1):
            first = (number + step) * DASH_EVERY - run + 0.85
            if first < 0.7:
                continue
            lit = 0.25 + 0.75 * on * clamp(1.25 - abs(first - 2.2) / 7)
            self._quad(canvas, -0.3, 0.018, first, first + DASH, paint, lit)
        for x in (0.82, -1.22):
            self._quad(canvas, x, 0.014, 0.85, 2.2, paint, 0.3 + 0.2 * on)
            self._quad(canvas, x, 0.014, 2.2, FARTHEST, paint, 0.2 + 0.4 * on)

    def _sides(self, canvas: Canvas, seconds: float, on: float) -> None:
        run = seconds * SPEED
        seen = []
        for number, (kind, size, x) in enumerate(self.sides):
            distance = (number * 0.9 - run) % (len(self.sides) * 0.9) + 0.55
            if distance < FARTHEST:
                seen.append((distance, number, kind, size, x))
        for distance, number, kind, size, x in sorted(seen, reverse=True):
            side = 1 if number % 2 else -1
            fade = clamp((FARTHEST - distance) / 4) * clamp((distance - 0.55) / 0.35)
            if kind < 0.62:
                across, down = self._at(side * (1.75 + 0.8 * x) - 0.2, distance)
                tree = self.near_tree if distance < 1.6 else self.tree
                canvas.draw(
                    tree,
                    across,
                    down,
                    anchor=(0.5, 1),
                    size=(2.2 + size) / distance,
                    depth=0.75,
                    opacity=fade,
                )
            else:
                across, down = self._at(1.02 if side > 0 else -1.45, distance)
                high = 210 / distance
                canvas.polygon([(across - high * 0.05, down), (across - high * 0.05, down - high), (across + high * 0.05, down - high),
                                (across + high * 0.05, down)], mix(self.tones["haze"], (255, 255, 255), 0.3 + 0.3 * on),
                               depth=0.75, opacity=fade * 0.9)  # fmt: skip
                canvas.glow(self.stage.colour("accent"), across, down - high * 0.84, high * 1.1, soft_disc(2.2), depth=0.75,
                            strength=fade * on * clamp(2.2 - distance / 5))  # fmt: skip


def _beam(width: int = 200, height: int = 150) -> Image.Image:
    """The lamp's pattern on the road: a sharp upper edge, a bright heart far away, a soft foot."""
    across = np.linspace(-1, 1, width, dtype=np.float32)[None, :]
    down = np.linspace(0, 1, height, dtype=np.float32)[:, None]
    reach = 0.3 + 0.5 * np.sqrt(down)
    side = np.exp(-((across / reach) ** 2) * 2.6)
    along = np.clip(down / 0.07, 0, 1) ** 1.4 * (
        0.5 * np.exp(-(((down - 0.2) / 0.24) ** 2)) + 0.46 * np.clip(1 - down, 0, 1) ** 0.8
    )
    fringe = np.clip((1 - np.abs(across)) * 3, 0, 1)
    return grey((side * along * fringe).astype(np.float32))
