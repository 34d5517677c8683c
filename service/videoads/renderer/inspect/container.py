"""The file as an object: is it there, is it the promised one, and does a player reach its index first.

Nothing here decodes a picture; that is `decoding`.
"""

import hashlib
import struct
from pathlib import Path

from videoads.renderer.inspect.check import Check, failed, passed

READ_BYTES = 1 << 20
BOXES_MAX = 10_000


def check_object(path: Path, *, expected_bytes: int | None) -> Check:
    """The object exists, is not empty and has the size its producer reported."""
    expected = "a file that is not empty" if expected_bytes is None else f"a file of {expected_bytes} bytes"
    if not path.is_file():
        return failed(
            "object",
            f"no file at {path.name}",
            expected,
            remedy="The producer reported success without storing anything: run the step again",
        )
    size = path.stat().st_size
    if size == 0 or (expected_bytes is not None and size != expected_bytes):
        return failed(
            "object",
            f"{size} bytes",
            expected,
            remedy="The stored object is not what was produced: store it again",
        )
    return passed("object", f"{size} bytes", expected)


def check_digest(path: Path, *, expected_sha256: str | None) -> Check:
    """The bytes are those the producer named by their SHA-256."""
    measured = file_sha256(path)
    if expected_sha256 is None:
        return passed("digest", f"sha256 {measured}", "any digest (none was given)")
    if measured != expected_sha256.lower():
        return failed(
            "digest",
            f"sha256 {measured}",
            f"sha256 {expected_sha256.lower()}",
            remedy="The bytes changed after they were produced: fetch or store the object again",
        )
    return passed("digest", f"sha256 {measured}", f"sha256 {expected_sha256.lower()}")


def check_index_first(path: Path) -> Check:
    """In an MP4 the index (moov) comes before the media (mdat), so that playing starts at once."""
    expected = "moov before mdat"
    boxes = top_level_boxes(path)
    if "ftyp" not in boxes[:1]:
        return passed("index_first", "not an MP4: the question does not arise", expected)
    if "moov" in boxes and "mdat" in boxes and boxes.index("moov") < boxes.index("mdat"):
        return passed("index_first", " ".join(boxes), expected)
    return failed("index_first", " ".join(boxes), expected, remedy="Write the file with movflags=+faststart")


def top_level_boxes(path: Path) -> list[str]:
    """Names of the outermost MP4 boxes in file order; an empty list when the file is no MP4."""
    names: list[str] = []
    size_of_file = path.stat().st_size
    with path.open("rb") as file:
        position = 0
        while position + 8 <= size_of_file and len(names) < BOXES_MAX:
            file.seek(position)
            size, kind = struct.unpack(">I4s", file.read(8))
            if not kind.isascii() or not kind.strip().isalnum():
                break
            if size == 1:
                wide = file.read(8)
                if len(wide) < 8:
                    break
                size = struct.unpack(">Q", wide)[0]
            names.append(kind.decode("ascii"))
            if size == 0:
                break
            if size < 8:
                break
            position += size
    return names


def file_sha256(path: Path) -> str:
    """SHA-256 of the file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()
