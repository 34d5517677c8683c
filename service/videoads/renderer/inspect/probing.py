"""`python -m videoads.renderer.inspect.probing FILE`: what a file is, as one JSON object of whole numbers and words.

A film, a sound, a picture, or unknown; a file that no reader opens is unknown, and why is said. Judges nothing: a film
is held to its promises by `inspection`.
"""

import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import av.error
import msgspec
from PIL import Image, UnidentifiedImageError

from videoads.renderer.inspect.container import file_sha256, top_level_boxes

STILLS = frozenset({"png", "mjpeg", "webp", "gif", "bmp"})
"""Codecs that a container reader takes for a film of one picture."""


def probe(path: Path) -> dict[str, Any]:
    """What the file is, by its content alone."""
    about: dict[str, Any] = {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
    picture = _picture(path)
    return about | (picture if picture is not None else _container(path))


def _picture(path: Path) -> dict[str, Any] | None:
    try:
        with Image.open(path) as image:
            return {
                "kind": "picture",
                "format": str(image.format).lower(),
                "width": image.width,
                "height": image.height,
                "frames": int(getattr(image, "n_frames", 1)),
            }
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError):
        return None


def _container(path: Path) -> dict[str, Any]:
    try:
        with av.open(str(path)) as container:
            films = [stream for stream in container.streams.video if stream.codec_context.name not in STILLS]
            sounds = list(container.streams.audio)
            if not films and not sounds:
                return {"kind": "unknown", "reason": "the container holds neither pictures nor sound"}
            found: dict[str, Any] = {
                "kind": "film" if films else "sound",
                "format": container.format.name,
                "duration_ms": 0 if container.duration is None else container.duration // 1000,
            }
            if films:
                film = films[0].codec_context
                rate = Fraction(films[0].average_rate or 0)
                found |= {
                    "video_codec": film.name,
                    "width": film.width,
                    "height": film.height,
                    "frame_rate": f"{rate.numerator}/{rate.denominator}",
                    "frames": films[0].frames,
                    "index_first": _index_first(path),
                }
            if sounds:
                sound = sounds[0].codec_context
                found |= {
                    "audio_codec": sound.name,
                    "sample_rate": sound.sample_rate,
                    "channels": sound.channels,
                }
            return found
    except (av.error.FFmpegError, OSError) as error:
        return {"kind": "unknown", "reason": f"no reader opens it: {error.strerror or error}"}


def _index_first(path: Path) -> bool:
    """Whether playing can begin before the whole file is there."""
    boxes = top_level_boxes(path)
    if "moov" not in boxes or "mdat" not in boxes:
        return True
    return boxes.index("moov") < boxes.index("mdat")


def main(arguments: list[str]) -> int:
    """Print what the one given file is; 2 when it cannot be read."""
    if len(arguments) != 1 or not Path(arguments[0]).is_file():
        print("give the path of one file", file=sys.stderr)
        return 2
    sys.stdout.write(msgspec.json.encode(probe(Path(arguments[0]))).decode() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
