"""From a script to a composition: where every word, picture and sound of the film lies.

`compose` is pure: the same script, media names and timings give the same composition, to the byte. It
decides places and sizes; what a single frame shows is `layout.py`'s work.
"""

from __future__ import annotations

import msgspec

from videoads.brief import Brief, BriefError, BriefProblem
from videoads.renderer.composition import (
    Audio,
    Composition,
    CompositionError,
    Effects,
    Logo,
    Narration,
    Output,
    Palette,
    Shot,
    SpokenPhrase,
    Timings,
    check_composition,
)
from videoads.renderer.setting import STYLES, Anchor, MediaKeys, Setter
from videoads.script import Script, write_script

__all__ = ["Anchor", "MediaKeys", "compose", "refuse_what_does_not_fit"]


def compose(script: Script, media: MediaKeys, timings: Timings | None) -> Composition:
    """Make the composition; raise `CompositionError` when media are missing or words do not fit."""
    if len(media.clips) != len(script.shots):
        message = f"{len(media.clips)} clips for {len(script.shots)} shots"
        raise CompositionError("/shots", message, "give one clip a shot")
    if (media.narration is None) != (timings is None):
        raise CompositionError("/audio/narration", "sound without timings", "give both or neither")
    style = STYLES[script.style]
    output = Output(script.width, script.height, script.fps, script.frames, script.profile)
    setter = Setter(script, output, style)
    card_start = script.card.start_frame
    cuts = (*(shot.start_frame for shot in script.shots[1:]), card_start)
    titles = tuple(setter.title(shot, index, media) for index, shot in enumerate(script.shots))
    above = [setter.safe.y if title is None else title.block.box.bottom for title in titles]
    composition = Composition(
        version=1,
        product=script.product,
        language=script.language,
        style=script.style,
        output=output,
        palette=msgspec.convert(msgspec.to_builtins(script.colours), Palette),
        shots=tuple(
            Shot(shot.key, key, shot.start_frame, shot.frames, style.transition if index else "cut")
            for index, (shot, key) in enumerate(zip(script.shots, media.clips, strict=True))
        ),
        titles=tuple(title for title in titles if title is not None),
        call_outs=tuple(
            call_out
            for index, shot in enumerate(script.shots)
            for call_out in setter.call_outs(shot, index, media, above[index])
        ),
        captions=setter.captions(timings),
        logo=None if media.logo is None else Logo(media.logo, setter.logo_box(), 0, card_start),
        card=setter.card(media),
        audio=Audio(
            rate=48000 if timings is None else timings.rate,
            narration=None
            if media.narration is None or timings is None
            else Narration(media.narration, timings),
            music=media.music,
            effects=Effects(
                whoosh_frames=cuts,
                pour=None if script.pour is None else (script.pour.start_frame, script.pour.end_frame),
                hit_frame=script.music.hit_bar * script.frames_per_bar,
            ),
            seed=script.music.seed,
        ),
        cuts=cuts,
    )
    check_composition(composition)
    return composition


def refuse_what_does_not_fit(brief: Brief) -> None:
    """Compose a brief with media that do not exist yet; raise `BriefError` for the text that cannot be set."""
    script = write_script(brief)
    planned = tuple(
        SpokenPhrase(p.key, p.text, p.start_frame * 1600, p.end_frame * 1600) for p in script.phrases
    )
    keys = MediaKeys(
        clips=tuple(shot.key for shot in script.shots),
        music="music",
        narration="narration" if planned else None,
        logo="logo" if script.has_logo else None,
        product_picture="product" if script.has_product_picture else None,
    )
    try:
        compose(script, keys, Timings(48000, planned) if planned else None)
    except CompositionError as error:
        raise BriefError([BriefProblem(error.pointer, error.message, error.remedy)]) from error
