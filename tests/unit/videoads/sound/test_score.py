"""The composition: rules a listener would hear, and the plans it refuses."""

from itertools import pairwise

import msgspec
import pytest

from videoads.renderer.sound import MusicPlan, SoundRequestError, write_score
from videoads.renderer.sound.moods import MOODS
from videoads.renderer.sound.score import Score

MOOD_NAMES = ("warm", "bold", "clean")


def plan(mood: str = "warm", **changes: object) -> MusicPlan:
    whole = MusicPlan(bars=6, mood=mood, seed=3, cut_bars=(1, 2, 3, 4), card_bar=4, hit_bar=5)
    return msgspec.structs.replace(whole, **changes)


def off_grid(score: Score, grid: float) -> list[float]:
    beats = [s.beat for s in score.strokes] + [n.beat for n in score.notes]
    return [beat for beat in beats if abs(beat / grid - round(beat / grid)) > 1e-9]


@pytest.mark.parametrize("mood", MOOD_NAMES)
def test_the_same_plan_is_the_same_piece(mood):
    assert write_score(plan(mood)) == write_score(plan(mood))


def test_seeds_and_moods_make_different_pieces():
    motifs = {tuple(n.pitch for n in write_score(plan(seed=s)).notes if n.part == "lead") for s in range(8)}
    assert len(motifs) > 1
    assert len({write_score(plan(mood)).key for mood in MOOD_NAMES}) == 3


@pytest.mark.parametrize("mood", ["bold", "clean"])
def test_everything_lies_on_the_grid_of_thirty_seconds(mood):
    assert off_grid(write_score(plan(mood)), 1 / 8) == []


def test_a_swung_piece_delays_only_the_weak_sixteenths():
    """And the check can fail: what is swung is indeed off the straight grid."""
    late = off_grid(write_score(plan("warm")), 1 / 8)
    assert late
    delay = MOODS["warm"].swing / 4
    assert all(abs(((beat - delay) * 4) % 2 - 1) < 1e-6 for beat in late)


@pytest.mark.parametrize("mood", MOOD_NAMES)
def test_a_stroke_or_note_falls_on_every_bar(mood):
    score = write_score(plan(mood))
    begins = {stroke.beat for stroke in score.strokes} & {note.beat for note in score.notes}
    assert {float(bar * 4) for bar in range(6)} <= begins


@pytest.mark.parametrize("mood", MOOD_NAMES)
def test_melody_and_bass_belong_to_key_or_chord(mood):
    score = write_score(plan(mood))
    scale = {(score.key + step) % 12 for step in MOODS[score.mood].scale}
    for note in score.notes:
        chord = next(c for c in reversed(score.chords) if c.beat <= note.beat)
        tones = {(score.key + colour) % 12 for colour in (chord.root, *chord.colours)}
        fifths = {(score.key + chord.root + step) % 12 for step in (0, 7)}
        assert note.pitch % 12 in scale | tones | fifths, (note, chord)


@pytest.mark.parametrize("mood", MOOD_NAMES)
def test_chords_move_by_small_steps(mood):
    """Voice leading: the same chords stacked from their roots would leap much further."""
    score = write_score(plan(mood))
    led, stacked = [], []
    for chord in score.chords:
        inside = [n for n in score.notes if n.part == "chords" and 0 <= n.beat - chord.beat < chord.beats]
        led.append(sorted({n.pitch for n in inside}))
        stacked.append([score.key + colour for colour in chord.colours])

    def leaps(voicings: list[list[int]]) -> float:
        moves = [abs(x - y) for a, b in pairwise(voicings) for x, y in zip(a, b, strict=False)]
        return sum(moves) / len(moves)

    assert leaps(led) <= 3.0
    assert leaps(led) < leaps(stacked)


@pytest.mark.parametrize("mood", MOOD_NAMES)
def test_every_chord_of_a_mood_belongs_to_its_key(mood):
    row = MOODS[mood]
    for root, colours in (*row.verse, row.tension, *row.arrival, row.home):
        assert {tone % 12 for tone in (root, *colours)} <= set(row.scale), (root, colours)
        assert len({colour % 12 for colour in colours}) >= 2


def grating(score: Score) -> list[tuple[float, int, int]]:
    """Melody notes that lie a semitone above a sounding tone of the chord for half a beat or more."""
    chords = [n for n in score.notes if n.part == "chords"]
    return [
        (lead.beat, lead.pitch, tone.pitch)
        for lead in score.notes
        if lead.part == "lead"
        for tone in chords
        if (lead.pitch - tone.pitch) % 12 == 1
        and min(lead.beat + lead.beats, tone.beat + tone.beats) - max(lead.beat, tone.beat) >= 0.5
    ]


@pytest.mark.parametrize("mood", MOOD_NAMES)
@pytest.mark.parametrize("seed", range(4))
def test_the_melody_does_not_grate_on_the_chords(mood, seed):
    assert grating(write_score(plan(mood, seed=seed))) == []


def test_a_melody_a_semitone_off_does_grate():
    """The broken variant: one part of the same piece, raised by a semitone."""
    score = write_score(plan("clean"))
    raised = [msgspec.structs.replace(n, pitch=n.pitch + (n.part == "lead")) for n in score.notes]
    assert len(grating(msgspec.structs.replace(score, notes=tuple(raised)))) > 3


@pytest.mark.parametrize("mood", MOOD_NAMES)
def test_it_builds_to_the_card_and_comes_home_on_the_hit(mood):
    score = write_score(plan(mood))
    strokes = [sum(1 for s in score.strokes if bar * 4 <= s.beat < bar * 4 + 4) for bar in range(6)]
    assert strokes[0] < strokes[1] <= strokes[4] + 4
    assert score.riser_beats == (12.0, 16.0), "the riser ends where the card begins"
    fill = [s for s in score.strokes if 14.5 <= s.beat < 16.0 and s.drum in ("tom", "snare")]
    assert len(fill) >= 6, "a fill leads into the card"
    assert any(s.drum == "crash" and s.beat == 16.0 for s in score.strokes)
    assert score.chords[-1].root == 0 and score.chords[-1].beat == score.hit_beat == 20.0
    assert not [s for s in score.strokes if s.beat > 20.0], "after the hit it only rings"
    assert [n.part for n in score.notes if n.beat > 20.0] == ["bell"] * (len(MOODS[score.mood].logo) - 1)


def test_without_a_card_there_is_no_riser_and_no_fill():
    score = write_score(plan(card_bar=None))
    assert score.riser_beats is None and score.card_beat is None


@pytest.mark.parametrize("bars", [1, 2, 3, 16, 64])
def test_any_length_is_a_piece(bars):
    score = write_score(MusicPlan(bars=bars, mood="clean", card_bar=max(0, bars - 2)))
    assert score.beats == bars * 4 and score.notes and score.chords[-1].root == 0


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"bars": 0}, "/bars"),
        ({"bars": 65}, "/bars"),
        ({"bpm": 49}, "/bpm"),
        ({"bpm": 241}, "/bpm"),
        ({"seed": -1}, "/seed"),
        ({"card_bar": 6}, "/card_bar"),
        ({"hit_bar": -1}, "/hit_bar"),
        ({"cut_bars": (1, 6)}, "/cut_bars/1"),
    ],
)
def test_a_bad_plan_is_refused_with_the_place(changes, pointer):
    with pytest.raises(SoundRequestError) as refusal:
        write_score(plan(**changes))
    assert refusal.value.pointer == pointer
