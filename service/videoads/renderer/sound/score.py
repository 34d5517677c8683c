"""The composition: what is played, before anyone plays it.

`write_score(plan)` is pure: a plan becomes notes and drum strokes on a grid of beats, by rules a listener
would recognise: a progression that comes home on the final hit, chords that move to the nearest inversion,
a bass on the roots, a motif that answers itself, a groove with a fill and a riser before the card. A mood is
a row of `moods`. How an instrument sounds is decided in `instruments` and `drums`.
"""

from typing import Literal

import msgspec
import numpy as np

from .errors import SoundRequestError
from .moods import MOODS, Drum, Mood, MoodName, Motif

__all__ = ["BEATS_PER_BAR", "Chord", "MusicPlan", "Note", "Part", "Score", "Stroke", "write_score"]

BEATS_PER_BAR = 4
BARS_MAX = 64
BPM_MIN, BPM_MAX = 50, 240

Part = Literal["chords", "bass", "lead", "arp", "bell"]


class MusicPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be composed. `cut_bars` begin with a cut, the card comes on `card_bar`, the last chord on `hit_bar`."""

    bars: int
    mood: MoodName
    seed: int = 0
    bpm: int = 100
    cut_bars: tuple[int, ...] = ()
    card_bar: int | None = None
    hit_bar: int | None = None


class Chord(msgspec.Struct, frozen=True):
    """A harmony: root and colour as semitones above the key, and where it begins."""

    beat: float
    beats: float
    root: int
    colours: tuple[int, ...]


class Note(msgspec.Struct, frozen=True):
    """One note of one part; pitch as a MIDI number, velocity 0 to 1."""

    part: Part
    beat: float
    beats: float
    pitch: int
    velocity: float


class Stroke(msgspec.Struct, frozen=True):
    """One stroke of one drum; `tone` tells toms apart."""

    drum: Drum
    beat: float
    velocity: float
    tone: int = 0


class Score(msgspec.Struct, frozen=True):
    """A whole piece; beats count from its beginning."""

    mood: MoodName
    bpm: int
    beats: int
    key: int
    chords: tuple[Chord, ...]
    notes: tuple[Note, ...]
    strokes: tuple[Stroke, ...]
    riser_beats: tuple[float, float] | None
    card_beat: float | None
    hit_beat: float


def write_score(plan: MusicPlan) -> Score:
    """Compose the plan."""
    _refuse_bad_plan(plan)
    mood = MOODS[plan.mood]
    random = np.random.default_rng([plan.seed, 5])
    hit_bar = plan.bars - 1 if plan.hit_bar is None else plan.hit_bar
    chords = _harmony(mood, plan, hit_bar)
    voicings = _voice_lead(chords, mood.key)
    notes: list[Note] = []
    strokes: list[Stroke] = []
    motif = mood.motifs[int(random.integers(len(mood.motifs)))]
    for bar in range(plan.bars):
        beat = float(bar * BEATS_PER_BAR)
        if bar >= hit_bar:
            if bar == hit_bar:
                notes.extend(_final_hit(mood, beat, chords[-1], voicings[-1], plan.bars - bar))
                strokes.extend(_final_strokes(beat))
            continue
        energy = _energy(bar, plan.card_bar)
        here = [
            (c, v) for c, v in zip(chords, voicings, strict=True) if beat <= c.beat < beat + BEATS_PER_BAR
        ]
        notes.extend(_chord_part(mood, here, energy, random))
        notes.extend(_bass_part(mood, here, beat, energy))
        notes.extend(_arp_part(mood, here, beat, energy))
        notes.extend(_lead_part(mood, here, bar, beat, motif, plan.card_bar))
        last_before_card = plan.card_bar is not None and bar == plan.card_bar - 1
        last_before_hit = bar == hit_bar - 1
        strokes.extend(_groove(mood, beat, energy, random, fill=last_before_card, turn=last_before_hit))
        if bar == plan.card_bar or (bar in plan.cut_bars and energy >= 0.6):
            strokes.append(Stroke("crash", beat, 0.9 if bar == plan.card_bar else 0.42))
    riser = None
    if plan.card_bar is not None and plan.card_bar >= 1:
        riser = (float((plan.card_bar - 1) * BEATS_PER_BAR), float(plan.card_bar * BEATS_PER_BAR))
    return Score(
        mood=plan.mood,
        bpm=plan.bpm,
        beats=plan.bars * BEATS_PER_BAR,
        key=mood.key,
        chords=tuple(chords),
        notes=tuple(notes),
        strokes=tuple(strokes),
        riser_beats=riser,
        card_beat=None if plan.card_bar is None else float(plan.card_bar * BEATS_PER_BAR),
        hit_beat=float(hit_bar * BEATS_PER_BAR),
    )


def _refuse_bad_plan(plan: MusicPlan) -> None:
    if not 1 <= plan.bars <= BARS_MAX:
        raise SoundRequestError("/bars", f"{plan.bars} bars", f"give 1 to {BARS_MAX}")
    if not BPM_MIN <= plan.bpm <= BPM_MAX:
        raise SoundRequestError("/bpm", f"{plan.bpm} beats a minute", f"give {BPM_MIN} to {BPM_MAX}")
    if plan.seed < 0:
        raise SoundRequestError("/seed", f"{plan.seed} is negative", "give 0 or more")
    for name, bar in (("card_bar", plan.card_bar), ("hit_bar", plan.hit_bar)):
        if bar is not None and not 0 <= bar < plan.bars:
            raise SoundRequestError(
                f"/{name}", f"bar {bar} is not in the music", f"give 0 to {plan.bars - 1}"
            )
    for index, bar in enumerate(plan.cut_bars):
        if not 0 <= bar < plan.bars:
            raise SoundRequestError(
                f"/cut_bars/{index}", f"bar {bar} is not in the music", f"give 0 to {plan.bars - 1}"
            )


def _energy(bar: int, card_bar: int | None) -> float:
    """How full the arrangement is, 0 to 1: it opens small, grows by the bar and is whole on the card."""
    if card_bar is not None and bar >= card_bar:
        return 1.0
    return min(0.85, 0.35 + 0.3 * bar)


def _harmony(mood: Mood, plan: MusicPlan, hit_bar: int) -> list[Chord]:
    chords = []
    for bar in range(hit_bar):
        beat = float(bar * BEATS_PER_BAR)
        if plan.card_bar is not None and bar == plan.card_bar - 1 and bar > 0:
            root, colours = mood.verse[bar % len(mood.verse)]
            chords.append(Chord(beat, 2.0, root, colours))
            chords.append(Chord(beat + 2.0, 2.0, *mood.tension))
        elif bar == hit_bar - 1 and bar > 0:
            for offset, length, step in ((0.0, 2.0, 0), (2.0, 1.0, 1), (3.0, 1.0, 2)):
                chords.append(Chord(beat + offset, length, *mood.arrival[step]))
        else:
            chords.append(Chord(beat, 4.0, *mood.verse[bar % len(mood.verse)]))
    chords.append(
        Chord(float(hit_bar * BEATS_PER_BAR), float((plan.bars - hit_bar) * BEATS_PER_BAR), *mood.home)
    )
    return chords


def _voice_lead(chords: list[Chord], key: int) -> list[tuple[int, ...]]:
    """Put each chord where its voices move least from the chord before, around the middle of the keyboard."""
    centre = 62
    voicings: list[tuple[int, ...]] = []
    for chord in chords:
        classes = [(key + colour) % 12 for colour in chord.colours]
        candidates = [
            _closed(lowest, classes) for lowest in range(centre - 11, centre + 2) if lowest % 12 in classes
        ]
        previous = voicings[-1] if voicings else (centre - 5, centre, centre + 3, centre + 7)
        voicings.append(min(candidates, key=lambda c: (_movement(previous, c), c)))
    return voicings


def _closed(lowest: int, classes: list[int]) -> tuple[int, ...]:
    """The chord upwards from its lowest note, each next note as near as it can be."""
    return tuple(lowest + (pitch_class - lowest) % 12 for pitch_class in _upwards(lowest, classes))


def _upwards(lowest: int, classes: list[int]) -> list[int]:
    return sorted(set(classes), key=lambda pitch_class: (pitch_class - lowest) % 12)


def _movement(before: tuple[int, ...], after: tuple[int, ...]) -> int:
    return sum(abs(a - b) for a, b in zip(sorted(before), sorted(after), strict=False)) + 3 * abs(
        len(before) - len(after)
    )


def _chord_part(
    mood: Mood, here: list[tuple[Chord, tuple[int, ...]]], energy: float, random: np.random.Generator
) -> list[Note]:
    notes = []
    for chord, voicing in here:
        rhythm = mood.chord_rhythm[: int(chord.beats * 4)]
        if energy < 0.5:
            rhythm = "x.......x.....x."[: len(rhythm)]
        hits = [step for step, mark in enumerate(rhythm) if mark == "x"]
        for index, step in enumerate(hits):
            until = hits[index + 1] if index + 1 < len(hits) else len(rhythm)
            velocity = (0.62 if step == 0 else 0.5) * (0.85 + 0.2 * energy)
            for voice, pitch in enumerate(voicing):
                # A hand does not press all keys alike.
                touch = (
                    velocity * (0.92 + 0.16 * random.random()) * (1.06 if voice == len(voicing) - 1 else 1.0)
                )
                notes.append(Note("chords", chord.beat + step / 4, (until - step) / 4, pitch, touch))
    return notes


def _bass_part(
    mood: Mood, here: list[tuple[Chord, tuple[int, ...]]], beat: float, energy: float
) -> list[Note]:
    if energy < 0.5:
        held = [Note("bass", c.beat, min(c.beats, 3.0), _bass_pitch(mood, c), 0.6) for c, _ in here]
        # Two steps up into the groove.
        root = held[-1].pitch
        return [
            *held,
            Note("bass", beat + 3.0, 0.45, root + 7, 0.55),
            Note("bass", beat + 3.5, 0.45, root + 12, 0.6),
        ]
    notes = []
    steps = [step for step, mark in enumerate(mood.bass) if mark == "x"]
    for index, step in enumerate(steps):
        at = beat + step / 4
        chord = next(c for c, _ in here if c.beat <= at < c.beat + c.beats)
        pitch = _bass_pitch(mood, chord)
        until = steps[index + 1] if index + 1 < len(steps) else 16
        changes = step in (0, 8, 12) and at == chord.beat
        if not changes and step % 8 == 6:
            pitch += 12 if pitch < 41 else -5
        elif not changes and step == 13:
            pitch += 7 if pitch < 40 else -5
        notes.append(Note("bass", at, (until - step) / 4 * 0.92, pitch, 0.85 if step % 8 == 0 else 0.68))
    return notes


def _bass_pitch(mood: Mood, chord: Chord) -> int:
    pitch = mood.key + chord.root
    while pitch > 43:
        pitch -= 12
    return pitch


def _arp_part(
    mood: Mood, here: list[tuple[Chord, tuple[int, ...]]], beat: float, energy: float
) -> list[Note]:
    notes: list[Note] = []
    order = (0, 2, 1, 3, 2, 0, 3, 1)
    count = 0
    for step, mark in enumerate(mood.arp):
        if mark != "x":
            continue
        at = beat + step / 4
        voicing = next(v for c, v in here if c.beat <= at < c.beat + c.beats)
        pitch = voicing[order[count % len(order)] % len(voicing)] + 12
        count += 1
        notes.append(Note("arp", at, 0.4, pitch, (0.62 if step % 4 == 0 else 0.45) * (0.6 + 0.4 * energy)))
    return notes


def _lead_part(
    mood: Mood,
    here: list[tuple[Chord, tuple[int, ...]]],
    bar: int,
    beat: float,
    motif: Motif,
    card_bar: int | None,
) -> list[Note]:
    """The motif on odd bars, its answer on the card; strong beats and long notes are drawn to the chord."""
    if card_bar is not None and bar >= card_bar:
        line, velocity = mood.answer, 0.78
    elif bar % 2 == 1 or card_bar is None:
        line, velocity = motif, 0.66
    else:
        return []
    notes = []
    for offset, beats, step in line:
        at = beat + offset
        chord, _ = next((c, v) for c, v in here if c.beat <= at < c.beat + c.beats)
        pitch = mood.key + 12 * (step // 7) + mood.scale[step % 7]
        classes = {(mood.key + colour) % 12 for colour in chord.colours}
        # A semitone above a tone of the chord is the one step that sounds like a mistake.
        grating = {(pitch_class + 1) % 12 for pitch_class in classes}
        if offset == int(offset) or beats >= 0.75 or pitch % 12 in grating:
            pitch = _nearest(pitch, classes - grating)
        notes.append(Note("lead", at, beats, pitch, velocity))
    return notes


def _nearest(pitch: int, classes: set[int]) -> int:
    near = [pitch + step for step in range(-6, 7) if (pitch + step) % 12 in classes]
    return min(near, key=lambda candidate: (abs(candidate - pitch), candidate))


def _final_hit(mood: Mood, beat: float, chord: Chord, voicing: tuple[int, ...], bars: int) -> list[Note]:
    length = float(bars * BEATS_PER_BAR)
    notes = [Note("chords", beat, length, pitch, 0.82) for pitch in voicing]
    notes.append(Note("bass", beat, min(length, 3.5), _bass_pitch(mood, chord), 1.0))
    # The last words of the music are a short signature, as a brand would have it.
    for offset, step in mood.logo:
        pitch = mood.key + 12 * (step // 7) + mood.scale[step % 7]
        notes.append(Note("bell", beat + offset, 2.0, pitch + 12, 0.7 + 0.08 * offset))
    return notes


def _final_strokes(beat: float) -> list[Stroke]:
    return [Stroke("kick", beat, 1.0), Stroke("snare", beat, 0.5), Stroke("crash", beat, 1.0)]


def _groove(
    mood: Mood, beat: float, energy: float, random: np.random.Generator, *, fill: bool, turn: bool
) -> list[Stroke]:
    strokes = []
    for step in range(16):
        at = beat + step / 4
        if mood.swing and step % 2 == 1:
            at += mood.swing / 4
        in_fill = fill and step >= 10
        if mood.kick[step] == "x" and not in_fill and (energy >= 0.5 or step == 0):
            strokes.append(Stroke("kick", at, 0.95 if step % 8 == 0 else 0.8))
        if mood.back[step] == "x" and not in_fill and energy >= 0.5:
            strokes.append(Stroke(mood.back_drum, at, 0.85))
        if mood.ghost[step] == "g" and not in_fill and energy >= 0.6:
            strokes.append(Stroke(mood.back_drum, at, 0.2 + 0.08 * random.random()))
        if mood.hat[step] == "x" and (energy >= 0.5 or step % 2 == 0):
            accent = 1.0 if step % 4 == 0 else 0.72 if step % 2 == 0 else 0.5
            strokes.append(
                Stroke(mood.hat_drum, at, accent * (0.55 + 0.35 * energy) * (0.9 + 0.2 * random.random()))
            )
    if fill:
        # Down the toms and up the snare into the card.
        for step, tone in ((10, 2), (11, 2), (12, 1), (13, 1)):
            strokes.append(Stroke("tom", beat + step / 4, 0.55 + 0.03 * step, tone))
        for sixth in range(4):
            strokes.append(Stroke("snare", beat + 3.5 + sixth / 8, 0.4 + 0.14 * sixth))
    elif turn:
        strokes.append(Stroke("tom", beat + 3.5, 0.6, 1))
        strokes.append(Stroke("tom", beat + 3.75, 0.75, 0))
    return strokes
