"""Shots: the ad's moving pictures, drawn from vector art in the brand's colours.

Words, captions and the closing card are laid over them by the film; sound is made elsewhere.
"""

from videoads.renderer.shots.clip import write_clip, write_still
from videoads.renderer.shots.match import choose_set_piece
from videoads.renderer.shots.request import ClipReport, Palette, ShotError, ShotRequest
from videoads.renderer.shots.shot import PIECES, Shot, open_shot

__all__ = [
    "PIECES",
    "ClipReport",
    "Palette",
    "Shot",
    "ShotError",
    "ShotRequest",
    "choose_set_piece",
    "open_shot",
    "write_clip",
    "write_still",
]
