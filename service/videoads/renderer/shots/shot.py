"""Opening a shot: from a request to a thing that paints any of its frames, in any order, always the same.

The pieces paint; this module chooses one, hands it the stage, and turns a frame's number into its time.
"""

from importlib import import_module
from typing import Protocol

from PIL import Image

from videoads.renderer.shots.canvas import Camera, Canvas
from videoads.renderer.shots.match import ABSTRACT, choose_set_piece
from videoads.renderer.shots.request import ShotError, ShotRequest, check_request
from videoads.renderer.shots.stage import BOX_HEIGHT, BOX_WIDTH, Point, Stage

PIECES: dict[str, tuple[str, str]] = {
    ABSTRACT: ("abstract", "Abstract"),
    "espresso.dawn": ("espresso_dawn", "EspressoDawn"),
    "espresso.product": ("espresso_product", "EspressoProduct"),
    "espresso.pour": ("espresso_pour", "EspressoPour"),
    "espresso.triptych": ("espresso_triptych", "EspressoTriptych"),
    "light.road": ("light_road", "LightRoad"),
    "light.product": ("light_product", "LightProduct"),
    "light.ride": ("light_ride", "LightRide"),
    "light.pulse": ("light_pulse", "LightPulse"),
    "service.wipe": ("service_wipe", "ServiceWipe"),
    "service.facade": ("service_facade", "ServiceFacade"),
    "service.card": ("service_card", "ServiceCard"),
    "service.street": ("service_street", "ServiceStreet"),
}


class Piece(Protocol):
    """A set piece prepared for one stage."""

    anchors: tuple[Point, ...]

    def camera(self, t: float) -> Camera:
        """The eased camera move; `t` runs from 0 to 1 over the shot."""
        ...

    def paint(self, canvas: Canvas, t: float, seconds: float) -> None:
        """Paint the frame at `t`; `seconds` is for what moves at its own pace (steam, rain, wheels)."""
        ...


class Shot:
    """One shot: `set_piece` and `note` say what is drawn; `anchors` are points for call-outs, as shares of the frame."""

    def __init__(self, request: ShotRequest, set_piece: str, note: str, piece: Piece, stage: Stage) -> None:
        self.request = request
        self.set_piece = set_piece
        self.note = note
        self.anchors = tuple(_share(stage, anchor) for anchor in piece.anchors)
        self._piece = piece
        self._stage = stage

    def frame(self, index: int) -> Image.Image:
        """Paint frame `index`; the same index gives the same pixels whatever was painted before."""
        if not 0 <= index < self.request.frames:
            raise ShotError("/index", f"is {index}; this shot has frames 0 to {self.request.frames - 1}")
        t = index / max(1, self.request.frames - 1)
        canvas = Canvas(self._stage, self._piece.camera(t))
        self._piece.paint(canvas, t, index / self.request.fps)
        return canvas.picture


def open_shot(request: ShotRequest) -> Shot:
    """Check the request, choose its set piece and prepare it (sprites are drawn here, once)."""
    check_request(request)
    name, note = choose_set_piece(request.prompt, request.title)
    module, kind = PIECES[name]
    stage = Stage(request)
    piece: Piece = getattr(import_module(f"videoads.renderer.shots.pieces.{module}"), kind)(stage)
    return Shot(request, name, note, piece, stage)


def _share(stage: Stage, point: Point) -> Point:
    across = (point[0] + stage.left) / (BOX_WIDTH + 2 * stage.left)
    down = (point[1] + stage.top) / (BOX_HEIGHT + 2 * stage.top)
    return round(across, 4), round(down, 4)
