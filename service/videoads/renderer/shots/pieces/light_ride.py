"""The ride through the city: a pedalling silhouette, shops and lights out of focus run by, the street is wet."""

import math

import numpy as np
from PIL import Image

from videoads.renderer.shots.canvas import Camera, Canvas
from videoads.renderer.shots.colour import mix
from videoads.renderer.shots.easing import arrive, between, smooth, span
from videoads.renderer.shots.night import night_colours
from videoads.renderer.shots.rain import Rain
from videoads.renderer.shots.rider import LAMP, SIDE_SIZE, TAIL, WHEEL, side_view
from videoads.renderer.shots.sprite import Sprite, blurred, crisp_disc, gradient, grey, soft_disc
from videoads.renderer.shots.stage import Point, Stage
from videoads.renderer.shots.wet import mirror

STREET = 960.0
SPEED = 520.0
BOKEH = 20
SIZE = 0.86


class LightRide:
    """Skyline, shopfronts, bokeh, the rider, the mirror of it all, a street lamp near the eye."""

    anchors: tuple[Point, ...] = ((470.0, 660.0), (250.0, 700.0))

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.tones = night_colours(stage)
        night, haze, accent = self.tones["night"], self.tones["haze"], stage.colour("accent")
        at = stage.place_in_backdrop(0, STREET)[1]
        stops = [(0, mix(night, haze, 0.16)), (at * 0.5, mix(night, haze, 0.5)),
                 (at, mix(mix(night, haze, 0.8), accent, 0.2)), (1, night)]  # fmt: skip
        self.sky = gradient(*stage.backdrop_pixels(), stops, seed=13)
        self.city = stage.svg("skyline_night", size=1.5, extra=self.tones)
        self.shops = stage.svg("shopfront", size=0.8, extra=self.tones)
        self.pole = blurred(stage.svg("street_lamp", size=0.8, extra=self.tones), 5 * stage.scale)
        self.lights = stage.random(31).random((BOKEH, 5))
        self.rain = Rain(stage, 40, 32)
        self.cone = _cone()

    def camera(self, t: float) -> Camera:
        """Travel with the rider, falling back a little."""
        eased = smooth(t)
        return Camera(between(-30, 36, eased), between(10, -12, eased), between(1.08, 1.0, eased))

    def paint(self, canvas: Canvas, t: float, seconds: float) -> None:
        """Far to near, then the mirror, then rain and the near pole."""
        accent, beam, night = self.stage.colour("accent"), self.tones["beam"], self.tones["night"]
        run = seconds * SPEED
        canvas.backdrop(self.sky, depth=0.1)
        canvas.strip(self.city, STREET - 180, depth=0.25, start=-run * 0.1, size=1.5)
        canvas.light(
            soft_disc(1.4),
            mix(accent, self.tones["haze"], 0.4),
            360,
            STREET - 190,
            1300,
            420,
            depth=0.3,
            strength=0.4,
        )
        canvas.strip(self.shops, STREET - 8, depth=0.6, start=-run * 0.55, size=0.8)
        for x, y, size, hue, depth in self.lights:
            tint = (accent, beam, (255, 96, 84), mix(self.tones["haze"], (120, 190, 255), 0.6))[int(hue * 4)]
            wide = 46 + 96 * size
            across = (x * 1500 - run * (0.5 + 0.6 * depth)) % 1500 - 390
            canvas.light(crisp_disc(160, 0.45, 0.08), tint, across, STREET - 60 - y * 330, wide, wide, depth=0.5 + 0.3 * depth,
                         strength=0.34 + 0.1 * math.sin(seconds * 3 + 20 * y))  # fmt: skip
        enter = arrive(span(t, 0.0, 0.5))
        x = between(-60, 330, enter) + 34 * smooth(span(t, 0.5, 1.0))
        y = STREET + 18 + 2.5 * math.sin(seconds * 11)
        self._rider(canvas, x, y, seconds, 0.75)
        mirror(canvas, STREET + 22, tint=mix(night, (0, 0, 0), 0.2), share=0.62, seconds=seconds)
        canvas.light(soft_disc(1.3), beam, x + 420, STREET + 44, 620, 90, strength=0.55)
        canvas.light(soft_disc(1.3), (255, 48, 40), x - 120, STREET + 40, 260, 70, strength=0.5)
        self.rain.paint(canvas, seconds, opacity=0.6)
        for number in range(2):
            passing = (number * 1500 + 900 - run * 2.1) % 3000 - 900
            canvas.draw(self.pole, passing, STREET + 260, anchor=(0.5, 1), size=1.25, depth=1.0)
            canvas.glow(
                mix(beam, accent, 0.3), passing + 100, STREET - 830, 520, soft_disc(2.2), strength=0.5
            )

    def _rider(self, canvas: Canvas, x: float, y: float, seconds: float, rim: float) -> None:
        wide, high = SIDE_SIZE[0] * SIZE, SIDE_SIZE[1] * SIZE
        roll = seconds * SPEED / (WHEEL * SIZE)
        mask = side_view(self.stage, SIZE, seconds * 7.4, roll)
        left, top = x - wide / 2, y - high
        canvas.shade(soft_disc(1.0), (0, 0, 0), x, y - 4, 560, 60, opacity=0.8)
        lamp = left + (LAMP[0] + 20) * SIZE, top + LAMP[1] * SIZE
        tail = left + (TAIL[0] - 8) * SIZE, top + TAIL[1] * SIZE
        canvas.light(
            self.cone, self.tones["beam"], lamp[0] - 4, lamp[1], 760, 460, anchor=(0, 0.36), strength=0.75
        )
        glowing = mix(self.stage.colour("accent"), self.tones["beam"], 0.45)
        canvas.draw(Sprite(glowing, mask, wide, high), left + 3, top - 3, anchor=(0, 0), opacity=rim)
        canvas.draw(
            Sprite(mix(self.tones["night"], (0, 0, 0), 0.25), mask, wide, high), left, top, anchor=(0, 0)
        )
        canvas.glow(self.tones["beam"], *lamp, 210, soft_disc(2.4), strength=1.0)
        blink = 0.55 + 0.45 * math.sin(seconds * 10.5)
        canvas.glow((255, 48, 40), *tail, 240, soft_disc(2.2), strength=0.5 + 0.5 * blink)
        canvas.shade(crisp_disc(64, 0, 0.3), (255, 120, 104), *tail, 15, 15)


def _cone(width: int = 190, height: int = 116) -> Image.Image:
    """A beam seen from the side: narrow at its lamp, wide and faint far off, sinking to the street."""
    along = np.linspace(0, 1, width, dtype=np.float32)[None, :]
    down = np.linspace(0, 1, height, dtype=np.float32)[:, None]
    middle, spread = 0.36 + 0.3 * along, 0.02 + 0.27 * along
    across = np.exp(-(((down - middle) / spread) ** 2) * 1.6)
    return grey((across * np.clip(1 - along, 0, 1) ** 1.3 * np.clip(along * 40, 0, 1)).astype(np.float32))
