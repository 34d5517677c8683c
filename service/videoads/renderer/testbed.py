"""The testbed: a film from a brief on one machine, with no server and no provider.

Clips are drawn by `shots`, sound by `sound`, each once into a cache folder named by what was asked, so that a
second look at the same brief starts at once. `longtake testbed still` and `render` call this.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

import msgspec
from PIL import Image

from videoads.brief import Brief, Picture
from videoads.renderer.composing import Anchor, MediaKeys, compose
from videoads.renderer.composition import Composition, SpokenPhrase, Timings, composition_as_json
from videoads.renderer.film import FilmReport, render_film
from videoads.renderer.painting import Painter
from videoads.renderer.shots import ClipReport, ShotRequest
from videoads.renderer.shots import Palette as ShotPalette
from videoads.renderer.sound import MusicPlan as ComposedMusic
from videoads.renderer.sound import PhraseWindow, compose_music, speak, voice_available, write_wav
from videoads.renderer.stills import StillGatherer
from videoads.script import Phrase, Script, write_script

__all__ = ["Prepared", "TestbedError", "prepare", "render", "still"]

CLIPS_AT_ONCE = 2
RATE = 48000


class TestbedError(RuntimeError):
    """Something of a film could not be made here."""

    __test__ = False


class Prepared(msgspec.Struct, frozen=True):
    """A composition with its media on disk; `notes` say what is not as the brief asked."""

    script: Script
    composition: Composition
    cache: Path
    notes: tuple[str, ...]

    def media(self, key: str) -> Path:
        """Find a medium of the composition: keys here are names within the cache folder."""
        return self.cache / key


def still(brief: Brief, frame: int, *, cache: Path) -> Image.Image:
    """Paint one frame of a brief's film."""
    prepared = prepare(brief, cache=cache)
    if not 0 <= frame < prepared.composition.output.frames:
        last = prepared.composition.output.frames - 1
        raise TestbedError(f"frame {frame} is not in the film; give 0 to {last}")
    painter = Painter(prepared.composition, prepared.media)
    try:
        return painter.paint(frame)
    finally:
        painter.close()


def render(
    brief: Brief,
    out: Path,
    *,
    cache: Path,
    poster: Path | None = None,
    contact: Path | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[Prepared, FilmReport]:
    """Make a brief's film, with poster and contact sheet when paths are given for them."""
    prepared = prepare(brief, cache=cache, progress=progress)
    gatherer = StillGatherer(prepared.composition)
    report = render_film(
        prepared.composition,
        prepared.media,
        out,
        progress=None if progress is None else lambda done, of: progress("film", done, of),
        on_frame=gatherer.see,
    )
    if poster is not None:
        gatherer.write_poster(poster)
    if contact is not None:
        gatherer.write_contact(contact)
    return prepared, report


def prepare(
    brief: Brief, *, cache: Path, progress: Callable[[str, int, int], None] | None = None
) -> Prepared:
    """Make or find everything a brief's film is made of, and compose it."""
    cache.mkdir(parents=True, exist_ok=True)
    script = write_script(brief)
    notes = list(script.notes)
    logo = _picture(brief.logo, cache)
    product = _picture(brief.product_picture, cache)
    clips = _clips(script, None if product is None else cache / product, cache, progress)
    notes += [report.note for _, report in clips if report.note and report.set_piece == "abstract"]
    music = _music(script, cache)
    narration, timings = None, None
    if script.phrases and voice_available():
        narration, timings = _narration(script, cache)
    elif script.phrases:
        notes.append("the voice is not installed (longtake[voice]): music only")
    keys = MediaKeys(
        clips=tuple(name for name, _ in clips),
        music=music,
        narration=narration,
        logo=logo,
        product_picture=product,
        anchors=tuple(
            tuple(Anchor(round(x * 1000), round(y * 1000)) for x, y in report.anchors) for _, report in clips
        ),
    )
    composition = compose(script, keys, timings)
    (cache / "composition.json").write_bytes(composition_as_json(composition))
    return Prepared(script, composition, cache, tuple(dict.fromkeys(notes)))


def shot_requests(script: Script, product_picture: Path | None) -> list[ShotRequest]:
    """Return what the shots' maker is asked for, one request a shot."""
    palette = msgspec.convert(msgspec.to_builtins(script.colours), ShotPalette)
    return [
        ShotRequest(
            prompt=shot.prompt,
            frames=shot.frames,
            fps=script.fps,
            width=script.width,
            height=script.height,
            seed=shot.seed,
            palette=palette,
            product_picture=str(product_picture) if product_picture and shot.shows_product else None,
            title=script.product,
        )
        for shot in script.shots
    ]


def phrase_windows(phrases: Sequence[Phrase]) -> tuple[PhraseWindow, ...]:
    """Return the windows within which each phrase is to be spoken."""
    return tuple(PhraseWindow(phrase.start_frame, phrase.end_frame) for phrase in phrases)


def _clips(
    script: Script,
    product: Path | None,
    cache: Path,
    progress: Callable[[str, int, int], None] | None,
) -> list[tuple[str, ClipReport]]:
    requests = shot_requests(script, product)
    with ThreadPoolExecutor(CLIPS_AT_ONCE) as pool:
        made = []
        for number, clip in enumerate(pool.map(lambda request: _clip(request, cache), requests), start=1):
            made.append(clip)
            if progress is not None:
                progress("clips", number, len(requests))
    return made


def _clip(request: ShotRequest, cache: Path) -> tuple[str, ClipReport]:
    """Draw one clip in a process of its own, so that two cores draw two."""
    asked = msgspec.json.encode(request, order="sorted")
    picture = request.product_picture
    # A picture counts by what it shows, not by where it lies: equal briefs name equal clips in every folder.
    shown = None if picture is None else hashlib.sha256(Path(picture).read_bytes()).hexdigest()
    named = msgspec.structs.replace(request, product_picture=shown)
    name = f"clip-{_named(msgspec.json.encode(named, order='sorted') + _version_of('shots'))}"
    clip, told = cache / f"{name}.mp4", cache / f"{name}.json"
    if not (clip.exists() and told.exists()):
        order = cache / f"{name}.request.json"
        order.write_bytes(asked)
        done = subprocess.run(
            [sys.executable, "-m", "videoads.renderer.shots", str(order), str(clip)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        if done.returncode != 0:
            raise TestbedError((done.stderr or done.stdout).strip() or "a clip could not be drawn")
        told.write_text(done.stdout.strip().splitlines()[-1])
    return clip.name, msgspec.json.decode(told.read_bytes(), type=ClipReport)


@lru_cache(maxsize=4)
def _version_of(package: str) -> bytes:
    """Digest the code of a part of the renderer, so that what a changed part makes is made again."""
    digest = hashlib.sha256()
    for path in sorted((Path(__file__).parent / package).rglob("*")):
        if path.suffix in (".py", ".svg"):
            digest.update(path.read_bytes())
    return digest.digest()


def _music(script: Script, cache: Path) -> str:
    asked = msgspec.json.encode(script.music, order="sorted")
    name = f"music-{_named(asked + _version_of('sound'))}.wav"
    if not (cache / name).exists():
        plan = msgspec.json.decode(asked, type=ComposedMusic)
        write_wav(cache / name, compose_music(plan), RATE)
    return name


def _narration(script: Script, cache: Path) -> tuple[str, Timings]:
    lines = [phrase.text for phrase in script.phrases]
    asked = msgspec.json.encode([script.phrases, script.music.seed, script.fps])
    name = f"narration-{_named(asked + _version_of('sound'))}"
    sound, told = cache / f"{name}.wav", cache / f"{name}.json"
    if not (sound.exists() and told.exists()):
        spoken = speak(
            lines, seed=script.music.seed, rate=RATE, windows=phrase_windows(script.phrases), fps=script.fps
        )
        write_wav(sound, spoken.pcm, spoken.rate)
        timings = Timings(
            spoken.rate,
            tuple(
                SpokenPhrase(phrase.key, timing.text, timing.start_sample, timing.end_sample)
                for phrase, timing in zip(script.phrases, spoken.phrases, strict=True)
            ),
        )
        told.write_bytes(msgspec.json.encode(timings))
    return sound.name, msgspec.json.decode(told.read_bytes(), type=Timings)


def _picture(picture: Picture | None, cache: Path) -> str | None:
    if picture is None:
        return None
    ending = {"image/svg+xml": ".svg", "image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp"}
    content = picture.content()
    name = f"picture-{_named(content)}{ending[picture.media_type]}"
    (cache / name).write_bytes(content)
    return name


def _named(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]
