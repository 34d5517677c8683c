"""A squeegee wipes a soapy pane clear, stroke after stroke; behind it the city shines."""

import math
from dataclasses import replace

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from videoads.renderer.shots.canvas import Camera, Canvas
from videoads.renderer.shots.colour import mix
from videoads.renderer.shots.daylight import WHITE, Daylight
from videoads.renderer.shots.easing import between, clamp, smooth, span
from videoads.renderer.shots.sparkle import paint_sparkle
from videoads.renderer.shots.sprite import Sprite, Turned, crisp_disc, cut, grey
from videoads.renderer.shots.stage import Point, Stage

SWEEPS = 3
COARSE, HAZE = 2, 18
TILTS = 240
STEPS = 60
BUBBLES, RUNS = 46, 12


class ServiceWipe:
    """Sky, two rows of city, trees, the pane's soap with a wiped path in it, squeegee, frame, glints."""

    anchors: tuple[Point, ...] = ((250.0, 420.0), (480.0, 760.0))

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.day = Daylight(stage, 980, 51)
        self.city = stage.svg("city_day", size=1.9)
        self.tree = stage.svg("tree_day", size=1.1)
        size = 840 + 2 * stage.left, 1460 + 2 * stage.top
        self.frame = _bars(stage.svg("window_frame", stretch=size))
        wide, high = size[0] / 840, size[1] / 1460
        self.pane = (360 - 326 * wide, 640 - 580 * high, 360 + 326 * wide, 640 + 480 * high)
        self.stroke = (self.pane[3] - self.pane[1]) / SWEEPS
        self.reach = stage.left
        self.tool = Turned(stage.svg("squeegee", size=0.85), TILTS)
        self.soap = self._soap()
        self.glints = stage.random(53).random((9, 3))
        self.runs = stage.random(54).random((RUNS, 3))
        self.path = self._path()

    def camera(self, t: float) -> Camera:
        """Lean towards the glass."""
        eased = smooth(t)
        return Camera(between(-22, 24, eased), between(16, -16, eased), between(1.0, 1.06, eased))

    def paint(self, canvas: Canvas, t: float, seconds: float) -> None:
        """The view, the soap on it, the tool, the frame, the glints."""
        self.day.paint(canvas, seconds, sun=(500, 330), clouds_at=430)
        canvas.strip(self.city, 1150, depth=0.3, start=-420 - 12 * seconds, size=1.9)
        for x, size, depth in ((70.0, 0.95, 0.5), (640.0, 1.15, 0.55), (330.0, 0.62, 0.42)):
            sway = 1 + 0.012 * math.sin(seconds * 2 + x)
            canvas.draw(self.tree, x, 1180, anchor=(0.5, 1), size=(size, size * sway), depth=depth)
        done = between(0.015, 1.03, smooth(span(t, -0.12, 0.93)))
        self._soap_on(canvas, done)
        self._bubbles_run(canvas, done, seconds)
        for x, y, when in self.glints:
            place = 90 - self.reach + x * (540 + 2 * self.reach), 130 + y * 900
            cleared = span(done, 0.05 + 0.9 * y, 0.12 + 0.9 * y)
            beat = math.sin(math.pi * ((seconds * 0.8 + when) % 1)) ** 3
            paint_sparkle(canvas, *place, 120 + 90 * when, cleared * beat, depth=0.9)
        self._reflection(canvas, t)
        at, angle = self._along(min(1.0, done))
        tool = self.tool.at(-angle / math.tau)
        gone = smooth(span(t, 0.9, 1.0))
        canvas.draw(replace(tool, fill=self.stage.colour("dark")),
                    at[0] + 22, at[1] + 30 + 700 * gone, size=0.92, depth=1.02, opacity=0.16)  # fmt: skip
        canvas.draw(tool, at[0], at[1] + 700 * gone, size=0.92, depth=1.05)
        for bar in self.frame:
            canvas.draw(bar, 360, 640)

    def _path(self) -> list[Point]:
        """The way of the rubber's middle: three sweeps across, with round turns."""
        left, top, right, _ = self.pane
        rows = [top + self.stroke * (0.5 + row) for row in range(SWEEPS)]
        points: list[Point] = []
        for number, y in enumerate(rows):
            xs = np.linspace(left + 20, right - 20, STEPS)
            for x in xs if number % 2 == 0 else xs[::-1]:
                points.append((float(x), y + 16 * math.sin((float(x) - left) / (right - left) * math.pi)))
            if number < SWEEPS - 1:
                turn = right - 20 if number % 2 == 0 else left + 20
                side = 1 if number % 2 == 0 else -1
                for step in range(1, 12):
                    angle = math.pi * step / 12
                    points.append(
                        (turn + side * 46 * math.sin(angle), y + self.stroke * (1 - math.cos(angle)) / 2)
                    )
        return points

    def _along(self, done: float) -> tuple[Point, float]:
        """Where the tool is, and its tilt."""
        exact = clamp(done) * (len(self.path) - 1)
        first = min(int(exact), len(self.path) - 2)
        part = exact - first
        a, b = self.path[first], self.path[first + 1]
        wide = self.path[max(0, first - 9)], self.path[min(len(self.path) - 1, first + 10)]
        heading = math.atan2(wide[1][1] - wide[0][1], wide[1][0] - wide[0][0])
        tilt = 0.62 * math.cos(heading) * -1
        return (a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part), tilt

    def _soap_on(self, canvas: Canvas, done: float) -> None:
        """Veil and foam everywhere but on the path wiped so far."""
        stage, depth = self.stage, 0.9
        width, height = stage.request.width // COARSE, stage.request.height // COARSE
        veil = Image.new("L", (width, height), 255)
        pen = ImageDraw.Draw(veil)
        count = max(2, round(clamp(done) * (len(self.path) - 1)))
        points = [canvas.project(x, y, depth) for x, y in self.path[: count + 1]]
        zoom = stage.scale * canvas.zoom(depth) / COARSE
        thick = self.stroke * 1.16 * zoom
        for x, y in points:
            x, y = x / COARSE, y / COARSE
            pen.rectangle((x - thick * 0.3, y - thick / 2, x + thick * 0.3, y + thick / 2), fill=0)
        if done > 0.98:
            rest = round(255 * (1 - span(done, 0.98, 1.03)))
            veil = veil.point([min(value, rest) for value in range(256)])
        veil = veil.filter(ImageFilter.GaussianBlur(max(0.6, 1.6 * zoom * COARSE)))
        coarse = veil.getbbox()
        if coarse is None:
            return
        box = coarse[0] * COARSE, coarse[1] * COARSE, coarse[2] * COARSE, coarse[3] * COARSE
        size = box[2] - box[0], box[3] - box[1]
        full = veil.crop(coarse).resize(size, Image.Resampling.BILINEAR)
        small = max(1, size[0] // HAZE), max(1, size[1] // HAZE)
        hazy = canvas.picture.crop(box).resize(small, Image.Resampling.BOX)
        grime = mix(mix(stage.colour("accent"), WHITE, 0.62), (150, 156, 150), 0.35)
        hazy = Image.blend(hazy, Image.new("RGB", small, grime), 0.5)
        canvas.picture.paste(hazy.resize(size, Image.Resampling.BILINEAR), box[:2], full)
        covered = ImageChops.multiply(self.soap.crop(box), full)
        canvas.picture.paste(mix(WHITE, stage.colour("accent"), 0.05), box, covered)

    def _soap(self) -> Image.Image:
        """Foam as a grey picture of half the frame's size: bubbles, streaks, drops."""
        stage = self.stage
        width, height = max(2, stage.request.width // COARSE), max(2, stage.request.height // COARSE)
        scale = stage.scale / COARSE
        random = stage.random(52)
        foam = Image.new("L", (width * 2, height * 2), 26)
        pen = ImageDraw.Draw(foam)
        for x, y, size, tone in random.random((900, 4)):
            wide = (5 + 30 * size**3) * scale * 2
            at = x * width * 2, (y**1.25) * height * 2
            pen.ellipse((at[0] - wide, at[1] - wide, at[0] + wide, at[1] + wide), fill=round(50 + 110 * tone),
                        outline=round(150 + 90 * tone), width=max(1, round(wide * 0.16)))  # fmt: skip
        for x, y, size, _ in random.random((60, 4)):
            wide, long = (3 + 5 * size) * scale * 2, (80 + 260 * size) * scale * 2
            at = x * width * 2, y * height * 2
            pen.rounded_rectangle(
                (at[0] - wide, at[1], at[0] + wide, at[1] + long), radius=wide, fill=round(90 + 60 * size)
            )
        small = foam.reduce(2).filter(ImageFilter.GaussianBlur(max(0.5, 0.9 * scale * 2)))
        cloud = Image.fromarray((random.random((14, 8)) * 255).astype(np.uint8)).resize(
            (width, height), Image.Resampling.BICUBIC
        )
        patchy = np.asarray(small, np.float32) / 255 * (0.5 + 0.75 * np.asarray(cloud, np.float32) / 255)
        frame = width * COARSE, height * COARSE
        return grey(patchy.astype(np.float32)).resize(frame, Image.Resampling.BILINEAR)

    def _bubbles_run(self, canvas: Canvas, done: float, seconds: float) -> None:
        """Foam pushed along by the rubber, and drops that run down below it."""
        at, _ = self._along(min(1.0, done))
        busy = 1 - span(done, 0.97, 1.02)
        for number, (x, y, size) in enumerate(np.concatenate([self.runs, self.glints])):
            age = (seconds * (0.9 + 0.5 * y) + number * 0.37) % 1
            wide = (10 + 26 * size) * (1 - 0.4 * age)
            across = at[0] + (x - 0.5) * 190 + 40 * math.sin(number + seconds)
            down = at[1] + (y - 0.5) * self.stroke * 0.95 + 150 * age * age
            canvas.shade(
                crisp_disc(96, 0.55, 0.12), WHITE, across, down, wide, wide, opacity=0.8 * busy * (1 - age)
            )

    def _reflection(self, canvas: Canvas, t: float) -> None:
        """A band of light that slides over the glass."""
        x = between(-500, 1100, t)
        for shift, wide, strength in ((0.0, 120.0, 0.16), (170.0, 46.0, 0.12)):
            a = x + shift
            canvas.polygon(
                [(a, 60), (a + wide, 60), (a + wide - 420, 1120), (a - 420, 1120)],
                WHITE,
                depth=0.95,
                opacity=strength,
            )


def _bars(frame: Sprite) -> tuple[Sprite, ...]:
    """The frame as its four bars, so that nothing is painted where it is open."""
    assert frame.mask is not None
    wide, high = frame.mask.size
    left, right = round(wide * 100 / 840) + 1, round(wide * 740 / 840) - 1
    top, foot = round(high * 166 / 1460) + 1, round(high * 1208 / 1460) - 1
    boxes = (0, 0, wide, top), (0, foot, wide, high), (0, top, left, foot), (right, top, wide, foot)
    return tuple(cut(frame, box) for box in boxes)
