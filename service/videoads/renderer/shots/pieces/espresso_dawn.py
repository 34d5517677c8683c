"""Dawn at the window: the sun comes up behind a town on hills, a cup steams on the sill.

The sky's upper half is kept calm: the headline goes there.
"""

import math

import numpy as np
from PIL import Image

from videoads.renderer.shots.canvas import Camera, Canvas, Ray
from videoads.renderer.shots.colour import mix
from videoads.renderer.shots.easing import arrive, between, smooth
from videoads.renderer.shots.sprite import blurred, crisp_disc, gradient, grey, soft_disc
from videoads.renderer.shots.stage import Point, Stage
from videoads.renderer.shots.steam import paint_steam

HORIZON, SILL = 800.0, 1098.0
MOTES, BIRDS = 26, 5


class EspressoDawn:
    """Sky, sun, two ranges of hills, the town, the sill with its cup, a jamb and a curtain near the eye."""

    anchors: tuple[Point, ...] = ((470.0, 690.0), (300.0, 940.0))

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        colour = stage.colour
        shares = [(0.0, ("dark", "accent", 0.28)), (0.26, ("accent", "dark", 0.42)), (0.46, ("accent", "light", 0.28)),
                  (0.6, ("light", "accent", 0.12)), (0.7, ("light", "pale", 0.45)), (1.0, ("pale", "light", 0.3))]  # fmt: skip
        self.sky = gradient(*stage.backdrop_pixels(), [(at, colour(*names)) for at, names in shares], seed=3)
        left, _, right, _ = stage.span()
        wide = right - left + 120
        self.far = stage.svg("hills_far", stretch=(wide, 280))
        self.mid = stage.svg("hills_mid", stretch=(wide, 320))
        self.town = stage.svg("town")
        self.sill = stage.svg("sill", stretch=(wide, 330))
        dusk = mix(colour("pale", "accent", 0.34), colour("dark"), 0.22)
        self.cup = stage.svg("cup", size=1.15, extra={"pale": dusk})
        self.jamb = blurred(stage.svg("jamb", stretch=(130, 1700)), 2.5 * stage.scale)
        self.curtain = blurred(stage.svg("curtain", stretch=(240, 1700)), 3 * stage.scale)
        self.bird = stage.svg("bird")
        self.motes = stage.random(2).random((MOTES, 4))
        self.flock = stage.random(3).random((BIRDS, 3))
        self.rays = _rays()
        self.phase = float(stage.random(4).uniform(0, math.tau))

    def camera(self, t: float) -> Camera:
        """Push in slowly while sinking to the cup."""
        eased = smooth(t)
        return Camera(between(-26, 22, eased), between(-34, 26, eased), between(1.0, 1.075, eased))

    def paint(self, canvas: Canvas, t: float, seconds: float) -> None:
        """From the sky to the curtain."""
        colour = self.stage.colour
        rise = smooth(t * 0.85 + 0.15)
        sun_x, sun_y = between(430, 462, rise), between(HORIZON + 30, 655, rise)
        canvas.backdrop(self.sky, depth=0.12)
        wide = between(700, 1080, rise)
        canvas.lights(
            Ray(soft_disc(1.7), colour("light"), sun_x, sun_y, wide, wide, 0.16, between(0.5, 0.95, rise)),
            Ray(self.rays, colour("light", "white", 0.3), sun_x, sun_y, 1500, 1500, 0.16,
                0.3 * rise + 0.05 * math.sin(seconds * 2.2)),
        )  # fmt: skip
        canvas.shade(
            crisp_disc(200, 0.0, 0.03), colour("light", "white", 0.72), sun_x, sun_y, 172, 172, depth=0.16
        )
        self._flock(canvas, t)
        canvas.draw(self.far, 360, HORIZON - 96, anchor=(0.5, 0), depth=0.28)
        canvas.shade(soft_disc(1.0), colour("light", "pale", 0.4), 300 + 60 * t, HORIZON + 60, 1500, 190, depth=0.34,
                     opacity=0.6)  # fmt: skip
        canvas.draw(self.mid, 360, HORIZON - 18, anchor=(0.5, 0), depth=0.42)
        canvas.shade(soft_disc(1.0), colour("light", "pale", 0.2), 480 - 90 * t, HORIZON + 130, 1400, 180, depth=0.5,
                     opacity=0.55)  # fmt: skip
        canvas.strip(self.town, SILL + 96, depth=0.62, start=-318)
        canvas.glow(
            colour("light"), sun_x + 10, sun_y + 150, 620, soft_disc(2.2), depth=0.3, strength=0.34 * rise
        )
        canvas.draw(self.sill, 360, SILL, anchor=(0.5, 0))
        canvas.shade(soft_disc(1.3), colour("dark"), 262, SILL + 58, 480, 84, opacity=0.6)
        canvas.draw(self.cup, 292, SILL + 64, anchor=(0.5, 1))
        paint_steam(canvas, 286, SILL - 150, width=300, height=between(400, 470, t), seconds=seconds, phase=self.phase,
                    colour=colour("pale", "white", 0.5), strength=0.3 + 0.6 * arrive(t * 2 + 0.35))  # fmt: skip
        for x, y, size, speed in self.motes:
            down = 1180 - ((y * 760 + seconds * (24 + 46 * speed)) % 760)
            wide = 4 + 9 * size
            twinkle = 0.25 + 0.35 * (0.5 + 0.5 * math.sin(seconds * (2 + 3 * speed) + 40 * x))
            canvas.shade(crisp_disc(64, 0.2, 0.6), colour("light", "white", 0.5), 150 + x * 540 + 14 * math.sin(seconds + 9 * y),
                         down, wide, wide, depth=1 + size * 0.5, opacity=twinkle)  # fmt: skip
        canvas.draw(self.jamb, -self.stage.left - 62, 640, anchor=(0, 0.5), depth=1.5)
        sway = 1 + 0.035 * math.sin(seconds * 1.6)
        canvas.draw(self.curtain, 722 + self.stage.left + 56, 640, anchor=(1, 0.5), size=(sway, 1), depth=1.55,
                    opacity=0.94)  # fmt: skip

    def _flock(self, canvas: Canvas, t: float) -> None:
        for place, (x, y, beat) in enumerate(self.flock):
            flap = 0.55 + 0.45 * math.sin(t * 34 + beat * 9)
            canvas.draw(self.bird, 150 + place * 34 + 26 * x + 210 * t, 706 + 34 * y - 60 * t + abs(place - 2) * 13,
                        size=(0.5, 0.5 * max(0.3, flap)), depth=0.3, opacity=0.75)  # fmt: skip


def _rays(side: int = 180, count: int = 14) -> Image.Image:
    axis = np.linspace(-1, 1, side, dtype=np.float32)
    down, across = axis[:, None], axis[None, :]
    distance = np.sqrt(across**2 + down**2)
    angle = np.arctan2(down, across)
    beams = 0.5 + 0.5 * np.cos(angle * count + 1.3 * np.sin(angle * 3))
    return grey((beams**3 * np.clip(1 - distance, 0, 1) ** 1.6 * (down < 0.12)).astype(np.float32))
