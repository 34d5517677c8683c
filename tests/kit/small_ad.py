"""A whole small ad, made in about two seconds: one shot with title, labels, caption and logo, and a closing card.

Its pictures and sound can be had before they are encoded, so that a test can spoil exactly one thing.
"""

import atexit
import base64
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

import msgspec
import numpy as np
from numpy.typing import NDArray

from kit.footage import FPS, RATE, moving_gradient, music_like, sequence, speech_like, write_film
from videoads.brief import parse_brief
from videoads.renderer.composing import MediaKeys, compose
from videoads.renderer.composition import Composition, SpokenPhrase, Timings
from videoads.renderer.painting import Painter
from videoads.renderer.sound.soundtrack import mix_soundtrack
from videoads.renderer.sound.wav import as_floats, as_pcm, write_wav
from videoads.script import write_script

LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100"><path d="M14 86 L50 12 L86 86 Z" fill="#0b3550"/>'
    '<circle cx="50" cy="62" r="11" fill="#ffd35c"/></svg>'
)

BRIEF = {
    "product": "Lantern",
    "headline": "Light for late roads",
    "tagline": "The small lamp",
    "style": "warm-editorial",
    "language": "en",
    "seconds": 4.8,
    "size": {"width": 350, "height": 620},
    "colours": {
        "background": "#2b1811",
        "surface": "#f7ecdc",
        "ink": "#2b1811",
        "accent": "#b94f1f",
        "light": "#ffd9a3",
    },
    "logo": {"media_type": "image/svg+xml", "base64": base64.b64encode(LOGO.encode()).decode()},
    "scenes": [{"prompt": "soft shapes", "line": "Made by hand", "call_outs": ["Brushed steel"]}],
    "narration": ["It shines for you."],
    "closing": {"offer": "Two for one in May", "button": "Take one home", "address": "lantern.example"},
}


@dataclass(frozen=True)
class SmallAd:
    """The composition, its media, and the film's pictures and sound before encoding."""

    composition: Composition
    folder: Path
    pictures: tuple[NDArray[np.uint8], ...]
    sound: NDArray[np.float64]

    def media(self, key: str) -> Path:
        """Where the object of a media key lies."""
        return self.folder / key

    def film(
        self,
        path: Path,
        *,
        pictures: Iterable[NDArray[np.uint8]] | None = None,
        sound: NDArray[np.floating] | None = None,
        fps: int = FPS,
        pixel_format: str = "yuv420p",
        faststart: bool = True,
        codec: str = "libx264",
        silent: bool = False,
    ) -> Path:
        """Encode the film, with what the test wants to be different."""
        return write_film(
            path,
            self.pictures if pictures is None else pictures,
            sound=None if silent else self.sound if sound is None else sound,
            fps=fps,
            pixel_format=pixel_format,
            faststart=faststart,
            codec=codec,
        )

    def repainted(self, changed: Composition) -> list[NDArray[np.uint8]]:
        """The pictures of another composition of the same media."""
        return paint_all(changed, self.media)

    def remixed(self, changed: Composition) -> NDArray[np.float64]:
        """The sound of another composition of the same media."""
        return as_floats(mix_soundtrack(changed, self.media).pcm)


def paint_all(composition: Composition, media: Callable[[str], Path]) -> list[NDArray[np.uint8]]:
    """Paint every frame."""
    painter = Painter(composition, media)
    try:
        return [np.asarray(painter.paint(frame)) for frame in range(composition.output.frames)]
    finally:
        painter.close()


@lru_cache(maxsize=1)
def small_ad() -> SmallAd:
    """Make the ad once for all tests of a process."""
    folder = Path(mkdtemp(prefix="small-ad-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    brief = parse_brief(msgspec.json.encode(BRIEF), base=None)
    script = write_script(brief)
    planned = script.phrases[0]
    start = (planned.start_frame + 2) * RATE // FPS
    end = start + round(1.3 * RATE)
    samples = script.frames * RATE // FPS
    voice = np.zeros(samples)
    voice[start:end] = speech_like(1.3, seed=3)
    write_wav(folder / "narration.wav", as_pcm(voice), RATE)
    write_wav(folder / "music.wav", as_pcm(music_like(samples / RATE)), RATE)
    (folder / "logo.svg").write_text(LOGO, encoding="utf-8")
    clip = moving_gradient(350, 620, tint=(120, 84, 60))
    write_film(folder / "clip.mp4", sequence((clip, script.shots[0].frames)), crf=10)
    composition = compose(
        script,
        MediaKeys(clips=("clip.mp4",), music="music.wav", narration="narration.wav", logo="logo.svg"),
        Timings(RATE, (SpokenPhrase(planned.key, planned.text, start, end),)),
    )
    pictures = tuple(paint_all(composition, lambda key: folder / key))
    sound = as_floats(mix_soundtrack(composition, lambda key: folder / key).pcm)
    return SmallAd(composition, folder, pictures, sound)
