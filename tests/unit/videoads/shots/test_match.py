"""The words of a prompt choose a set piece, or none."""

import pytest

from kit.shot_requests import PROMPTS
from videoads.renderer.shots import PIECES, choose_set_piece
from videoads.renderer.shots.match import ROWS

TABLE = [(prompt, "", piece) for piece, (prompt, _) in PROMPTS.items()] + [
    ("Dawn light, steam curls from a cup", "Alba Espresso", "espresso.dawn"),
    ("Sunrise over the skyline", "Alba Espresso", "espresso.dawn"),
    ("The machine turns in, beans fall", "Alba Espresso", "espresso.product"),
    ("Kitchen, desk, terrace", "Alba Espresso", "espresso.triptych"),
    ("Espresso läuft in einem dünnen Strahl ins Glas", "", "espresso.pour"),
    ("City bokeh, a ride through traffic", "Leuchtturm bike light", "light.ride"),
    ("Rücklicht pulsiert rot", "Fahrradlicht", "light.pulse"),
    ("Schaum und Abzieher auf dem Fenster", "", "service.wipe"),
    ("Buchen Sie Ihren Termin online", "Klarsicht Fensterreinigung", "service.card"),
]


@pytest.mark.parametrize(("prompt", "title", "piece"), TABLE)
def test_a_prompt_gets_the_piece_its_words_speak_of(prompt: str, title: str, piece: str) -> None:
    name, note = choose_set_piece(prompt, title)

    assert name == piece
    assert note


@pytest.mark.parametrize(
    "prompt",
    [
        "Dawn over a mountain hut",
        "Three places that matter",
        "A red carpet pulses",
        "The street is happy",
        "",
        "品質と信頼",
        "Turn the page",
    ],
)
def test_words_of_another_subject_never_borrow_a_picture(prompt: str) -> None:
    """A dawn without coffee gets no cup: the abstract shot is drawn, and the note says so in words."""
    name, note = choose_set_piece(prompt)

    assert name == "abstract"
    assert "no set piece fits" in note


def test_the_same_words_with_their_subject_do_get_the_picture() -> None:
    """The refusal above hangs on the subject alone: adding it turns the answer."""
    assert choose_set_piece("Dawn over a mountain hut with coffee")[0] == "espresso.dawn"
    assert choose_set_piece("Dawn over a mountain hut", "Hut Coffee")[0] == "espresso.dawn"


def test_every_row_has_a_piece_and_every_piece_a_row() -> None:
    assert {row.name for row in ROWS} | {"abstract"} == set(PIECES) == set(PROMPTS)


def test_short_beginnings_match_whole_words_only() -> None:
    """`rot` (red) is not found in `Rotation`, nor `rad` in `Radio`."""
    assert choose_set_piece("Rotation im Radio")[0] == "abstract"
    assert choose_set_piece("Rad, rot")[0] == "light.pulse"
