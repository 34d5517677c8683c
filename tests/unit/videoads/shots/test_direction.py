"""Every set piece is directed: at least three depths that part under the camera, and a move that eases."""

from importlib import import_module
from importlib.resources import files

import pytest

from kit.shot_requests import PROMPTS, small_request
from videoads.renderer.shots.canvas import Camera, Canvas
from videoads.renderer.shots.shot import PIECES, Piece
from videoads.renderer.shots.stage import Stage

ALL = sorted(PROMPTS)


class Watched(Canvas):
    """A canvas that remembers at which depths something was placed."""

    def __init__(self, stage: Stage, camera: Camera) -> None:
        super().__init__(stage, camera)
        self.depths: set[float] = set()

    def zoom(self, depth: float) -> float:
        self.depths.add(round(depth, 1))
        return super().zoom(depth)


def piece_of(name: str) -> tuple[Piece, Stage]:
    module, kind = PIECES[name]
    stage = Stage(small_request(name))
    return getattr(import_module(f"videoads.renderer.shots.pieces.{module}"), kind)(stage), stage


def depths_of(piece: Piece, stage: Stage) -> set[float]:
    canvas = Watched(stage, piece.camera(0.5))
    piece.paint(canvas, 0.5, 0.4)
    return canvas.depths


def speeds_of(piece: Piece) -> tuple[float, float, float]:
    """How fast the camera is at the beginning, in the middle and at the end (shift and zoom together)."""

    def way(first: float, last: float) -> float:
        a, b = piece.camera(first), piece.camera(last)
        return abs(a.x - b.x) + abs(a.y - b.y) + 500 * abs(a.zoom - b.zoom)

    return way(0.0, 0.05), way(0.475, 0.525), way(0.95, 1.0)


class Flat:
    """A piece nobody should sign: one depth, a camera that does not ease."""

    anchors = ((1.0, 1.0), (2.0, 2.0))

    def camera(self, t: float) -> Camera:
        return Camera(x=60 * t)

    def paint(self, canvas: Canvas, t: float, seconds: float) -> None:
        canvas.polygon([(0, 0), (700, 0), (300 + 9 * t, 900)], (200, 10, 10))


@pytest.mark.parametrize("name", [name for name in ALL if name != "espresso.triptych"])
def test_a_piece_has_three_depths_at_least(name: str) -> None:
    depths = depths_of(*piece_of(name))

    assert len(depths) >= 3
    assert max(depths) - min(depths) >= 0.5


def test_each_panel_of_the_triptych_has_three_depths(monkeypatch: pytest.MonkeyPatch) -> None:
    """The triptych's panels have canvases of their own, so each of them is watched."""
    watched: list[Watched] = []

    def watch(stage: Stage, camera: Camera) -> Watched:
        watched.append(Watched(stage, camera))
        return watched[-1]

    piece, stage = piece_of("espresso.triptych")
    monkeypatch.setattr("videoads.renderer.shots.pieces.espresso_triptych.Canvas", watch)
    piece.paint(Canvas(stage, piece.camera(0.9)), 0.9, 0.7)

    assert [len(canvas.depths) >= 2 for canvas in watched] == [True] * 3
    assert len(set().union(*(canvas.depths for canvas in watched))) >= 3


@pytest.mark.parametrize("name", [name for name in ALL if name != "espresso.triptych"])
def test_the_camera_begins_and_ends_slowly(name: str) -> None:
    begin, middle, end = speeds_of(piece_of(name)[0])

    assert middle > 1
    assert max(begin, end) < middle / 3


def test_a_flat_piece_with_a_stiff_camera_would_be_seen() -> None:
    """Both checks above can fail."""
    flat = Flat()
    begin, middle, _ = speeds_of(flat)

    assert len(depths_of(flat, Stage(small_request()))) < 3
    assert begin >= middle / 3


def test_every_drawing_is_used_by_a_piece() -> None:
    package = files("videoads.renderer.shots")
    sources = [entry for entry in package.iterdir() if entry.name.endswith(".py")]
    sources += [entry for entry in package.joinpath("pieces").iterdir() if entry.name.endswith(".py")]
    code = (
        "\n".join(entry.read_text("utf-8") for entry in sources)
        + '"room_kitchen" "room_desk" "room_train" "room_terrace"'
    )

    unused = [entry.name for entry in package.joinpath("art").iterdir() if f'"{entry.name[:-4]}"' not in code]
    assert unused == []
