"""The script: a brief laid out in time.

`write_script` is pure: the same brief gives the same script. The brief's own words win, nothing is invented;
what it decides is when each thing is seen and heard. Every shot starts on a bar. Where things lie in the
picture is decided by `renderer.composition`, once the narration has been spoken and timed.
"""

from __future__ import annotations

import hashlib
import re
from typing import Literal

import msgspec

from videoads.bars import BPM, FPS, FRAMES_PER_BAR, bars_for, card_bars, scene_bars
from videoads.brief import Brief, ClosingCard, Colours, Profile, Style

__all__ = [
    "MusicPlan",
    "Phrase",
    "PourWindow",
    "Script",
    "ScriptCard",
    "ScriptShot",
    "split_phrases",
    "write_script",
]

Mood = Literal["warm", "bold", "clean"]

MOODS: dict[Style, Mood] = {"warm-editorial": "warm", "bold-dark": "bold", "clean-service": "clean"}

PHRASE_CHARACTERS_MAX = 44
"""What two caption lines hold comfortably; a longer sentence is broken at a comma or between words."""

PHRASE_JOINED_CHARACTERS_MAX = 36
"""Short sentences are said, and captioned, as one phrase up to this length; one word alone only flickers."""

PHRASE_LEAD_FRAMES = 6
PHRASE_TAIL_FRAMES = 5
PHRASE_GAP_FRAMES = 3

_POURS = ("pour", "stream", "crema", "espresso flows", "einschenken")


class ScriptShot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One shot before the card: what a clip provider is asked for, and the words laid over it."""

    key: str
    prompt: str
    start_frame: int
    frames: int
    seed: int
    title: str
    kicker: str
    call_outs: tuple[str, ...]
    shows_product: bool


class Phrase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A few words spoken in one breath, shown as one caption, inside a planned window."""

    key: str
    text: str
    shot: str
    start_frame: int
    end_frame: int


class MusicPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be composed: tempo, length, mood, the bars with a cut and the bar of the final hit."""

    bpm: int
    bars: int
    mood: Mood
    seed: int
    cut_bars: tuple[int, ...]
    card_bar: int
    hit_bar: int


class PourWindow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When the sound of something being poured is heard."""

    start_frame: int
    end_frame: int


class ScriptCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The closing card and when it stands."""

    start_frame: int
    frames: int
    product: str
    tagline: str
    offer: str
    button: str
    address: str


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole ad in time; all numbers are frames at `fps`."""

    product: str
    language: str
    style: Style
    fps: int
    width: int
    height: int
    profile: Profile
    bars: int
    frames_per_bar: int
    frames: int
    colours: Colours
    shots: tuple[ScriptShot, ...]
    phrases: tuple[Phrase, ...]
    music: MusicPlan
    pour: PourWindow | None
    card: ScriptCard
    has_logo: bool
    has_product_picture: bool
    notes: tuple[str, ...]


def write_script(brief: Brief) -> Script:
    """Lay the brief out in time."""
    bars = bars_for(brief.seconds)
    lengths = scene_bars(len(brief.scenes), bars)
    card_bar = bars - card_bars(bars)
    seed = _seed(brief)
    shots = _shots(brief, lengths, seed)
    starts = (*(shot.start_frame for shot in shots), card_bar * FRAMES_PER_BAR)
    return Script(
        product=brief.product,
        language=brief.language,
        style=brief.style,
        fps=FPS,
        width=brief.size.width,
        height=brief.size.height,
        profile=brief.profile,
        bars=bars,
        frames_per_bar=FRAMES_PER_BAR,
        frames=bars * FRAMES_PER_BAR,
        colours=brief.colours,
        shots=shots,
        phrases=_phrases(brief, shots, card_bar * FRAMES_PER_BAR, bars * FRAMES_PER_BAR),
        music=MusicPlan(
            bpm=BPM,
            bars=bars,
            mood=MOODS[brief.style],
            seed=seed,
            cut_bars=tuple(start // FRAMES_PER_BAR for start in starts[1:]),
            card_bar=card_bar,
            hit_bar=bars - 1,
        ),
        pour=_pour(shots),
        card=_card(brief.closing, brief, card_bar * FRAMES_PER_BAR, bars * FRAMES_PER_BAR),
        has_logo=brief.logo is not None,
        has_product_picture=brief.product_picture is not None,
        notes=_notes(brief, bars),
    )


def _shots(brief: Brief, lengths: tuple[int, ...], seed: int) -> tuple[ScriptShot, ...]:
    shots = []
    start = 0
    for index, (scene, length) in enumerate(zip(brief.scenes, lengths, strict=True)):
        first = index == 0
        shots.append(
            ScriptShot(
                key=f"shot-{index + 1}",
                prompt=scene.prompt or scene.line or brief.headline,
                start_frame=start,
                frames=length * FRAMES_PER_BAR,
                seed=(seed + 7919 * (index + 1)) % 2**31,
                title=brief.headline if first else scene.line,
                kicker=scene.line if first else "",
                call_outs=scene.call_outs,
                shows_product=scene.shows_product,
            )
        )
        start += length * FRAMES_PER_BAR
    return tuple(shots)


def _card(closing: ClosingCard, brief: Brief, start: int, end: int) -> ScriptCard:
    return ScriptCard(
        start_frame=start,
        frames=end - start,
        product=brief.product,
        tagline=brief.tagline,
        offer=closing.offer,
        button=closing.button,
        address=closing.address,
    )


def _phrases(brief: Brief, shots: tuple[ScriptShot, ...], card_start: int, end: int) -> tuple[Phrase, ...]:
    if brief.narration is None:
        return ()
    windows = [(shot.key, shot.start_frame, shot.start_frame + shot.frames) for shot in shots]
    windows.append(("card", card_start, end))
    phrases: list[Phrase] = []
    for number, (line, window) in enumerate(zip(brief.narration, windows, strict=False), start=1):
        parts = split_phrases(line)
        key, window_start, window_end = window
        start = window_start + PHRASE_LEAD_FRAMES
        room = window_end - PHRASE_TAIL_FRAMES - start - PHRASE_GAP_FRAMES * (len(parts) - 1)
        letters = sum(len(part) + 4 for part in parts)
        spent = 0
        for index, part in enumerate(parts):
            gaps = PHRASE_GAP_FRAMES * index
            first = start + gaps + room * spent // letters
            spent += len(part) + 4
            last = start + gaps + room * spent // letters
            phrases.append(Phrase(f"phrase-{number}-{index + 1}", part, key, first, last))
    return tuple(phrases)


def split_phrases(line: str) -> list[str]:
    """Break a narration line into phrases of one breath: at sentence ends, then at commas, then between words."""
    sentences = [part for part in re.split(r"(?<=[.!?;:…])\s+", line.strip()) if part]
    phrases: list[str] = []
    for sentence in sentences:
        if phrases and len(phrases[-1]) + 1 + len(sentence) <= PHRASE_JOINED_CHARACTERS_MAX:
            phrases[-1] = f"{phrases[-1]} {sentence}"
            continue
        if len(sentence) <= PHRASE_CHARACTERS_MAX:
            phrases.append(sentence)
            continue
        current = ""
        for part in re.split(r"(?<=,)\s+", sentence):
            if current and len(current) + 1 + len(part) > PHRASE_CHARACTERS_MAX:
                phrases.extend(_wrapped(current))
                current = part
            else:
                current = f"{current} {part}".strip()
        phrases.extend(_wrapped(current))
    return phrases


def _wrapped(text: str) -> list[str]:
    """Break between words into the fewest pieces that fit, all of about one length."""
    pieces = -(-len(text) // PHRASE_CHARACTERS_MAX)
    target = len(text) / pieces
    lines = [""]
    for word in text.split():
        full = len(lines[-1]) + 1 + len(word) > PHRASE_CHARACTERS_MAX
        balanced = len(lines) < pieces and len(lines[-1]) + len(word) / 2 > target
        if lines[-1] and (full or balanced):
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return [line for line in lines if line]


def _pour(shots: tuple[ScriptShot, ...]) -> PourWindow | None:
    for shot in shots:
        if any(word in shot.prompt.lower() for word in _POURS):
            return PourWindow(shot.start_frame + 8, shot.start_frame + shot.frames - 10)
    return None


def _notes(brief: Brief, bars: int) -> tuple[str, ...]:
    notes = []
    exact = bars * FRAMES_PER_BAR / FPS
    if abs(exact - brief.seconds) > 0.001:
        notes.append(
            f"{brief.seconds:g} s became {exact:g} s: {bars} whole bars, so that every cut falls on one"
        )
    if brief.narration is None:
        notes.append("no narration: music only")
    return tuple(notes)


def _seed(brief: Brief) -> int:
    """Derive the seed of everything random from the brief, so that it needs no number of its own."""
    digest = hashlib.sha256(msgspec.json.encode([brief.product, brief.headline, brief.style]))
    return int.from_bytes(digest.digest()[:4], "big") % 2**31
