"""Three places, one cup: kitchen, desk and train, wiped in one after another into a triptych."""

import math
from typing import NamedTuple

from msgspec.structs import replace
from PIL import Image, ImageDraw

from videoads.renderer.shots.canvas import Camera, Canvas
from videoads.renderer.shots.colour import mix
from videoads.renderer.shots.easing import between, overshoot, smooth, span
from videoads.renderer.shots.sprite import Sprite, crisp_disc, gradient, soft_disc
from videoads.renderer.shots.stage import BOX_HEIGHT, BOX_WIDTH, Point, Stage
from videoads.renderer.shots.steam import paint_steam

ROOM_WIDTH, ROOM_HEIGHT = 900.0, 460.0
SLANT, GUTTER = 46.0, 7.0
TABLE = 404.0
ROOM_SIZE = 1.26
LIFT = 34.0


class Panel(NamedTuple):
    """One of the three bands: its two heights, when its wipe runs, and from where."""

    top: float
    bottom: float
    start: float
    from_left: bool


PANELS = (
    Panel(0.0, 427.0, -0.07, True),
    Panel(427.0, 853.0, 0.22, False),
    Panel(853.0, 1280.0, 0.47, True),
)
WIPE = 0.23
CUP_AT = {"kitchen": 400.0, "desk": 470.0, "noon": 470.0, "train": 330.0, "terrace": 300.0}
FOCUS = {"kitchen": 270.0, "desk": 560.0, "noon": 560.0, "train": 420.0, "terrace": 480.0}
TERRACE = ("terrace", "terrasse", "balcon", "balkon", "veranda")
NOON = ("noon", "midday", "mittag", "daylight")
BULBS = (
    (60, 118),
    (120, 116),
    (220, 128),
    (290, 141),
    (360, 141),
    (440, 122),
    (580, 112),
    (650, 126),
    (720, 126),
)
COLUMN_FIT, COLUMN_CUP = 2.4, 1.7
COLUMN_COVER = 330.0  # half of what a room covers on the side its focus leaves shorter, at fit 1


class EspressoTriptych:
    """Each panel has three depths of its own; slanted gutters part them."""

    anchors: tuple[Point, ...] = ((360.0, 330.0), (360.0, 760.0))

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        colour = stage.colour
        left, _, right, _ = stage.span()
        request = stage.request
        self.column: Stage | None = None
        if request.width >= request.height:
            wide = request.width // 6 * 2 + 2 * round(SLANT * stage.scale)
            self.column = Stage(replace(request, width=wide, height=request.height))
        if self.column:
            seen = BOX_WIDTH / 2 + self.column.left + 60
            self.fit = max(COLUMN_FIT, seen / COLUMN_COVER)
        else:
            band = (BOX_HEIGHT + 2 * stage.top) / len(PANELS)
            room = ROOM_HEIGHT * ROOM_SIZE
            self.fit = max(1.0, (right - left) / (ROOM_WIDTH - 60), (band + SLANT + 2 * LIFT) / room)
        self.cup_size = COLUMN_CUP if self.column else 1.0
        words = request.prompt.lower()
        outside = "terrace" if any(word in words for word in TERRACE) else "train"
        at_noon = any(word in words for word in NOON)
        self.kinds = ("kitchen", "noon" if at_noon else "desk", outside)
        drawings = {"noon": "room_desk_noon"}
        self.rooms = {
            kind: stage.svg(drawings.get(kind, f"room_{kind}"), size=ROOM_SIZE * self.fit)
            for kind in self.kinds
        }
        self.range, self.grove = stage.svg("range", size=self.fit), stage.svg("grove", size=1.2 * self.fit)
        night = mix(colour("pale", "accent", 0.25), colour("dark"), 0.22)
        day = mix(colour("pale"), colour("light"), 0.2)
        tones = {"desk": night, "train": day, "terrace": mix(day, colour("accent"), 0.22)}
        self.cups = {
            kind: stage.svg("cup", size=self.cup_size, extra={"pale": tones.get(kind, colour("pale"))})
            for kind in self.kinds
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
        evening = [(0, colour("dark", "accent", 0.55)), (0.3, colour("accent", "dark", 0.18)),
                   (0.55, colour("accent", "light", 0.4)), (0.75, colour("light")), (1, colour("light"))]  # fmt: skip
        self.dusk = Sprite(gradient(8, 96, evening), None, self.sky.width, self.sky.height)
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
            paint = self._upright if self.column else self._panel
            paint(canvas, panel, number, wiped, t, seconds)

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
        self._place(own, self.kinds[number], middle, seconds, life)
        box = 0, first, width, last
        bright = own.picture.crop(box)
        veil = Image.new("RGB", bright.size, self.veils[number])
        if wiped < 1:
            still = self._mask(canvas, number, top, bottom, 1.0, panel.from_left, first, last)
            canvas.picture.paste(Image.blend(bright, veil, 0.74), (0, first), still)
        if wiped > 0:
            mask = self._mask(canvas, number, top, bottom, wiped, panel.from_left, first, last)
            canvas.picture.paste(bright, (0, first), mask)

    def _upright(
        self, canvas: Canvas, panel: Panel, number: int, wiped: float, t: float, seconds: float
    ) -> None:
        """In a wide frame the three places stand side by side, and the wipes run down and up."""
        assert self.column is not None
        life = span(t, panel.start, 1.0)
        lean = -1 if number % 2 else 1
        eye = Camera(between(30, -24, smooth(t)) * lean, 0, between(1.1, 1.0, smooth(life)))
        own = Canvas(self.column, eye)
        self._place(own, self.kinds[number], BOX_HEIGHT / 2, seconds, life)
        width, height = own.picture.size
        slant, gutter = round(SLANT * self.stage.scale), GUTTER * self.stage.scale
        at = round(self.stage.request.width * number / len(PANELS)) - slant
        lean_px = slant / 2
        west = -width if number == 0 else slant + gutter
        east = 2 * width if number == len(PANELS) - 1 else width - slant - gutter
        veil = Image.blend(own.picture, Image.new("RGB", own.picture.size, self.veils[number]), 0.74)
        for picture, part in ((veil, 1.0), (own.picture, wiped)):
            if part <= 0 or (picture is veil and wiped >= 1):
                continue
            top, foot = (0.0, height * part) if panel.from_left else (height * (1 - part), float(height))
            corners = []
            for x, y in ((west, top), (east, top), (east, foot), (west, foot)):
                corners.append((2 * (x + lean_px * (1 - 2 * y / height)), 2 * y))
            mask = Image.new("L", (width * 2, height * 2))
            ImageDraw.Draw(mask).polygon(corners, fill=255)
            canvas.picture.paste(picture, (at, 0), mask.reduce(2))

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
        cup_x, focus = CUP_AT[kind], ROOM_WIDTH / 2
        room_x = 360.0
        if self.column:
            cup_x, focus = 360.0, FOCUS[kind]
            room_x = 360 + (ROOM_WIDTH / 2 - focus) * ROOM_SIZE * fit
        if kind in ("train", "terrace"):
            own.draw(
                self.dusk if kind == "terrace" else self.sky, room_x, top - 6, anchor=(0.5, 0), depth=0.5
            )
        if kind == "train":
            own.glow(colour("white"), 430, top + 130 * fit, 460, soft_disc(2.2), depth=0.4, strength=0.8)
            own.strip(self.range, top + 340 * fit, depth=0.6, start=-seconds * 90, size=fit)
            own.strip(self.grove, top + 395 * fit, depth=0.8, start=-seconds * 520, size=1.2 * fit)
        if kind == "terrace":
            self._evening(own, top, seconds)
        own.draw(self.rooms[kind], room_x, top, anchor=(0.5, 0), size=ROOM_SIZE * fit, depth=0.9)
        if kind == "terrace":
            self._bulbs(own, room_x, top, seconds)
        if kind in ("kitchen", "noon"):
            own.light(soft_disc(1.5), colour("light", "white", 0.4), 150 + 330 * life, top + 190, 520, 620, depth=0.9,
                      strength=0.55)  # fmt: skip
        if kind == "desk":
            own.glow(colour("light"), 520, top + 250, 640, soft_disc(1.7), depth=0.95,
                     strength=0.55 + 0.08 * math.sin(seconds * 5))  # fmt: skip
        cup = self.cup_size
        own.shade(
            soft_disc(1.2),
            colour("dark"),
            cup_x + 4,
            base - 10,
            330 * cup,
            60 * cup,
            depth=1.15,
            opacity=0.55,
        )
        pop = overshoot(span(life, 0.0, 0.35), 1.1)
        own.draw(self.cups[kind], cup_x, base, anchor=(0.47, 1), size=(0.72 + 0.06 * pop) * cup, depth=1.15)
        paint_steam(own, cup_x - 6, base - 148 * cup, width=190 * cup, height=280 * cup, seconds=seconds, phase=self.phase + len(kind),
                    colour=colour("white", "light", 0.1), strength=0.75, depth=1.15)  # fmt: skip

    def _evening(self, own: Canvas, top: float, seconds: float) -> None:
        """The sun going down over hills and a glittering bay."""
        colour, fit = self.stage.colour, self.fit
        sun = top + (232 + 8 * seconds) * fit
        own.shade(
            crisp_disc(160, 0, 0.03), colour("light", "white", 0.6), 430, sun, 120 * fit, 120 * fit, depth=0.4
        )
        own.glow(colour("light"), 430, sun, 560 * fit, soft_disc(1.8), depth=0.4, strength=0.7)
        own.strip(self.range, top + 318 * fit, depth=0.6, start=-250 - 6 * seconds, size=0.5 * fit)
        left, _, right, _ = self.stage.span()
        sea = [(left, top + 300 * fit), (right, top + 300 * fit)]
        own.below(sea, Sprite(colour("accent", "light", 0.12), None, 8, 8), depth=0.6, thickness=170 * fit)
        for number in range(14):
            wide = (26 + 60 * ((number * 37) % 11) / 11) * (
                0.5 + 0.5 * math.sin(seconds * 4 + number * 1.9) ** 2
            )
            y = top + (306 + 6.5 * number) * fit
            x = 430 + 60 * math.sin(number * 2.3 + seconds * 0.8)
            own.polygon(
                [(x - wide, y), (x, y - 2.2), (x + wide, y), (x, y + 2.2)],
                colour("light", "white", 0.4),
                depth=0.6,
            )

    def _bulbs(self, own: Canvas, room_x: float, top: float, seconds: float) -> None:
        """A string of lights along its rope."""
        colour, scale = self.stage.colour, ROOM_SIZE * self.fit
        for number, (x, y) in enumerate(BULBS):
            at = room_x + (x - ROOM_WIDTH / 2) * scale, top + y * scale
            beat = 0.75 + 0.25 * math.sin(seconds * 3 + number * 1.7)
            own.glow(colour("light"), *at, 90 * scale * 0.8, soft_disc(2.0), depth=0.9, strength=0.8 * beat)
            own.shade(crisp_disc(64, 0, 0.2), colour("light", "white", 0.6), *at, 15, 15, depth=0.9)
