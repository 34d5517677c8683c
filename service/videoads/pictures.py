"""Pictures that come with a brief: what kind of file they are, and whether they can be trusted and opened.

An SVG is read as XML and refused when it could run, load or expand anything. Bitmaps are decoded when
Pillow is installed (it comes with the renderer); without it their headers decide, and the renderer looks again.
"""

from __future__ import annotations

import io
from xml.etree import ElementTree

__all__ = ["PictureProblem", "check_picture", "media_type_of"]

PIXELS_MAX = 24_000_000

_FORBIDDEN_ELEMENTS = {
    "script",
    "foreignobject",
    "iframe",
    "image",
    "audio",
    "video",
    "animate",
    "set",
    "text",
}


class PictureProblem(ValueError):
    """Why a picture cannot be used, and what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        self.remedy = remedy
        super().__init__(message)


def media_type_of(content: bytes) -> str:
    """Return the media type that the bytes themselves show, or `application/octet-stream`."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    if b"<svg" in content[:4096]:
        return "image/svg+xml"
    return "application/octet-stream"


def check_picture(content: bytes, media_type: str) -> None:
    """Raise `PictureProblem` unless the picture can be opened and is harmless."""
    if media_type == "image/svg+xml":
        _check_svg(content)
    else:
        _check_bitmap(content)


def _check_svg(content: bytes) -> None:
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise PictureProblem("the SVG declares a document type", "remove the DOCTYPE and all entities")
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise PictureProblem(f"the SVG is not well-formed: {error}", "export the SVG again") from error
    if _local(root.tag) != "svg":
        raise PictureProblem(f"the root element is {_local(root.tag)}", "give an SVG document")
    for element in root.iter():
        name = _local(element.tag).lower()
        if name == "text":
            raise PictureProblem("the SVG contains text, drawn with unknown fonts", "convert text to paths")
        if name in _FORBIDDEN_ELEMENTS:
            raise PictureProblem(f"the SVG contains a {name} element", "keep to drawn shapes and gradients")
        for attribute, value in element.attrib.items():
            key = _local(attribute).lower()
            if key.startswith("on"):
                raise PictureProblem(f"the SVG has a script in {key}", "remove event attributes")
            if key == "href" and not value.startswith("#"):
                raise PictureProblem("the SVG refers to something outside itself", "embed what it needs")
            if "url(" in value.replace("url(#", "") or "@import" in value:
                raise PictureProblem("the SVG refers to something outside itself", "embed what it needs")
        if name == "style" and element.text and ("@import" in element.text or "url(" in element.text):
            raise PictureProblem("the SVG's style loads something", "keep to colours and strokes")


def _check_bitmap(content: bytes) -> None:
    try:
        from PIL import Image
    except ImportError:  # the service itself is installed without the renderer; the header was looked at
        return
    try:
        with Image.open(io.BytesIO(content)) as image:
            if image.width * image.height > PIXELS_MAX:
                message = f"the picture has {image.width} x {image.height} pixels"
                raise PictureProblem(
                    message, f"give a picture of at most {PIXELS_MAX // 1_000_000} megapixels"
                )
            image.load()
    except PictureProblem:
        raise
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise PictureProblem(f"the picture cannot be opened: {error}", "save or export it again") from error


def _local(name: object) -> str:
    return str(name).rpartition("}")[2]
