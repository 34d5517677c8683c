"""Reads what a create asks for, prices it, and turns it into the request of the program that makes the media.

A wrong request is refused with a sentence that says where it is wrong; nothing is guessed.
"""

import base64
import binascii
import hashlib
import math
import re
from pathlib import Path
from typing import Any

import msgspec

from videoads.providers.synthetic.asgi import Malformed
from videoads.providers.synthetic.faults import Style
from videoads.providers.synthetic.jobs import Job, WebhookOrder, write_whole
from videoads.providers.synthetic.making import MediaKind

KINDS: dict[Style, MediaKind] = {
    "clips": "clip",
    "stills": "still",
    "voice": "voice",
    "music": "music",
    "render": "film",
}
TINY_FRAMES_MAX = 24
TINY_EDGES = (90, 160)
FRAMES_PER_UNIT = 72
CHARACTERS_PER_UNIT = 100
_TOKEN = re.compile(r"[A-Za-z0-9_-]{0,64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A create that can be read: what to make, for whose token, at what price."""

    style: Style
    token: str
    request: dict[str, Any]
    content_digest: str
    body_sha256: str
    cost: int
    webhook: WebhookOrder | None = None


class Shelf:
    """Uploaded inputs, named by their own digest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, sha256: str, content: bytes) -> None:
        """Keep an upload; Malformed when its bytes are not what its name says."""
        actual = hashlib.sha256(content).hexdigest()
        if actual != sha256:
            raise Malformed(f"the bytes have digest {actual}, the address says {sha256}")
        write_whole(self._folder / sha256, content)

    def has(self, sha256: str) -> bool:
        """Whether this upload is here."""
        return _SHA256.fullmatch(sha256) is not None and (self._folder / sha256).exists()

    def path(self, sha256: str) -> str:
        """Where an upload lies; the maker reads it there."""
        return str(self._folder / sha256)


def read_order(style: Style, document: dict[str, Any], body: bytes, shelf: Shelf) -> Order:
    """The order in this create, or Malformed, which says what is wrong with it."""
    token_field, request_field = {
        "clips": ("external_task_id", "shot"),
        "stills": ("external_task_id", "shot"),
        "voice": ("token", "speech"),
        "music": ("token", "plan"),
        "render": ("out_name", "composition"),
    }[style]
    token = document.get(token_field, "")
    if not isinstance(token, str) or _TOKEN.fullmatch(token) is None:
        raise Malformed(f"/{token_field}: at most 64 characters of A-Z a-z 0-9 _ -")
    wanted = document.get(request_field)
    if not isinstance(wanted, dict):
        raise Malformed(f"/{request_field}: an object is required")
    request = {request_field: wanted, **_attachments(style, document, shelf)}
    if style in ("clips", "stills"):
        _require_shot(wanted)
    content = hashlib.sha256(style.encode() + msgspec.json.encode(request, order="sorted")).hexdigest()
    return Order(
        style=style,
        token=token,
        request=request,
        content_digest=content,
        body_sha256=hashlib.sha256(body).hexdigest(),
        cost=price(style, wanted),
        webhook=_webhook(document) if style == "render" else None,
    )


def price(style: Style, wanted: dict[str, Any]) -> int:
    """What a job costs, in the provider's units: by frames, by characters, or flat."""
    match style:
        case "clips":
            return 3 * math.ceil(int(wanted["frames"]) / FRAMES_PER_UNIT)
        case "stills":
            return 1
        case "voice":
            return max(1, math.ceil(len(str(wanted.get("lines", ""))) / CHARACTERS_PER_UNIT))
        case "music":
            return 2
        case "render":
            return 3


def maker_request(job: Job, shelf: Shelf, *, tiny: bool) -> dict[str, Any]:
    """The request as the media program wants it, uploads replaced by their paths."""
    match job.style:
        case "clips" | "stills":
            shot = dict(job.request["shot"])
            if picture := job.request.get("product_picture_sha256"):
                shot["product_picture"] = shelf.path(picture)
            return _shrunk(shot) if tiny else shot
        case "voice":
            return dict(job.request["speech"])
        case "music":
            return dict(job.request["plan"])
        case "render":
            media = {key: shelf.path(sha256) for key, sha256 in job.request["media"].items()}
            return {"composition": job.request["composition"], "media": media}


def _shrunk(shot: dict[str, Any]) -> dict[str, Any]:
    short, long = TINY_EDGES
    upright = shot["height"] >= shot["width"]
    shot["width"] = min(shot["width"], short if upright else long)
    shot["height"] = min(shot["height"], long if upright else short)
    shot["frames"] = min(shot["frames"], TINY_FRAMES_MAX)
    return shot


def _require_shot(shot: dict[str, Any]) -> None:
    for name in ("frames", "width", "height"):
        value = shot.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 4096:
            raise Malformed(f"/shot/{name}: a whole number from 1 to 4096 is required, not {value!r}")
    if not isinstance(shot.get("prompt"), str) or not shot["prompt"].strip():
        raise Malformed("/shot/prompt: a text is required")


def _attachments(style: Style, document: dict[str, Any], shelf: Shelf) -> dict[str, Any]:
    if style in ("clips", "stills"):
        picture = document.get("product_picture_sha256")
        if picture is None:
            return {}
        if not isinstance(picture, str) or not shelf.has(picture):
            raise Malformed("/product_picture_sha256: no such upload")
        return {"product_picture_sha256": picture}
    if style != "render":
        return {}
    media = document.get("media", {})
    if not isinstance(media, dict):
        raise Malformed("/media: an object of keys and digests is required")
    for key, sha256 in media.items():
        if not isinstance(sha256, str) or not shelf.has(sha256):
            raise Malformed(f"/media/{key}: no such upload")
    return {"media": media}


def _webhook(document: dict[str, Any]) -> WebhookOrder | None:
    wanted = document.get("webhook")
    if wanted is None:
        return None
    if not isinstance(wanted, dict) or not isinstance(wanted.get("url"), str):
        raise Malformed("/webhook/url: a text is required")
    if not wanted["url"].startswith(("http://", "https://")):
        raise Malformed("/webhook/url: an http or https address is required")
    secret = wanted.get("secret")
    if not isinstance(secret, str) or not _is_secret(secret):
        raise Malformed("/webhook/secret: whsec_ and base64 is required")
    custom_data = wanted.get("custom_data", {})
    if not isinstance(custom_data, dict):
        raise Malformed("/webhook/custom_data: an object is required")
    return WebhookOrder(url=wanted["url"], secret=secret, custom_data=custom_data)


def _is_secret(text: str) -> bool:
    try:
        return text.startswith("whsec_") and bool(
            base64.b64decode(text.removeprefix("whsec_"), validate=True)
        )
    except binascii.Error:
        return False
