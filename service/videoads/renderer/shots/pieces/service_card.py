"""Booking: a calendar on a phone, a day is picked and ticked, the appointment card slides up."""

import math
from itertools import pairwise

from videoads.renderer.shots.canvas import Camera, Canvas
from videoads.renderer.shots.colour import Rgb, mix
from videoads.renderer.shots.daylight import WHITE
from videoads.renderer.shots.easing import between, overshoot, pulse, smooth, span
from videoads.renderer.shots.sparkle import paint_sparkle
from videoads.renderer.shots.sprite import blurred, crisp_disc, gradient, soft_disc
from videoads.renderer.shots.stage import Point, Stage

PHONE, PHONE_Y = (460.0, 900.0), 612.0
COLUMNS, ROWS, PITCH = 7, 5, 53.0
FIRST: Point = (71.0, 296.0)
PICKED = (4, 2)
PIECES, TILES = 34, 9


class ServiceCard:
    """Soft sky of tiles at two depths, the phone, its days, the tick, the card, paper flakes."""

    anchors: tuple[Point, ...] = ((250.0, 470.0), (520.0, 880.0))

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        accent, light = stage.colour("accent"), stage.colour("light")
        stops = [
            (0, mix(accent, WHITE, 0.55)),
            (0.45, mix(accent, WHITE, 0.78)),
            (1, mix(light, WHITE, 0.55)),
        ]
        self.sky = gradient(*stage.backdrop_pixels(), stops, slant=0.2, seed=17)
        self.phone = stage.svg("phone")
        self.day, self.taken = stage.svg("day"), stage.svg("day_taken")
        self.card, self.badge = stage.svg("appointment", size=1.1), stage.svg("badge", size=1.15)
        tile = stage.svg("tile_shape", size=1.1)
        self.tile, self.soft_tile = tile, blurred(tile, 6 * stage.scale)
        draws = stage.random(71).random((TILES, 4))
        left, top, right, bottom = stage.span()
        self.tiles = [
            (between(left, right, (number % 3 + float(d[0])) / 3), between(top, bottom, (number // 3 + float(d[1])) / 3), *map(float, d[2:]))
            for number, d in enumerate(draws)
        ]  # fmt: skip
        self.busy = stage.random(72).random((ROWS, COLUMNS)) < 0.36
        self.flakes = stage.random(73).random((PIECES, 5))

    def camera(self, t: float) -> Camera:
        """Drift up along the phone."""
        eased = smooth(t)
        return Camera(between(28, -22, eased), between(-26, 24, eased), between(1.0, 1.07, eased))

    def paint(self, canvas: Canvas, t: float, seconds: float) -> None:
        """Background tiles, phone, days, tick, card, badge, flakes."""
        stage = self.stage
        accent, light, dark = stage.colour("accent"), stage.colour("light"), stage.colour("dark")
        canvas.backdrop(self.sky, depth=0.1)
        canvas.glow(
            WHITE, 360 + 120 * math.sin(seconds * 0.9), 420, 1100, soft_disc(1.7), depth=0.15, strength=0.6
        )
        canvas.glow(light, 620, 1060 - 40 * t, 760, soft_disc(1.6), depth=0.2, strength=0.5)
        for x, y, size, phase in self.tiles:
            tile = self.soft_tile if size < 0.5 else self.tile
            down = y + 24 * math.sin(seconds * (0.8 + size) + 6 * phase) - 60 * t * (0.5 + size)
            canvas.draw(tile, x, down, size=0.35 + 0.75 * size, depth=0.25 + 0.35 * size, opacity=0.5)
        rise = overshoot(span(t, -0.06, 0.2), 0.8)
        y = between(1700, PHONE_Y, rise) + 6 * math.sin(seconds * 1.7)
        canvas.shade(soft_disc(1.0), dark, 384, y + 70, 620, 1060, opacity=0.42)
        canvas.draw(self.phone, 360, y)
        left, top = 360 - PHONE[0] / 2, y - PHONE[1] / 2
        self._days(canvas, left, top, t)
        self._tick(canvas, left, top, t, accent)
        slide = overshoot(span(t, 0.44, 0.66), 0.9)
        if slide > 0:
            at = between(1500, top + 690, slide)
            canvas.shade(
                soft_disc(0.9), dark, 372, at + 40, 600, 300, depth=1.2, opacity=0.32 * min(1.0, slide)
            )
            press = 1 + 0.04 * math.sin(seconds * 6)
            canvas.draw(self.card, 372, at, size=press * 0.98, depth=1.2)
        self._badge(canvas, top, t, seconds)
        colours: tuple[Rgb, ...] = (accent, light, WHITE, (255, 111, 97), mix(accent, WHITE, 0.4))
        since = seconds - 0.62 * stage.request.frames / stage.request.fps
        for a, b, size, pace, spin in self.flakes:
            if since <= 0:
                drift = (seconds * (0.08 + 0.1 * pace) + b) % 1
                wide = 5 + 9 * size
                canvas.shade(crisp_disc(64, 0.6, 0.3), WHITE, a * 820 - 50, 1340 - 1400 * drift, wide, wide, depth=0.6 + pace,
                             opacity=0.6)  # fmt: skip
                continue
            angle, speed = -math.pi * (0.08 + 0.84 * a), 520 + 760 * pace
            x = 560 + speed * math.cos(angle) * since / (1 + since)
            down = top + 520 + speed * math.sin(angle) * since / (1 + since) * 1.5 + 330 * since * since
            turn = math.cos(since * (5 + 9 * spin) + a * 9)
            half, high = (5 + 7 * size) * max(0.15, abs(turn)), 8 + 8 * size
            canvas.polygon([(x - half, down - high), (x + half, down - high + 3), (x + half, down + high), (x - half, down + high - 3)],
                           colours[int(spin * 5)], depth=1.25)  # fmt: skip

    def _days(self, canvas: Canvas, left: float, top: float, t: float) -> None:
        for row in range(ROWS):
            for column in range(COLUMNS):
                come = overshoot(
                    span(t, 0.08 + 0.012 * (row * 2 + column), 0.2 + 0.012 * (row * 2 + column)), 1.6
                )
                if come <= 0.03:
                    continue
                sprite = self.taken if self.busy[row, column] else self.day
                canvas.draw(sprite, left + FIRST[0] + column * PITCH, top + FIRST[1] + row * PITCH, size=come)

    def _tick(self, canvas: Canvas, left: float, top: float, t: float, accent: Rgb) -> None:
        x, y = left + FIRST[0] + PICKED[0] * PITCH, top + FIRST[1] + PICKED[1] * PITCH
        grown = overshoot(span(t, 0.3, 0.42), 2.0)
        ring = span(t, 0.34, 0.56)
        if 0 < ring < 1:
            canvas.shade(
                crisp_disc(160, 0.9, 0.08),
                accent,
                x,
                y,
                60 + 170 * ring,
                60 + 170 * ring,
                opacity=0.5 * (1 - ring),
            )
        if grown > 0.03:
            canvas.shade(crisp_disc(160, 0.0, 0.05), accent, x, y, 62 * grown, 62 * grown)
            _stroke(
                canvas,
                [(x - 13, y + 1), (x - 4, y + 11), (x + 14, y - 10)],
                span(t, 0.38, 0.48),
                3.4,
                WHITE,
                1.0,
            )

    def _badge(self, canvas: Canvas, top: float, t: float, seconds: float) -> None:
        come = overshoot(span(t, 0.6, 0.74), 2.2)
        if come <= 0.03:
            return
        x, y = 560.0, top + 566 + 5 * math.sin(seconds * 3)
        canvas.draw(self.badge, x, y, size=0.95 * come, depth=1.25)
        _stroke(
            canvas, [(x - 28, y), (x - 8, y + 22), (x + 30, y - 22)], span(t, 0.68, 0.78), 7.0, WHITE, 1.25
        )
        paint_sparkle(canvas, x + 48, y - 48, 130, pulse(span(t, 0.72, 0.95)), depth=1.25)


def _stroke(
    canvas: Canvas, points: list[Point], drawn: float, half: float, colour: Rgb, depth: float
) -> None:
    """A line drawn as far as `drawn`, with round joints."""
    lengths = [math.dist(a, b) for a, b in pairwise(points)]
    left = drawn * sum(lengths)
    for (a, b), length in zip(pairwise(points), lengths, strict=True):
        if left <= 0:
            return
        part = min(1.0, left / length)
        end = a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part
        angle = math.atan2(b[1] - a[1], b[0] - a[0]) + math.pi / 2
        c, s = half * math.cos(angle), half * math.sin(angle)
        canvas.polygon(
            [(a[0] + c, a[1] + s), (end[0] + c, end[1] + s), (end[0] - c, end[1] - s), (a[0] - c, a[1] - s)],
            colour,
            depth=depth,
        )
        for at in (a, end):
            canvas.shade(crisp_disc(64, 0, 0.12), colour, *at, half * 2.06, half * 2.06, depth=depth)
        left -= length
