"""What should be seen in the picture: each caption, title, label, logo and part of the card as a mask of ink.

A mask is drawn from the words and the vendored face alone; where the film really shows it is found out by
`ink.find_template`. Here it is also decided on which frames to look: when a thing has arrived and before it leaves.
"""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import resvg_py
from PIL import Image, ImageDraw

from videoads.renderer.composition import Box as ComposedBox
from videoads.renderer.composition import Composition, TextBlock
from videoads.renderer.inspect.ink import Box, Coverage
from videoads.renderer.lettering.metrics import baselines, font, runs

MARGIN = 16
"""Pixels around a block in which its ink may reach beyond the advance."""
TITLE_SETTLED_FRAMES = 16
LABEL_SETTLED_FRAMES = 18
LEAVING_FRAMES = 8
LOGO_OPAQUE = 128


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
        mask, offset = text_mask(block)
        made.append(Template(name, pointer, _box(block.box), mask, offset, start, end, looks))
    if composition.logo is not None:
        logo = composition.logo
        looks = tuple(
            shot.start_frame + shot.frames // 2
            for shot in composition.shots
            if logo.start_frame <= shot.start_frame + shot.frames // 2 < logo.end_frame
        )
        mask, offset = logo_mask(media(logo.media), logo.box)
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
        mask, offset = logo_mask(media(card.logo), card.logo_box)
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


def logo_mask(path: Path, box: ComposedBox) -> tuple[Coverage, tuple[int, int]]:
    """Draw a logo's opaque part as large as fits its box, in the middle of it."""
    raw = path.read_bytes()
    if raw[:4] == b"\x89PNG":
        image = Image.open(io.BytesIO(raw)).convert("RGBA")
    else:
        drawn = resvg_py.svg_to_bytes(svg_string=raw.decode("utf-8"), width=max(2, box.width * 2))
        image = Image.open(io.BytesIO(bytes(drawn))).convert("RGBA")
    scale = min(box.width / image.width, box.height / image.height)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    alpha = np.asarray(image.resize(size, Image.Resampling.LANCZOS).getchannel("A"))
    return alpha, (box.x + (box.width - size[0]) // 2, box.y + (box.height - size[1]) // 2)


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
            if block is not None:
                start = card.name_frame if name == "tagline" else getattr(card, f"{name}_frame")
                yield f"/card/{name}", block, start, end, (_late(start, end),)


def _late(start: int, end: int) -> int:
    """A frame near the end of a window, before things begin to leave."""
    return max(start, min(end - LEAVING_FRAMES - 1, start + (end - start) * 3 // 4))


def _box(box: ComposedBox) -> Box:
    return Box(box.x, box.y, box.right, box.bottom)
