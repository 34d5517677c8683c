"""Inspection: a finished film is measured against the promises of its composition, on the file itself."""

from videoads.renderer.inspect.check import Check, Inspection
from videoads.renderer.inspect.inspection import inspect_film
from videoads.renderer.inspect.similarity import ssim, still_frames

__all__ = ["Check", "Inspection", "inspect_film", "ssim", "still_frames"]
