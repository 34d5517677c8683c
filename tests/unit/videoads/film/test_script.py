"""A brief laid out in time: every cut on a bar, the brief's own words, the same script each time."""

from dataclasses import dataclass

import msgspec
import pytest

from kit.film_briefs import brief, shipped
from videoads.bars import FRAMES_PER_BAR, bars_for, bars_needed, card_bars, scene_bars
from videoads.script import PHRASE_CHARACTERS_MAX, split_phrases, write_script


def test_the_espresso_ad_is_six_bars_of_seventy_two_frames() -> None:
    """432 frames at 30 a second: hook, product, pour, triptych of one bar each, the card of two."""
    script = write_script(shipped("espresso"))

    assert (script.frames, script.fps, script.width, script.height) == (432, 30, 720, 1280)
    assert [(shot.start_frame, shot.frames) for shot in script.shots] == [
        (0, 72),
        (72, 72),
        (144, 72),
        (216, 72),
    ]
    assert (script.card.start_frame, script.card.frames) == (288, 144)
    assert (script.music.bpm, script.music.bars, script.music.cut_bars) == (100, 6, (1, 2, 3, 4))
    assert script.pour is not None
    assert 144 <= script.pour.start_frame < script.pour.end_frame <= 216


@pytest.mark.parametrize("name", ["espresso", "bike_light", "glasklar"])
def test_the_same_brief_gives_the_same_script(name: str) -> None:
    """There is no clock and no dice in it."""
    assert write_script(shipped(name)) == write_script(shipped(name))


@pytest.mark.parametrize("scenes", range(1, 9))
@pytest.mark.parametrize("extra", range(3))
def test_every_cut_falls_on_a_bar_for_any_number_of_scenes(scenes: int, extra: int) -> None:
    """Bars are shared out whole, earlier scenes first."""
    bars = bars_needed(scenes) + extra
    lengths = scene_bars(scenes, bars)

    assert sum(lengths) + card_bars(bars) == bars
    assert min(lengths) >= 1
    assert max(lengths) - min(lengths) <= 1


def test_other_seconds_become_whole_bars_and_the_script_says_so() -> None:
    """Ten seconds are four bars and a bit: 9.6."""
    script = write_script(brief(seconds=10))

    assert script.frames == 4 * FRAMES_PER_BAR
    assert any("10 s became 9.6 s" in note for note in script.notes)


@pytest.mark.parametrize(("seconds", "bars"), [(4.8, 2), (5.9, 2), (6.1, 3), (14.4, 6), (60, 25)])
def test_the_nearest_whole_number_of_bars_is_taken(seconds: float, bars: int) -> None:
    """A bar is 2.4 seconds."""
    assert bars_for(seconds) == bars


def test_the_words_are_the_briefs_own() -> None:
    """Nothing is invented: each line said and shown stands in the brief."""
    given = shipped("espresso")
    script = write_script(given)
    assert given.narration is not None

    said = " ".join(phrase.text for phrase in script.phrases)

    assert said == " ".join(given.narration)
    assert [shot.title for shot in script.shots] == [given.headline, *(s.line for s in given.scenes[1:])]


@pytest.mark.parametrize("name", ["espresso", "bike_light"])
def test_a_phrase_is_planned_inside_its_own_shot(name: str) -> None:
    """No caption runs over a cut, no two phrases at once."""
    script = write_script(shipped(name))
    spans = {shot.key: (shot.start_frame, shot.start_frame + shot.frames) for shot in script.shots}
    spans["card"] = (script.card.start_frame, script.frames)

    for phrase in script.phrases:
        start, end = spans[phrase.shot]
        assert start < phrase.start_frame < phrase.end_frame < end

    ends = [phrase.end_frame for phrase in script.phrases]
    assert all(end < after.start_frame for end, after in zip(ends, script.phrases[1:], strict=False))


def test_without_narration_nothing_is_said_and_the_script_says_so() -> None:
    """The German service is music only."""
    script = write_script(shipped("glasklar"))

    assert script.phrases == ()
    assert "no narration: music only" in script.notes


@dataclass
class Line:
    """A narration line and the phrases it should break into."""

    text: str
    phrases: list[str]


LINES = [
    Line("Some mornings deserve more.", ["Some mornings deserve more."]),
    Line("Steel. Steam. Patience.", ["Steel. Steam. Patience."]),
    Line(
        "It does not mind the rain. And neither should you.",
        ["It does not mind the rain.", "And neither should you."],
    ),
    Line(
        "When the night is long, and the road is longer than the night, it shines.",
        ["When the night is long,", "and the road is longer than the night,", "it shines."],
    ),
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text[:20])
def test_a_line_breaks_where_a_speaker_breathes(line: Line) -> None:
    """At sentence ends first, then at commas; short sentences stay together."""
    assert split_phrases(line.text) == line.phrases


def test_a_long_sentence_without_a_mark_breaks_between_words_evenly() -> None:
    """No phrase is longer than two caption lines hold, none is a lonely word."""
    text = "this sentence goes on and on without any mark at all until the very end of its breath"
    phrases = split_phrases(text)

    assert " ".join(phrases) == text
    assert all(len(phrase) <= PHRASE_CHARACTERS_MAX for phrase in phrases)
    assert min(len(phrase) for phrase in phrases) > 15


def test_a_script_holds_whole_numbers_only() -> None:
    """A fraction would differ between machines some day."""

    def floats(value: object) -> bool:
        if isinstance(value, dict):
            return any(floats(item) for item in value.values())
        if isinstance(value, list | tuple):
            return any(floats(item) for item in value)
        return isinstance(value, float)

    assert not floats(msgspec.to_builtins(write_script(shipped("espresso"))))
