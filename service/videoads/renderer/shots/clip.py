"""Files from shots: an MP4 that is nearly lossless (it will be encoded again), and single stills."""

from collections.abc import Callable
from pathlib import Path

import av
import numpy as np

from videoads.renderer.shots.request import ClipReport, ShotError, ShotRequest
from videoads.renderer.shots.shot import open_shot

KEYFRAME_EVERY = 72
# Without the macroblock tree, which answers equal frames with different files.
ENCODER_OPTIONS = {
    "crf": "15",
    "preset": "veryfast",
    "g": str(KEYFRAME_EVERY),
    "bf": "0",
    "x264-params": "mbtree=0",
}


def write_clip(
    request: ShotRequest, out: Path, *, progress: Callable[[int, int], None] | None = None
) -> ClipReport:
    """Paint every frame into `out` (H.264 in MP4). The file appears under its name only when it is whole."""
    shot = open_shot(request)
    part = out.with_name(out.name + ".part")
    try:
        with av.open(str(part), "w", format="mp4", options={"movflags": "+faststart"}) as container:
            stream = container.add_stream("libx264", rate=request.fps, options=ENCODER_OPTIONS)
            stream.width, stream.height, stream.pix_fmt = request.width, request.height, "yuv420p"
            stream.codec_context.thread_count = 1
            for index in range(request.frames):
                container.mux(
                    stream.encode(av.VideoFrame.from_ndarray(np.asarray(shot.frame(index)), format="rgb24"))
                )
                if progress is not None:
                    progress(index + 1, request.frames)
            container.mux(stream.encode())
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    return ClipReport(
        set_piece=shot.set_piece,
        frames=request.frames,
        width=request.width,
        height=request.height,
        fps=request.fps,
        seconds=round(request.frames / request.fps, 3),
        note=shot.note,
        anchors=shot.anchors,
    )


def write_still(request: ShotRequest, index: int, out: Path) -> None:
    """Paint one frame into a PNG, JPEG or WebP file (by the name's ending)."""
    if out.suffix.lower() not in {".png", ".jpg", ".jpeg", ".webp"}:
        raise ShotError("/out", f"{out.name} has no picture ending; use .png, .jpg or .webp")
    picture = open_shot(request).frame(index)
    if out.suffix.lower() == ".png":
        picture.save(out, compress_level=3)
    else:
        picture.save(out, quality=93)
