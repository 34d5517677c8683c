"""The music as sound: the score played, balanced, given room, and finished.

`compose_music(plan)` returns stereo PCM of exactly the plan's length. Every note and stroke lies on the
score's grid; the kick makes the other parts breathe; a common room and a gentle saturation hold it together.
Which notes: `score`. Which sounds: `instruments`, `drums`, `effects`.
"""

import numpy as np
from numpy.typing import NDArray

from .drums import strike
from .effects import impact, riser
from .filters import bump, db, equalise, reverb, slope
from .instruments import play
from .limiter import level_to
from .moods import MoodName
from .score import MusicPlan, Score, write_score
from .wav import Pcm, as_pcm

__all__ = ["compose_music", "music_samples", "perform"]

Stereo = NDArray[np.float64]

BED_LUFS = -16.0
BED_CEILING_DBTP = -1.5
END_FADE_SECONDS = 0.35
REVERB_SECONDS = {"warm": 1.3, "bold": 1.7, "clean": 1.1}

# Levels in dB by part and mood, found by ear and by the band meter in the tests.
PART_DB: dict[MoodName, dict[str, float]] = {
    "warm": {"chords": -15.5, "bass": -13.0, "lead": -11.0, "arp": -20.0, "bell": -14.0},
    "bold": {"chords": -11.0, "bass": -15.5, "lead": -12.5, "arp": -14.5, "bell": -14.0},
    "clean": {"chords": -14.0, "bass": -14.0, "lead": -12.5, "arp": -11.5, "bell": -15.0},
}
DRUM_DB: dict[str, float] = {
    "kick": -9.5,
    "snare": -9.5,
    "rim": -12.0,
    "clap": -11.5,
    "hat": -13.0,
    "open_hat": -17.0,
    "shaker": -14.5,
    "tom": -11.5,
    "crash": -13.5,
}
PART_SEND = {"chords": 0.22, "bass": 0.0, "lead": 0.4, "arp": 0.3, "bell": 0.5}
DRUM_SEND = {"kick": 0.0, "snare": 0.2, "rim": 0.22, "clap": 0.25, "tom": 0.2, "crash": 0.15}
DRUM_PAN = {"hat": 0.3, "open_hat": 0.25, "shaker": -0.4, "rim": 0.12, "crash": -0.2}
# How late a hand may be, in seconds; nobody plays a chord with all fingers at once.
HAND_SECONDS: dict[MoodName, float] = {"warm": 0.009, "bold": 0.0, "clean": 0.004}
PUMP_DEPTH = {"warm": 0.16, "bold": 0.4, "clean": 0.3}


def compose_music(plan: MusicPlan, rate: int = 48000) -> Pcm:
    """Compose and play the plan; the same plan gives the same samples."""
    return as_pcm(perform(write_score(plan), plan.seed, rate))


def music_samples(plan: MusicPlan, rate: int = 48000) -> int:
    """How long the music of a plan is."""
    return round(plan.bars * 4 * 60 * rate / plan.bpm)


def perform(score: Score, seed: int, rate: int) -> Stereo:
    """Play a score."""
    samples = round(score.beats * 60 * rate / score.bpm)
    random = np.random.default_rng([seed, 77])
    drums, drums_wet = _play_drums(score, samples, rate, random)
    parts, parts_wet = _play_parts(score, samples, rate, random)
    pump = _pump(score, samples, rate)
    parts *= pump
    parts_wet *= pump
    parts += _transitions(score, samples, seed, rate)
    room = reverb(drums_wet + parts_wet, rate, seconds=REVERB_SECONDS[score.mood], seed=seed + 1)
    return _finish(drums + parts + 0.8 * room, rate)


def _play_drums(score: Score, samples: int, rate: int, random: np.random.Generator) -> tuple[Stereo, Stereo]:
    dry, wet = np.zeros((2, samples)), np.zeros((2, samples))
    kit: dict[tuple[str, int, int], list[NDArray[np.float64]]] = {}
    for number, stroke in enumerate(score.strokes):
        # Three takes of each drum, so that no two neighbouring strokes are the same sample.
        take = (stroke.drum, stroke.tone, number % 3)
        if take not in kit:
            kit[take] = [strike(stroke, score.mood, rate, random)]
        sound = kit[take][0] * (stroke.velocity**1.3 * db(DRUM_DB[stroke.drum]))
        pan = DRUM_PAN.get(stroke.drum, 0.0)
        if stroke.drum == "tom":
            pan = (0.35, 0.0, -0.35)[stroke.tone % 3]
        placed = np.stack([sound * (1.0 - max(0.0, pan)), sound * (1.0 + min(0.0, pan))])
        _add(dry, placed, _at(stroke.beat, score.bpm, rate))
        send = DRUM_SEND.get(stroke.drum, 0.05)
        if send:
            _add(wet, placed * send, _at(stroke.beat, score.bpm, rate))
    return dry, wet


def _play_parts(score: Score, samples: int, rate: int, random: np.random.Generator) -> tuple[Stereo, Stereo]:
    dry, wet = np.zeros((2, samples)), np.zeros((2, samples))
    played: dict[tuple[str, int, float, float], Stereo] = {}
    for note in score.notes:
        seconds = note.beats * 60 / score.bpm
        take = (note.part, note.pitch, round(seconds, 4), round(note.velocity, 1))
        if take not in played:
            played[take] = play(note.part, score.mood, note.pitch, seconds, round(note.velocity, 1), rate)
        sound = played[take] * (note.velocity * db(PART_DB[score.mood][note.part]))
        at = _at(note.beat, score.bpm, rate)
        if note.part == "chords":
            at += int(HAND_SECONDS[score.mood] * random.random() * rate)
        _add(dry, sound, at)
        if PART_SEND[note.part]:
            _add(wet, sound * PART_SEND[note.part], at)
        if note.part in ("lead", "bell"):
            # An echo on the dotted eighth, thrown to the other side.
            _add(wet, sound[::-1] * 0.3, at + _at(0.75, score.bpm, rate))
            _add(dry, sound[::-1] * 0.14, at + _at(0.75, score.bpm, rate))
    return dry, wet


def _transitions(score: Score, samples: int, seed: int, rate: int) -> Stereo:
    out = np.zeros((2, samples))
    if score.riser_beats is not None:
        begin, end = (_at(beat, score.bpm, rate) for beat in score.riser_beats)
        root = 440.0 * 2.0 ** ((score.key + 7 - 69) / 12)
        _add(out, riser((end - begin) / rate, seed, rate, root) * db(-15.0), begin)
    if score.card_beat is not None:
        _add(out, impact(1.4, seed, rate) * db(-11.0), _at(score.card_beat, score.bpm, rate))
    _add(out, impact(2.2, seed + 1, rate) * db(-11.0), _at(score.hit_beat, score.bpm, rate))
    return out


def _pump(score: Score, samples: int, rate: int) -> NDArray[np.float64]:
    """How the pitched parts yield to each kick and come back within a beat."""
    length = int(0.3 * rate)
    t = np.arange(length) / length
    dip = 1.0 - PUMP_DEPTH[score.mood] * np.minimum(1.0, t / 0.02) * (1.0 - t) ** 1.6
    gain = np.ones(samples)
    for stroke in score.strokes:
        if stroke.drum == "kick":
            at = _at(stroke.beat, score.bpm, rate)
            part = gain[at : at + length]
            np.minimum(part, dip[: len(part)], out=part)
    return gain


def _finish(signal: Stereo, rate: int) -> Stereo:
    signal = equalise(signal, rate, _tone)
    loudest = float(np.max(np.abs(signal), initial=1e-9))
    signal = np.tanh(signal / loudest * 1.25)
    samples = signal.shape[1]
    edge = min(samples // 4, int(END_FADE_SECONDS * rate))
    signal[:, samples - edge :] *= 0.5 + 0.5 * np.cos(np.linspace(0.0, np.pi, edge))
    return level_to(signal, rate, target_lufs=BED_LUFS, ceiling_dbtp=BED_CEILING_DBTP).signal


def _tone(f: NDArray[np.float64]) -> NDArray[np.float64]:
    """No rumble, a little less mud, more presence and air."""
    mud = 1.0 - 0.16 * bump(f, 320.0, 0.7)
    air = (1.0 + 0.5 * slope(f, low=1600.0, order=1)) * (1.0 + 0.25 * slope(f, low=7500.0, order=1))
    return slope(f, low=32.0, high=17000.0, order=2) * mud * air


def _at(beat: float, bpm: int, rate: int) -> int:
    return round(beat * 60 * rate / bpm)


def _add(out: Stereo, sound: Stereo, at: int) -> None:
    end = min(out.shape[1], at + sound.shape[1])
    if at < end:
        out[:, at:end] += sound[:, : end - at]
