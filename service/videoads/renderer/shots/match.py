"""Which words choose which set piece. Pure: a prompt in, a row's name out.

Each row belongs to a subject. A row is only chosen when the prompt (or the title) speaks of that subject, so
that a dawn over a mountain hut never gets an espresso cup. Words are compared by their beginnings, in English
and German, and a tie goes to the earlier row.
"""

import re
from typing import NamedTuple

ABSTRACT = "abstract"


class Row(NamedTuple):
    """A set piece: its name, the subject it belongs to, and the beginnings of words that speak for it."""

    name: str
    subject: str
    words: tuple[str, ...]


SUBJECTS: dict[str, tuple[str, ...]] = {
    "espresso": (
        "espresso", "coffee", "kaffee", "moka", "mokka", "crema", "barista", "cafe", "café", "caffè", "bialetti",
        "cappuccin", "brew", "roast", "röst", "portafilter", "cup", "tasse",
    ),
    "bicycle light": (
        "bicycle", "bike", "cycl", "fahrrad", "fahrradl", "velo", "rider", "commut", "headlight", "tail", "rücklicht",
        "frontlicht", "lumen", "lamp", "rad", "radfahr", "handlebar", "lenker",
    ),
    "window cleaning": (
        "fenster", "window", "clean", "reinig", "putz", "squeegee", "abzieher", "glasklar", "glas", "streifenfrei",
        "facade", "fassade", "service", "termin", "hausmeister", "haushalt", "sauber",
    ),
}  # fmt: skip

ROWS: tuple[Row, ...] = (
    Row("espresso.dawn", "espresso", (
        "dawn", "sunrise", "morning", "morgen", "sun", "sonne", "skyline", "rooftop", "sill", "early", "wake", "daybreak",
    )),
    Row("espresso.product", "espresso", (
        "brewer", "machine", "maschine", "moka", "pot", "kanne", "product", "produkt", "bean", "bohne", "turn",
        "grind", "roast", "aluminium", "steel",
    )),
    Row("espresso.pour", "espresso", (
        "pour", "stream", "crema", "gieß", "giess", "glass", "fill", "drip", "flow", "strahl", "extract", "macro",
        "liquid",
    )),
    Row("espresso.triptych", "espresso", (
        "triptych", "three", "drei", "kitchen", "küche", "desk", "schreibtisch", "terrace", "terrasse", "train", "zug",
        "places", "orte", "anywhere", "split",
    )),
    Row("light.road", "bicycle light", (
        "road", "straße", "strasse", "lane", "dark", "night", "nacht", "cone", "beam", "lichtkegel", "path", "forest",
        "country",
    )),
    Row("light.product", "bicycle light", (
        "product", "produkt", "turn", "lamp", "lampe", "lens", "linse", "aluminium", "housing", "close", "mount", "dreh",
        "headlight", "studio", "waterproof",
    )),
    Row("light.ride", "bicycle light", (
        "ride", "rides", "rider", "city", "stadt", "bokeh", "street", "traffic", "commut", "urban", "fährt", "fahrt",
        "through",
    )),
    Row("light.pulse", "bicycle light", (
        "rear", "tail", "pulse", "red", "rot", "rück", "brake", "behind", "puls", "blink", "flash", "seen", "visible",
    )),
    Row("service.wipe", "window cleaning", (
        "squeegee", "abzieher", "wipe", "wisch", "pane", "scheibe", "foam", "schaum", "glasklar", "clear", "klar",
        "streifen", "streak", "durchblick", "sparkl",
    )),
    Row("service.facade", "window cleaning", (
        "facade", "fassade", "house", "haus", "building", "gebäude", "front", "villa", "altbau", "windows",
        "büro", "office", "leuchte",
    )),
    Row("service.card", "window cleaning", (
        "appointment", "termin", "calendar", "kalender", "phone", "telefon", "handy", "book", "buch", "app", "online",
        "smartphone", "klick", "anruf", "festpreis",
    )),
    Row("service.street", "window cleaning", (
        "street", "straße", "strasse", "sun", "sonn", "van", "transporter", "neighbour", "nachbar", "happy", "glücklich",
        "town", "stadt", "viertel", "unterwegs", "himmel",
    )),
)  # fmt: skip

_WORD = re.compile(r"\w+")
_OWN_WORDS = 2
_SHORT = 4


def choose_set_piece(prompt: str, title: str = "") -> tuple[str, str]:
    """The set piece for a prompt, and one sentence saying why; `abstract` when none fits."""
    words = _WORD.findall(prompt.lower())
    around = _WORD.findall(title.lower())
    best, best_score, hits = ABSTRACT, 0, ""
    for row in ROWS:
        about = _found(words, SUBJECTS[row.subject])
        own = _found(words, row.words)
        if not own or not (about or _found(around, SUBJECTS[row.subject])):
            continue
        score = _OWN_WORDS * len(own) + len(about)
        if score > best_score:
            best, best_score, hits = row.name, score, ", ".join(sorted(own | about))
    if best == ABSTRACT:
        return best, "no set piece fits this prompt: brand-coloured abstract shapes were drawn instead"
    return best, f"set piece {best} fits the words {hits}"


def _found(words: list[str], beginnings: tuple[str, ...]) -> set[str]:
    """The words that begin with one of the beginnings; very short beginnings must be the whole word."""
    return {
        word
        for word in words
        if any(word == one or (len(one) >= _SHORT and word.startswith(one)) for one in beginnings)
    }
