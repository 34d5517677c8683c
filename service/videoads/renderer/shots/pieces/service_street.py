"""A happy street: the sun is up, clean houses glide by, the service's van drives through with a wave of flags."""

import math

from videoads.renderer.shots.canvas import Camera, Canvas
from videoads.renderer.shots.colour import mix
from videoads.renderer.shots.daylight import WHITE, Daylight
from videoads.renderer.shots.easing import arrive, between, pulse, smooth, span
from videoads.renderer.shots.sparkle import paint_sparkle
from videoads.renderer.shots.sprite import Sprite, Turned, blurred, gradient, soft_disc
from videoads.renderer.shots.stage import Point, Stage

KERB, ROAD = 985.0, 1080.0
SPEED = 250.0
SPINS, FLAGS = 36, 13
HOUSE = 0.92


class ServiceStreet:
    """Sky with sun, city, houses, trees, flags, van, hedge near the eye."""

    anchors: tuple[Point, ...] = ((400.0, 860.0), (560.0, 560.0))

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.day = Daylight(stage, 960, 81)
        self.city = stage.svg("city_day", size=1.5)
        self.houses = stage.svg("houses", size=HOUSE)
        self.tree = stage.svg("tree_day", size=0.9)
        self.van, self.wheels = stage.svg("van", size=0.98), Turned(stage.svg("wheel"), SPINS)
        self.hedge = blurred(stage.svg("hedge", size=1.2), 3.5 * stage.scale)
        width, height = stage.frame_pixels()
        pavement = [
            (0.0, mix(stage.colour("accent"), WHITE, 0.84)),
            (1.0, mix(stage.colour("accent"), WHITE, 0.6)),
        ]
        asphalt = mix(stage.colour("dark"), WHITE, 0.42)
        self.pavement = Sprite(gradient(width, height, pavement), None, 8, 8)
        self.asphalt = Sprite(
            gradient(width, height, [(0.0, mix(asphalt, WHITE, 0.16)), (0.4, asphalt), (1.0, asphalt)]),
            None,
            8,
            8,
        )
        self.glints = stage.random(82).random((10, 3))

    def camera(self, t: float) -> Camera:
        """Glide along with the van and rise a little."""
        eased = smooth(t)
        return Camera(between(-34, 34, eased), between(20, -24, eased), between(1.06, 1.0, eased))

    def paint(self, canvas: Canvas, t: float, seconds: float) -> None:
        """Far to near."""
        run = seconds * SPEED
        left, _, right, _ = self.stage.span()
        self.day.paint(canvas, seconds, sun=(520, between(420, 300, arrive(t))), clouds_at=330)
        canvas.strip(self.city, KERB + 20, depth=0.3, start=-300 - run * 0.1, size=1.5)
        canvas.strip(self.houses, KERB, depth=0.7, start=-80 - run * 0.5, size=HOUSE)
        canvas.below([(left, KERB - 2), (right, KERB - 2)], self.pavement, depth=0.7)
        for x, y, when in self.glints:
            at = (x * 1300 - run * 0.5) % 1300 - 300
            paint_sparkle(
                canvas,
                at,
                600 + 300 * y,
                110 + 60 * when,
                math.sin(math.pi * ((seconds * 0.9 + when) % 1)) ** 4,
                depth=0.7,
            )
        for number in range(4):
            at = (number * 410 + 150 - run * 0.72) % 1640 - 460
            canvas.shade(
                soft_disc(1.0),
                self.stage.colour("dark"),
                at + 12,
                KERB + 34,
                190,
                30,
                depth=0.85,
                opacity=0.3,
            )
            sway = 1 + 0.015 * math.sin(seconds * 2.4 + number)
            canvas.draw(self.tree, at, KERB + 40, anchor=(0.5, 1), size=(0.86, 0.86 * sway), depth=0.85)
        self._flags(canvas, seconds)
        canvas.below([(left, ROAD - 26), (right, ROAD - 26)], self.asphalt, depth=1.0)
        for number in range(8):
            at = (number * 220 - run) % 1760 - 500
            canvas.polygon(
                [(at, 1176), (at + 110, 1176), (at + 100, 1188), (at - 10, 1188)], WHITE, opacity=0.85
            )
        self._van(canvas, t, seconds)
        canvas.strip(
            self.hedge, 1376 + self.stage.top, depth=1.5, start=-run * 1.7 - 100, size=1.2, overlap=46
        )

    def _van(self, canvas: Canvas, t: float, seconds: float) -> None:
        x = between(-420, 350, arrive(span(t, 0.0, 0.6))) + 40 * smooth(span(t, 0.6, 1.0))
        y = 1146 + 2.5 * math.sin(seconds * 17)
        canvas.shade(soft_disc(0.9), self.stage.colour("dark"), x, 1150, 560, 62, opacity=0.6)
        canvas.draw(self.van, x, y, anchor=(0.5, 0.86), size=0.98)
        for hub in (-128 * 0.98, 152 * 0.98):
            canvas.draw(self.wheels.at(-2.6 * seconds), x + hub, 1146 - 8, size=0.98)
        for number in range(3):
            age = (seconds * 1.6 + number / 3) % 1
            puff = 26 + 56 * age
            canvas.shade(
                soft_disc(1.0),
                WHITE,
                x - 270 - 120 * age,
                1136 - 26 * age,
                puff,
                puff,
                opacity=0.6 * (1 - age),
            )
        paint_sparkle(canvas, x + 120, y - 190, 170, pulse((seconds * 0.7) % 1) ** 2)

    def _flags(self, canvas: Canvas, seconds: float) -> None:
        left, _, right, _ = self.stage.span()
        colours = (self.stage.colour("accent"), self.stage.colour("light"), (255, 111, 97), WHITE)
        previous: Point | None = None
        for number in range(FLAGS):
            share = number / (FLAGS - 1)
            x = between(left - 20, right + 20, share)
            hang = 1 - (2 * share - 1) ** 2
            y = 560 - 60 + 110 * hang + 5 * math.sin(seconds * 2.4 + number)
            if previous is not None:
                canvas.polygon(
                    [previous, (x, y), (x, y + 3), (previous[0], previous[1] + 3)],
                    mix(self.stage.colour("dark"), WHITE, 0.3),
                    depth=0.95,
                )
                middle = (previous[0] + x) / 2, (previous[1] + y) / 2
                swing = 12 * math.sin(seconds * 4 + number * 1.3)
                canvas.polygon([(middle[0] - 21, middle[1] - 1), (middle[0] + 21, middle[1] + 2), (middle[0] + swing, middle[1] + 52)],
                               colours[number % 4], depth=0.95)  # fmt: skip
            previous = x, y
