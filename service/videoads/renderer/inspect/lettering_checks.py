"""The promises about what is written and drawn over the picture: present, readable, in the safe area, apart, complete.

All but the glyphs are measured on decoded frames: each thing is searched for in the picture, and the place where it is
found is what is judged, beside the place where the composition says it is.
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from videoads.renderer.composition import Composition, TextBlock, safe_area
from videoads.renderer.inspect.check import Check, failed, passed
from videoads.renderer.inspect.ink import (
    CONTRAST_MIN,
    LIKENESS_MIN,
    Box,
    Found,
    find_template,
    ink_box,
    measured_contrast,
    refined,
)
from videoads.renderer.inspect.templates import Template, declared_parts, text_blocks
from videoads.renderer.lettering.coverage import covered_by
from videoads.renderer.lettering.metrics import font

LEGIBLE_SHORT_SIDE_MIN = 240
"""Below this the letters are a few pixels high: nothing about them can be measured, and a film that small is a test's."""
SEARCH_SLACK_PIXELS = 3
DRIFT_SHARE_MAX = 0.03
"""How far from its declared place a thing may be found, as a share of the picture's height."""
LOGO_LIKENESS_MIN = 0.35
UNASSIGNED = "\U0010fffe"


class Sighting(msgspec.Struct, frozen=True):
    """A template, the frame looked at, and where it was found there."""

    template: Template
    frame: int
    found: Found

    @property
    def certain(self) -> bool:
        """Whether what was found is the thing that was looked for."""
        return self.found.likeness >= (LIKENESS_MIN if self.template.is_text else LOGO_LIKENESS_MIN)


def measurable(composition: Composition) -> bool:
    """Whether lettering of this picture size can be measured at all."""
    return min(composition.output.width, composition.output.height) >= LEGIBLE_SHORT_SIDE_MIN


def sight(templates: Sequence[Template], whole: Mapping[int, NDArray[np.uint8]]) -> tuple[Sighting, ...]:
    """Search each template in its middle frame; frames that were not decoded are left out."""
    sightings = []
    for template in templates:
        frame = template.look_frames[len(template.look_frames) // 2]
        picture = whole.get(frame)
        if picture is None:
            continue
        found = find_template(picture, template.mask)
        if found is not None:
            sightings.append(Sighting(template, frame, refined(picture, template.mask, found)))
    return tuple(sightings)


def check_presence(templates: Sequence[Template], sightings: Sequence[Sighting], fps: int) -> Check:
    """Every caption, title, label, logo and part of the card is seen where the composition puts it."""
    name, expected = "lettering", "each text and logo seen where the composition puts it"
    seen = {sighting.template.pointer: sighting for sighting in sightings}
    weakest = 1.0
    for template in templates:
        sighting = seen.get(template.pointer)
        frame = template.look_frames[len(template.look_frames) // 2]
        if sighting is None or not sighting.certain:
            likeness = 0.0 if sighting is None else sighting.found.likeness
            return failed(
                name,
                f"{template.name} is not to be seen (likeness {likeness:.2f})",
                expected,
                frame=frame,
                fps=fps,
                pointer=template.pointer,
                remedy="Render the film again; the text or logo was not drawn, or is covered",
            )
        weakest = min(weakest, sighting.found.likeness)
    return passed(name, f"{len(templates)} seen, weakest likeness {weakest:.2f}", expected)


def check_safe_area(
    composition: Composition, templates: Sequence[Template], sightings: Sequence[Sighting]
) -> Check:
    """Declared and seen places of all lettering and logos lie inside the safe area."""
    area = safe_area(composition.output)
    safe = Box(area.x, area.y, area.right, area.bottom)
    name, expected = "safe_area", f"everything inside {safe}"
    remedy = "Move it into the safe area (top 12 %, bottom 20 %, sides 8 %)"
    fps = composition.output.fps
    parts = declared_parts(composition)
    declared = [(t.name, f"{t.pointer}/box", t.declared, t.start_frame) for t in templates]
    declared += [(part.name, part.pointer, part.box, part.start_frame) for part in parts]
    for who, pointer, box, frame in declared:
        if not box.inside(safe):
            words = f"{who} is declared at {box}"
            return failed(name, words, expected, frame=frame, fps=fps, pointer=pointer, remedy=remedy)
    limit = DRIFT_SHARE_MAX * composition.output.height
    for sighting in sightings:
        template, box = sighting.template, sighting.found.box
        if not sighting.certain:
            continue
        if not box.inside(safe, slack=SEARCH_SLACK_PIXELS):
            return failed(
                name,
                f"{template.name} is seen at {box}",
                expected,
                frame=sighting.frame,
                fps=fps,
                pointer=template.pointer,
                remedy=remedy,
            )
        place = ink_box(template.mask, left=template.offset[0], top=template.offset[1])
        if place is not None and max(abs(place.left - box.left), abs(place.top - box.top)) > limit:
            return failed(
                name,
                f"{template.name} is seen at {box}",
                f"it at {place}, where the composition puts it",
                frame=sighting.frame,
                fps=fps,
                pointer=template.pointer,
                remedy="Render the film from this composition again",
            )
    return passed(name, f"{len(declared)} things inside", expected)


def check_apart(
    composition: Composition, templates: Sequence[Template], sightings: Sequence[Sighting]
) -> Check:
    """No two things shown at the same time cover each other, as declared and as seen."""
    name, expected = "overlap", "no two texts or logos that share a pixel"
    seen = {sighting.template.pointer: sighting.found.box for sighting in sightings if sighting.certain}
    pairs = 0
    for index, first in enumerate(templates):
        for second in templates[index + 1 :]:
            start = max(first.start_frame, second.start_frame)
            if start >= min(first.end_frame, second.end_frame):
                continue
            pairs += 1
            boxes = [(_ink(first), _ink(second), "are declared at")]
            if first.pointer in seen and second.pointer in seen:
                boxes.append((seen[first.pointer], seen[second.pointer], "are seen at"))
            for a, b, how in boxes:
                if a.overlaps(b):
                    return failed(
                        name,
                        f"{first.name} and {second.name} {how} {a} and {b}",
                        expected,
                        frame=start,
                        fps=composition.output.fps,
                        pointer=second.pointer,
                        remedy="Move one of them, or show them one after the other",
                    )
    for part in declared_parts(composition):
        for template in templates:
            if template.pointer in part.holds or template.start_frame >= part.end_frame:
                continue
            if part.start_frame >= template.end_frame:
                continue
            pairs += 1
            if part.box.overlaps(_ink(template)):
                return failed(
                    name,
                    f"{part.name} at {part.box} covers {template.name} at {_ink(template)}",
                    expected,
                    frame=max(part.start_frame, template.start_frame),
                    fps=composition.output.fps,
                    pointer=part.pointer,
                    remedy="Move one of them, or show them one after the other",
                )
    return passed(name, f"{pairs} pairs apart", expected)


def check_contrast(
    templates: Sequence[Template],
    sightings: Sequence[Sighting],
    whole: Mapping[int, NDArray[np.uint8]],
    fps: int,
) -> Check:
    """Ink against its ground, on the pixels of the decoded frames, in the weakest piece of the weakest text."""
    name, expected = "contrast", f"at least {CONTRAST_MIN}:1 between ink and ground (WCAG 2)"
    if not any(template.is_text for template in templates):
        return passed(name, "nothing is written", expected)
    weakest: tuple[float, Sighting, int] | None = None
    for sighting in sightings:
        template = sighting.template
        if not template.is_text or not sighting.certain:
            continue
        place = ink_box(template.mask)
        if place is None:
            continue
        left, top = sighting.found.box.left - place.left, sighting.found.box.top - place.top
        looks = [
            (ratio, frame)
            for frame in template.look_frames
            if frame in whole
            and (ratio := measured_contrast(whole[frame], template.mask, left=left, top=top)) is not None
        ]
        if looks:
            ratio, frame = min(looks)
            if weakest is None or ratio < weakest[0]:
                weakest = (ratio, sighting, frame)
    if weakest is None:
        return failed(name, "no text was seen", expected, remedy="Render the film again with its texts")
    ratio, sighting, frame = weakest
    words = f"{ratio:.2f}:1 in {sighting.template.name}"
    if ratio < CONTRAST_MIN:
        return failed(
            name,
            words,
            expected,
            frame=frame,
            fps=fps,
            pointer=sighting.template.pointer,
            remedy="Lay a plate or a darker shade behind the words, or change their colour",
        )
    return passed(name, words, expected)


def check_glyphs(composition: Composition) -> Check:
    """Each character of each text has a glyph in the vendored fonts that draws ink and is not the empty box."""
    name, expected = "glyphs", "a glyph for every character"
    count = 0
    for who, pointer, block in text_blocks(composition):
        for index, line in enumerate(block.lines):
            for character in line:
                count += 1
                if character != " " and not has_glyph(block, character):
                    return failed(
                        name,
                        f"no glyph for {character!r} (U+{ord(character):04X}) in {who}",
                        expected,
                        pointer=f"{pointer}/lines/{index}",
                        remedy="Use letters the fonts have: Latin with its accents",
                    )
    return passed(name, f"{count} characters, all drawn", expected)


def has_glyph(block: TextBlock, character: str) -> bool:
    """Whether the face of the block draws the character as itself."""
    file = covered_by(block.face, character)
    if file is None:
        return False
    face = font(file, 32, block.weight)
    drawn, missing = face.getmask(character), face.getmask(UNASSIGNED)
    return drawn.getbbox() is not None and (drawn.size != missing.size or bytes(drawn) != bytes(missing))


def _ink(template: Template) -> Box:
    place = ink_box(template.mask, left=template.offset[0], top=template.offset[1])
    return place if place is not None else template.declared
