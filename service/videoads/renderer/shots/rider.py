"""A cyclist in silhouette, pedalling: from the side and from behind. Masks drawn from joints; no colour here."""

import math

from PIL import Image, ImageDraw

from videoads.renderer.shots.stage import Point, Stage

SIDE_SIZE = (620.0, 640.0)
BACK_SIZE = (360.0, 660.0)
WHEEL, SPOKES = 104.0, 16
REAR, FRONT, CRANK = (130.0, 530.0), (480.0, 530.0), (286.0, 534.0)
SADDLE, HIP, SHOULDER = (232.0, 316.0), (236.0, 292.0), (352.0, 154.0)
BAR, HAND, HEAD = (440.0, 292.0), (450.0, 286.0), (400.0, 96.0)
LAMP = (478.0, 300.0)
TAIL = (206.0, 342.0)
PEDAL, THIGH, SHIN = 46.0, 158.0, 156.0


class _Pen:
    """Thick strokes with round ends on a mask twice the final size."""

    def __init__(self, size: Point, scale: float) -> None:
        self.scale = scale * 2
        pixels = max(2, round(size[0] * self.scale)), max(2, round(size[1] * self.scale))
        self.mask = Image.new("L", (pixels[0] + pixels[0] % 2, pixels[1] + pixels[1] % 2))
        self.draw = ImageDraw.Draw(self.mask)

    def limb(
        self, first: Point, last: Point, wide: float, narrow: float | None = None, fill: int = 255
    ) -> None:  # fmt: skip
        narrow = wide if narrow is None else narrow
        angle = math.atan2(last[1] - first[1], last[0] - first[0]) + math.pi / 2
        c, s = math.cos(angle), math.sin(angle)
        corners = [
            (first[0] + c * wide, first[1] + s * wide), (last[0] + c * narrow, last[1] + s * narrow),
            (last[0] - c * narrow, last[1] - s * narrow), (first[0] - c * wide, first[1] - s * wide),
        ]  # fmt: skip
        self.shape(corners, fill)
        self.disc(first, wide, fill=fill)
        self.disc(last, narrow, fill=fill)

    def shape(self, points: list[Point], fill: int = 255) -> None:
        self.draw.polygon([(x * self.scale, y * self.scale) for x, y in points], fill=fill)

    def disc(self, at: Point, wide: float, high: float | None = None, fill: int = 255) -> None:
        high = wide if high is None else high
        k = self.scale
        self.draw.ellipse(
            ((at[0] - wide) * k, (at[1] - high) * k, (at[0] + wide) * k, (at[1] + high) * k), fill=fill
        )

    def ring(self, at: Point, radius: float, thick: float) -> None:
        k = self.scale
        box = ((at[0] - radius) * k, (at[1] - radius) * k, (at[0] + radius) * k, (at[1] + radius) * k)
        self.draw.ellipse(box, outline=255, width=max(1, round(thick * k)))

    def done(self) -> Image.Image:
        return self.mask.reduce(2)


def side_view(stage: Stage, size: float, pedal: float, roll: float) -> Image.Image:
    """Riding to the right; `pedal` and `roll` are the angles of crank and wheels."""
    pen = _Pen(SIDE_SIZE, stage.scale * size)
    for hub in (REAR, FRONT):
        pen.ring(hub, WHEEL, 9)
        for spoke in range(SPOKES):
            angle = roll + spoke * math.tau / SPOKES
            end = hub[0] + (WHEEL - 6) * math.cos(angle), hub[1] + (WHEEL - 6) * math.sin(angle)
            pen.limb(hub, end, 0.7)
        pen.disc(hub, 8)
    seat, head_tube = (244.0, 366.0), (424.0, 350.0)
    _leg(pen, pedal + math.pi, 24)
    for first, last, wide in ((CRANK, seat, 6), (seat, head_tube, 5.5), (CRANK, (430.0, 376.0), 7), (REAR, CRANK, 4.5),
                              (REAR, seat, 4.0), ((420.0, 318.0), (440.0, 400.0), 6.5), ((440.0, 400.0), FRONT, 5.0),
                              (seat, (234.0, 326.0), 4.5), ((420.0, 320.0), BAR, 4.5)):  # fmt: skip
        pen.limb(first, last, wide)
    pen.limb((198, 318), (262, 322), 8, 5)
    pen.ring(CRANK, 25, 5)
    bend = (BAR[0] + 30, BAR[1] + 6)
    pen.limb(BAR, bend, 4.5)
    pen.limb(bend, (BAR[0] + 24, BAR[1] + 40), 4.5)
    pen.limb(LAMP, (LAMP[0] + 18, LAMP[1]), 8, 9)
    pen.limb(TAIL, (TAIL[0] - 8, TAIL[1] - 2), 6)
    _leg(pen, pedal, 27)
    pen.limb(HIP, (304, 208), 42, 44)
    pen.limb((304, 208), SHOULDER, 44, 32)
    pen.limb((262, 236), (318, 150), 26, 30)
    elbow = (404.0, 236.0)
    pen.limb(SHOULDER, elbow, 20, 14)
    pen.limb(elbow, HAND, 13, 10)
    pen.limb(SHOULDER, (384, 116), 18, 15)
    pen.disc(HEAD, 33, 36)
    helmet = [(358, 92), (362, 62), (384, 42), (416, 44), (440, 66), (446, 92), (426, 86), (388, 90)]
    pen.shape([(float(x), float(y)) for x, y in helmet])
    return pen.done()


def back_view(stage: Stage, size: float, pedal: float, sway: float) -> Image.Image:
    """Riding away from the eye; the legs go up and down, the body sways a little."""
    pen = _Pen(BACK_SIZE, stage.scale * size)
    middle = 180.0
    pen.limb((middle, 470), (middle, 640), 11)
    pen.limb((middle, 360), (middle, 500), 9)
    for side in (-1, 1):
        up = 40 * math.sin(pedal + (0 if side > 0 else math.pi))
        hip = (middle + side * 34 + sway * 4, 330.0)
        knee = (middle + side * 58 + sway * 2, 440.0 - up * 0.6)
        foot = (middle + side * 40, 570.0 - up)
        pen.limb(hip, knee, 36, 25)
        pen.limb(knee, foot, 24, 15)
        pen.limb(foot, (foot[0] + side * 4, foot[1] + 16), 17, 15)
    lean = sway * 7
    pen.limb((middle - 22, 322), (middle + 22, 322), 34)
    pen.limb((middle, 312), (middle + lean, 190), 50, 70)
    pen.limb((middle - 46 + lean, 178), (middle + 46 + lean, 178), 36)
    for side in (-1, 1):
        shoulder = (middle + side * 72 + lean, 182.0)
        elbow = (middle + side * 106 + lean * 0.6, 262.0)
        pen.limb(shoulder, elbow, 24, 17)
        pen.limb(elbow, (middle + side * 98, 322.0), 16, 11)
    pen.limb((middle - 104, 326), (middle + 104, 326), 5.5)
    pen.limb((middle + lean, 160), (middle + lean, 128), 20, 18)
    head = middle + lean * 1.2
    pen.disc((head, 104), 29, 36)
    pen.disc((head, 88), 37, 33)
    pen.shape([(head - 37, 90), (head - 34, 104), (head + 34, 104), (head + 37, 90)])
    for side in (-1, 0, 1):
        pen.limb((head + side * 15, 62), (head + side * 19, 84), 2.6, fill=0)
    return pen.done()


def _leg(pen: _Pen, pedal: float, wide: float) -> None:
    foot = CRANK[0] + PEDAL * math.cos(pedal), CRANK[1] + PEDAL * math.sin(pedal)
    ankle = foot[0] - 12, foot[1] - 26
    across, down = ankle[0] - HIP[0], ankle[1] - HIP[1]
    reach = min(math.hypot(across, down), THIGH + SHIN - 2)
    bend = math.acos((THIGH**2 + reach**2 - SHIN**2) / (2 * THIGH * reach))
    angle = math.atan2(down, across) - bend
    knee = HIP[0] + THIGH * math.cos(angle), HIP[1] + THIGH * math.sin(angle)
    pen.limb(CRANK, foot, 5)
    pen.limb(HIP, knee, wide + 8, wide - 6)
    pen.limb(knee, ankle, wide - 6, 11)
    pen.limb((ankle[0] - 8, ankle[1] + 16), (foot[0] + 24, foot[1] - 6), 12, 8)
