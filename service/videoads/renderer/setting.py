"""Setting: where the words, labels, marks and the closing card lie within a picture of any size.

Everything a person must read or recognise stays in the safe area. What is seen when is `composing.py`'s.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from videoads.renderer.composition import (
    Box,
    CallOut,
    Caption,
    Card,
    CompositionError,
    Output,
    TextBlock,
    Timings,
    Title,
    safe_area,
)
from videoads.renderer.lettering.coverage import Face
from videoads.renderer.lettering.metrics import TextDoesNotFit, fit
from videoads.script import Script, ScriptShot

__all__ = ["STYLES", "Anchor", "MediaKeys", "Setter", "Typography"]

WORD_FRAMES = 5
"""From one word of a title to the next: four to the half bar, quick enough to read along."""

CAPTION_HOLD_FRAMES = 6


class Anchor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A point of a clip's picture to which a call-out may be tied, in thousandths of its width and height."""

    x: int
    y: int


class MediaKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the media of a film are called: object keys in production, paths in the testbed."""

    clips: tuple[str, ...]
    music: str
    narration: str | None = None
    logo: str | None = None
    product_picture: str | None = None
    anchors: tuple[tuple[Anchor, ...], ...] = ()


class Typography(msgspec.Struct, frozen=True):
    """How a style sets its words."""

    title_face: Face
    title_weight: int
    title_leading_percent: int
    upper_case: bool
    transition: Literal["cut", "whip", "wipe"]


STYLES: dict[str, Typography] = {
    "warm-editorial": Typography("serif", 560, 100, False, "whip"),
    "bold-dark": Typography("grotesque", 800, 92, True, "whip"),
    "clean-service": Typography("grotesque", 700, 100, False, "wipe"),
}


class Setter:
    """Sets the words of one script into the safe area of one picture size."""

    def __init__(self, script: Script, output: Output, style: Typography) -> None:
        self.script = script
        self.output = output
        self.style = style
        self.safe = safe_area(output)
        self.landscape = output.width > output.height
        self.short = min(output.width, output.height)

    def px(self, at_720: int) -> int:
        """Scale a measure drawn for a picture whose short side is 720 pixels."""
        return max(1, at_720 * self.short // 720)

    def fit(self, pointer: str, text: str, box: Box, largest: int, **kind: object) -> TextBlock:
        """Set one text, telling which one when it cannot be set."""
        options = {
            "lines_max": 1,
            "leading_percent": 118,
            "align": "left",
            "face": "grotesque",
            "weight": 600,
        }
        options.update(kind)
        try:
            sizes = (self.px(largest), max(1, self.px(largest) * 3 // 10))
            return fit(text, within=box, sizes=sizes, **options)  # type: ignore[arg-type]  # checked by fit
        except TextDoesNotFit as error:
            raise CompositionError(pointer, str(error), "use fewer or shorter words") from error

    def _card_words(
        self, pointer: str, text: str, box: Box, largest: int, key: str, **kind: object
    ) -> TextBlock:
        """Set a text of the card on one line if it then stays nearly as large, else on two."""
        if key in ("tagline", "offer"):
            for size in (largest, largest * 9 // 10, largest * 8 // 10):
                try:
                    sizes = (self.px(size), self.px(size))
                    options = {"lines_max": 1, "leading_percent": 118, "align": "centre", **kind}
                    return fit(text, within=box, sizes=sizes, **options)  # type: ignore[arg-type]  # as above
                except TextDoesNotFit:
                    continue
        lines = 1 if key == "button" else 2
        return self.fit(pointer, text, box, largest, lines_max=lines, align="centre", **kind)

    def logo_box(self) -> Box:
        """The mark's place on the shots: top left of the safe area."""
        return Box(self.safe.x, self.safe.y, self.px(132), self.px(72))

    def title(self, shot: ScriptShot, index: int, media: MediaKeys) -> Title | None:
        """Set a shot's large words below the mark, the headline largest."""
        if not shot.title:
            return None
        safe = self.safe
        top = safe.y + (self.px(72 + 22) if media.logo is not None else 0)
        width = safe.width * 62 // 100 if self.landscape else safe.width
        pointer = "/headline" if index == 0 else f"/scenes/{index}/line"
        kicker = None
        if shot.kicker:
            box = Box(safe.x + self.px(44), top, width - self.px(44), self.px(84))
            kicker = self.fit("/scenes/0/line", shot.kicker, box, 28, weight=650, lines_max=2)
            top = kicker.box.bottom + self.px(4)
        text = shot.title.upper() if self.style.upper_case else shot.title
        tall = self.output.height * (34 if index == 0 else 24) // 100
        labels = self.px(84) if shot.call_outs else 0
        tall = min(tall, self.caption_area().y - self.px(24) - labels - top)
        block = self.fit(
            pointer,
            text,
            Box(safe.x, top, width, tall),
            112 if index == 0 else 80,
            face=self.style.title_face,
            weight=self.style.title_weight,
            leading_percent=self.style.title_leading_percent,
            lines_max=4 if index == 0 else 3,
        )
        words = sum(len(line.split()) for line in block.lines)
        first = shot.start_frame + (8 if index == 0 else 6)
        step = min(WORD_FRAMES + (2 if index == 0 else 0), max(1, (shot.frames * 2 // 5) // max(1, words)))
        return Title(
            block=block,
            kicker=kicker,
            word_frames=tuple(first + step * number for number in range(words)),
            start_frame=shot.start_frame,
            end_frame=shot.start_frame + shot.frames,
        )

    def call_outs(self, shot: ScriptShot, index: int, media: MediaKeys, above: int) -> list[CallOut]:
        """Place up to two labels beside the points that the clip names, between title and captions."""
        made: list[CallOut] = []
        width, height = self.output.width, self.output.height
        known = media.anchors[index] if index < len(media.anchors) else ()
        usual = (Anchor(400, 540), Anchor(620, 640))
        pad, gap = self.px(16), self.px(14)
        lowest = self.caption_area().y - gap
        for number, text in enumerate(shot.call_outs):
            anchor = known[number] if number < len(known) else usual[number]
            point_x, point_y = width * anchor.x // 1000, height * anchor.y // 1000
            area = Box(0, 0, self.safe.width * 48 // 100, self.px(70))
            block = self.fit(f"/scenes/{index}/call_outs/{number}", text, area, 30, weight=650)
            box_width, box_height = block.box.width + 2 * pad, block.box.height + 2 * (pad // 2)
            right = number == 1
            x = self.safe.right - box_width if right else self.safe.x
            offsets = (-92, 92, -140, 140) if right else (84, -84, 140, -140)
            tops = [point_y + offset * self.short // 720 - box_height // 2 for offset in offsets]
            free = [
                y
                for y in tops
                if y >= above + gap
                and y + box_height <= lowest
                and not any(Box(x, y, box_width, box_height).overlaps(other.box) for other in made)
            ]
            y = free[0] if free else min(max(tops[0], above + gap), lowest - box_height)
            ink = Box(x + pad, y + pad // 2, block.box.width, block.box.height)
            block = msgspec.structs.replace(block, box=ink)
            box = Box(x, y, box_width, box_height)
            start = shot.start_frame + 14 + 14 * number
            made.append(CallOut(block, box, point_x, point_y, start, shot.start_frame + shot.frames))
        return made

    def captions(self, timings: Timings | None) -> tuple[Caption, ...]:
        """Set each spoken phrase for as long as its samples are heard, plus a moment to finish reading."""
        if timings is None:
            return ()
        fps, rate = self.output.fps, timings.rate
        starts = [phrase.start_sample * fps // rate for phrase in timings.phrases]
        cuts = [shot.start_frame for shot in self.script.shots] + [self.output.frames]
        captions = []
        for index, phrase in enumerate(timings.phrases):
            if starts[index] >= self.script.card.start_frame:
                continue  # the card says these words itself
            end = -(-phrase.end_sample * fps // rate) + CAPTION_HOLD_FRAMES
            limits = [*starts[index + 1 : index + 2], self.script.card.start_frame]
            limits += [cut for cut in cuts if cut > starts[index]][:1]
            block = self.fit(
                f"/narration/{int(phrase.key.split('-')[1]) - 1}",
                phrase.text,
                self.caption_area(),
                44,
                weight=650,
                lines_max=2,
                leading_percent=120,
                align="centre",
                place="bottom",
            )
            captions.append(Caption(phrase.key, block, starts[index], min(end, *limits)))
        return tuple(captions)

    def caption_area(self) -> Box:
        """The lowest part of the safe area, with room for the plate around the words."""
        pad = self.px(22)
        height = self.px(150)
        side = self.safe.width // 6 if self.landscape else 0
        return Box(
            self.safe.x + pad + side,
            self.safe.bottom - pad - height,
            self.safe.width - 2 * (pad + side),
            height,
        )

    def card(self, media: MediaKeys) -> Card:
        """Set the closing card, smaller when the picture has too few rows for its usual sizes."""
        refused: CompositionError | None = None
        for percent in (100, 86, 73, 60):
            try:
                return self._card(media, percent)
            except CompositionError as error:
                refused = refused or error
        assert refused is not None
        raise refused

    def _card(self, media: MediaKeys, percent: int) -> Card:
        """One column, or picture and words side by side in a wide picture."""
        card = self.script.card
        safe = self.safe
        column = safe
        picture = Box(safe.x, safe.y, safe.width, 0)
        if self.landscape and media.product_picture is not None:
            half = safe.width * 45 // 100
            picture = Box(safe.x, safe.y, half, safe.height)
            column = Box(safe.x + half + self.px(20), safe.y, safe.width - half - self.px(20), safe.height)
        words = {
            "name": ("/product", card.product, 100, self.style.title_face, self.style.title_weight),
            "tagline": ("/tagline", card.tagline, 32, "grotesque", 450),
            "offer": ("/closing/offer", card.offer, 38, "grotesque", 700),
            "button": ("/closing/button", card.button, 38, "grotesque", 750),
            "address": ("/closing/address", card.address, 30, "grotesque", 550),
        }
        inner = Box(column.x + self.px(8), 0, column.width - self.px(16), self.output.height)
        button_inner = Box(inner.x + self.px(56), 0, inner.width - self.px(112), self.output.height)
        set_words: dict[str, TextBlock] = {}
        for key, (pointer, text, largest, face, weight) in words.items():
            if text:
                within = button_inner if key == "button" else inner
                set_words[key] = self._card_words(
                    pointer, text, within, largest * percent // 100, key, face=face, weight=weight
                )
        scale = 1 if not self.landscape else 2
        gaps = {"name": 6, "tagline": 0, "offer": 18, "button": 20, "address": 16}
        gaps = {key: self.px(gap * percent // 100) // scale for key, gap in gaps.items()}
        pad = self.px(20 * percent // 100) // scale
        text_height = sum(block.box.height + gaps[key] for key, block in set_words.items()) + 2 * pad
        logo_height = self.px((112 if media.product_picture is not None else 260) * percent // 100) // scale
        logo_height = logo_height if media.logo is not None else 0
        free = column.height - text_height - logo_height
        product_height = 0
        if media.product_picture is not None and not self.landscape:
            product_height = max(1, min(free - self.px(16), self.px(400)))
            free -= product_height
        y = column.y + max(0, free) // 2
        logo_box = Box(column.x + (column.width - logo_height * 2) // 2, y, logo_height * 2, logo_height)
        y += logo_height
        if product_height:
            side = min(product_height, safe.width)
            picture = Box(
                safe.x + (safe.width - side) // 2, y + self.px(8), side, product_height - self.px(8)
            )
            y += product_height
        button_box = Box(0, 0, 0, 0)
        for key, block in set_words.items():
            y += gaps[key]
            if key == "button":
                width = block.box.width + self.px(112)
                button_box = Box(column.x + (column.width - width) // 2, y, width, block.box.height + 2 * pad)
                y += pad
            set_words[key] = msgspec.structs.replace(
                block, box=Box(block.box.x, y, block.box.width, block.box.height)
            )
            y += block.box.height + (pad if key == "button" else 0)
        if y > safe.bottom:
            raise CompositionError(
                "/closing", f"the card needs {y - safe.bottom} more rows", "use fewer words"
            )
        start, beat = card.start_frame, self.script.frames_per_bar // 4
        slow = 2 if card.frames >= 2 * self.script.frames_per_bar else 1
        arrive = [start + 6 + beat * slow * step // 2 for step in range(6)]
        return Card(
            start_frame=start,
            frames=card.frames,
            logo=media.logo,
            logo_box=logo_box,
            logo_frame=arrive[0],
            product_picture=media.product_picture,
            product_box=picture,
            product_frame=start + 3,
            name=set_words["name"],
            name_frame=arrive[1],
            tagline=set_words.get("tagline"),
            offer=set_words["offer"],
            offer_frame=arrive[2],
            button=set_words["button"],
            button_box=button_box,
            button_frame=arrive[3],
            address=set_words["address"],
            address_frame=arrive[4],
        )
