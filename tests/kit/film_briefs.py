"""Briefs, compositions and tiny media for the tests of the film."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import av
import numpy as np

import videoads
from videoads.brief import Brief, parse_brief, read_brief
from videoads.renderer.composing import MediaKeys, compose
from videoads.renderer.composition import Composition, SpokenPhrase, Timings
from videoads.script import Script, write_script

BRIEFS = Path(videoads.__file__).parent / "fixtures" / "briefs"
RATE = 48000


@cache
def shipped(name: str) -> Brief:
    """One of the three shipped briefs."""
    return read_brief(BRIEFS / f"{name}.json")


def brief(base: str = "espresso", **changes: Any) -> Brief:
    """A shipped brief with some members changed."""
    document = json.loads((BRIEFS / f"{base}.json").read_bytes())
    if "scenes" not in changes and changes.get("seconds", 14.4) < 14:
        changes = {"scenes": document["scenes"][:1], "narration": None, **changes}
    return parse_brief(json.dumps({**document, **changes}).encode(), base=BRIEFS)


def planned(script: Script) -> Timings | None:
    """Timings of a speaker who keeps exactly to the plan, less a breath at each end."""
    if not script.phrases:
        return None
    samples = RATE // script.fps
    return Timings(
        RATE,
        tuple(
            SpokenPhrase(p.key, p.text, (p.start_frame + 1) * samples, (p.end_frame - 1) * samples)
            for p in script.phrases
        ),
    )


def composed(given: Brief) -> Composition:
    """The composition of a brief, its media named after the shots."""
    script = write_script(given)
    timings = planned(script)
    keys = MediaKeys(
        clips=tuple(f"{shot.key}.mp4" for shot in script.shots),
        music="music.wav",
        narration="narration.wav" if timings else None,
        logo="logo.svg" if given.logo else None,
        product_picture="product.png" if given.product_picture else None,
    )
    return compose(script, keys, timings)


def write_clip(
    path: Path, *, frames: int, width: int = 90, height: int = 160, fps: int = 30, level: int = 90
) -> None:
    """Encode a clip whose every frame differs: a bar wanders over a plain ground."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=fps, options={"crf": "10", "preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for index in range(frames):
            picture = np.full((height, width, 3), level, np.uint8)
            at = index * 3 % (width - 8)
            picture[:, at : at + 8] = (level + 60) % 256
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode(None))
