"""What one frame of a film shows, as a list of things to draw, back to front.

`layout` is pure and its numbers are whole, so a frame can be compared as JSON. Colours are named by role;
which colour a role gets over a picture, and how strong a shade the words need there, is measured by
`shading.py` and applied by `painting.py`.
"""

from __future__ import annotations

import math

from videoads.renderer.composition import Box, CallOut, Caption, Card, Composition, TextBlock, Title
from videoads.renderer.items import (
    Band,
    Button,
    Clip,
    Colour,
    Disc,
    DrawItem,
    Ground,
    Mark,
    Plate,
    Rule,
    Words,
)
from videoads.renderer.lettering.metrics import baselines, text_width

__all__ = ["layout"]

WHIP_OUT_FRAMES = 3
WHIP_IN_FRAMES = 5
WIPE_FRAMES = 8
RISE_FRAMES = 11
FADE_FRAMES = 4
LOGO_DRAWN_FRAMES = 40
BEAT_FRAMES = 18


def layout(composition: Composition, frame: int) -> list[DrawItem]:
    """Return what is drawn in `frame`, the lowest first."""
    if not 0 <= frame < composition.output.frames:
        raise ValueError(f"frame {frame} of {composition.output.frames}")
    card = composition.card
    if card is not None and frame >= card.start_frame:
        return _card(composition, card, frame)
    items = _shot(composition, frame)
    unit = max(1, min(composition.output.width, composition.output.height))
    for index, title in enumerate(composition.titles):
        if title.start_frame <= frame < title.end_frame:
            items += _title(title, f"title-{index}", frame, composition.output.width, unit)
    for call_out in composition.call_outs:
        if call_out.start_frame <= frame < call_out.end_frame:
            items += _call_out(call_out, frame, unit)
    for index, caption in enumerate(composition.captions):
        if caption.start_frame <= frame < caption.end_frame:
            items += _caption(caption, f"caption-{index}", frame, unit)
    logo = composition.logo
    if logo is not None and logo.start_frame <= frame < logo.end_frame:
        arrived = _ease_out((frame - logo.start_frame) / 12)
        pad = logo.box.height // 7
        inner = Box(logo.box.x + pad, logo.box.y + pad, logo.box.width - 2 * pad, logo.box.height - 2 * pad)
        items.append(Plate(logo.box, logo.box.height // 4, "surface", round(240 * arrived)))
        items.append(Mark(logo.media, "logo", inner, round(255 * arrived)))
    return items


def _shot(composition: Composition, frame: int) -> list[DrawItem]:
    """The shot's own frame, whipping or wiping where one shot gives way to the next."""
    shots = composition.shots
    index = next(i for i, shot in enumerate(shots) if frame < shot.start_frame + shot.frames)
    shot = shots[index]
    inside = frame - shot.start_frame
    width = composition.output.width
    left_over = shot.frames - inside
    leaves = index + 1 < len(shots) and shots[index + 1].transition == "whip"
    if leaves and left_over <= WHIP_OUT_FRAMES:
        pull = ((WHIP_OUT_FRAMES + 1 - left_over) / WHIP_OUT_FRAMES) ** 2
        return [Clip(index, inside, shift=-round(width * 0.30 * pull), smear=max(1, round(26 * pull)))]
    if shot.transition == "whip" and index and inside < WHIP_IN_FRAMES:
        rest = 1 - _ease_out((inside + 1) / (WHIP_IN_FRAMES + 1))
        return [Clip(index, inside, shift=round(width * 0.42 * rest), smear=max(1, round(30 * rest)))]
    if shot.transition == "wipe" and index and inside < WIPE_FRAMES:
        before = shots[index - 1]
        edge = round(width * (1 - _ease_out((inside + 3) / (WIPE_FRAMES + 2))))
        return [
            Clip(index - 1, before.frames - 1, shift=-(width - edge) // 3),
            Clip(index, inside, left=edge),
        ]
    return [Clip(index, inside)]


def _title(title: Title, group: str, frame: int, width: int, unit: int) -> list[DrawItem]:
    fade = _leaving(title.end_frame, frame)
    first = title.word_frames[0] if title.word_frames else title.start_frame
    arrived = _ease_out((frame - title.start_frame + 2) / 10)
    top = title.block.box.y if title.kicker is None else title.kicker.box.y
    bottom = title.block.box.bottom
    items: list[DrawItem] = [Band(group, Box(0, top, width, bottom - top), round(255 * arrived * fade))]
    if title.kicker is not None:
        shown = _ease_out((frame - first + 8) / 12)
        thick = max(1, unit // 200)
        reach = round((title.kicker.box.x - title.block.box.x - unit // 50) * shown)
        for row, (line, x, baseline) in enumerate(baselines(title.kicker)):
            if row == 0:
                left, middle = title.block.box.x, baseline - title.kicker.size * 34 // 100
                opacity = round(255 * fade)
                items.append(Rule(left, middle, left + reach, middle, thick, "over", opacity, group))
            items.append(_words(title.kicker, line, x, baseline, "over", round(255 * shown * fade), group))
    number = 0
    for line, x, baseline in baselines(title.block):
        before = ""
        for word in line.split():
            since = frame - title.word_frames[number]
            number += 1
            left = x + text_width(before, title.block.face, title.block.size, title.block.weight)
            before += word + " "
            if since < 0:
                continue
            risen = _ease_out((since + 1) / RISE_FRAMES)
            drop = round((1 - risen) * title.block.size * 0.6)
            opacity = round(255 * min(1.0, (since + 1) / 5) * fade)
            items.append(_words(title.block, word, left, baseline, "over", opacity, group, drop))
    return items


def _caption(caption: Caption, group: str, frame: int, unit: int) -> list[DrawItem]:
    since = frame - caption.start_frame
    shown = min(1.0, (since + 1) / FADE_FRAMES) * min(1.0, (caption.end_frame - frame) / FADE_FRAMES)
    opacity = round(255 * shown)
    pad = unit * 16 // 720
    side = unit * 22 // 720
    box = caption.block.box
    plate = Box(box.x - side, box.y - pad // 2, box.width + 2 * side, box.height + pad)
    items: list[DrawItem] = [Plate(plate, unit * 20 // 720, "under", opacity, group)]
    for line, x, baseline in baselines(caption.block):
        items.append(_words(caption.block, line, x, baseline, "over", opacity, group))
    return items


def _call_out(call_out: CallOut, frame: int, unit: int) -> list[DrawItem]:
    since = frame - call_out.start_frame
    fade = _leaving(call_out.end_frame, frame)
    opacity = round(255 * fade)
    grown = _ease_out((since + 1) / 12)
    box = call_out.box
    near = box.right if call_out.point_x > box.x + box.width // 2 else box.x
    middle = box.y + box.height // 2
    pulse = 1 + 0.25 * math.exp(-((since % BEAT_FRAMES) / 5))
    radius = max(2, round(unit * 4 * 8 * pulse * min(1.0, (since + 1) / 6) / 720))
    to_x = call_out.point_x + round((near - call_out.point_x) * grown)
    to_y = call_out.point_y + round((middle - call_out.point_y) * grown)
    items: list[DrawItem] = [
        Rule(call_out.point_x, call_out.point_y, to_x, to_y, max(1, unit // 240), "bright", opacity),
        Disc(call_out.point_x, call_out.point_y, radius * 2, "bright", opacity * 2 // 5),
        Disc(call_out.point_x, call_out.point_y, radius, "accent", opacity),
    ]
    shown = _ease_out((since - 5) / 9)
    if shown > 0:
        items.append(Plate(box, box.height // 2, "surface", round(245 * shown * fade)))
        for line, x, baseline in baselines(call_out.block):
            items.append(_words(call_out.block, line, x, baseline, "ink", round(255 * shown * fade), ""))
    return items


def _card(composition: Composition, card: Card, frame: int) -> list[DrawItem]:
    """The closing card: everything arrives on a beat, and nothing then stands still."""
    at = frame - card.start_frame
    height = composition.output.height
    items: list[DrawItem] = []
    top = 0
    if at < WIPE_FRAMES and composition.shots:
        top = round(height * (1 - _ease_out((at + 3) / (WIPE_FRAMES + 2))))
        last = len(composition.shots) - 1
        items.append(Clip(last, composition.shots[last].frames - 1))
    items.append(Ground(at, top))
    centre = card.product_box if card.product_picture is not None else card.logo_box
    grown = _ease_back((frame - card.product_frame) / 16)
    if grown > 0 and centre.height:
        breath = 1 + 0.03 * math.sin(at / BEAT_FRAMES * math.pi / 2)
        radius = round(4 * min(centre.width, centre.height) * 0.56 * grown * breath)
        x, y = centre.x + centre.width // 2, centre.y + centre.height // 2
        beat = (at % BEAT_FRAMES) / BEAT_FRAMES
        if at >= 2 * BEAT_FRAMES:  # a ring leaves the disc on every beat, like a drop in a cup
            items.append(
                Disc(x, y, round(radius * (1.16 + 0.34 * _ease_out(beat))), "accent", round(30 * (1 - beat)))
            )
        items.append(Disc(x, y, radius * 118 // 100, "accent", 26))
        items.append(Disc(x, y, radius, "accent", 44))
    if card.product_picture is not None and frame >= card.product_frame:
        since = frame - card.product_frame
        risen = _ease_back(since / 18)
        items.append(
            Mark(
                card.product_picture,
                "product",
                card.product_box,
                round(255 * min(1.0, (since + 1) / 6)),
                zoom_permille=round(1000 * (0.80 + 0.14 * risen) + 0.42 * min(since, 140)),
                lift_quarters=round(
                    14 * math.sin(since / 36 * math.pi) + 4 * 60 * height / 1280 * (1 - risen)
                ),
            )
        )
    if card.logo is not None and frame >= card.logo_frame:
        drawn = _ease_in_out((frame - card.logo_frame + 1) / LOGO_DRAWN_FRAMES)
        items.append(Mark(card.logo, "logo", card.logo_box, 255, drawn_permille=round(1000 * drawn)))
    items += _arriving(card.name, card.name_frame, frame)
    if card.tagline is not None:
        items += _arriving(card.tagline, card.name_frame + 6, frame)
    items += _arriving(card.offer, card.offer_frame, frame)
    items += _underline(card.offer, card.offer_frame + 6, frame)
    since = frame - card.button_frame
    if since >= 0:
        pop = 0.7 + 0.3 * _ease_back((since + 1) / 10)
        pulse = 0.04 * math.exp(-((at % BEAT_FRAMES) / 6)) if since >= 10 else 0.0
        items.append(
            Button(
                block=card.button,
                box=card.button_box,
                opacity=round(255 * min(1.0, (since + 1) / 4)),
                zoom_permille=round(1000 * (pop + pulse)),
                gleam_permille=(since * 1000 // (2 * BEAT_FRAMES)) % 1600,
            )
        )
    items += _arriving(card.address, card.address_frame, frame)
    return items


def _arriving(block: TextBlock, first: int, frame: int) -> list[DrawItem]:
    items: list[DrawItem] = []
    for number, (line, x, baseline) in enumerate(baselines(block)):
        since = frame - first - 3 * number
        if since >= 0:
            drop = round((1 - _ease_out((since + 1) / RISE_FRAMES)) * block.size * 0.7)
            items.append(
                _words(block, line, x, baseline, "ink", round(255 * min(1.0, (since + 1) / 6)), "", drop)
            )
    return items


def _underline(block: TextBlock, first: int, frame: int) -> list[DrawItem]:
    """A line in the accent colour grows beneath the offer's last line."""
    grown = _ease_out((frame - first) / 14)
    if grown <= 0:
        return []
    line, x, baseline = list(baselines(block))[-1]
    width = text_width(line, block.face, block.size, block.weight)
    y = baseline + block.size * 24 // 100
    return [Rule(x, y, x + round(width * grown), y, max(1, block.size // 9), "accent", 255)]


def _words(
    block: TextBlock,
    text: str,
    x: int,
    baseline: int,
    colour: Colour,
    opacity: int,
    group: str,
    drop: int = 0,
) -> Words:
    rows = (baseline - -(-block.size * 960 // 1000), baseline + -(-block.size * 270 // 1000))
    return Words(text, block.face, block.size, block.weight, x, baseline + drop, colour, opacity, rows, group)


def _leaving(end_frame: int, frame: int) -> float:
    return min(1.0, (end_frame - frame) / FADE_FRAMES)


def _ease_out(t: float) -> float:
    t = min(1.0, max(0.0, t))
    return 1 - (1 - t) ** 3


def _ease_in_out(t: float) -> float:
    t = min(1.0, max(0.0, t))
    return t * t * (3 - 2 * t)


def _ease_back(t: float) -> float:
    """Ease out, passing the goal by a little before settling on it."""
    t = min(1.0, max(0.0, t))
    return 1 + 2.2 * (t - 1) ** 3 + 1.2 * (t - 1) ** 2
