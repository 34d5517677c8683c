"""The abstract shot: ribbons, spheres and a ring in the brand's colours, for prompts no set piece fits."""

import math

from videoads.renderer.shots.canvas import Camera, Canvas
from videoads.renderer.shots.colour import lightness, mix
from videoads.renderer.shots.easing import arrive, between, smooth
from videoads.renderer.shots.sprite import Sprite, Turned, blurred, crisp_disc, gradient, soft_disc
from videoads.renderer.shots.stage import Point, Stage

RING_STEPS = 240
RIBBON_POINTS = 40


class Abstract:
    """Three ribbons of colour at three depths, spheres that drift between them, dust in the light."""

    anchors: tuple[Point, ...] = ((220.0, 520.0), (520.0, 760.0))

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        draw = stage.random(1)
        colour = stage.colour
        dark_brand = lightness(colour("background")) < 0.4
        base = colour("dark", "accent", 0.12) if dark_brand else colour("pale", "light", 0.25)
        deep = colour("dark", "accent", 0.45) if dark_brand else colour("light", "accent", 0.42)
        middle = colour("dark", "accent", 0.24) if dark_brand else colour("light", "pale", 0.35)
        self.sky = gradient(
            *stage.backdrop_pixels(),
            [(0, base), (0.5, middle), (1, deep)],
            slant=0.18,
            seed=stage.request.seed,
        )
        tops = [
            colour("accent", "dark" if dark_brand else "light", 0.6 if dark_brand else 0.5),
            colour("accent", "dark" if dark_brand else "light", 0.32 if dark_brand else 0.22),
            colour("accent", "dark", 0.12),
        ]
        feet = [mix(top, colour("dark"), 0.35 if dark_brand else 0.16) for top in tops[:2]]
        feet.append(mix(tops[2], colour("dark"), 0.62))
        self.ribbons = [
            Sprite(gradient(*stage.frame_pixels(), [(0, top), (0.42, foot), (1, foot)]), None, 8, 8)
            for top, foot in zip(tops, feet, strict=True)
        ]
        self.rims = [Sprite(mix(top, colour("light", "white", 0.4), 0.55), None, 8, 8) for top in tops]
        self.phase = [float(value) for value in draw.uniform(0, math.tau, 3)]
        extras = [colour("accent"), colour("light", "accent", 0.25), colour("ink", "accent", 0.35)]
        orbs = [stage.svg("orb", size=1.4, extra={"near": one}) for one in extras]
        self.near_orb = blurred(orbs[0], 9 * stage.scale)
        self.orbs = [
            (orbs[i % 3], float(x), float(y), float(size), float(depth))
            for i, (x, y, size, depth) in enumerate(
                zip(
                    draw.permutation([90, 620, 330, 500, 200]) + draw.uniform(-30, 30, 5),
                    draw.permutation([250, 470, 700, 900, 1090]) + draw.uniform(-40, 40, 5),
                    (0.42, 0.62, 0.36, 1.0, 0.5),
                    (0.45, 0.7, 0.4, 1.0, 0.6),
                    strict=True,
                )
            )
        ]
        self.ring = Turned(stage.svg("ring"), RING_STEPS)
        self.dust = draw.random((46, 4))
        self.turn = 1.0 if draw.random() < 0.5 else -1.0

    def camera(self, t: float) -> Camera:
        """Drift across and push in."""
        eased = smooth(t)
        return Camera(between(-46, 46, eased) * self.turn, between(30, -30, eased), between(1.0, 1.1, eased))

    def paint(self, canvas: Canvas, t: float, seconds: float) -> None:
        """Far to near: light, ring, ribbons, spheres, dust."""
        colour = self.stage.colour
        canvas.backdrop(self.sky)
        glow_x = 360 + 190 * math.sin(seconds * 0.9 + self.phase[0])
        canvas.glow(colour("light"), glow_x, 380 + 60 * math.cos(seconds * 0.7), 1150, soft_disc(1.8), depth=0.2,
                    strength=0.55)  # fmt: skip
        self._ribbon(canvas, 0, seconds, top=760, swing=84, depth=0.35)
        enter = arrive(min(1.0, t * 2.2))
        turn = (seconds * 34 + self.phase[1] * 20) / 360 * self.turn
        canvas.draw(self.ring.at(turn), 400 - 60 * self.turn, 560, size=between(0.7, 1.0, enter), depth=0.6,
                    opacity=0.92)  # fmt: skip
        for orb in self.orbs[:3]:
            self._orb(canvas, orb, seconds, enter)
        self._ribbon(canvas, 1, seconds, top=900, swing=66, depth=0.75)
        for orb in self.orbs[3:]:
            self._orb(canvas, orb, seconds, enter)
        self._ribbon(canvas, 2, seconds, top=1075, swing=58, depth=1.15)
        for x, y, size, speed in self.dust:
            down = 1330 - ((y * 1400 + seconds * (40 + 90 * speed)) % 1400)
            wide = 7 + 15 * size
            canvas.shade(crisp_disc(64, 0.3, 0.5), colour("white"), x * 860 - 70 + 18 * math.sin(seconds * 1.3 + 9 * y),
                         down, wide, wide, depth=0.5 + size, opacity=0.16 + 0.4 * speed)  # fmt: skip
        canvas.draw(self.near_orb, 700 - 60 * smooth(t), 1190 + 26 * math.sin(seconds * 1.1), size=1.7, depth=1.7,
                    opacity=0.9)  # fmt: skip

    def _orb(
        self, canvas: Canvas, orb: tuple[Sprite, float, float, float, float], seconds: float, enter: float
    ) -> None:
        sprite, x, y, size, depth = orb
        up = y + 26 * math.sin(seconds * (0.9 + 0.3 * depth) + x) + (1 - enter) * 160
        canvas.shade(soft_disc(1.4), self.stage.colour("dark"), x + 16, up + 26, 250 * size, 250 * size, depth=depth,
                     opacity=0.3)  # fmt: skip
        canvas.draw(sprite, x, up, size=size, depth=depth)

    def _ribbon(
        self, canvas: Canvas, row: int, seconds: float, *, top: float, swing: float, depth: float
    ) -> None:
        left, _, right, _ = self.stage.span()
        phase = self.phase[row] + seconds * (0.9 + 0.35 * row)
        edge: list[Point] = []
        for step in range(RIBBON_POINTS + 1):
            share = step / RIBBON_POINTS
            x = between(left - 60, right + 60, share)
            wave = math.sin(x / 190 + phase) * 0.7 + math.sin(x / 97 - phase * 1.3) * 0.3
            edge.append((x, top + swing * wave - 120 * (share - 0.5) * self.turn))
        rim = [(x, y - 5) for x, y in edge]
        canvas.below(rim, self.rims[row], depth=depth, opacity=0.9, thickness=8)
        canvas.below(edge, self.ribbons[row], depth=depth)
