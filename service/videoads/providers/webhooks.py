"""Decides whether a signed webhook (Standard Webhooks) is authentic, over the raw bytes and before any parsing.

Every malformed input is `Forged` with a reason, never an exception. Storing, de-duplicating and answering are
left to the callback inbox.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from videoads.providers.contract import Authentic, Forged, VerifyOutcome

TOLERANCE_SECONDS = 300
SIGNATURES_MAX = 16
SECRET_BYTES_MIN = 24

# Strict on purpose: a timestamp that needs rounding was not the one that was signed.
_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_MESSAGE_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


class WebhookVerifier:
    """Knows the secrets that are active now; two during a rotation."""

    def __init__(self, secrets: Sequence[str]) -> None:
        if not secrets:
            raise ValueError("a webhook verifier needs at least one secret")
        self._keys = tuple(webhook_key(secret) for secret in secrets)

    def verify(self, headers: Mapping[str, str], raw: bytes, *, now: datetime | None = None) -> VerifyOutcome:
        """`Authentic` only if one of the signatures was made by one of our secrets within five minutes of now."""
        named = {name.lower(): value for name, value in headers.items()}
        message_id = named.get("webhook-id", "")
        timestamp = named.get("webhook-timestamp", "")
        signatures = named.get("webhook-signature", "").split(" ")
        if _MESSAGE_ID.fullmatch(message_id) is None:
            return Forged(reason="webhook-id is missing or malformed")
        if _TIMESTAMP.fullmatch(timestamp) is None:
            return Forged(reason="webhook-timestamp is missing or not whole seconds")
        moment = (now or datetime.now(UTC)).timestamp()
        if abs(moment - int(timestamp)) > TOLERANCE_SECONDS:
            return Forged(reason=f"webhook-timestamp is more than {TOLERANCE_SECONDS} seconds from now")
        if len(signatures) > SIGNATURES_MAX:
            return Forged(reason=f"more than {SIGNATURES_MAX} signatures")
        content = b".".join((message_id.encode(), timestamp.encode(), raw))
        expected = [hmac.new(key, content, hashlib.sha256).digest() for key in self._keys]
        given = [_signature(text) for text in signatures]
        # Each pair is compared, so the time taken says nothing about which one matched.
        matches = [
            hmac.compare_digest(ours, theirs) for ours in expected for theirs in given if theirs is not None
        ]
        if not any(matches):
            return Forged(reason="no signature was made with an active secret")
        sent_at = datetime.fromtimestamp(int(timestamp), UTC)
        return Authentic(dedupe_key=message_id, sent_at=sent_at, body=raw)


def webhook_key(secret: str) -> bytes:
    """The bytes of a `whsec_` secret; a ValueError says what is wrong with it, without showing it."""
    if not secret.startswith("whsec_"):
        raise ValueError("a webhook secret begins with whsec_")
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error as error:
        raise ValueError("a webhook secret is whsec_ and base64") from error
    if len(key) < SECRET_BYTES_MIN:
        raise ValueError(f"a webhook secret has at least {SECRET_BYTES_MIN} bytes, this one has {len(key)}")
    return key


def _signature(text: str) -> bytes | None:
    version, _, encoded = text.partition(",")
    if version != "v1":
        return None
    try:
        return base64.b64decode(encoded.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return None
