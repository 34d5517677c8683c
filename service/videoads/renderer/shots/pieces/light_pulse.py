"""Seen from behind: the rear light pulses on the beat and its red runs over rider, rain and street."""

import math

import numpy as np
from PIL import Image

from videoads.renderer.shots.canvas import Camera, Canvas, Ray
from videoads.renderer.shots.colour import mix
from videoads.renderer.shots.easing import between, smooth
from videoads.renderer.shots.night import night_colours
from videoads.renderer.shots.rain import Rain
from videoads.renderer.shots.rider import BACK_SIZE, back_view
from videoads.renderer.shots.sprite import Sprite, crisp_disc, gradient, grey, soft_disc
from videoads.renderer.shots.stage import Point, Stage
from videoads.renderer.shots.wet import mirror

HORIZON, GROUND = 640.0, 1010.0
BEAT_SECONDS = 0.6
RED = (255, 44, 38)
CARS, BOKEH = 6, 16


class LightPulse:
    """City glow, cars that come towards the eye, the road's marks, the rider, rings of red light."""

    anchors: tuple[Point, ...] = ((360.0, 720.0), (470.0, 560.0))

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.tones = night_colours(stage)
        night, haze, accent = self.tones["night"], self.tones["haze"], stage.colour("accent")
        at = stage.place_in_backdrop(0, HORIZON)[1]
        stops = [(0, night), (at * 0.6, mix(night, haze, 0.3)), (at, mix(mix(night, haze, 0.7), accent, 0.14)),
                 (at + 0.01, mix(night, haze, 0.22)), (1, mix(night, (0, 0, 0), 0.4))]  # fmt: skip
        self.sky = gradient(*stage.backdrop_pixels(), stops, seed=14)
        self.city = stage.svg("skyline_night", size=1.2, extra=self.tones)
        self.cars = stage.random(41).random((CARS, 3))
        self.lights = stage.random(42).random((BOKEH, 5))
        self.rain = Rain(stage, 54, 43)
        self.ring = _ring()

    def camera(self, t: float) -> Camera:
        """Follow, and come nearer."""
        eased = smooth(t)
        return Camera(between(30, -26, eased), between(-14, 10, eased), between(1.0, 1.13, eased))

    def paint(self, canvas: Canvas, t: float, seconds: float) -> None:
        """Far to near; the beat drives every red light."""
        accent, night = self.stage.colour("accent"), self.tones["night"]
        beat = (seconds % BEAT_SECONDS) / BEAT_SECONDS
        throb = math.exp(-beat * 3.2) * min(1.0, beat * 12 + 0.25)
        canvas.backdrop(self.sky, depth=0.1)
        canvas.light(soft_disc(1.5), accent, 330, HORIZON, 1200, 420, depth=0.15, strength=0.34)
        canvas.strip(self.city, HORIZON + 10, depth=0.2, start=-200 - 14 * seconds, size=1.2)
        for x, y, size, hue, depth in self.lights:
            tint = (accent, self.tones["beam"], mix(self.tones["haze"], (130, 190, 255), 0.5))[int(hue * 3)]
            out = (0.25 + 0.75 * ((y + seconds * (0.16 + 0.2 * depth)) % 1)) ** 1.4
            side = 1 if x > 0.5 else -1
            wide = 30 + (60 + 120 * size) * out
            canvas.light(crisp_disc(160, 0.5, 0.07), tint, 360 + side * (60 + 460 * out), HORIZON - 10 - 150 * out * (0.3 + x), wide, wide,
                         depth=0.3 + 0.5 * out, strength=0.4 * math.sin(math.pi * min(1.0, 1.15 - out)))  # fmt: skip
        self._road(canvas, seconds)
        self._cars(canvas, seconds)
        sway = math.sin(seconds * 4.2)
        size = 0.98
        wide, high = BACK_SIZE[0] * size, BACK_SIZE[1] * size
        x, y = 360 + 7 * sway, GROUND
        lamp = x, y - high + 376 * size
        canvas.glow(RED, *lamp, 900, soft_disc(1.8), strength=0.25 + 0.5 * throb)
        mask = back_view(self.stage, size, seconds * 8.2, sway)
        left, top = x - wide / 2, y - high
        canvas.draw(
            Sprite(mix(accent, self.tones["beam"], 0.4), mask, wide, high),
            left,
            top - 4,
            anchor=(0, 0),
            opacity=0.75,
        )
        canvas.draw(Sprite(mix(night, (0, 0, 0), 0.2), mask, wide, high), left, top, anchor=(0, 0))
        canvas.light(soft_disc(1.3), RED, lamp[0], lamp[1] + 10, 270, 330, strength=0.35 + 0.45 * throb)
        mirror(canvas, GROUND - 2, tint=mix(night, (0, 0, 0), 0.25), share=0.6, seconds=seconds)
        rays = [
            Ray(soft_disc(1.4), RED, x, GROUND + 60, 420, 330, 1.0, 0.4 + 0.5 * throb),
            Ray(soft_disc(2.0), RED, *lamp, 1300, 42, 1.0, 0.2 + 0.6 * throb),
        ]
        for echo in range(2):
            grown = (beat + echo) / 2
            reach = 120 + 760 * grown
            rays.append(Ray(self.ring, RED, *lamp, reach, reach, 1.0, 0.75 * (1 - grown) ** 1.6))
        canvas.lights(*rays)
        canvas.shade(crisp_disc(96, 0, 0.12), mix((120, 12, 12), RED, throb), lamp[0], lamp[1], 46, 60)
        for row in range(3):
            canvas.shade(
                crisp_disc(64, 0, 0.25),
                mix(RED, (255, 236, 226), 0.25 + 0.7 * throb),
                lamp[0],
                lamp[1] - 17 + 17 * row,
                15,
                15,
            )
        canvas.glow((255, 120, 100), *lamp, 260, soft_disc(2.6), strength=0.35 + 0.65 * throb)
        self.rain.paint(canvas, seconds, opacity=0.75, lit=lambda a, b: throb * max(0.0, 1 - math.hypot(a - lamp[0], b - lamp[1]) / 420))  # fmt: skip

    def _road(self, canvas: Canvas, seconds: float) -> None:
        night, haze = self.tones["night"], self.tones["haze"]
        canvas.polygon([(330, HORIZON + 2), (390, HORIZON + 2), (1100, 1330), (-380, 1330)],
                       [(0, mix(night, haze, 0.4)), (0.4, mix(night, haze, 0.16)), (1, night)], depth=0.6)  # fmt: skip
        for step in range(9):
            first = (step * 1.1 + (seconds * 2.6) % 1.1) + 0.7
            last = first + 0.45
            for x in (-0.62, 0.62):
                points = []
                for distance, half in ((first, -0.02), (first, 0.02), (last, 0.02), (last, -0.02)):
                    points.append((360 + (x + half) * 420 / distance, HORIZON + 420 / distance))
                canvas.polygon(
                    points, mix(haze, (255, 255, 255), 0.5), depth=0.6, opacity=min(0.55, 2.2 / first)
                )

    def _cars(self, canvas: Canvas, seconds: float) -> None:
        for number, (x, pace, size) in enumerate(self.cars):
            near = (number / CARS + seconds * (0.2 + 0.16 * pace)) % 1
            distance = between(9.0, 0.8, near)
            across, down = 360 - (0.95 + 0.35 * x) * 420 / distance, HORIZON + 300 / distance
            for side in (-1, 1):
                wide = (70 + 30 * size) / distance
                canvas.light(crisp_disc(160, 0.3, 0.16), self.tones["beam"], across + side * 74 / distance, down, wide, wide,
                             depth=0.6, strength=0.7 * math.sin(math.pi * near))  # fmt: skip
                canvas.glow(self.tones["beam"], across + side * 74 / distance, down, wide * 4, soft_disc(2.2), depth=0.6,
                            strength=0.5 * math.sin(math.pi * near))  # fmt: skip


def _ring(side: int = 220) -> Image.Image:
    axis = np.linspace(-1, 1, side, dtype=np.float32)
    distance = np.sqrt(axis[:, None] ** 2 + axis[None, :] ** 2)
    edge = np.exp(-(((distance - 0.9) / 0.035) ** 2)) + 0.25 * np.exp(-(((distance - 0.8) / 0.12) ** 2))
    return grey((edge * (distance < 1)).astype(np.float32))
