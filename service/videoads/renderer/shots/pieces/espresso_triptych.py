"""Three places, one cup: kitchen, desk and train, wiped in one after another into a triptych."""

import math
from typing import NamedTuple

from PIL import Image, ImageDraw

from videoads.renderer.shots.canvas import Camera, Canvas
from videoads.renderer.shots.colour import mix
from videoads.renderer.shots.easing import between, overshoot, smooth, span
from videoads.renderer.shots.sprite import Sprite, gradient, soft_disc
from videoads.renderer.shots.stage import Point, Stage
from videoads.renderer.shots.steam import paint_steam

ROOM_WIDTH, ROOM_HEIGHT = 900.0, 460.0
SLANT, GUTTER = 46.0, 7.0
TABLE = 404.0
ROOM_SIZE = 1.26
LIFT = 34.0


class Panel(NamedTuple):
    """One of the three places: its kind, its band between two heights, and when its wipe runs."""

    kind: str
    top: float
    bottom: float
    start: float
    from_left: bool


PANELS = (
    Panel("kitchen", 0.0, 427.0, -0.07, True),
    Panel("desk", 427.0, 853.0, 0.22, False),
    Panel("train", 853.0, 1280.0, 0.47, True),
)
WIPE = 0.23


class EspressoTriptych:
    """Each panel has three depths of its own; slanted gutters part them."""

    anchors: tuple[Point, ...] = ((360.0, 330.0), (360.0, 760.0))

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        colour = stage.colour
        left, _, right, _ = stage.span()
        self.fit = max(1.0, (right - left) / (ROOM_WIDTH - 60))
        self.rooms = {
            kind: stage.svg(f"room_{kind}", size=ROOM_SIZE * self.fit)
            for kind in ("kitchen", "desk", "train")
        }
        self.range, self.grove = stage.svg("range", size=self.fit), stage.svg("grove", size=1.2 * self.fit)
        night = mix(colour("pale", "accent", 0.25), colour("dark"), 0.22)
        day = mix(colour("pale"), colour("light"), 0.2)
        self.cups = {
            "kitchen": stage.svg("cup", size=1.0),
            "desk": stage.svg("cup", size=1.0, extra={"pale": night}),
            "train": stage.svg("cup", size=1.0, extra={"pale": day}),
        }
        self.ground = gradient(
            *stage.backdrop_pixels(),
            [(0, colour("pale", "light", 0.1)), (1, colour("pale", "light", 0.4))],
            slant=0.2, seed=4,
        )  # fmt: skip
        self.sky = Sprite(
            gradient(8, 64, [(0, colour("accent", "light", 0.45)), (0.6, colour("light")), (1, colour("pale"))]),
            None, ROOM_WIDTH * self.fit, 420 * self.fit,
        )  # fmt: skip
        self.veils = [colour("accent", "dark", share) for share in (0.2, 0.5, 0.34)]
        self.phase = float(stage.random(14).uniform(0, 6))

    def camera(self, t: float) -> Camera:
        """The frame itself holds; each panel moves its own camera."""
        return Camera(0, between(10, -10, smooth(t)), 1.0)

    def paint(self, canvas: Canvas, t: float, seconds: float) -> None:
        """The ground, then each panel through its wiped mask."""
        colour = self.stage.colour
        canvas.backdrop(self.ground, depth=0.4)
        canvas.glow(
            colour("light"),
            360 + 240 * math.sin(seconds * 1.3),
            900,
            900,
            soft_disc(1.8),
            depth=0.2,
            strength=0.4,
        )
        for number, panel in enumerate(PANELS):
            wiped = smooth(span(t, panel.start, panel.start + WIPE))
            self._panel(canvas, panel, number, wiped, t, seconds)

    def _panel(
        self, canvas: Canvas, panel: Panel, number: int, wiped: float, t: float, seconds: float
    ) -> None:
        stage, width = self.stage, self.stage.request.width
        stretch = stage.request.height / stage.scale / 1280
        top, bottom = 640 + (panel.top - 640) * stretch, 640 + (panel.bottom - 640) * stretch
        first = max(0, round(canvas.project(0, top - SLANT, 0)[1]))
        last = min(stage.request.height, round(canvas.project(0, bottom + SLANT, 0)[1]))
        if last <= first:
            return
        life = span(t, panel.start, 1.0)
        drift = between(38, -30, smooth(t))
        lean = -1 if number % 2 else 1
        zoom, middle = between(1.12, 1.0, smooth(life)), (top + bottom) / 2
        own = Canvas(stage, Camera(drift * lean, (middle - 640) * (1 - 1 / zoom), zoom))
        self._place(own, panel.kind, middle, seconds, life)
        box = 0, first, width, last
        bright = own.picture.crop(box)
        veil = Image.new("RGB", bright.size, self.veils[number])
        if wiped < 1:
            still = self._mask(canvas, number, top, bottom, 1.0, panel.from_left, first, last)
            canvas.picture.paste(Image.blend(bright, veil, 0.74), (0, first), still)
        if wiped > 0:
            mask = self._mask(canvas, number, top, bottom, wiped, panel.from_left, first, last)
            canvas.picture.paste(bright, (0, first), mask)

    def _mask(
        self, canvas: Canvas, number: int, top: float, bottom: float, wiped: float, from_left: bool, first: int, last: int
    ) -> Image.Image:  # fmt: skip
        """The band with slanted edges, as far as the wipe has come; its front leans as well."""
        left, _, right, _ = self.stage.span()
        tilt = SLANT / 2 if number % 2 else -SLANT / 2
        upper = (GUTTER if number else -120.0 - self.stage.top), (-tilt if number else 0.0)
        lower = (-GUTTER if number < 2 else 120.0 + self.stage.top), (tilt if number < 2 else 0.0)
        front = between(left - 140, right + 140, wiped)
        edge_left, edge_right = (left - 20, front) if from_left else (left + right - front, right + 20)
        lean = 90.0
        corners = [
            (edge_left - (0 if from_left else lean), top + upper[0] - upper[1]),
            (edge_right + (lean if from_left else 0), top + upper[0] + upper[1]),
            (edge_right - (lean if from_left else 0), bottom + lower[0] + lower[1]),
            (edge_left + (0 if from_left else lean), bottom + lower[0] - lower[1]),
        ]
        mask = Image.new("L", (self.stage.request.width * 2, (last - first) * 2))
        pixels = [canvas.project(x, y, 0) for x, y in corners]
        ImageDraw.Draw(mask).polygon([(x * 2, (y - first) * 2) for x, y in pixels], fill=255)
        return mask.reduce(2)

    def _place(self, own: Canvas, kind: str, middle: float, seconds: float, life: float) -> None:
        """One place with its cup, centred on the height `middle`."""
        colour, fit = self.stage.colour, self.fit
        top = middle - ROOM_HEIGHT * ROOM_SIZE * fit / 2 - LIFT
        base = top + TABLE * ROOM_SIZE * fit + 18
        cup_x = {"kitchen": 400.0, "desk": 470.0, "train": 330.0}[kind]
        if kind == "train":
            own.draw(self.sky, 360, top - 6, anchor=(0.5, 0), depth=0.5)
            own.glow(colour("white"), 430, top + 130 * fit, 460, soft_disc(2.2), depth=0.4, strength=0.8)
            own.strip(self.range, top + 340 * fit, depth=0.6, start=-seconds * 90, size=fit)
            own.strip(self.grove, top + 395 * fit, depth=0.8, start=-seconds * 520, size=1.2 * fit)
        own.draw(self.rooms[kind], 360, top, anchor=(0.5, 0), size=ROOM_SIZE * fit, depth=0.9)
        if kind == "kitchen":
            own.light(soft_disc(1.5), colour("light", "white", 0.4), 150 + 330 * life, top + 190, 520, 620, depth=0.9,
                      strength=0.55)  # fmt: skip
        if kind == "desk":
            own.glow(colour("light"), 520, top + 250, 640, soft_disc(1.7), depth=0.95,
                     strength=0.55 + 0.08 * math.sin(seconds * 5))  # fmt: skip
        own.shade(soft_disc(1.2), colour("dark"), cup_x + 4, base - 10, 330, 60, depth=1.15, opacity=0.55)
        pop = overshoot(span(life, 0.0, 0.35), 1.1)
        own.draw(self.cups[kind], cup_x, base, anchor=(0.47, 1), size=0.72 + 0.06 * pop, depth=1.15)
        paint_steam(own, cup_x - 6, base - 148, width=190, height=280, seconds=seconds, phase=self.phase + len(kind),
                    colour=colour("white", "light", 0.1), strength=0.75, depth=1.15)  # fmt: skip
