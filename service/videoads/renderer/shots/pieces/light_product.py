"""The lamp turns in from the dark, lights up, and its beam catches the rain; two points for call-outs."""

import math

from videoads.renderer.shots.canvas import Camera, Canvas, Ray
from videoads.renderer.shots.colour import mix
from videoads.renderer.shots.easing import arrive, between, pulse, smooth, span
from videoads.renderer.shots.lamp import LENGTH, Lamp
from videoads.renderer.shots.night import night_colours
from videoads.renderer.shots.product_card import ProductCard
from videoads.renderer.shots.rain import Rain
from videoads.renderer.shots.sprite import crisp_disc, gradient, soft_disc
from videoads.renderer.shots.stage import Point, Stage

FLOOR, LAMP_Y = 905.0, 640.0
SPARKS = 34


class LightProduct:
    """Dark room with two tubes of light, glossy floor, the lamp, its flare, rain."""

    anchors: tuple[Point, ...] = ((240.0, 560.0), (440.0, 700.0))

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.tones = night_colours(stage)
        night, haze = self.tones["night"], self.tones["haze"]
        width, height = stage.backdrop_pixels()
        at = stage.place_in_backdrop(0, FLOOR)[1]
        accent = stage.colour("accent")
        stops = [(0, night), (at * 0.7, mix(night, haze, 0.26)), (at - 0.004, mix(mix(night, haze, 0.34), accent, 0.06)),
                 (1, mix(night, haze, 0.3))]  # fmt: skip
        self.floor = stage.ground(FLOOR, [
            (0, mix(night, (0, 0, 0), 0.35)), (0.3, mix(night, haze, 0.12)), (1, mix(night, (0, 0, 0), 0.5)),
        ], seed=15)  # fmt: skip
        self.room = gradient(width, height, stops, seed=12)
        self.lamp = Lamp(stage, self.tones, 1.18)
        self.card = ProductCard(stage) if stage.request.product_picture else None
        self.rain = Rain(stage, 46, 24)
        self.sparks = stage.random(25).random((SPARKS, 4))

    def camera(self, t: float) -> Camera:
        """Close in with a slow orbit."""
        eased = smooth(t)
        return Camera(between(40, -30, eased), between(14, -14, eased), between(0.98, 1.1, eased))

    def paint(self, canvas: Canvas, t: float, seconds: float) -> None:
        """Room, tubes, reflection, lamp, flare, rain, sparks."""
        accent, beam = self.stage.colour("accent"), self.tones["beam"]
        inward = arrive(span(t, 0.0, 0.66))
        angle = between(-0.35, 0.86, inward) + 0.2 * smooth(t)
        x = between(120, 352, inward)
        y = LAMP_Y + 7 * math.sin(seconds * 1.8)
        lit = smooth(span(t, 0.4, 0.5)) * (0.94 + 0.06 * math.sin(seconds * 23))
        flash = pulse(span(t, 0.4, 0.56))
        canvas.backdrop(self.room, depth=0.25)
        canvas.ground(self.floor, FLOOR, depth=0.5)
        self._tubes(canvas, t, seconds)
        canvas.light(
            soft_disc(1.5),
            mix(accent, beam, 0.5),
            x + 60,
            FLOOR + 30,
            980,
            260,
            depth=0.8,
            strength=0.2 + 0.6 * lit,
        )
        canvas.shade(soft_disc(0.9), (0, 0, 0), x, FLOOR + 26, 520, 90, opacity=0.8)
        if self.card is not None:
            turn = between(-1.25, 0.0, inward) + 0.14 * math.sin(seconds * 1.3) * inward
            self.card.paint(canvas, x, FLOOR + 10, turn, sweep=span(t, 0.36, 0.72))
            lens = x + 60, y
        else:
            lens = self.lamp.paint(canvas, x, y, abs(angle), on=lit)
            canvas.light(
                soft_disc(1.2),
                beam,
                lens[0],
                FLOOR + 130,
                300 * math.sin(abs(angle)),
                150,
                strength=0.5 * lit,
            )
        self._flare(canvas, lens, lit, flash, angle)
        self.rain.paint(canvas, seconds, opacity=0.75, lit=lambda a, b: lit * max(0.0, 1 - math.hypot(a - lens[0], b - lens[1]) / 460))  # fmt: skip
        for a, b, size, pace in self.sparks:
            age = (seconds * (0.35 + 0.5 * pace) + b) % 1
            across = lens[0] + (a - 0.35) * 620 * (0.4 + age)
            down = lens[1] + (b - 0.5) * 560 + 90 * age
            wide = 4 + 13 * size
            canvas.shade(crisp_disc(64, 0.5, 0.2), mix(beam, accent, pace), across, down, wide, wide, depth=1 + size,
                         opacity=lit * 0.7 * math.sin(math.pi * age))  # fmt: skip

    def _tubes(self, canvas: Canvas, t: float, seconds: float) -> None:
        accent, white = self.stage.colour("accent"), self.stage.colour("white")
        grow = arrive(span(t, 0.0, 0.35))
        for x, top, high, pace in ((150.0, 210.0, 560.0, 2.0), (598.0, 300.0, 470.0, 2.7)):
            reach = high * grow
            if reach < 4:
                continue
            glow = 0.5 + 0.08 * math.sin(seconds * pace * 3)
            canvas.light(
                soft_disc(1.5), accent, x, top + high / 2, 330, reach * 1.5, depth=0.45, strength=glow
            )
            canvas.polygon(
                [(x - 5, top), (x + 5, top), (x + 5, top + reach), (x - 5, top + reach)],
                mix(accent, white, 0.6),
                depth=0.45,
            )
            canvas.light(soft_disc(1.3), accent, x, FLOOR + 90, 200, 330, depth=0.45, strength=glow * 0.7)

    def _flare(self, canvas: Canvas, lens: Point, lit: float, flash: float, angle: float) -> None:
        beam, accent = self.tones["beam"], self.stage.colour("accent")
        x, y = lens
        wide = (620 + 520 * flash) * (0.55 + 0.45 * math.sin(abs(angle)))
        streak = mix(accent, beam, 0.4)
        canvas.lights(
            Ray(soft_disc(2.6), beam, x, y, wide, wide, 1.0, 0.9 * lit),
            Ray(soft_disc(2.0), streak, x + 20, y, 1900, 64 + 70 * flash, 1.0, 0.75 * lit),
            Ray(soft_disc(1.3), mix(accent, beam, 0.3), x + LENGTH, y + 60, 900, 900, 1.0, 0.3 * lit),
        )
        for place, size, tone in ((0.5, 90, accent), (0.85, 46, beam), (1.35, 150, accent), (1.7, 70, beam)):
            canvas.light(crisp_disc(160, 0.5, 0.05), tone, x + (360 - x) * 2 * place + 120 * place, y + 190 * place, size, size,
                         depth=1.2, strength=0.2 * lit)  # fmt: skip
