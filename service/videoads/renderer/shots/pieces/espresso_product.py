"""The brewer turns in on a studio table while beans fall around it; two points are kept for call-outs."""

import math

from videoads.renderer.shots.canvas import Camera, Canvas
from videoads.renderer.shots.colour import mix
from videoads.renderer.shots.easing import arrive, between, clamp, overshoot, smooth, span
from videoads.renderer.shots.falling import Body, pose, scatter
from videoads.renderer.shots.moka import MokaPot
from videoads.renderer.shots.product_card import ProductCard
from videoads.renderer.shots.sprite import Turned, blurred, crisp_disc, radial, soft_disc
from videoads.renderer.shots.stage import Point, Stage
from videoads.renderer.shots.steam import paint_steam

TABLE, FOOT = 900.0, 978.0
TURNS = 64
BAR_SECONDS = 2.4


class EspressoProduct:
    """Wall with a disc of colour, table, far beans, pot, near beans out of focus."""

    anchors: tuple[Point, ...] = ((270.0, 492.0), (500.0, 830.0))

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        colour = stage.colour
        width, height = stage.backdrop_pixels()
        wall = [(0, colour("light", "pale", 0.35)), (0.5, mix(colour("accent"), colour("light"), 0.38)),
                (1.0, mix(colour("accent"), colour("dark"), 0.5))]  # fmt: skip
        self.wall = radial(width, height, wall, centre=stage.place_in_backdrop(250, 420), reach=0.72, seed=5)
        self.table = stage.ground(
            TABLE,
            [(0, mix(colour("accent"), colour("dark"), 0.34)), (0.25, mix(colour("accent"), colour("dark"), 0.52)),
             (1, colour("dark", "accent", 0.14))], seed=6,
        )  # fmt: skip
        self.pot = MokaPot(stage)
        self.card = ProductCard(stage) if stage.request.product_picture else None
        beans = stage.svg("bean")
        self.beans = Turned(beans, TURNS)
        near = blurred(stage.svg("bean"), 7 * stage.scale)
        self.near_beans = Turned(near, TURNS)
        length = stage.request.frames / stage.request.fps
        many = clamp(length / BAR_SECONDS, 1.0, 4.0)  # a longer shot has more beans, not a thinner fall
        self.far_falling = scatter(
            stage.random(5), round(16 * many), spread=(40, 680), top=-120, seconds=length, depths=(0.5, 0.85)
        )
        self.mid_falling = scatter(stage.random(6), round(12 * min(2.0, many)), spread=(60, 660), top=-120, seconds=length * 0.8,
                                   depths=(0.95, 1.15))  # fmt: skip
        self.near_falling = scatter(
            stage.random(7), round(8 * many), spread=(-40, 760), top=-260, seconds=length, depths=(1.6, 2.1)
        )
        self.near_falling = [
            body._replace(x=body.x * 0.5 - 90 if body.x < 360 else 630 + (body.x - 360) * 0.5)
            for body in self.near_falling
        ]
        self.phase = float(stage.random(8).uniform(0, 6))

    def camera(self, t: float) -> Camera:
        """A low arc round the pot, closing in."""
        eased = smooth(t)
        return Camera(between(34, -26, eased), between(22, -8, eased), between(1.0, 1.09, eased))

    def paint(self, canvas: Canvas, t: float, seconds: float) -> None:
        """Wall, disc, far beans, pot, beans on the table, near beans."""
        colour = self.stage.colour
        canvas.backdrop(self.wall, depth=0.3)
        canvas.ground(self.table, TABLE, depth=0.55)
        grown = overshoot(span(t, 0.0, 0.42), 0.9)
        disc = mix(colour("accent"), colour("dark"), 0.12)
        canvas.shade(
            crisp_disc(400, 0.0, 0.012), disc, 360, 590, 590 * grown, 590 * grown, depth=0.4, opacity=0.92
        )
        canvas.glow(
            colour("light"), 210 + 80 * math.sin(seconds), 380, 760, soft_disc(1.6), depth=0.4, strength=0.42
        )
        self._fall(canvas, self.far_falling, self.beans, seconds, 0.52)
        inward = arrive(span(t, 0.0, 0.62))
        x = between(560, 360, inward)
        angle = between(-3.6, 0.42, inward) + 0.32 * smooth(t)
        canvas.shade(soft_disc(1.1), colour("dark"), x + 34, FOOT - 6, 520, 120, opacity=0.75)
        canvas.shade(soft_disc(0.8), colour("dark"), x + 4, FOOT - 8, 320, 46, opacity=0.7)
        if self.card is not None:
            turn = between(-1.25, 0.0, inward) + 0.16 * math.sin(seconds * 1.3) * inward
            self.card.paint(canvas, x, FOOT, turn, sweep=span(t, 0.3, 0.75))
        else:
            self.pot.paint(canvas, x, FOOT, angle)
            spout_x = x - 150 * math.cos(angle)
            paint_steam(canvas, spout_x, FOOT - 540, width=230, height=330, seconds=seconds, phase=self.phase,
                        colour=colour("pale", "white", 0.6), strength=0.55 * smooth(span(t, 0.3, 0.7)))  # fmt: skip
        self._fall(canvas, self.mid_falling, self.beans, seconds, 0.62, floor=FOOT + 26)
        self._fall(canvas, self.near_falling, self.near_beans, seconds, 1.25)

    def _fall(
        self, canvas: Canvas, bodies: list[Body], sprites: Turned, seconds: float, size: float, *, floor: float | None = None
    ) -> None:  # fmt: skip
        for body in bodies:
            rest = floor + 46 * (body.depth - 0.95) / 0.2 if floor else None
            now = pose(body, seconds + 0.55, rest)
            if now is None or now.y > 1600:
                continue
            sprite = sprites.at(now.turn)
            if rest is not None and now.y > rest - 190:
                near = 1 - (rest - now.y) / 190
                canvas.shade(soft_disc(1.2), self.stage.colour("dark"), now.x + 8, rest + 20 * size, 110 * size, 40 * size,
                             depth=body.depth, opacity=0.6 * near)  # fmt: skip
            canvas.draw(sprite, now.x, now.y, size=size * body.size, depth=body.depth)
