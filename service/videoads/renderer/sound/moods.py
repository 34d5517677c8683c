"""The moods: rows of musical taste, from which `score` composes.

A row says key, scale, harmony, motifs and groove. A new mood is a new row here, with its timbres added in
`instruments`, `drums` and `music`.
"""

from typing import Literal

import msgspec

__all__ = ["MOODS", "Drum", "Mood", "MoodName", "Motif"]

MoodName = Literal["warm", "bold", "clean"]

Drum = Literal["kick", "snare", "rim", "clap", "hat", "open_hat", "shaker", "tom", "crash"]

Degrees = tuple[tuple[int, tuple[int, ...]], ...]
Motif = tuple[tuple[float, float, int], ...]


class Mood(msgspec.Struct, frozen=True):
    """A row of taste: key, scale, harmony, motifs (beat, beats, step of the scale) and groove (sixteenths)."""

    key: int
    scale: tuple[int, ...]
    verse: Degrees
    tension: tuple[int, tuple[int, ...]]
    arrival: Degrees
    home: tuple[int, tuple[int, ...]]
    motifs: tuple[Motif, ...]
    answer: Motif
    logo: tuple[tuple[float, int], ...]
    swing: float
    kick: str
    back: str
    back_drum: Drum
    ghost: str
    hat: str
    hat_drum: Drum
    bass: str
    chord_rhythm: str
    arp: str


MOODS: dict[MoodName, Mood] = {
    # E flat major with sevenths and ninths; a lazy, swung kitchen groove.
    "warm": Mood(
        key=51,
        scale=(0, 2, 4, 5, 7, 9, 11),
        verse=((0, (4, 7, 11, 14)), (9, (12, 16, 19, 23)), (5, (9, 12, 16, 19)), (2, (5, 9, 12, 16))),
        tension=(7, (12, 17, 21, 14)),
        arrival=((0, (4, 7, 11, 14)), (5, (9, 12, 16, 19)), (7, (11, 14, 17, 21))),
        home=(0, (4, 7, 14, 16)),
        motifs=(
            ((0.5, 0.5, 9), (1.0, 0.5, 11), (1.5, 1.0, 9), (2.75, 0.25, 8), (3.0, 1.0, 7)),
            ((0.5, 0.25, 7), (0.75, 0.25, 8), (1.0, 1.0, 9), (2.5, 0.5, 11), (3.0, 1.0, 9)),
        ),
        answer=((0.0, 0.75, 11), (0.75, 0.75, 9), (1.5, 0.5, 8), (2.0, 0.5, 9), (2.5, 0.5, 7), (3.0, 1.0, 8)),
        logo=((0.0, 7), (0.5, 9), (1.0, 11), (1.5, 14)),
        swing=0.16,
        kick="x.....x...x.....",
        back="....x.......x...",
        back_drum="rim",
        ghost=".......g.g.....g",
        hat="x.xxx.xxx.xxx.xx",
        hat_drum="shaker",
        bass="x..x..x...x..x..",
        chord_rhythm="x.....x.....x...",
        arp="",
    ),
    # D minor; a half-time beat that hits hard, sixteenths driving under it.
    "bold": Mood(
        key=50,
        scale=(0, 2, 3, 5, 7, 8, 10),
        verse=((0, (0, 7, 12, 15)), (8, (8, 12, 15, 20)), (3, (3, 7, 10, 15)), (10, (10, 14, 17, 22))),
        tension=(7, (7, 12, 14, 19)),
        arrival=((0, (0, 7, 15, 19)), (8, (8, 12, 15, 20)), (10, (10, 14, 17, 22))),
        home=(0, (0, 7, 12, 19)),
        motifs=(
            ((0.0, 0.75, 7), (0.75, 0.75, 7), (1.5, 0.5, 9), (2.0, 1.25, 8), (3.5, 0.5, 6)),
            ((0.0, 0.5, 11), (0.75, 0.5, 9), (1.5, 1.0, 7), (3.0, 0.5, 8), (3.5, 0.5, 9)),
        ),
        answer=((0.0, 0.75, 9), (0.75, 0.75, 8), (1.5, 0.5, 7), (2.0, 1.0, 10), (3.0, 1.0, 11)),
        logo=((0.0, 7), (0.75, 11), (1.5, 14)),
        swing=0.0,
        kick="x.....x...x..x..",
        back="........x.......",
        back_drum="snare",
        ghost="...............g",
        hat="x.x.x.xxx.x.x.xx",
        hat_drum="hat",
        bass="x.xxx.xxx.xxx.xx",
        chord_rhythm="x..x..x.........",
        arp="x.xx.xx.x.xx.xx.",
    ),
    # G major; light four to the floor, marimba figures, claps.
    "clean": Mood(
        key=55,
        scale=(0, 2, 4, 5, 7, 9, 11),
        verse=((0, (0, 4, 7, 14)), (7, (7, 11, 14, 19)), (9, (9, 12, 16, 19)), (5, (5, 9, 12, 19))),
        tension=(7, (7, 12, 14, 17)),
        arrival=((0, (0, 4, 7, 14)), (5, (5, 9, 12, 16)), (7, (7, 11, 14, 19))),
        home=(0, (0, 4, 7, 12)),
        motifs=(
            ((0.0, 0.5, 9), (0.5, 0.5, 11), (1.5, 0.5, 9), (2.0, 0.5, 8), (3.0, 1.0, 7)),
            ((0.0, 0.5, 7), (0.5, 0.5, 8), (1.0, 1.0, 9), (2.5, 0.5, 11), (3.0, 1.0, 12)),
        ),
        answer=((0.0, 0.5, 11), (0.5, 0.5, 9), (1.0, 0.5, 8), (1.5, 1.0, 9), (2.5, 0.5, 7), (3.0, 1.0, 8)),
        logo=((0.0, 7), (0.5, 11), (1.0, 9), (1.5, 14)),
        swing=0.0,
        kick="x...x...x...x...",
        back="....x.......x...",
        back_drum="clap",
        ghost="..............g.",
        hat="..x...x...x...x.",
        hat_drum="open_hat",
        bass="x.....x.x...x.x.",
        chord_rhythm="..x..x....x..x..",
        arp="x.xx.x.xx.xx.x.x",
    ),
}
