"""What should be seen in the picture: each caption, title, label, logo and part of the card as a mask of ink.

A mask is drawn from the words and the vendored face alone; where the film really shows it is found out by
`ink.find_template`. Here it is also decided on which frames to look: when a thing has arrived and before it leaves.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
from PIL import Image, ImageDraw

from videoads.renderer.composition import Box as ComposedBox
from videoads.renderer.composition import Composition, TextBlock
from videoads.renderer.drawn_logo import picture_fitted
from videoads.renderer.inspect.ink import Box, Coverage
from videoads.renderer.layout import BEAT_FRAMES
from videoads.renderer.lettering.metrics import baselines, font, runs

MARGIN = 16
"""Pixels around a block in which its ink may reach beyond the advance."""
TITLE_SETTLED_FRAMES = 16
LABEL_SETTLED_FRAMES = 18
LEAVING_FRAMES = 8
LOOKS_AT_BUTTON = 3
CORNER_PLATE_PAD = 7
"""The plate of the corner logo is a seventh of its height wider on each side than the mark."""


class Template(msgspec.Struct, frozen=True):
    """One thing to be seen: where the composition puts it, its ink, when it is shown and when to look."""

    name: str
    pointer: str
    declared: Box
    mask: Coverage
    offset: tuple[int, int]
    """Left and top of the mask in the picture, as declared."""
    start_frame: int
    end_frame: int
    look_frames: tuple[int, ...]
    is_text: bool = True


def text_blocks(composition: Composition) -> Iterator[tuple[str, str, TextBlock]]:
    """Every set text with its name and its JSON pointer."""
    for index, title in enumerate(composition.titles):
        yield f"title {index + 1}", f"/titles/{index}/block", title.block
        if title.kicker is not None:
            yield f"kicker {index + 1}", f"/titles/{index}/kicker", title.kicker
    for index, label in enumerate(composition.call_outs):
        yield f"call-out {index + 1}", f"/call_outs/{index}/block", label.block
    for index, caption in enumerate(composition.captions):
        yield f"caption {index + 1}", f"/captions/{index}/block", caption.block
    card = composition.card
    if card is not None:
        for name in ("name", "tagline", "offer", "button", "address"):
            block = getattr(card, name)
            if block is not None:
                yield f"card {name}", f"/card/{name}", block


def templates_of(composition: Composition, media: Callable[[str], Path]) -> tuple[Template, ...]:
    """All that should be seen, in the order of the composition."""
    made: list[Template] = []
    for pointer, block, start, end, looks in _timed_texts(composition):
        name = next(name for name, known, _ in text_blocks(composition) if known == pointer)
        mask, offset = button_mask(block) if pointer == "/card/button" else text_mask(block)
        made.append(Template(name, pointer, _box(block.box), mask, offset, start, end, looks))
    if composition.logo is not None:
        logo = composition.logo
        looks = tuple(
            shot.start_frame + shot.frames // 2
            for shot in composition.shots
            if logo.start_frame <= shot.start_frame + shot.frames // 2 < logo.end_frame
        )
        mask, offset = logo_mask(media(logo.media).read_bytes(), corner_logo_box(logo.box))
        made.append(
            Template(
                "logo",
                "/logo",
                _box(logo.box),
                mask,
                offset,
                logo.start_frame,
                logo.end_frame,
                looks[:1],
                False,
            )
        )
    card = composition.card
    if card is not None and card.logo is not None:
        mask, offset = logo_mask(media(card.logo).read_bytes(), card.logo_box)
        end = card.start_frame + card.frames
        look = (_late(card.logo_frame, end),)
        made.append(
            Template(
                "card logo",
                "/card/logo_box",
                _box(card.logo_box),
                mask,
                offset,
                card.logo_frame,
                end,
                look,
                False,
            )
        )
    return tuple(made)


class Part(msgspec.Struct, frozen=True):
    """A drawn thing of which only the declared box is judged: plates, the button, the product picture."""

    name: str
    pointer: str
    box: Box
    start_frame: int
    end_frame: int
    holds: tuple[str, ...] = ()
    """Pointers of the texts that belong inside it."""


def declared_parts(composition: Composition) -> tuple[Part, ...]:
    """The boxes that have no ink of their own to search for."""
    parts = [
        Part(
            f"call-out {index + 1} plate",
            f"/call_outs/{index}/box",
            _box(label.box),
            label.start_frame,
            label.end_frame,
            (f"/call_outs/{index}/block",),
        )
        for index, label in enumerate(composition.call_outs)
    ]
    if composition.logo is not None:
        logo = composition.logo
        parts.append(
            Part("logo plate", "/logo/box", _box(logo.box), logo.start_frame, logo.end_frame, ("/logo",))
        )
    card = composition.card
    if card is not None:
        end = card.start_frame + card.frames
        button = _box(card.button_box)
        parts.append(Part("button", "/card/button_box", button, card.button_frame, end, ("/card/button",)))
        if card.product_picture is not None:
            box = _box(card.product_box)
            parts.append(Part("card product", "/card/product_box", box, card.product_frame, end))
    return tuple(parts)


def text_mask(block: TextBlock) -> tuple[Coverage, tuple[int, int]]:
    """Draw a set text as a mask of ink and say where the mask's corner lies in the picture."""
    left, top = block.box.x - MARGIN, block.box.y - MARGIN
    image = Image.new("L", (block.box.width + 2 * MARGIN, block.box.height + 2 * MARGIN), 0)
    draw = ImageDraw.Draw(image)
    for line, x, baseline in baselines(block):
        at = float(x - left)
        for name, part in runs(line, block.face):
            face = font(name, block.size, block.weight)
            draw.text((at, baseline - top), part, font=face, fill=255, anchor="ls")
            at += face.getlength(part)
    return np.asarray(image), (left, top)


def button_mask(block: TextBlock) -> tuple[Coverage, tuple[int, int]]:
    """The words of the button: drawn at double size, centred and halved, which makes them a little narrower."""
    image = Image.new("L", (2 * (block.box.width + 2 * MARGIN), 2 * (block.box.height + 2 * MARGIN)), 0)
    draw = ImageDraw.Draw(image)
    for line, _, baseline in baselines(block):
        parts = [(part, font(name, 2 * block.size, block.weight)) for name, part in runs(line, block.face)]
        at = (image.width - sum(face.getlength(part) for part, face in parts)) / 2
        for part, face in parts:
            draw.text((at, 2 * (baseline - block.box.y + MARGIN)), part, font=face, fill=255, anchor="ls")
            at += face.getlength(part)
    return np.asarray(image.reduce(2)), (block.box.x - MARGIN, block.box.y - MARGIN)


def logo_mask(content: bytes, box: ComposedBox) -> tuple[Coverage, tuple[int, int]]:
    """The opaque part of a logo fitted into its box."""
    alpha = picture_fitted(content, box.width, box.height).getchannel("A")
    return np.asarray(alpha), (box.x, box.y)


def corner_logo_box(box: ComposedBox) -> ComposedBox:
    """Where in the corner plate the mark itself stands."""
    pad = box.height // CORNER_PLATE_PAD
    return ComposedBox(box.x + pad, box.y + pad, box.width - 2 * pad, box.height - 2 * pad)


def _timed_texts(
    composition: Composition,
) -> Iterator[tuple[str, TextBlock, int, int, tuple[int, ...]]]:
    for index, title in enumerate(composition.titles):
        settled = min(max(title.word_frames) + TITLE_SETTLED_FRAMES, title.end_frame - LEAVING_FRAMES - 1)
        looks: tuple[int, ...] = (max(settled, (settled + title.end_frame - LEAVING_FRAMES) // 2),)
        yield f"/titles/{index}/block", title.block, title.start_frame, title.end_frame, looks
        if title.kicker is not None:
            yield f"/titles/{index}/kicker", title.kicker, title.start_frame, title.end_frame, looks
    for index, label in enumerate(composition.call_outs):
        looks = (_late(label.start_frame + LABEL_SETTLED_FRAMES, label.end_frame),)
        yield f"/call_outs/{index}/block", label.block, label.start_frame, label.end_frame, looks
    for index, caption in enumerate(composition.captions):
        length = caption.end_frame - caption.start_frame
        looks = tuple(sorted({caption.start_frame + length * share // 100 for share in (40, 50, 75)}))
        yield f"/captions/{index}/block", caption.block, caption.start_frame, caption.end_frame, looks
    card = composition.card
    if card is not None:
        end = card.start_frame + card.frames
        for name in ("name", "tagline", "offer", "button", "address"):
            block = getattr(card, name)
            if block is None:
                continue
            start = card.name_frame if name == "tagline" else getattr(card, f"{name}_frame")
            looks = (_late(start, end),)
            if name == "button":
                looks = _between_beats(card.start_frame, start + LABEL_SETTLED_FRAMES, end)
            yield f"/card/{name}", block, start, end, looks


def _between_beats(card_start: int, start: int, end: int) -> tuple[int, ...]:
    """Frames just before a beat, when the pulsing button has come to rest at its own size."""
    beats = [frame for frame in range(start, end) if (frame - card_start) % BEAT_FRAMES == BEAT_FRAMES - 2]
    return tuple(beats[-LOOKS_AT_BUTTON:]) or (end - 2,)


def _late(start: int, end: int) -> int:
    """A frame near the end of a window, before things begin to leave."""
    return max(start, min(end - LEAVING_FRAMES - 1, start + (end - start) * 3 // 4))


def _box(box: ComposedBox) -> Box:
    return Box(box.x, box.y, box.right, box.bottom)
